/** The service's answers, as far as the dashboard reads them (service/schemas.py is the definition). */

export type Status = "queued" | "running" | "done" | "failed" | "cancelling" | "cancelled";

export type VerdictStatus = "passed" | "wrong" | "error" | "timeout" | "memory" | "output_limit" | "infrastructure";

export interface ArmSummary {
  name: string;
  model: string;
  runs: number;
  finished: number;
  solved: number;
  best: number | null;
  tokens: number;
  evaluations: number;
}

export interface SearchSummary {
  id: string;
  name: string;
  status: Status;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  iterations: number;
  arms: ArmSummary[];
  progress: number;
}

export interface SearchPage {
  searches: SearchSummary[];
  next: string | null;
}

export interface Run {
  id: string;
  task: string;
  arm: string;
  seed: number;
  status: Status;
  iteration: number;
  best: number | null;
  solved_at: number | null;
  tokens: number;
  evaluations: number;
  error: string | null;
}

export interface Search extends SearchSummary {
  runs: Run[];
}

export interface ArmCurve {
  arm: string;
  runs: number;
  t: number[];
  pass_at_t: number[];
  solved: number[];
  best_at_t: number[];
  evaluations: number[];
  tokens: number[];
}

export interface Curve {
  arms: ArmCurve[];
}

export interface Program {
  run: string;
  number: number;
  iteration: number;
  operator: string;
  source: string;
  scalar: number;
  solved: boolean;
  components: string[];
  reward: number[];
  statuses: VerdictStatus[];
  messages: string[];
}

export interface ProgramPage {
  programs: Program[];
}

const OVER: readonly Status[] = ["done", "failed", "cancelled"];

export const isActive = (status: Status): boolean => !OVER.includes(status);
