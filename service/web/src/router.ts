/** Hash routes: the service serves static files only, so a reload of any page works behind any path prefix. */
import { signal } from "@preact/signals";

export type Route =
  | { page: "list" }
  | { page: "search"; id: string; run: string | undefined }
  | { page: "unknown"; path: string };

export function parse(hash: string): Route {
  const path = hash.replace(/^#/, "");
  const parts = path.split("/").filter(Boolean).map(decoded);
  const [first, id, third, run] = parts;
  if (first === undefined || (first === "search" && parts.length === 1)) return { page: "list" };
  if (first === "search" && id && parts.length === 2) return { page: "search", id, run: undefined };
  if (first === "search" && id && third === "run" && run && parts.length === 4) return { page: "search", id, run };
  return { page: "unknown", path };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const links = {
  list: "#/",
  search: (id: string) => `#/search/${encodeURIComponent(id)}`,
  run: (id: string, run: string | number) => `#/search/${encodeURIComponent(id)}/run/${encodeURIComponent(run)}`,
};

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

/** Change the route without a history entry (choosing a run in a table is not a page). */
export function replace(hash: string): void {
  history.replaceState(null, "", hash);
  route.value = parse(hash);
}
