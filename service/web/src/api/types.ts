/** The service's answers, as far as the dashboard reads them. `service/schemas.py` defines and explains them. */

export type Status = "queued" | "running" | "waiting" | "done" | "failed" | "cancelled";

export type VerdictStatus = "passed" | "wrong" | "error" | "timeout" | "memory" | "output_limit" | "infrastructure" | "skipped";

export interface Run {
  id: string;
  arm: string;
  task: string;
  seed: number;
  status: Status;
  iteration: number;
  best: number | null;
  solved_at: number | null;
  evaluations: number;
  tokens: number;
  cost: number;
  error: string | null;
  /** Why it is done: "completed", "solved", or the limit that it reached. */
  ended: string | null;
}

export interface ArmSummary {
  name: string;
  model: string;
  endpoint: string;
  estimator: string | null;
  evaluations_per_iteration: number;
  runs: number;
  finished: number;
  solved: number;
  best: number | null;
  evaluations: number;
  tokens: number;
  /** By the models' prices; 0 without any. */
  cost: number;
}

export interface SearchSummary {
  id: string;
  name: string;
  status: Status;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  iterations: number;
  progress: number;
  arms: ArmSummary[];
}

export interface SearchPage {
  searches: SearchSummary[];
  next: string | null;
}

export interface TaskSummary {
  name: string;
  format: string;
  statement: string;
  components: string[];
}

export interface Search extends SearchSummary {
  tasks: TaskSummary[];
  seeds: number[];
  search: Record<string, unknown>;
  runs: Run[];
  last_event: number;
}

export interface ArmCurve {
  arm: string;
  runs: number;
  complete_to: number;
  t: number[];
  solved: number[];
  pass_at_t: number[];
  best_at_t: number[];
  evaluations: number[];
  tokens: number[];
}

export interface Curve {
  arms: ArmCurve[];
}

export interface Program {
  id: string;
  run: string;
  number: number;
  iteration: number;
  parents: number[];
  operator: string;
  source: string;
  scalar: number;
  components: string[];
  reward: number[];
  statuses: VerdictStatus[];
  messages: string[];
  metrics: Record<string, number>;
  artifacts: Record<string, string>;
}

export interface ProgramPage {
  programs: Program[];
}

export type Tier = "none" | "confined" | "jail" | "full";

export interface Check {
  ok: boolean;
  detail: string;
}

export interface Readiness {
  tier: Tier;
  checks: Record<string, Check>;
}

const OVER: readonly Status[] = ["done", "failed", "cancelled"];

export const isActive = (status: Status): boolean => !OVER.includes(status);
