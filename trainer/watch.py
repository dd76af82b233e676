"""What can be watched of a run: ``metrics.jsonl``, TensorBoard, sampled rollouts as parquet, and the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from tensorboardX import SummaryWriter

from trainer.config import WatchConfig
from trainer.policy import Step

Row = dict[str, Any]
Report = Callable[[Row], None]

_DIGITS = 5


class Journal:
    """``metrics.jsonl`` (one object a step or evaluation) and TensorBoard's event files; forgets steps taken again."""

    def __init__(self, output: Path, config: WatchConfig, report: Report) -> None:
        self._path, self._report = output / "metrics.jsonl", report
        self._folder = output / "tensorboard" if config.tensorboard else None
        self._board: SummaryWriter | None = None

    def go_on_after(self, step: int) -> None:
        """Forget what was written for later steps: a resumed run takes them again."""
        if self._path.exists():
            lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
            self._path.write_text("".join(kept), encoding="utf-8")
        if self._folder is not None:
            purge = step + 1 if step else None  # the suffix tells files apart that are opened in the same second
            self._board = SummaryWriter(str(self._folder), purge_step=purge, filename_suffix=f".{step}")

    def write(self, row: Row) -> None:
        """Add a row; floats are rounded to five places."""
        rounded = _rounded(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rounded) + "\n")
        if self._board is not None:
            for name, value in _scalars(rounded):
                self._board.add_scalar(name, value, row["step"])
        self._report(rounded)

    def close(self) -> None:
        """Flush and close the event files."""
        if self._board is not None:
            self._board.close()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def _scalars(row: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found = []
    for key, value in row.items():
        if isinstance(value, Mapping):
            found += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            found.append((prefix + (key if prefix else f"train/{key}"), float(value)))
    return found


def write_rollouts(output: Path, step: int, taken: Step, prompts: int) -> Path:
    """Write the generations of a step's first prompts to ``rollouts/step-N.parquet``: one row a generation."""
    group = taken.advantages.shape[1]
    count = min(prompts * group, len(taken.rollouts))
    lengths = taken.rollouts.mask.sum(dim=1).tolist()
    rows = []
    for i in range(count):
        p, g = divmod(i, group)
        prompt = taken.prompts[p]
        rows.append(
            {
                "step": step,
                "prompt": prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False),
                "rollout": g,
                "text": taken.rollouts.texts[i],
                "answers": [answer.text for answer in taken.scores.answers[i]],
                "rewards": taken.scores.rewards[p, g][:, taken.scores.components[p]].tolist(),
                "scalars": taken.scores.scalars[p, g].tolist(),
                "advantages": taken.advantages[p, g].tolist(),
                "tokens": lengths[i],
                "finished": taken.rollouts.finished[i],
            }
        )
    path = output / "rollouts" / f"step-{step:08d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".writing")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), temporary)
    os.replace(temporary, path)
    return path


class Terminal:
    """A progress bar on a terminal; elsewhere a line every ``every`` steps and for each evaluation."""

    _SHOWN = ("loss", "set_score", "task_scalar", "diversity", "kl", "entropy", "tokens_per_s")

    def __init__(self, console: Console, name: str, steps: int, *, every: int = 10) -> None:
        self._console, self._every, self._steps = console, every, steps
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal:
            columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, TextColumn("{task.fields[figures]}"), console=console)
            self._task = self._progress.add_task(name, total=steps, figures="")

    def __enter__(self) -> Terminal:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, row: Row) -> None:
        """Show a row of the journal."""
        if "evaluation" in row:
            self._console.print(f"step {row['step']}: {json.dumps(row['evaluation'])}", highlight=False, soft_wrap=True)
            return
        figures = " ".join(f"{name} {row[name]:.3g}" for name in self._SHOWN if name in row)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=row["step"], figures=figures)
        elif row["step"] % self._every == 0 or row["step"] == self._steps:
            self._console.print(f"step {row['step']}/{self._steps}: {figures}", highlight=False, soft_wrap=True)
