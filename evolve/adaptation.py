"""What a run learns on its way about how to ask: which operator, which model and which form of answer.

All of it comes from the records that the population has taken in, so a resumed run knows the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from evolve.bandit import Bandit
from evolve.config import BanditConfig, SearchConfig
from evolve.ledger import cost_of
from evolve.program import IterationRecord, Usage
from evolve.randomness import generator

_MALFORMED = frozenset({"missing", "bad_edit", "unparsable"})
_FORMS = BanditConfig(policy="thompson", cost_weight=0.5)


@dataclass(frozen=True, slots=True)
class Form:
    """How answers are asked for. edit: ``whole`` or ``diff``. single: m completions of one answer each, instead of one
    of m answers."""

    edit: str
    single: bool = False

    @property
    def name(self) -> str:
        return f"{self.edit}-single" if self.single else self.edit


class Adaptation:
    """The bandits of one run.

    operators: those that the model's prompt can carry. edits: the edits to choose from. splits: whether the answers of
    a chain may also be asked for one by one.
    """

    def __init__(
        self, config: SearchConfig, *, seed: int, operators: tuple[str, ...], edits: tuple[str, ...], splits: bool
    ) -> None:
        self._config, self._seed = config, seed
        weights = {name: weight for name, weight in config.operators.weights().items() if name in operators}
        self.operators = Bandit(weights, config.operators.bandit)
        self.models = Bandit({model.name: model.weight for model in config.models}, config.model_bandit)
        singles = (False, True) if splits else (False,)
        self._forms = {form.name: form for form in (Form(edit, single) for single in singles for edit in edits)}
        self.forms = Bandit(dict.fromkeys(self._forms, 1.0), _FORMS)

    def operator(self, iteration: int) -> str:
        """The operator of an iteration that has a parent."""
        return self.operators.choose(generator(self._seed, iteration, "operator"))

    def model(self, iteration: int) -> str | None:
        """The model to ask; ``None`` where none is named."""
        if not self._config.models:
            return None
        return self.models.choose(generator(self._seed, iteration, "model choice"))

    def form(self, iteration: int, *, parent: bool) -> Form:
        """The form of answer. Without a parent there is nothing to edit: a whole program."""
        among = tuple(name for name, form in self._forms.items() if parent or form.edit == "whole")
        if not among:
            return Form("whole")
        if len(among) == 1:  # no choice, no draw
            return self._forms[among[0]]
        return self._forms[self.forms.choose(generator(self._seed, iteration, "form"), among=among)]

    def absorb(self, record: IterationRecord) -> None:
        """Learn from an iteration that the population takes in."""
        info, usage = record.info, record.reply.usage if record.reply else Usage()
        gain = float(bool(info.get("improved", False)))
        if record.parents:
            self.operators.observe(info.get("move", ""), gain, usage.prompt_tokens + usage.completion_tokens)
        if self._config.models:
            model = next((model for model in self._config.models if model.name == info.get("model")), None)
            self.models.observe(info.get("model", ""), gain, cost_of(usage, model) or usage.seconds)
        if "form" in info:
            self.forms.observe(info["form"], well_formed(record), usage.completion_tokens)


def well_formed(record: IterationRecord) -> float:
    """Share of an iteration's answers that could be read as programs, known ones included, in [0, 1]."""
    answers = record.evaluations + len(record.rejected)
    malformed = sum(item.reason in _MALFORMED for item in record.rejected)
    return (answers - malformed) / answers if answers else 0.0
