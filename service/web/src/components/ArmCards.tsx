/** One card per arm with its totals; they are the charts' legend, too. */
import type { ArmSummary, Search } from "../api/types";
import { armStyle } from "../charts/arms";
import { Swatch } from "../charts/StepChart";
import { compact, cost, count, scalar } from "../text/format";

interface Props {
  search: Search;
  hidden: ReadonlySet<string>;
  toggle: (arm: string) => void;
}

export function ArmCards({ search, hidden, toggle }: Props) {
  return (
    <section aria-label="Arms">
      <ul class="arms">
        {search.arms.map((arm, i) => (
          <li key={arm.name} class={hidden.has(arm.name) ? "card arm arm-off" : "card arm"}>
            <button
              type="button"
              class="arm-toggle"
              aria-pressed={!hidden.has(arm.name)}
              title={hidden.has(arm.name) ? "Show in the charts" : "Hide from the charts"}
              onClick={() => toggle(arm.name)}
            >
              <Swatch style={armStyle(i)} off={hidden.has(arm.name)} />
              <span class="arm-name">{arm.name}</span>
              <span class="arm-model" title={`${arm.model} at ${arm.endpoint}`}>
                {arm.model}
              </span>
            </button>
            <ArmFigures arm={arm} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function ArmFigures({ arm }: { arm: ArmSummary }) {
  return (
    <dl class="arm-figures">
      <div>
        <dt>Solved</dt>
        <dd>
          <b>{arm.solved}</b> / {arm.runs}
        </dd>
      </div>
      <div>
        <dt>Mean best</dt>
        <dd>{arm.best === null ? "–" : scalar(arm.best)}</dd>
      </div>
      <div>
        <dt>Evaluations</dt>
        <dd title={count(arm.evaluations)}>{compact(arm.evaluations)}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd title={count(arm.tokens)}>{compact(arm.tokens)}</dd>
      </div>
      {arm.cost > 0 && (
        <div>
          <dt>Cost</dt>
          <dd title="by the prices of its models">{cost(arm.cost)}</dd>
        </div>
      )}
    </dl>
  );
}
