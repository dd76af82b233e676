import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "../src/api/client";
import { Resource } from "../src/state/resource";
import { throttle } from "../src/state/throttle";

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

describe("Resource", () => {
  it("keeps the last value while a later load fails, and forgets the problem at the next success", async () => {
    const answers = [() => 1, () => Promise.reject(new Problem("Away", "start it", 503)), () => 2];
    const resource = new Resource(async () => (answers.shift() as () => number)());
    await resource.refresh();
    await resource.refresh();
    expect(resource.data.value).toBe(1);
    expect(resource.problem.value?.detail).toBe("start it");
    await resource.refresh();
    expect([resource.data.value, resource.problem.value]).toEqual([2, undefined]);
  });

  it("loads once more for all that asked during a load", async () => {
    const first = deferred<number>();
    const load = vi.fn().mockReturnValueOnce(first.promise).mockResolvedValue(2);
    const resource = new Resource<number>(load);
    const done = resource.refresh();
    void resource.refresh();
    void resource.refresh();
    first.resolve(1);
    await done;
    expect(load).toHaveBeenCalledTimes(2);
    expect(resource.data.value).toBe(2);
  });

  it("drops an answer that comes after it was stopped", async () => {
    const late = deferred<number>();
    const resource = new Resource(() => late.promise);
    const done = resource.refresh();
    resource.stop();
    late.resolve(1);
    await done;
    expect(resource.data.value).toBeUndefined();
  });

  it("shows errors of ours as problems, too", async () => {
    const resource = new Resource(() => Promise.reject(new TypeError("x is not a number")));
    await resource.refresh();
    expect(resource.problem.value?.detail).toContain("x is not a number");
  });
});

describe("throttle", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("runs at once, then once for all that asked during the rest", async () => {
    const action = vi.fn(async () => {});
    const ask = throttle(action, () => 100);
    ask();
    ask();
    ask();
    expect(action).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(action).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(action).toHaveBeenCalledTimes(2);
  });

  it("rests from the end of the action on, as long as it is told then", async () => {
    let rest = 100;
    const action = vi.fn(() => new Promise<void>((resolve) => setTimeout(resolve, 500)));
    const ask = throttle(action, () => rest);
    ask();
    ask();
    rest = 2000;
    await vi.advanceTimersByTimeAsync(2400);
    expect(action).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(action).toHaveBeenCalledTimes(2);
  });

  it("does nothing any more once cancelled", async () => {
    const action = vi.fn(async () => {});
    const ask = throttle(action, () => 100);
    ask();
    ask();
    ask.cancel();
    ask();
    await vi.advanceTimersByTimeAsync(1000);
    expect(action).toHaveBeenCalledTimes(1);
  });
});
