/** Calls `action` at once, then at most every `interval` ms while asked; the last ask is never lost. */
export interface Throttled {
  (): void;
  cancel(): void;
}

export function throttle(action: () => void, interval: number): Throttled {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waiting = false;
  const fire = () => {
    waiting = false;
    timer = setTimeout(() => {
      timer = undefined;
      if (waiting) fire();
    }, interval);
    action();
  };
  const ask = () => {
    if (timer === undefined) fire();
    else waiting = true;
  };
  return Object.assign(ask, {
    cancel: () => {
      clearTimeout(timer);
      timer = undefined;
      waiting = false;
    },
  });
}
