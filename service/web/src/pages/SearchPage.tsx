import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Run, Search } from "../api/types";
import { ArmCards } from "../components/ArmCards";
import { Empty, Loading, ProblemNote } from "../components/basics";
import { Curves } from "../components/Curves";
import { useTitle } from "../components/hooks";
import { ProgramPanel } from "../components/ProgramPanel";
import { RunsTable } from "../components/RunsTable";
import { SearchHeader } from "../components/SearchHeader";
import { links, replace } from "../router";
import { SearchState } from "../state/search";

export function SearchPage({ id, run }: { id: string; run: string | undefined }) {
  const state = useMemo(() => new SearchState(id), [id]);
  useEffect(() => {
    void state.start();
    return () => state.stop();
  }, [state]);
  const search = state.search.data.value;
  const problem = state.search.problem.value;
  useTitle(search?.name ?? "Search");

  if (problem?.status === 404) return <Missing detail={problem.detail} />;
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={links.list}>Searches</a> <span aria-hidden="true">/</span> <span>{search?.name ?? "…"}</span>
      </nav>
      {problem && <ProblemNote problem={problem} retry={() => state.retry()} />}
      {!search && !problem && <Loading label="Loading the search" />}
      {search && <Loaded state={state} search={search} run={run} />}
    </>
  );
}

function Loaded({ state, search, run }: { state: SearchState; search: Search; run: string | undefined }) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const panel = useRef<HTMLDivElement>(null);
  const toggle = (arm: string) => {
    const next = new Set(hidden);
    if (!next.delete(arm)) next.add(arm);
    setHidden(next);
  };
  const leader = useLeader(search.runs);
  const shown = search.runs.find((one) => String(one.id) === run) ?? leader;
  const choose = (chosen: Run) => {
    replace(links.run(search.id, chosen.id));
    // On a narrow screen the program is below the table.
    const box = panel.current?.getBoundingClientRect();
    if (box && box.top > innerHeight * 0.8) panel.current?.scrollIntoView({ behavior: "smooth", block: "start" });
  };
  return (
    <>
      <SearchHeader
        search={search}
        connection={state.connection.value}
        cancel={() => state.cancel()}
        resume={() => state.resume()}
      />
      <ArmCards search={search} hidden={hidden} toggle={toggle} />
      <Curves state={state} search={search} hidden={hidden} />
      <div class="results">
        <RunsTable search={search} best={state.best} shown={shown} choose={choose} />
        <div ref={panel} class="results-program">
          <ProgramPanel search={search} run={shown} chosen={shown !== undefined && run === String(shown.id)} best={state.best} />
        </div>
      </div>
    </>
  );
}

/** The run with the best program so far; it changes hands only when another run is strictly better. */
function useLeader(runs: readonly Run[]): Run | undefined {
  const id = useRef<Run["id"] | undefined>(undefined);
  const value = (run: Run | undefined) => run?.best ?? -1;
  let leader = runs.find((run) => run.id === id.current);
  for (const run of runs) if (value(run) > value(leader)) leader = run;
  id.current = leader?.id;
  return leader ?? runs[0];
}

function Missing({ detail }: { detail: string }) {
  return (
    <Empty title="There is no such search">
      <p>{detail}</p>
      <p>
        <a href={links.list}>All searches</a>
      </p>
    </Empty>
  );
}
