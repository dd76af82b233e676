/** The small parts that every page uses. */
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/client";
import type { Status } from "../api/types";

const STATUS_TEXT: Record<Status, string> = {
  queued: "Queued",
  running: "Running",
  waiting: "Waiting",
  done: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
};

export function StatusPill({ status }: { status: Status }) {
  return <span class={`pill pill-${status}`}>{STATUS_TEXT[status] ?? status}</span>;
}

/** value of [0, 1]. */
export function Progress({ value, label }: { value: number; label: string }) {
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(100 * value)}
    >
      <div style={{ width: `${100 * value}%` }} />
    </div>
  );
}

/** A failed request. Where older data is still on screen it is a note, else it takes the data's place. */
export function ProblemNote({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="note note-problem" role="alert">
      <div>
        <strong>{problem.title}</strong>
        <p>{problem.detail}</p>
      </div>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading({ label }: { label: string }) {
  return (
    <div class="loading" role="status">
      <span class="sr-only">{label}</span>
      <div class="bone bone-title" />
      <div class="bone" />
      <div class="bone" />
    </div>
  );
}

/** A choice of a few, shown side by side. */
export function Segments<T extends string>(props: {
  label: string;
  options: readonly (readonly [T, string])[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button type="button" key={value} aria-pressed={value === props.value} onClick={() => props.onChange(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}
