/** One search: loaded, then kept fresh by its events until it is over. */
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { address, query, request } from "../api/client";
import { type Connection, follow } from "../api/events";
import { type Curve, isActive, type Program, type ProgramPage, type Run, type Search } from "../api/types";
import { Resource } from "./resource";
import { throttle } from "./throttle";

/** Events may come hundreds a second; what they announce is fetched with rests of at least this length. */
const REST_MS = 700;
/** ... and so long that a large search keeps the service busy for a small share of the time only. */
const REST_FACTOR = 4;
/** Without an event stream (a proxy that cuts it, Redis away) the page still moves, slower. */
const FALLBACK_MS = 5000;
const PARALLEL = 4;

export class SearchState {
  readonly search: Resource<Search>;
  readonly curve: Resource<Curve>;
  readonly best: BestPrograms;
  readonly connection: ReadonlySignal<Connection>;
  readonly #connection = signal<Connection>("connecting");
  readonly #refresh = throttle(
    () => this.#load(),
    () => Math.max(REST_MS, REST_FACTOR * this.#loadMs),
  );
  #loadMs = 0;
  #unfollow: (() => void) | undefined;
  #endings: (() => void)[] = [];
  #stopped = false;

  constructor(readonly id: string) {
    const path = `/search/${encodeURIComponent(id)}`;
    this.search = new Resource((abort) => request(path, { signal: abort }));
    this.curve = new Resource((abort) => request(`${path}/curve`, { signal: abort }));
    this.best = new BestPrograms(path);
    this.connection = this.#connection;
  }

  async start(): Promise<void> {
    await this.#load();
    if (this.#stopped) return;
    const poll = setInterval(() => {
      if (this.#connection.value !== "live" && this.#active()) void this.#load();
    }, FALLBACK_MS);
    this.#endings.push(() => clearInterval(poll));
    if (this.#active()) this.#follow();
  }

  /** Listen to the search's events until it is over. */
  #follow(): void {
    const after = this.search.data.value?.last_event;
    const stream = follow(
      address(`/search/${encodeURIComponent(this.id)}/events${query({ after })}`),
      ["iteration", "run", "search"],
      () => this.#refresh(),
      () => this.#refresh(),
    );
    const forget = effect(() => {
      this.#connection.value = stream.connection.value;
    });
    this.#unfollow = () => {
      forget();
      stream.close();
    };
  }

  stop(): void {
    this.#stopped = true;
    this.#refresh.cancel();
    for (const end of this.#endings) end();
    this.#unfollow?.();
    for (const resource of [this.search, this.curve]) resource.stop();
    this.best.stop();
  }

  async cancel(): Promise<void> {
    await request(`/search/${encodeURIComponent(this.id)}/cancel`, { method: "POST" });
    await this.search.refresh();
  }

  async resume(): Promise<void> {
    await request(`/search/${encodeURIComponent(this.id)}/resume`, { method: "POST" });
    await this.search.refresh();
    if (this.#stopped || !this.#active()) return;
    this.#unfollow?.();
    this.#follow();
  }

  retry(): void {
    void this.#load();
  }

  /** The search before the curve: once it says that it is over, the curve that is read after it is the last one. */
  async #load(): Promise<void> {
    const began = performance.now();
    await this.search.refresh();
    if (this.#stopped || this.search.problem.value?.status === 404) return;
    await this.curve.refresh();
    this.#loadMs = performance.now() - began;
    if (this.search.data.value && !this.#active()) {
      this.#unfollow?.();
      this.#connection.value = "closed";
    }
  }

  #active(): boolean {
    const search = this.search.data.value;
    return search === undefined ? this.search.problem.value?.status !== 404 : isActive(search.status);
  }
}

/** The best program of each run that is on screen; fetched again when the run has found a better one. */
export class BestPrograms {
  readonly programs: ReadonlySignal<ReadonlyMap<Run["id"], Program>>;
  readonly #programs = signal<ReadonlyMap<Run["id"], Program>>(new Map());
  readonly #known = new Map<Run["id"], number>();
  readonly #waiting = new Map<Run["id"], number>();
  #running = 0;
  #abort = new AbortController();

  constructor(private readonly path: string) {
    this.programs = this.#programs;
  }

  /** Ask for the best programs of these runs, where what is here is older than the run's best value. */
  want(runs: readonly Run[]): void {
    for (const run of runs) {
      if (run.best !== null && this.#known.get(run.id) !== run.best) this.#waiting.set(run.id, run.best);
    }
    while (this.#running < PARALLEL && this.#waiting.size > 0) void this.#next();
  }

  stop(): void {
    this.#waiting.clear();
    this.#abort.abort();
  }

  async #next(): Promise<void> {
    const [entry] = this.#waiting;
    if (!entry) return;
    const [run, best] = entry;
    this.#waiting.delete(run);
    this.#known.set(run, best);
    this.#running += 1;
    try {
      const parameters = query({ run, order: "best", limit: 1 });
      const page = await request<ProgramPage>(`${this.path}/programs${parameters}`, { signal: this.#abort.signal });
      const program = page.programs[0];
      if (program) this.#programs.value = new Map(this.#programs.value).set(run, program);
    } catch {
      // The next refresh of the search asks again; a lasting fault shows there.
      this.#known.delete(run);
    } finally {
      this.#running -= 1;
      this.want([]);
    }
  }
}
