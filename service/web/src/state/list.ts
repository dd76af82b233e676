/** The list of searches, kept fresh by polling (a search's own page follows its events instead). */
import { computed, signal } from "@preact/signals";
import { request } from "../api/client";
import { isActive, type SearchPage, type SearchSummary } from "../api/types";
import { Resource } from "./resource";

const ACTIVE_MS = 2000;
const IDLE_MS = 5000;

export class SearchList {
  readonly first = new Resource<SearchPage>((abort) => request("/search", { signal: abort }));
  /** Older pages, asked for one by one; searches do not change places, so they are not polled. */
  readonly #older = signal<readonly SearchPage[]>([]);
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly searches = computed<readonly SearchSummary[]>(() => {
    const pages = [...(this.first.data.value ? [this.first.data.value] : []), ...this.#older.value];
    // A new search pushes the last of the first page onto the second, where an older answer has it too.
    return [...new Map(pages.flatMap((page) => page.searches).map((search) => [search.id, search])).values()];
  });

  readonly next = computed(() => (this.#older.value.at(-1) ?? this.first.data.value)?.next ?? null);

  async more(): Promise<void> {
    const next = this.next.value;
    if (next === null) return;
    const page = await request<SearchPage>(next);
    this.#older.value = [...this.#older.value, page];
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#poll);
    void this.#poll();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#poll);
    clearTimeout(this.#timer);
    this.first.stop();
  }

  readonly #poll = async (): Promise<void> => {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    await this.first.refresh();
    const active = this.first.data.value?.searches.some((search) => isActive(search.status)) ?? true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#poll, active ? ACTIVE_MS : IDLE_MS);
  };
}
