/** Answers of the service, as small as the views need them. */
import type { ArmCurve, ArmSummary, Program, Run, Search } from "../src/api/types";

export const aRun = (change: Partial<Run> = {}): Run => ({
  id: "r1",
  arm: "vpo",
  task: "p1",
  seed: 0,
  status: "running",
  iteration: 3,
  best: 0.5,
  solved_at: null,
  evaluations: 9,
  tokens: 900,
  cost: 0,
  error: null,
  ended: null,
  ...change,
});

export const anArm = (change: Partial<ArmSummary> = {}): ArmSummary => ({
  name: "vpo",
  model: "minicode-vpo",
  endpoint: "http://127.0.0.1:8101/v1",
  estimator: "vpo",
  evaluations_per_iteration: 3,
  runs: 1,
  finished: 0,
  solved: 0,
  best: 0.5,
  evaluations: 9,
  tokens: 900,
  cost: 0,
  ...change,
});

export const aSearch = (change: Partial<Search> = {}): Search => ({
  id: "s1",
  name: "held-out problems",
  status: "running",
  created_at: "2026-01-01T00:00:00Z",
  started_at: "2026-01-01T00:00:01Z",
  finished_at: null,
  iterations: 10,
  progress: 0.3,
  arms: [anArm()],
  tasks: [{ name: "p1", format: "tests", statement: "reverse the list", components: ["t0", "t1"] }],
  seeds: [0],
  search: { lag: 1, islands: { count: 2 } },
  runs: [aRun()],
  last_event: 4,
  ...change,
});

export const aCurve = (change: Partial<ArmCurve> = {}): ArmCurve => ({
  arm: "vpo",
  runs: 1,
  complete_to: 3,
  t: [0, 1, 2, 3],
  solved: [0, 0, 0, 0],
  pass_at_t: [0, 0, 0, 0],
  best_at_t: [0, 0.25, 0.25, 0.5],
  evaluations: [0, 3, 6, 9],
  tokens: [0, 300, 600, 900],
  ...change,
});

export const aProgram = (change: Partial<Program> = {}): Program => ({
  id: "p1",
  run: "r1",
  number: 4,
  iteration: 3,
  parents: [0],
  operator: "rewrite",
  source: "def f(xs):\n    return xs[::-1]\n",
  scalar: 0.5,
  components: ["t0", "t1"],
  reward: [1, 0],
  statuses: ["passed", "wrong"],
  messages: ["", "expected [2, 1], got [1, 2]"],
  metrics: {},
  artifacts: {},
  ...change,
});
