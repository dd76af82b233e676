/** A program's source with line numbers and simple highlighting. */
import { useMemo, useState } from "preact/hooks";
import { lines } from "../text/python";

export function Source({ source }: { source: string }) {
  const rows = useMemo(() => lines(source.replace(/\n$/, "")), [source]);
  return (
    <div class="source">
      <CopyButton text={source} />
      {/* Scrollable, so it must be reachable by keyboard. */}
      <pre tabIndex={0} aria-label="Program source">
        <code>
          {rows.map((tokens, i) => (
            <span key={i} class="line" data-line={i + 1}>
              {tokens.map(({ kind, text }, j) => (kind === "plain" ? text : <span key={j} class={`py-${kind}`}>{text}</span>))}
              {"\n"}
            </span>
          ))}
        </code>
      </pre>
    </div>
  );
}

function CopyButton({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  // Browsers offer the clipboard to secure origins only (https or loopback).
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="copy" onClick={copy}>
      {copied ? "Copied" : "Copy"}
    </button>
  );
}
