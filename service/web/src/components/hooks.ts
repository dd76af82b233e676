import { type RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** The element's width in whole pixels, 0 until it is on screen. */
export function useWidth(ref: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}

/** The time, anew every `interval` ms, for texts like "3 minutes ago". */
export function useNow(interval = 10_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return now;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · vpo-search`;
  }, [title]);
}
