/** A reward vector as one row of small cells: over the rows of a table, a heat map of programs against tests. */
import type { Program } from "../api/types";
import { lookOf } from "./Verdicts";

const WIDTH = 136;
const HEIGHT = 14;

export function RewardRow({ program }: { program: Program | undefined }) {
  if (!program) return <span class="muted">–</span>;
  const n = program.reward.length;
  const pitch = Math.min(11, WIDTH / Math.max(n, 1));
  const gap = pitch > 4 ? 1.5 : 0;
  const passed = program.statuses.filter((status) => status === "passed").length;
  return (
    <svg class="reward-row" width={WIDTH} height={HEIGHT} role="img" aria-label={`${passed} of ${n} tests passed`}>
      {program.reward.map((value, i) => {
        const status = program.statuses[i] ?? "infrastructure";
        return (
          <rect
            key={i}
            class={`reward reward-${status}`}
            x={i * pitch}
            y={0}
            width={pitch - gap}
            height={HEIGHT}
            rx={gap ? 2 : 0}
            // A failed test may still earn a part of the reward.
            style={status === "passed" ? undefined : { opacity: 0.45 + 0.55 * value }}
          >
            <title>{`${program.components[i]}: ${lookOf(status).text}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
