/** The best program of one run, with its tests. */
import type { ComponentChildren } from "preact";
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
  const statement = search.tasks.find((task) => task.name === run.task)?.statement;
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
      {statement && (
        <Fold title="Task">
          <pre class="wrapped">{statement}</pre>
        </Fold>
      )}
      {program ? <Details program={program} /> : <Waiting run={run} />}
    </section>
  );
}

function Waiting({ run }: { run: Run }) {
  if (run.best !== null) return <Loading label="Loading the program" />;
  return <p class="muted">This run has judged no program yet.</p>;
}

function Details({ program }: { program: Program }) {
  const metrics = Object.entries(program.metrics);
  const artifacts = Object.entries(program.artifacts);
  return (
    <>
      <dl class="facts program-facts">
        <Fact name="Score">{scalar(program.scalar)}</Fact>
        <Fact name="Found at">{program.iteration === 0 ? "the start" : `iteration ${count(program.iteration)}`}</Fact>
        <Fact name="Made by">
          {program.operator}
          {program.parents.length > 0 && <span class="muted"> of {program.parents.map((n) => `#${n}`).join(", ")}</span>}
        </Fact>
      </dl>
      <VerdictStrip key={program.id} verdicts={verdictsOf(program)} />
      <Source source={program.source} />
      {metrics.length > 0 && (
        <Fold title="Metrics">
          <dl class="metrics">
            {metrics.map(([name, value]) => (
              <Fact key={name} name={name}>
                {Number(value.toPrecision(8))}
              </Fact>
            ))}
          </dl>
        </Fold>
      )}
      {artifacts.map(([name, text]) => (
        <Fold key={name} title={name}>
          <pre class="wrapped">{text}</pre>
        </Fold>
      ))}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Fold({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>{title}</summary>
      {children}
    </details>
  );
}

export const verdictsOf = (program: Program): Verdict[] =>
  program.components.map((name, i) => ({
    name,
    status: program.statuses[i] ?? "infrastructure",
    reward: program.reward[i] ?? 0,
    message: program.messages[i] ?? "",
  }));
