/** The service's event stream of one search. */
import { type ReadonlySignal, signal } from "@preact/signals";

/** `live`: events arrive. `waiting`: the connection was lost and is being made again. */
export type Connection = "connecting" | "live" | "waiting" | "closed";

export interface EventStream {
  connection: ReadonlySignal<Connection>;
  close(): void;
}

const RETRY_MS = 3000;

/**
 * Follow `url`. The browser reconnects by itself after a lost connection, with `Last-Event-ID`; where it gives up (an
 * error status), this opens a new stream. `onOpen` runs at every connection: what happened in between must be fetched.
 */
export function follow(
  url: string,
  names: readonly string[],
  onEvent: (name: string, data: unknown) => void,
  onOpen: () => void,
): EventStream {
  const connection = signal<Connection>("connecting");
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const open = () => {
    source = new EventSource(url);
    source.onopen = () => {
      connection.value = "live";
      onOpen();
    };
    source.onerror = () => {
      connection.value = "waiting";
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY_MS);
    };
    for (const name of names) {
      source.addEventListener(name, (event) => onEvent(name, parsed((event as MessageEvent<string>).data)));
    }
  };
  open();
  return {
    connection,
    close: () => {
      clearTimeout(timer);
      source.close();
      connection.value = "closed";
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
