import { useEffect, useMemo, useState } from "preact/hooks";
import { Problem } from "../api/client";
import { isActive, type SearchSummary } from "../api/types";
import { armStyle } from "../charts/arms";
import { Swatch } from "../charts/StepChart";
import { Empty, Loading, ProblemNote, Progress, StatusPill } from "../components/basics";
import { useNow, useTitle } from "../components/hooks";
import { links } from "../router";
import { SearchList } from "../state/list";
import { ago, percent, plural, timestamp } from "../text/format";

export function SearchListPage() {
  useTitle("Searches");
  const list = useMemo(() => new SearchList(), []);
  useEffect(() => {
    list.start();
    return () => list.stop();
  }, [list]);
  const problem = list.first.problem.value;
  const loaded = list.first.data.value !== undefined;
  return (
    <>
      <h1>Searches</h1>
      {problem && <ProblemNote problem={problem} retry={() => void list.first.refresh()} />}
      {!loaded && !problem && <Loading label="Loading the searches" />}
      {loaded && list.searches.value.length === 0 && <NoSearches />}
      {list.searches.value.length > 0 && <Searches searches={list.searches.value} />}
      {list.next.value !== null && <More more={() => list.more()} />}
    </>
  );
}

function NoSearches() {
  return (
    <Empty title="No searches yet">
      <p>Start one from the command line, and its curves will move here:</p>
      <pre>vpo search TASK --model MODEL -i 50</pre>
      <p>
        or with <code>POST /search</code>.
      </p>
    </Empty>
  );
}

function Searches({ searches }: { searches: readonly SearchSummary[] }) {
  const now = useNow();
  return (
    <ul class="searches">
      {searches.map((search) => (
        <li key={search.id}>
          <Card search={search} now={now} />
        </li>
      ))}
    </ul>
  );
}

function Card({ search, now }: { search: SearchSummary; now: number }) {
  const finished = search.arms.reduce((sum, arm) => sum + arm.finished, 0);
  const runs = search.arms.reduce((sum, arm) => sum + arm.runs, 0);
  return (
    <article class="card search-card">
      <div class="search-card-head">
        <h2>
          <a href={links.search(search.id)}>{search.name}</a>
        </h2>
        <StatusPill status={search.status} />
      </div>
      <p class="muted">
        <time dateTime={search.created_at} title={timestamp(search.created_at)}>
          {ago(search.created_at, now)}
        </time>
        {" · "}
        {plural(runs, "run")} of {plural(search.iterations, "iteration")}
      </p>
      <ul class="search-card-arms">
        {search.arms.map((arm, i) => (
          <li key={arm.name}>
            <Swatch style={armStyle(i)} />
            <span class="arm-name">{arm.name}</span>
            <span class="number">
              <strong>{arm.solved}</strong> / {arm.runs} solved
            </span>
          </li>
        ))}
      </ul>
      {isActive(search.status) && (
        <div class="search-card-progress">
          <Progress value={search.progress} label={`Progress of ${search.name}`} />
          <span class="muted number">
            {percent(search.progress)}, {finished} of {plural(runs, "run")} finished
          </span>
        </div>
      )}
    </article>
  );
}

function More({ more }: { more: () => Promise<void> }) {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const load = async () => {
    setBusy(true);
    setProblem(undefined);
    await more().catch((error) => setProblem(error instanceof Problem ? error : undefined));
    setBusy(false);
  };
  return problem ? (
    <ProblemNote problem={problem} retry={load} />
  ) : (
    <button type="button" class="more" disabled={busy} onClick={load}>
      Older searches
    </button>
  );
}
