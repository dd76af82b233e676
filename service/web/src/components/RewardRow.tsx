/**
 * A reward vector as one row of small bars, their height the reward: over the rows of a table, a heat map of programs
 * against tests. Height as well as colour tells a passed test from a failed one.
 */
import type { Program } from "../api/types";
import { lookOf } from "./Verdicts";

const LEAST = 5;

const WIDTH = 136;
const HEIGHT = 14;

export function RewardRow({ program }: { program: Program | undefined }) {
  if (!program) return <span class="muted">–</span>;
  const n = program.reward.length;
  const pitch = Math.min(11, WIDTH / Math.max(n, 1));
  const gap = pitch > 4 ? 1.5 : 0;
  const passed = program.statuses.filter((status) => status === "passed").length;
  return (
    <svg class="reward-row" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${passed} of ${n} tests passed`}>
      {program.reward.map((value, i) => {
        const status = program.statuses[i] ?? "infrastructure";
        const height = LEAST + (HEIGHT - LEAST) * value;
        return (
          <rect
            key={i}
            class={`reward reward-${status}`}
            x={i * pitch}
            y={HEIGHT - height}
            width={pitch - gap}
            height={height}
            rx={gap ? 1.5 : 0}
          >
            <title>{`${program.components[i]}: ${lookOf(status).text}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
