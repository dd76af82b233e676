/** A service that answers from a table, and its event stream: what the pages talk to in these tests. */
import { vi } from "vitest";

export class FakeEventSource extends EventTarget {
  static readonly CLOSED = 2;
  static all: FakeEventSource[] = [];
  readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;

  constructor(readonly url: string) {
    super();
    FakeEventSource.all.push(this);
  }

  say(name: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }

  close(): void {
    this.readyState = FakeEventSource.CLOSED;
  }
}

/** Path (without query) to body, or to a problem's `[status, body]`, or to a function of the whole request. */
export type Answers = Record<string, unknown>;

export function serve(answers: Answers) {
  FakeEventSource.all = [];
  vi.stubGlobal("EventSource", FakeEventSource);
  const fetched = vi.fn(async (url: string, init?: RequestInit) => {
    const { pathname } = new URL(url);
    const answer = answers[pathname];
    if (answer === undefined) throw new TypeError(`nothing answers ${pathname}`);
    const [status, body] = Array.isArray(answer) ? answer : [200, typeof answer === "function" ? answer(init) : answer];
    return new Response(JSON.stringify(body), { status });
  });
  vi.stubGlobal("fetch", fetched);
  return fetched;
}
