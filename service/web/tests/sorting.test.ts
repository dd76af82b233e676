import { expect, it } from "vitest";
import { sortRuns } from "../src/state/sorting";
import { aRun } from "./samples";

const runs = [
  aRun({ id: "1", task: "p10", arm: "b", best: 0.5, solved_at: null }),
  aRun({ id: "2", task: "p2", arm: "b", best: null, solved_at: null }),
  aRun({ id: "3", task: "p2", arm: "a", best: 1, solved_at: 7 }),
  aRun({ id: "4", task: "p1", arm: "a", best: 1, solved_at: 12 }),
];
const ids = (key: Parameters<typeof sortRuns>[1]["key"], down: boolean) =>
  sortRuns(runs, { key, down }).map((run) => run.id);

it("sorts names by the numbers in them", () => {
  expect(ids("task", false)).toEqual(["4", "3", "2", "1"]);
});

it("puts missing values last both ways", () => {
  expect(ids("best", true)).toEqual(["4", "3", "1", "2"]);
  expect(ids("best", false)).toEqual(["1", "4", "3", "2"]);
  expect(ids("solved_at", true).slice(0, 2)).toEqual(["4", "3"]);
});

it("leaves the given list alone", () => {
  sortRuns(runs, { key: "best", down: true });
  expect(runs[0]?.id).toBe("1");
});
