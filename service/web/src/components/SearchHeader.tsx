import { useRef, useState } from "preact/hooks";
import { Problem } from "../api/client";
import type { Connection } from "../api/events";
import { isActive, type Search, type Status } from "../api/types";
import { ago, compact, cost, count, duration, percent, plural, timestamp } from "../text/format";
import { ProblemNote, Progress, StatusPill } from "./basics";
import { useNow } from "./hooks";

interface Props {
  search: Search;
  connection: Connection;
  cancel: () => Promise<void>;
  resume: () => Promise<void>;
}

const RESUMABLE: readonly Status[] = ["cancelled", "failed"];

export function SearchHeader({ search, connection, cancel, resume }: Props) {
  const now = useNow(1000);
  return (
    <header class="search-head">
      <div class="search-title">
        <h1>{search.name}</h1>
        <StatusPill status={search.status} />
        {isActive(search.status) && <Live connection={connection} />}
        <span class="spacer" />
        {isActive(search.status) && <CancelButton search={search} cancel={cancel} />}
        {RESUMABLE.includes(search.status) && <ResumeButton resume={resume} />}
      </div>
      <Facts search={search} now={now} />
      <Settings search={search} />
      {isActive(search.status) && <Progress value={search.progress} label="Progress of the search" />}
    </header>
  );
}

const LIVE_TEXT: Record<Connection, string> = {
  connecting: "Connecting",
  live: "Live",
  waiting: "Reconnecting",
  closed: "",
};

function Live({ connection }: { connection: Connection }) {
  return (
    <span class={`live live-${connection}`} role="status">
      {LIVE_TEXT[connection]}
    </span>
  );
}

function Facts({ search, now }: { search: Search; now: number }) {
  const end = search.finished_at ? Date.parse(search.finished_at) : now;
  const facts: [string, string, string?][] = [
    ["Tasks", count(search.tasks.length)],
    ["Arms", count(search.arms.length)],
    ["Seeds", count(search.seeds.length)],
    ["Iterations", `${count(search.iterations)} per run`],
    ["Progress", percent(search.progress)],
    ["Tokens", compact(search.arms.reduce((sum, arm) => sum + arm.tokens, 0))],
    ...spent(search),
    ["Started", ago(search.started_at ?? search.created_at, now), timestamp(search.started_at ?? search.created_at)],
    ["Took", search.started_at ? duration((end - Date.parse(search.started_at)) / 1000) : "not started"],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value, title]) => (
        <div key={name} title={title}>
          <dt>{name === "Took" && !search.finished_at ? "Running for" : name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The cost, where the models have prices. */
function spent(search: Search): [string, string][] {
  const total = search.arms.reduce((sum, arm) => sum + arm.cost, 0);
  return total > 0 ? [["Cost", cost(total)]] : [];
}

function Settings({ search }: { search: Search }) {
  const settings = flat(search.search);
  if (settings.length === 0) return null;
  return (
    <details class="fold settings">
      <summary>Settings</summary>
      <dl class="metrics">
        {settings.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Nested settings as dotted names. */
function flat(settings: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(settings).flatMap(([name, value]): [string, string][] =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? flat(value as Record<string, unknown>, `${prefix}${name}.`)
      : [[`${prefix}${name}`, typeof value === "string" ? value : JSON.stringify(value)]],
  );
}

function CancelButton({ search, cancel }: { search: Search; cancel: () => Promise<void> }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [asked, setAsked] = useState(false);
  const active = search.runs.filter((run) => isActive(run.status)).length;
  const confirm = async () => {
    setProblem(undefined);
    try {
      await cancel();
      setAsked(true);
      dialog.current?.close();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("Not cancelled", String(error), 0));
    }
  };
  return (
    <>
      <button type="button" disabled={asked} onClick={() => dialog.current?.showModal()}>
        {asked ? "Cancelling…" : "Cancel search"}
      </button>
      <dialog ref={dialog} aria-labelledby="cancel-title">
        <h2 id="cancel-title">Cancel this search?</h2>
        <p>{plural(active, "run")} will stop after the current iteration. Everything found so far is kept.</p>
        {problem && <ProblemNote problem={problem} />}
        <div class="dialog-buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Keep running
          </button>
          <button type="button" class="danger" onClick={confirm}>
            Cancel search
          </button>
        </div>
      </dialog>
    </>
  );
}

/** Lets cancelled and failed runs go on from what they have. */
function ResumeButton({ resume }: { resume: () => Promise<void> }) {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [asked, setAsked] = useState(false);
  const go = async () => {
    setProblem(undefined);
    setAsked(true);
    try {
      await resume();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("Not resumed", String(error), 0));
    } finally {
      setAsked(false);
    }
  };
  return (
    <>
      {problem && <span class="resume-problem" role="alert">{`${problem.title}: ${problem.detail}`}</span>}
      <button type="button" disabled={asked} onClick={go} title="Cancelled and failed runs go on from what they have">
        {asked ? "Resuming…" : "Resume search"}
      </button>
    </>
  );
}
