/** Step curves as data: pure functions, no drawing. */
import { bisector } from "d3-array";

export interface Point {
  x: number;
  y: number;
  /** The iteration the value belongs to, whatever x is. */
  t: number;
}

/** Points in the order of x; y holds from its x until the next point's. */
export type Steps = readonly Point[];

/** Curve columns to points; columns may differ in length while a search runs: the shortest counts. */
export function steps(t: readonly number[], x: readonly number[], y: readonly number[]): Steps {
  const length = Math.min(t.length, x.length, y.length);
  return Array.from({ length }, (_, i) => ({ t: t[i] as number, x: x[i] as number, y: y[i] as number }));
}

const rightOf = bisector<Point, number>((point) => point.x).right;

/** The point in force at x, `undefined` before the first. */
export const at = (curve: Steps, x: number): Point | undefined => curve[rightOf(curve, x) - 1];

export const last = (curve: Steps): Point | undefined => curve[curve.length - 1];

/** Only the points where the value changes, and both ends: draws the same line. */
export function thinned(curve: Steps): Steps {
  return curve.filter((point, i) => i === 0 || i === curve.length - 1 || point.y !== curve[i - 1]?.y);
}

const leftOf = bisector<Point, number>((point) => point.x).left;

const xs = (points: readonly (Point | undefined)[]): number[] => points.flatMap((point) => (point ? [point.x] : []));

const closest = (candidates: readonly number[], x: number): number | undefined =>
  candidates.length === 0
    ? undefined
    : candidates.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best));

/** The x of the next point in a direction over all curves; stays where there is none. x may be infinite. */
export function neighbour(curves: readonly Steps[], x: number, direction: -1 | 1): number {
  const next = xs(curves.map((curve) => (direction > 0 ? curve[rightOf(curve, x)] : curve[leftOf(curve, x) - 1])));
  if (next.length === 0) return x;
  return direction > 0 ? Math.min(...next) : Math.max(...next);
}

/** The x of the point nearest to x over all curves, `undefined` where there are no points. */
export function nearest(curves: readonly Steps[], x: number): number | undefined {
  return closest(xs(curves.flatMap((curve) => [at(curve, x), curve[rightOf(curve, x)]])), x);
}

/** Values of the curves as CSV, one row per arm and iteration. */
export function csv(rows: readonly Record<string, string | number>[]): string {
  const header = Object.keys(rows[0] ?? {});
  const quote = (value: string | number) =>
    typeof value === "string" && /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
  return [header, ...rows.map((row) => header.map((name) => row[name] ?? ""))]
    .map((cells) => `${cells.map(quote).join(",")}\n`)
    .join("");
}
