/** Step curves of several arms with a read-out that follows pointer and keyboard. */
import type { Signal } from "@preact/signals";
import { type ScaleLinear, scaleLinear } from "d3-scale";
import { curveStepAfter, line } from "d3-shape";
import { useId, useMemo, useRef } from "preact/hooks";
import { useWidth } from "../components/hooks";
import { type ArmStyle, markerPath } from "./arms";
import { at, last, nearest, neighbour, type Point, type Steps, thinned } from "./steps";

export interface Series {
  name: string;
  style: ArmStyle;
  curve: Steps;
  /** The last iteration that every run has reached; later values may still rise, and are drawn faint. */
  settled: number;
}

export interface Props {
  title: string;
  /** One sentence on what is drawn, under the title. */
  caption: string;
  series: readonly Series[];
  yMax: number;
  /** Only whole numbers are marked on the y axis. */
  whole?: boolean;
  yTick: (y: number) => string;
  /** The exact value in the read-out. */
  read: (point: Point, series: Series) => string;
  xLabel: string;
  xMax: number;
  xTick: (x: number) => string;
  xRead: (x: number) => string;
  /** The x under the pointer, shared by the charts of one page. */
  cursor: Signal<number | undefined>;
}

const HEIGHT = 268;
const MARGIN = { top: 12, right: 16, bottom: 38, left: 44 };

export function StepChart(props: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const titleId = useId();
  const x = scaleLinear([0, Math.max(props.xMax, 1)], [MARGIN.left, Math.max(width - MARGIN.right, MARGIN.left + 1)]);
  const y = scaleLinear([0, props.yMax], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  return (
    <figure class="chart" aria-labelledby={titleId}>
      <figcaption>
        <h3 id={titleId}>{props.title}</h3>
        <p>{props.caption}</p>
      </figcaption>
      <div class="chart-frame" ref={frame}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            <Axes {...props} x={x} y={y} />
            {props.series.map((series) => (
              <Line key={series.name} series={series} x={x} y={y} />
            ))}
            <Cursor {...props} x={x} y={y} />
          </svg>
        )}
        <Pointer {...props} x={x} width={width} labelledBy={titleId} />
        <ReadOut {...props} x={x} width={width} />
      </div>
    </figure>
  );
}

interface Scales {
  x: ScaleLinear<number, number>;
  y: ScaleLinear<number, number>;
}

function Axes({ x, y, whole, yTick, xTick, xLabel }: Props & Scales) {
  const [left, right] = x.range() as [number, number];
  const yTicks = y.ticks(5).filter((value) => !whole || Number.isInteger(value));
  const xTicks = x.ticks(Math.max(2, Math.floor((right - left) / 80)));
  const bottom = HEIGHT - MARGIN.bottom;
  return (
    <g class="axes">
      {yTicks.map((value) => (
        <g key={value} transform={`translate(0,${y(value)})`}>
          <line x1={left} x2={right} class={value === 0 ? "base" : "grid"} />
          <text x={left - 8} dy="0.32em" text-anchor="end">
            {yTick(value)}
          </text>
        </g>
      ))}
      {xTicks.map((value) => (
        <g key={value} transform={`translate(${x(value)},${bottom})`}>
          <line y2="4" class="base" />
          <text y="17" text-anchor={value === x.domain()[1] ? "end" : "middle"}>
            {xTick(value)}
          </text>
        </g>
      ))}
      <text class="axis-label" x={right} y={HEIGHT - 4} text-anchor="end">
        {xLabel}
      </text>
    </g>
  );
}

function Line({ series, x, y }: { series: Series } & Scales) {
  const { curve, style, settled } = series;
  const [firm, open] = useMemo(() => {
    const path = line<Point>((point) => x(point.x), (point) => y(point.y)).curve(curveStepAfter);
    const cut = curve.findIndex((point) => point.t > settled);
    const parts = cut < 0 ? [curve] : [curve.slice(0, cut), curve.slice(Math.max(0, cut - 1))];
    return parts.map((part) => path([...thinned(part)]) ?? "");
  }, [curve, settled, x.range()[1], x.domain()[1], y.domain()[1]]);
  const end = last(curve);
  if (!end) return null;
  return (
    <g class="series" style={{ "--colour": style.colour }}>
      <path class="curve" d={firm} stroke-dasharray={style.dash} />
      {open && <path class="curve open" d={open} stroke-dasharray={style.dash} />}
      <path class="marker" d={markerPath(style.marker, 4)} transform={`translate(${x(end.x)},${y(end.y)})`} />
    </g>
  );
}

function Cursor({ series, cursor, x, y }: Props & Scales) {
  const value = cursor.value;
  if (value === undefined || value > (x.domain()[1] as number)) return null;
  return (
    <g class="cursor">
      <line x1={x(value)} x2={x(value)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />
      {series.map(({ name, curve, style }) => {
        const point = at(curve, value);
        if (!point) return null;
        const d = markerPath(style.marker, 4.5);
        const place = `translate(${x(value)},${y(point.y)})`;
        return <path key={name} class="marker" style={{ "--colour": style.colour }} d={d} transform={place} />;
      })}
    </g>
  );
}

/** The layer that takes pointer and keyboard; a slider to assistive technology, whose text is the read-out. */
function Pointer(props: Props & { x: Scales["x"]; width: number; labelledBy: string }) {
  const { cursor, series, x, width } = props;
  const curves = series.map(({ curve }) => curve);
  const [left, right] = x.range() as [number, number];
  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const pixel = Math.min(right, Math.max(left, event.clientX - box.left));
    cursor.value = nearest(curves, x.invert(pixel));
  };
  const clear = () => {
    cursor.value = undefined;
  };
  // A lifted finger leaves, too: what it has pointed at stays to be read.
  const leave = (event: PointerEvent) => {
    if (event.pointerType !== "touch") clear();
  };
  const key = (event: KeyboardEvent) => {
    const direction = { ArrowRight: 1, ArrowLeft: -1 }[event.key] as 1 | -1 | undefined;
    // The first arrow starts at the end that it comes from.
    const from = cursor.value ?? (direction === 1 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
    if (direction) cursor.value = finite(neighbour(curves, from, direction));
    else if (event.key === "Home") cursor.value = nearest(curves, 0);
    else if (event.key === "End") cursor.value = nearest(curves, props.xMax);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  };
  const shown = cursor.value;
  return (
    <div
      class="pointer"
      style={{ width: `${width}px`, height: `${HEIGHT}px` }}
      role="slider"
      tabIndex={0}
      aria-labelledby={props.labelledBy}
      aria-orientation="horizontal"
      aria-valuemin={0}
      aria-valuemax={props.xMax}
      aria-valuenow={shown ?? props.xMax}
      aria-valuetext={spoken(props, shown)}
      onPointerMove={move}
      onPointerDown={move}
      onPointerLeave={leave}
      onBlur={clear}
      onKeyDown={key}
    />
  );
}

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

function spoken({ series, xMax, xRead, read }: Props, x: number | undefined): string {
  const place = x ?? xMax;
  const values = series.map((one) => {
    const point = at(one.curve, place);
    return `${one.name} ${point ? read(point, one) : "no value yet"}`;
  });
  return `${xRead(place)}: ${values.join("; ")}`;
}

function ReadOut({ series, cursor, x, width, xRead, read }: Props & { x: Scales["x"]; width: number }) {
  const value = cursor.value;
  if (value === undefined || value > (x.domain()[1] as number)) return null;
  const pixel = x(value);
  // Beside the cursor, on the side that has room.
  const side = pixel > width / 2 ? { right: `${width - pixel + 12}px` } : { left: `${pixel + 12}px` };
  return (
    <div class="read-out" style={side} aria-hidden="true">
      <strong>{xRead(value)}</strong>
      <table>
        <tbody>
          {series.map((one) => {
            const point = at(one.curve, value);
            return (
              <tr key={one.name}>
                <th>
                  <Swatch style={one.style} /> {one.name}
                </th>
                <td>{point ? read(point, one) : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function Swatch({ style, off }: { style: ArmStyle; off?: boolean }) {
  return (
    <svg class={off ? "swatch off" : "swatch"} width="22" height="10" viewBox="-11 -5 22 10" aria-hidden="true">
      <g style={{ "--colour": style.colour }}>
        <path class="curve" d="M-11,0H11" stroke-dasharray={style.dash} />
        <path class="marker" d={markerPath(style.marker, 3.4)} />
      </g>
    </svg>
  );
}
