import { expect, it } from "vitest";
import { ago, compact, cost, count, duration, percent, plural, scalar } from "../src/text/format";

it.each([
  [0, "0"],
  [950, "950"],
  [999.6, "1k"],
  [1000, "1k"],
  [2204, "2.2k"],
  [12_340, "12.3k"],
  [999_949, "1M"],
  [4_560_000, "4.56M"],
  [2e9, "2B"],
])("shortens %d to %s", (value, text) => expect(compact(value)).toBe(text));

it.each([
  [0.00423, "0.0042"],
  [0.5, "0.5"],
  [12.345, "12.35"],
  [1234.5, "1,234.50"],
])("writes the cost %d as %s", (value, text) => expect(cost(value)).toBe(text));

it("never rounds an unsolved score up to a solved one", () => {
  expect(scalar(0.99999)).toBe("0.999");
  expect(scalar(1)).toBe("1.000");
  expect(scalar(0.6667)).toBe("0.667");
});

it.each([
  [0.4, "0 s"],
  [59, "59 s"],
  [60, "1 min"],
  [75, "1 min 15 s"],
  [7500, "2 h 5 min"],
])("writes %d seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));

it("says how long ago, and never in the future", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-02T00:00:03Z", now)).toBe("just now");
  expect(ago("2026-01-01T23:59:20Z", now)).toBe("40 seconds ago");
  expect(ago("2026-01-01T23:57:00Z", now)).toBe("3 minutes ago");
  expect(ago("2026-01-01T00:00:00Z", now)).toBe("yesterday");
});

it("counts", () => {
  expect(count(1234567)).toBe("1,234,567");
  expect(percent(0.125)).toBe("12.5%");
  expect([plural(1, "run"), plural(2000, "run")]).toEqual(["1 run", "2,000 runs"]);
});
