"""Rollouts that reach the disk before they are trained on.

A server's sampling cannot be repeated bit by bit, nor can a program's run time be; so a step that was interrupted after
its rollouts were judged is taken again with the same ones.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from trainer.domains.base import Judged
from trainer.files import sync
from trainer.rollout.base import Rollouts


class RolloutStore:
    """Rollouts and judgements of one process, a file a step."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self._folder, self._rank = folder, rank

    def save(self, step: int, rollouts: Rollouts, judged: list[list[Judged]]) -> None:
        """Write those of a step; they are there for good when this returns."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fields = {name: getattr(rollouts, name) for name in Rollouts.__dataclass_fields__}
        verdicts = [[{**asdict(one), "reward": one.reward.tolist()} for one in row] for row in judged]
        path = self._path(step)
        temporary = path.with_suffix(".writing")
        torch.save({"rollouts": fields, "judged": verdicts}, temporary)
        sync(temporary)
        os.replace(temporary, path)
        sync(self._folder)

    def load(self, step: int) -> tuple[Rollouts, list[list[Judged]]] | None:
        """Those of a step, ``None`` where there are none."""
        if not self._path(step).exists():
            return None
        stored = torch.load(self._path(step), weights_only=True)
        judged = [
            [Judged(np.array(one["reward"]), one["scalar"], one["failure"]) for one in row] for row in stored["judged"]
        ]
        return Rollouts(**stored["rollouts"]), judged

    def forget_before(self, step: int) -> None:
        """Drop those of the steps that a saved state already contains."""
        for path in self._folder.glob(f"step-*.rank-{self._rank}.pt"):
            if int(path.name.split(".")[0].removeprefix("step-")) < step:
                path.unlink()

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:08d}.rank-{self._rank}.pt"
