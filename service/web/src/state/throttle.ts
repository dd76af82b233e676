/** Calls `action` at once, then again after each rest while asked; the last ask is never lost. */
export interface Throttled {
  (): void;
  cancel(): void;
}

/** The rest before the next call, in ms, is `rest()` after `action` has settled: slow answers are asked for less often. */
export function throttle(action: () => Promise<void>, rest: () => number): Throttled {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let busy = false;
  let waiting = false;
  let cancelled = false;

  const fire = async () => {
    busy = true;
    waiting = false;
    await action();
    if (cancelled) return;
    timer = setTimeout(() => {
      busy = false;
      if (waiting) void fire();
    }, rest());
  };
  const ask = () => {
    if (busy || cancelled) waiting = true;
    else void fire();
  };
  return Object.assign(ask, {
    cancel: () => {
      cancelled = true;
      clearTimeout(timer);
    },
  });
}
