/** The runs of a search: task x arm x seed, with the reward vector of each run's best program. */
import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Run, type Search, isActive } from "../api/types";
import { armStyle } from "../charts/arms";
import { Swatch } from "../charts/StepChart";
import { sortRuns, type Sort, type SortKey } from "../state/sorting";
import type { BestPrograms } from "../state/search";
import { compact, count, plural, scalar } from "../text/format";
import { Segments, StatusPill } from "./basics";
import { RewardRow } from "./RewardRow";
import { VerdictLegend } from "./Verdicts";

type Filter = "all" | "solved" | "open" | "failed";

const FILTERS = [
  ["all", "All"],
  ["solved", "Solved"],
  ["open", "Unsolved"],
  ["failed", "Failed"],
] as const;

const KEEP: Record<Filter, (run: Run) => boolean> = {
  all: () => true,
  solved: (run) => run.solved_at !== null,
  open: (run) => run.solved_at === null,
  failed: (run) => run.status === "failed",
};

const PAGE = 50;

/** What ended a run before its last iteration, other than a solution. */
const LIMITS: Record<string, string> = {
  target: "target reached",
  calls: "limit of calls",
  tokens: "limit of tokens",
  cost: "limit of cost",
  seconds: "limit of time",
  stagnation: "no more progress",
};

interface Props {
  search: Search;
  best: BestPrograms;
  shown: Run | undefined;
  choose: (run: Run) => void;
}

export function RunsTable({ search, best, shown, choose }: Props) {
  const [filter, setFilter] = useState<Filter>("all");
  const [sort, setSort] = useState<Sort>({ key: "task", down: false });
  const [pages, setPages] = useState(1);
  const rows = useMemo(() => sortRuns(search.runs.filter(KEEP[filter]), sort), [search.runs, filter, sort]);
  const visible = rows.slice(0, PAGE * pages);
  useEffect(() => best.want(visible), [best, rows, pages]);
  const seeds = search.seeds.length > 1;
  const styles = new Map(search.arms.map((arm, i) => [arm.name, armStyle(i)]));
  const head = (key: SortKey, children: ComponentChildren, numeric = false) => (
    <Head column={key} sort={sort} setSort={setSort} numeric={numeric}>
      {children}
    </Head>
  );
  return (
    <section class="runs" aria-label="Runs">
      <div class="section-head">
        <h2>Runs</h2>
        <span class="muted">{plural(rows.length, "run")}</span>
        <span class="spacer" />
        <Segments label="Show" options={FILTERS} value={filter} onChange={setFilter} />
      </div>
      <div class="card table-frame">
        <table>
          <thead>
            <tr>
              {head("task", "Task")}
              {head("arm", "Arm")}
              {seeds && head("seed", "Seed", true)}
              <th scope="col">Tests</th>
              {head("best", "Best", true)}
              {head("solved_at", "Solved at", true)}
              {head("iteration", "Iteration", true)}
              {head("tokens", "Tokens", true)}
              {head("status", "Status")}
            </tr>
          </thead>
          <tbody>
            {visible.map((run) => (
              <Fragment key={run.id}>
                <Row {...{ run, seeds, choose }} iterations={search.iterations} current={run.id === shown?.id}>
                  <Swatch style={styles.get(run.arm) ?? armStyle(0)} />
                  <RewardRow program={best.programs.value.get(run.id)} />
                </Row>
                {run.error && <ErrorRow error={run.error} columns={seeds ? 9 : 8} />}
              </Fragment>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="table-empty muted">No run is {filter === "open" ? "unsolved" : filter}.</p>}
      </div>
      <VerdictLegend />
      {visible.length < rows.length && (
        <button type="button" class="more" onClick={() => setPages(pages + 1)}>
          Show {Math.min(PAGE, rows.length - visible.length)} more of {count(rows.length)}
        </button>
      )}
    </section>
  );
}

function Head(props: {
  column: SortKey;
  sort: Sort;
  setSort: (sort: Sort) => void;
  numeric: boolean;
  children: ComponentChildren;
}) {
  const { column, sort, setSort, numeric } = props;
  const mine = sort.key === column;
  return (
    <th
      scope="col"
      class={`${numeric ? "number " : ""}col-${column}`}
      aria-sort={mine ? (sort.down ? "descending" : "ascending") : undefined}
    >
      <button type="button" onClick={() => setSort({ key: column, down: mine ? !sort.down : numeric })}>
        {props.children}
        <span class="sort-mark" aria-hidden="true">
          {mine ? (sort.down ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

function Row(props: {
  run: Run;
  iterations: number;
  seeds: boolean;
  current: boolean;
  choose: (run: Run) => void;
  children: [ComponentChildren, ComponentChildren];
}) {
  const { run, choose, current } = props;
  const [swatch, rewards] = props.children;
  return (
    <tr class={[current && "current", run.error && "failed"].filter(Boolean).join(" ")} onClick={() => choose(run)}>
      <th scope="row">
        <button type="button" class="row-link" aria-current={current ? "true" : undefined}>
          {run.task}
        </button>
      </th>
      <td class="col-arm">
        {swatch} {run.arm}
      </td>
      {props.seeds && <td class="number col-seed">{run.seed}</td>}
      <td class="col-tests">{rewards}</td>
      <td class="number">{run.best === null ? "–" : scalar(run.best)}</td>
      <td class="number col-solved_at">{run.solved_at === null ? "–" : count(run.solved_at)}</td>
      <td class="number col-iteration">
        {count(run.iteration)}
        {isActive(run.status) && <span class="muted"> / {count(props.iterations)}</span>}
      </td>
      <td class="number col-tokens" title={count(run.tokens)}>
        {compact(run.tokens)}
      </td>
      <td class="col-status">
        <StatusPill status={run.status} />
        {run.ended && LIMITS[run.ended] && <span class="muted run-ended">{LIMITS[run.ended]}</span>}
      </td>
    </tr>
  );
}

function ErrorRow({ error, columns }: { error: string; columns: number }) {
  return (
    <tr class="error-row">
      <td colSpan={columns} class="row-error" title={error}>
        {error}
      </td>
    </tr>
  );
}
