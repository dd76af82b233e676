"""``python -m trainer export``: a saved state of a run as a checkpoint folder that can be served."""

from __future__ import annotations

from pathlib import Path

from trainer.checkpoint import State, StateStore
from trainer.config import TrainConfig
from trainer.loop import CONFIG_NAME, Training


class ExportError(ValueError):
    """There is no such state; the message lists those that are there."""


def export_state(run: Path, folder: Path, which: str) -> int:
    """Write the state ``which`` (``newest``, ``best`` or a step) of a run; returns its step.

    Raises :class:`ExportError` where the run or the state is not there.
    """
    path = run / CONFIG_NAME
    if not path.exists():
        raise ExportError(f"{run} has no {CONFIG_NAME}: name the output folder of a run")
    config = TrainConfig.model_validate_json(path.read_text(encoding="utf-8"))
    store = StateStore(run / "states", keep=config.keep)
    state = find_state(store, which)
    if state is None:
        raise ExportError(f"{run} has no whole state {which!r}; there are those after steps {store.steps()}")
    with Training(config) as training:
        metrics = {} if state.score is None else {f"best@{config.evaluation.answers}": state.score}
        training.export(folder, state, metrics)
    return state.step


def find_state(store: StateStore, which: str) -> State | None:
    """The state of that name, ``None`` where it is not there or not whole. Raises :class:`ExportError`."""
    if which in ("newest", "best"):
        return store.newest() if which == "newest" else store.best()
    if not which.isdecimal():
        raise ExportError(f"--state {which}: use newest, best or a number of steps")
    return store.at(int(which))
