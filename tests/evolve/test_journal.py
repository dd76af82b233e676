"""A run in a file: what was saved is there again, whatever happened to the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolve.config import SearchConfig
from evolve.driver import MemoryStore, run_search
from evolve.journal import JournalError, JournalStore, read_journal
from evolve.program import Reply
from evolve.request import Request
from tests.evolve.world import ToyEvaluator, new_search, reply_to

CONFIG = SearchConfig(answers=3, lag=2, stop_when_solved=False, migration_interval=3)


class Model:
    """The toy world's, which dies when asked for iteration ``until``."""

    def __init__(self, until: int = 1000) -> None:
        self.until, self.asked = until, 0

    async def complete(self, request: Request) -> Reply:
        if request.iteration >= self.until:
            raise RuntimeError("the process dies here")
        self.asked += 1
        return reply_to(request)


async def search(store: MemoryStore, *, iterations: int = 12, until: int = 1000) -> Model:
    model = Model(until)
    await run_search(new_search(CONFIG), model=model, evaluator=ToyEvaluator(), store=store, iterations=iterations)
    return model


async def test_a_journal_holds_what_memory_holds(tmp_path: Path) -> None:
    memory = MemoryStore()
    await search(memory)
    with JournalStore(tmp_path / "runs" / "1.jsonl") as journal:
        await search(journal)
    found = read_journal(tmp_path / "runs" / "1.jsonl")
    assert found.seed == memory.seed
    assert found.records == memory.records == journal.records
    assert not found.replies
    assert not found.lost_calls


async def test_a_run_goes_on_from_its_journal_as_if_never_interrupted(tmp_path: Path) -> None:
    whole = MemoryStore()
    await search(whole)
    with JournalStore(tmp_path / "run.jsonl") as journal, pytest.raises(RuntimeError, match="dies here"):
        await search(journal, until=7)
    with JournalStore(tmp_path / "run.jsonl") as journal:
        assert journal.lost_calls == {7: 1, 8: 1}  # both in flight
        model = await search(journal)
    records = read_journal(tmp_path / "run.jsonl").records
    assert [record.programs for record in records] == [record.programs for record in whole.records]
    assert model.asked == 6
    assert sum(record.reply.usage.lost_calls for record in records if record.reply) == 2


async def test_a_torn_last_line_was_never_saved(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with JournalStore(path) as journal:
        await search(journal, iterations=4)
    before = read_journal(path).records
    path.write_bytes(path.read_bytes()[:-20])
    assert len(read_journal(path).records) == 3
    with JournalStore(path) as journal:
        assert set(journal.replies) == {4}
        assert (await search(journal, iterations=4)).asked == 0
    assert read_journal(path).records == before


def test_one_process_writes_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with JournalStore(path), pytest.raises(JournalError, match="another process"):
        JournalStore(path)
    JournalStore(path).close()


@pytest.mark.parametrize("line", ["{}", "nonsense", '{"iteration": 3}', '{"lots": 1}'])
def test_a_damaged_journal_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"iteration": 1, "lost": 1}}\n{line}\n')
    with pytest.raises(JournalError, match="line 2"):
        JournalStore(path)


def test_no_file_is_an_empty_run(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none.jsonl").seed is None
