import { describe, expect, it } from "vitest";
import { at, csv, last, nearest, neighbour, steps, thinned } from "../src/charts/steps";

const curve = steps([0, 1, 2, 3], [0, 100, 250, 250], [0, 0, 1, 2]);

describe("steps", () => {
  it("pairs columns, as far as all of them go", () => {
    expect(steps([0, 1, 2], [0, 10], [0.5, 0.75, 1])).toEqual([
      { t: 0, x: 0, y: 0.5 },
      { t: 1, x: 10, y: 0.75 },
    ]);
  });

  it("holds a value until the next point", () => {
    expect(at(curve, -1)).toBeUndefined();
    expect(at(curve, 0)?.t).toBe(0);
    expect(at(curve, 249)?.t).toBe(1);
    expect(at(curve, 250)?.t).toBe(3);
    expect(at(curve, 1e9)?.y).toBe(2);
    expect(at([], 3)).toBeUndefined();
  });

  it("drops the points that draw nothing", () => {
    const long = steps([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 0, 0, 1, 1]);
    expect(thinned(long).map((point) => point.t)).toEqual([0, 3, 4]);
    expect(thinned([])).toEqual([]);
    expect(last(thinned(long))).toBe(last(long));
  });
});

describe("the read-out", () => {
  const other = steps([0, 1], [0, 180], [0, 1]);

  it("snaps to the nearest point of any curve", () => {
    expect(nearest([curve, other], 170)).toBe(180);
    expect(nearest([curve, other], 130)).toBe(100);
    expect(nearest([curve, other], 9999)).toBe(250);
    expect(nearest([], 3)).toBeUndefined();
  });

  it("moves from point to point and stays at the ends", () => {
    expect(neighbour([curve, other], 100, 1)).toBe(180);
    expect(neighbour([curve, other], 180, -1)).toBe(100);
    expect(neighbour([curve, other], 250, 1)).toBe(250);
    expect(neighbour([curve, other], 0, -1)).toBe(0);
    expect(neighbour([curve], Number.NEGATIVE_INFINITY, 1)).toBe(0);
    expect(neighbour([curve], Number.POSITIVE_INFINITY, -1)).toBe(250);
  });
});

it("writes CSV that spreadsheets read", () => {
  expect(csv([{ arm: 'a "b", c', t: 1 }])).toBe('arm,t\n"a ""b"", c",1\n');
});
