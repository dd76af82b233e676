/** The best program of one run, with its tests. */
import { useEffect } from "preact/hooks";
import type { Program, Run, Search } from "../api/types";
import { armStyle } from "../charts/arms";
import { Swatch } from "../charts/StepChart";
import type { BestPrograms } from "../state/search";
import { count, scalar } from "../text/format";
import { Loading } from "./basics";
import { Source } from "./Source";
import { type Verdict, VerdictStrip } from "./Verdicts";

interface Props {
  search: Search;
  run: Run | undefined;
  /** Chosen by the reader, rather than the best of the search. */
  chosen: boolean;
  best: BestPrograms;
}

export function ProgramPanel({ search, run, chosen, best }: Props) {
  useEffect(() => best.want(run ? [run] : []), [best, run]);
  if (!run) return null;
  const program = best.programs.value.get(run.id);
  return (
    <section class="card program" aria-label="Best program">
      <h2>{chosen ? "Best program of the run" : "Best program so far"}</h2>
      <p class="program-run">
        <Swatch style={armStyle(search.arms.findIndex((arm) => arm.name === run.arm))} />
        <strong>{run.task}</strong>
        <span class="muted">
          {run.arm}, seed {run.seed}
        </span>
      </p>
      {run.error && <pre class="run-error">{run.error}</pre>}
      {program ? <Details program={program} /> : <Waiting run={run} />}
    </section>
  );
}

function Waiting({ run }: { run: Run }) {
  if (run.best !== null) return <Loading label="Loading the program" />;
  return <p class="muted">This run has judged no program yet.</p>;
}

function Details({ program }: { program: Program }) {
  return (
    <>
      <dl class="facts program-facts">
        <div>
          <dt>Score</dt>
          <dd>{scalar(program.scalar)}</dd>
        </div>
        <div>
          <dt>Iteration</dt>
          <dd>{program.iteration === 0 ? "seed program" : count(program.iteration)}</dd>
        </div>
        <div>
          <dt>Made by</dt>
          <dd>{program.operator}</dd>
        </div>
      </dl>
      <VerdictStrip key={`${program.run}/${program.number}`} verdicts={verdictsOf(program)} />
      <Source source={program.source} />
    </>
  );
}

export const verdictsOf = (program: Program): Verdict[] =>
  program.components.map((name, i) => ({
    name,
    status: program.statuses[i] ?? "infrastructure",
    reward: program.reward[i] ?? 0,
    message: program.messages[i] ?? "",
  }));
