"""What every sampler gives, and what it is asked for.

A request is a prompt and a key; the key, and nothing else, decides its random draws: the same keys are the same
requests whatever else is in the batch and whichever process asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from transformers import PreTrainedTokenizerFast

from trainer.domains.base import Prompt

Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Generations for P prompts, B in all, at most T tokens each.

    prompt_ids, prompt_mask: shape (P, L), left-padded. owner: shape (B,), the prompt of each row, non-decreasing.
    ids, mask: shape (B, T); the mask covers the end mark. texts: decoded completions without the end mark, length B.
    finished: whether the end mark was written. log_sampler: shape (B, T), the sampler's own log-probabilities (nats)
    where the sampler is not the trained model itself.
    """

    prompt_ids: torch.Tensor
    prompt_mask: torch.Tensor
    owner: torch.Tensor
    ids: torch.Tensor
    mask: torch.Tensor
    texts: list[str]
    finished: list[bool]
    log_sampler: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, rows: Sequence[int]) -> Rollouts:
        """Some of the rows (ascending), with their prompts alone and without needless padding on either side."""
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.ids.device)
        prompts, owner = torch.unique(self.owner[index], return_inverse=True)
        prompt_mask, mask = self.prompt_mask[prompts], self.mask[index]
        start = int(prompt_mask.shape[1] - prompt_mask.sum(dim=1).max())
        width = max(1, int(mask.sum(dim=1).max()))
        return Rollouts(
            prompt_ids=self.prompt_ids[prompts, start:],
            prompt_mask=prompt_mask[:, start:],
            owner=owner,
            ids=self.ids[index, :width],
            mask=mask[:, :width],
            texts=[self.texts[i] for i in index.tolist()],
            finished=[self.finished[i] for i in index.tolist()],
            log_sampler=None if self.log_sampler is None else self.log_sampler[index, :width],
        )

    def to(self, device: torch.device) -> Rollouts:
        """The same rollouts on another device."""
        moved = {name: getattr(self, name).to(device) for name in ("prompt_ids", "prompt_mask", "owner", "ids", "mask")}
        return replace(self, **moved, log_sampler=None if self.log_sampler is None else self.log_sampler.to(device))


class Sampler(Protocol):
    """Draws completions. ``keys[p]`` holds one key per completion of prompt p; all prompts have equally many."""

    def sample(
        self,
        prompts: Sequence[Prompt],
        keys: Sequence[Sequence[Key]],
        *,
        max_tokens: int,
        temperature: float = 1.0,
    ) -> Rollouts:
        """Rollouts in the order of the prompts, then of their keys."""

    def sync(self, model: torch.nn.Module, step: int) -> None:
        """Sample from these weights, those after ``step`` steps, from now on."""


def prompt_tokens(prompt: Prompt, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The ids of one prompt: of the text as it stands, or of chat messages by the tokenizer's chat template."""
    if isinstance(prompt, str):
        return tokenizer(prompt, add_special_tokens=False)["input_ids"]
    ids = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
    return list(ids)


def pad_prompts(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Left-padded ids and mask, shape (P, L)."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, width - len(row) :] = torch.tensor(row, dtype=torch.long)
        mask[index, width - len(row) :] = 1
    return ids, mask


def owners(prompts: int, group: int) -> torch.Tensor:
    """The prompt of each row where every prompt has ``group`` rows, shape (P * G,)."""
    return torch.arange(prompts).repeat_interleave(group)
