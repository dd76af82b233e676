/** One piece of the service's data: loaded, refreshed, and kept on screen while it is stale. */
import { batch, type ReadonlySignal, signal } from "@preact/signals";
import { Problem } from "../api/client";

export class Resource<T> {
  readonly #data = signal<T | undefined>(undefined);
  readonly #problem = signal<Problem | undefined>(undefined);
  #running: Promise<void> | undefined;
  #again = false;
  #abort = new AbortController();

  constructor(private readonly load: (abort: AbortSignal) => Promise<T>) {}

  /** The last value that arrived. */
  get data(): ReadonlySignal<T | undefined> {
    return this.#data;
  }

  /** Why the last load failed; cleared by the next success. */
  get problem(): ReadonlySignal<Problem | undefined> {
    return this.#problem;
  }

  /** Load. While a load is under way, one more is queued: what was asked for last is never older than the ask. */
  refresh(): Promise<void> {
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#cycle().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Abandon a load that is under way; the resource stays usable. */
  stop(): void {
    this.#again = false;
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  async #cycle(): Promise<void> {
    do {
      this.#again = false;
      const abort = this.#abort.signal;
      try {
        const value = await this.load(abort);
        if (!abort.aborted)
          batch(() => {
            this.#data.value = value;
            this.#problem.value = undefined;
          });
      } catch (error) {
        if (!abort.aborted) this.#problem.value = asProblem(error);
      }
    } while (this.#again);
  }
}

const asProblem = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem("Unexpected answer", String(error), 0);
