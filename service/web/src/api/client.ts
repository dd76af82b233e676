/** Requests to the service. Everything that goes wrong becomes a `Problem`, the one error the views show. */

/** RFC 9457 problem details, as the service sends them, or made here when no answer came. */
export class Problem extends Error {
  constructor(
    readonly title: string,
    readonly detail: string,
    /** HTTP status; 0 when the service did not answer. */
    readonly status: number,
  ) {
    super(`${title}: ${detail}`);
  }
}

/** Where the API is: the dashboard is served one level below it. */
const base = new URL("..", document.baseURI);

/** The address of an API path, also of one that the service gave as a whole URL: both work behind a path prefix. */
export function address(path: string): string {
  const { pathname, search } = new URL(path, "http://service");
  return new URL(`${pathname.slice(1)}${search}`, base).href;
}

export async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(address(path), { ...init, headers: { Accept: "application/json" } }).catch((error) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem("The service does not answer", "Is `vpo serve` still running? Trying again.", 0);
  });
  if (!response.ok) throw await problemOf(response);
  return (await response.json()) as T;
}

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => undefined);
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const text = (name: string) => (typeof fields[name] === "string" ? (fields[name] as string) : undefined);
  return new Problem(
    text("title") ?? (response.statusText || "The request failed"),
    text("detail") ?? `The service answered with status ${response.status}.`,
    response.status,
  );
}

/** Query strings without the parameters that are undefined. */
export function query(parameters: Record<string, string | number | undefined>): string {
  const used = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(used.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}
