/** pass@t and best@t, by iterations or by tokens. */
import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import type { ArmCurve, Curve, Search } from "../api/types";
import { armStyle } from "../charts/arms";
import { type Series, StepChart } from "../charts/StepChart";
import { csv, last, type Point, steps } from "../charts/steps";
import type { SearchState } from "../state/search";
import { compact, count, percent, plural, scalar } from "../text/format";
import { Loading, ProblemNote, Segments } from "./basics";

type Axis = "iterations" | "tokens";

const AXES = [
  ["iterations", "Iterations"],
  ["tokens", "Tokens"],
] as const;

interface Props {
  state: SearchState;
  search: Search;
  hidden: ReadonlySet<string>;
}

export function Curves({ state, search, hidden }: Props) {
  const [axis, setAxis] = useState<Axis>("iterations");
  const curve = state.curve.data.value;
  const problem = state.curve.problem.value;
  return (
    <section class="curves" aria-label="Curves">
      <div class="section-head">
        <h2>Progress</h2>
        <span class="spacer" />
        {curve && <Download search={search} curve={curve} />}
        <Segments label="Horizontal axis" options={AXES} value={axis} onChange={setAxis} />
      </div>
      {problem && <ProblemNote problem={problem} retry={() => state.retry()} />}
      {!curve && !problem && <Loading label="Loading the curves" />}
      {curve && <Charts key={axis} curve={curve} search={search} hidden={hidden} axis={axis} />}
    </section>
  );
}

const xOf = (arm: ArmCurve, axis: Axis): readonly number[] => (axis === "tokens" ? arm.tokens : arm.t);

function useSeries(curve: Curve, hidden: ReadonlySet<string>, axis: Axis, y: "solved" | "best_at_t"): Series[] {
  return useMemo(
    () =>
      curve.arms
        .map((arm, i) => ({
          name: arm.arm,
          style: armStyle(i),
          curve: steps(arm.t, xOf(arm, axis), arm[y]),
          settled: arm.complete_to,
        }))
        .filter((series) => !hidden.has(series.name)),
    [curve, hidden, axis],
  );
}

/** Room for the curves to rise; the whole range only when they need it, for a few solved of many are a flat line there. */
const solvedAxis = (most: number, runs: number): number => Math.min(runs, Math.max(4, Math.ceil(most * 1.3)));

function Charts({ curve, search, hidden, axis }: { curve: Curve; search: Search; hidden: Props["hidden"]; axis: Axis }) {
  const cursor = useSignal<number | undefined>(undefined);
  const solved = useSeries(curve, hidden, axis, "solved");
  const best = useSeries(curve, hidden, axis, "best_at_t");
  const runs = new Map(curve.arms.map((arm) => [arm.arm, arm.runs]));
  // By iterations the axis is the whole search from the start, so that the curves grow into it.
  const furthest = Math.max(1, ...solved.map((series) => last(series.curve)?.x ?? 0));
  const x = {
    cursor,
    xMax: axis === "iterations" ? search.iterations : furthest,
    xLabel: axis === "iterations" ? "iteration t" : "tokens, all runs of the arm",
    xTick: axis === "iterations" ? count : compact,
    xRead: (value: number) => (axis === "iterations" ? `Iteration ${count(value)}` : `${count(value)} tokens`),
  };
  const of = (series: Series) => runs.get(series.name) ?? 0;
  const where = (point: Point, series: Series) => {
    const iteration = axis === "tokens" ? `, t ${count(point.t)}` : "";
    return point.t > series.settled ? `${iteration} so far` : iteration;
  };
  const open = solved.some((series) => (last(series.curve)?.t ?? 0) > series.settled);
  return (
    <div class="chart-pair">
      <StepChart
        {...x}
        title="pass@t"
        caption={`Runs solved by iteration t, of ${plural(Math.max(0, ...runs.values()), "run")}`}
        series={solved}
        yMax={solvedAxis(Math.max(0, ...solved.map((series) => last(series.curve)?.y ?? 0)), Math.max(1, ...runs.values()))}
        whole
        yTick={count}
        read={(point, one) => `${point.y} / ${of(one)} (${percent(of(one) ? point.y / of(one) : 0)})${where(point, one)}`}
      />
      <StepChart
        {...x}
        title="best@t"
        caption="Mean over runs of the best score by iteration t"
        series={best}
        yMax={1}
        yTick={(value) => value.toFixed(1)}
        read={(point, one) => `${scalar(point.y)}${where(point, one)}`}
      />
      {open && <p class="chart-note muted">Faint: not every run has come this far, so the values can still rise.</p>}
    </div>
  );
}

function Download({ search, curve }: { search: Search; curve: Curve }) {
  const save = () => {
    const rows = curve.arms.flatMap((arm) =>
      arm.t.map((t, i) => ({
        arm: arm.arm,
        t,
        runs: arm.runs,
        solved: arm.solved[i] ?? "",
        pass_at_t: arm.pass_at_t[i] ?? "",
        best_at_t: arm.best_at_t[i] ?? "",
        evaluations: arm.evaluations[i] ?? "",
        tokens: arm.tokens[i] ?? "",
      })),
    );
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
    link.download = `curve-${search.id}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button type="button" class="quiet" onClick={save}>
      Download CSV
    </button>
  );
}
