"""Two processes (gloo) compute what one does: gradients, whole runs, and resuming with another number of processes."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from trainer.config import TrainConfig
from trainer.distributed import World, sum_gradients, whole
from trainer.loop import Training

Configure = Callable[..., TrainConfig]
pytestmark = pytest.mark.usefixtures("rewarding")


def in_processes(size: int, work: Callable[[int], None]) -> None:
    """Run ``work(rank)`` in forked processes of one group; fails where any of them does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
                os.environ["MASTER_PORT"] = str(port)
                work(rank)
                dist.destroy_process_group()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * size


def gradients_of_a_step(config: TrainConfig, path: Path) -> None:
    """Write the gradients of the first step, in full."""
    with Training(config) as training:
        caught: dict[str, torch.Tensor] = {}

        def catch(step: int) -> float:
            sum_gradients(training.engine.model, training.world)
            for name, parameter in training.engine.model.named_parameters():
                if parameter.grad is not None:
                    caught[name] = whole(parameter.grad).clone()
            training.engine.optimizer.zero_grad()
            return 0.0

        training.engine.apply = catch  # type: ignore[method-assign]
        training._steps(0)
        if training.world.main:
            torch.save(caught, path)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_gradients_of_two_processes_equal_those_of_one(rl_config: Configure, tmp_path: Path, kind: str) -> None:
    changes: dict[str, Any] = {"lora": {"rank": 2}} if kind == "lora" else {}
    train = {"kl": 0.1, "micro_batch": 3}
    gradients_of_a_step(rl_config(tmp_path / "a", train=train, **changes), tmp_path / "one.pt")
    if kind == "full":
        changes["hardware"] = {"shard": True}
    config = rl_config(tmp_path / "b", train=train, **changes)
    in_processes(2, lambda rank: gradients_of_a_step(config, tmp_path / "two.pt"))
    one, two = torch.load(tmp_path / "one.pt"), torch.load(tmp_path / "two.pt")
    assert one.keys() == two.keys()
    assert max(value.abs().max() for value in one.values()) > 1e-3
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=1e-5, rtol=0)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_processes(
    rl_config: Configure, tmp_path: Path, first: int, then: int
) -> None:
    def config(folder: str, processes: int) -> TrainConfig:
        return rl_config(tmp_path / folder, hardware={"shard": processes > 1}, save_every=1)

    def stop(row: dict[str, Any]) -> None:
        if row["step"] == 3:
            raise Interrupted

    def interrupted(rank: int) -> None:
        training = Training(config("b", first), stop)
        if first == 1:
            with pytest.raises(Interrupted):
                training.run()
            return
        training._resume()
        for _ in range(2):
            training._log(training._take_step())
            training._save_state(None)

    def go_on(rank: int) -> None:
        Training(config("b", then)).run()

    Training(config("a", 1)).run()
    for processes, work in ((first, interrupted), (then, go_on)):
        if processes == 1:
            work(0)
        else:
            in_processes(processes, work)
    a, b = (load_file(tmp_path / name / "model" / "model.safetensors") for name in "ab")
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=1e-2, rtol=1e-2)  # bfloat16, and sums in another order


def test_prompts_are_split_evenly_or_not_at_all() -> None:
    world = World(1, 2, torch.device("cpu"))
    assert world.share(6) == range(3, 6)
    with pytest.raises(ValueError, match="5 prompts cannot be split over 2 processes"):
        world.share(5)
