/** How an arm looks: a colour (after Okabe and Ito, safe for colour-blind readers), a dash and a marker. */

export type Marker = "circle" | "square" | "triangle" | "diamond";

export interface ArmStyle {
  /** A CSS variable, so that light and dark mode each have their own shade. */
  colour: string;
  dash: string;
  marker: Marker;
}

const COLOURS = 6;
const MARKERS: readonly Marker[] = ["circle", "square", "triangle", "diamond"];
const DASHES = ["none", "7 3", "2 3"];

/** By position in the search. Colours repeat after six arms, with another dash. */
export function armStyle(index: number): ArmStyle {
  return {
    colour: `var(--arm-${index % COLOURS})`,
    dash: DASHES[Math.floor(index / COLOURS) % DASHES.length] as string,
    marker: MARKERS[index % MARKERS.length] as Marker,
  };
}

/** The outline of a marker of radius r around the origin, as an SVG path. */
export function markerPath(marker: Marker, r: number): string {
  const k = r * 0.9;
  switch (marker) {
    case "circle":
      return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
    case "square":
      return `M${-k},${-k}H${k}V${k}H${-k}Z`;
    case "triangle":
      return `M0,${-r * 1.2}L${r * 1.1},${k}H${-r * 1.1}Z`;
    case "diamond":
      return `M0,${-r * 1.25}L${r * 1.25},0L0,${r * 1.25}L${-r * 1.25},0Z`;
  }
}
