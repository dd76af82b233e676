import type { Run } from "../api/types";

export type SortKey = "task" | "arm" | "seed" | "best" | "solved_at" | "iteration" | "tokens" | "status";

export interface Sort {
  key: SortKey;
  down: boolean;
}

const natural = new Intl.Collator("en", { numeric: true });

/** Sorted runs; missing values come last in either direction, ties in the order of task, arm and seed. */
export function sortRuns(runs: readonly Run[], sort: Sort): Run[] {
  const direction = sort.down ? -1 : 1;
  return [...runs].sort((a, b) => byKey(a, b, sort.key, direction) || byName(a, b));
}

function byKey(a: Run, b: Run, key: SortKey, direction: number): number {
  const left = a[key];
  const right = b[key];
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  if (typeof left === "number" && typeof right === "number") return direction * (left - right);
  return direction * natural.compare(String(left), String(right));
}

const byName = (a: Run, b: Run): number =>
  natural.compare(a.task, b.task) || natural.compare(a.arm, b.arm) || a.seed - b.seed;
