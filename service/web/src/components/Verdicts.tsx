/** One cell per test of a program; the chosen cell's message is shown under the strip. */
import { useState } from "preact/hooks";
import type { VerdictStatus } from "../api/types";
import { scalar } from "../text/format";

export interface Verdict {
  name: string;
  status: VerdictStatus;
  reward: number;
  message: string;
}

interface Look {
  text: string;
  glyph: string;
}

const LOOKS: Record<VerdictStatus, Look> = {
  passed: { text: "passed", glyph: "✓" },
  wrong: { text: "wrong answer", glyph: "✕" },
  error: { text: "error", glyph: "!" },
  timeout: { text: "timeout", glyph: "T" },
  memory: { text: "memory limit", glyph: "M" },
  output_limit: { text: "output limit", glyph: "O" },
  infrastructure: { text: "not judged", glyph: "?" },
  skipped: { text: "not run", glyph: "–" },
};

export const lookOf = (status: VerdictStatus): Look => LOOKS[status] ?? { text: status, glyph: "·" };

const LEGEND: readonly (readonly [VerdictStatus, string])[] = [
  ["passed", "passed"],
  ["wrong", "wrong answer"],
  ["error", "error"],
  ["timeout", "time, memory or output limit"],
  ["infrastructure", "not judged or not run"],
];

export function VerdictLegend() {
  return (
    <ul class="legend" aria-label="Colours of the tests">
      {LEGEND.map(([status, text]) => (
        <li key={status}>
          <span class={`dot cell-${status}`} aria-hidden="true" /> {text}
        </li>
      ))}
    </ul>
  );
}

const described = (verdict: Verdict): string => {
  const partial = verdict.reward > 0 && verdict.reward < 1 ? ` (${scalar(verdict.reward)})` : "";
  return `${verdict.name}: ${lookOf(verdict.status).text}${partial}`;
};

export function VerdictStrip({ verdicts }: { verdicts: readonly Verdict[] }) {
  const firstFailure = verdicts.findIndex((verdict) => verdict.status !== "passed");
  const [chosen, choose] = useState<number | undefined>(undefined);
  const [hovered, hover] = useState<number | undefined>(undefined);
  if (verdicts.length === 0) return <p class="muted">No test of this program was judged.</p>;
  const shown = verdicts[hovered ?? chosen ?? Math.max(firstFailure, 0)];
  const passed = verdicts.filter((verdict) => verdict.status === "passed").length;
  return (
    <section class="verdicts" aria-label="Tests">
      <p class="verdict-count">
        <strong>
          {passed} of {verdicts.length}
        </strong>{" "}
        tests passed
      </p>
      <div class="strip" onPointerLeave={() => hover(undefined)}>
        {verdicts.map((verdict, i) => (
          <button
            type="button"
            key={verdict.name}
            class={`cell cell-${verdict.status}`}
            aria-label={described(verdict)}
            aria-pressed={i === chosen}
            title={described(verdict)}
            onPointerEnter={() => hover(i)}
            onFocus={() => choose(i)}
            onClick={() => choose(i)}
          >
            {lookOf(verdict.status).glyph}
          </button>
        ))}
      </div>
      {shown && (
        <div class={firstFailure < 0 ? "verdict-detail" : "verdict-detail roomy"} aria-live="polite">
          <span class={`dot cell-${shown.status}`} aria-hidden="true" />
          <div>
            <strong>{described(shown)}</strong>
            {shown.message && <pre>{shown.message}</pre>}
          </div>
        </div>
      )}
    </section>
  );
}
