"""Whatever happens to a run (any order, refused requests, copies, crashes at any point), its records are the same."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.config import SearchConfig
from evolve.program import IterationRecord, Program
from evolve.randomness import generator
from evolve.reading import Candidates
from evolve.request import Request
from evolve.search import Search
from tests.evolve.test_search import configs
from tests.evolve.world import SEED_SOURCE, judge, new_search, reply_to

ITERATIONS = 12


def refused(request: Request) -> bool:
    """Whether the model refuses this request for good: now and then, and always the same ones."""
    return bool(generator(request.seed, "refused").random() < 0.15)


def finish(search: Search, request: Request, candidates: Candidates | None) -> IterationRecord:
    if candidates is None:
        return search.fail(request, "too long")
    return search.tell(request, reply_to(request), candidates, [judge(child.source) for child in candidates.children])


def straight(config: SearchConfig, seed: int) -> tuple[Program, list[IterationRecord]]:
    """The run without any trouble, one iteration after the other."""
    search = new_search(config, seed=seed)
    program, records = search.begin(judge(SEED_SOURCE)), []
    while len(records) < ITERATIONS and search.can_ask:
        request = search.ask()
        candidates = None if refused(request) else search.read(request, reply_to(request))
        records.append(finish(search, request, candidates))
    return program, records


def stored(record: IterationRecord) -> IterationRecord:
    """A record as a database gives it back."""
    return replace(record, info=json.loads(json.dumps(record.info)), elapsed_s=0.0)


@settings(deadline=None, max_examples=30)
@given(configs, st.integers(0, 50), st.data())
def test_any_order_with_failures_and_crashes_gives_the_same_run(
    config: SearchConfig, seed: int, data: st.DataObject
) -> None:
    program, expected = straight(config, seed)
    search = new_search(config, seed=seed)
    search.begin(judge(SEED_SOURCE))
    records: list[IterationRecord] = []
    asked: dict[int, Request] = {}
    read: dict[int, Candidates | None] = {}
    crashes = 0
    while len(records) < len(expected):
        moves = ["ask"] * (search.can_ask and search.told + len(asked) < ITERATIONS)
        moves += ["read"] * bool(asked.keys() - read.keys()) + ["tell"] * (search.told + 1 in read)
        moves += ["crash"] * (crashes < 3)
        move = data.draw(st.sampled_from(moves))
        if move == "ask":
            request = search.ask()
            asked[request.iteration] = request
        elif move == "read":
            iteration = data.draw(st.sampled_from(sorted(asked.keys() - read.keys())))
            request = asked[iteration]
            read[iteration] = None if refused(request) else search.read(request, reply_to(request))
        elif move == "tell":
            request = asked.pop(search.told + 1)
            records.append(finish(search, request, read.pop(request.iteration)))
        else:  # everything in flight is lost, and the records are all there is
            crashes += 1
            search = new_search(config, seed=seed)
            search.restore(program, [stored(record) for record in records])
            asked, read = {}, {}
    assert records == expected
    for island in range(len(search._islands)):
        numbers = [member.number for member in search._islands[island].members]
        assert len(set(numbers)) == len(numbers)
        assert all(member.island == island or member.number == 0 for member in search._islands[island].members)
