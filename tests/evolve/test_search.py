"""Ask and tell: what is chosen, what is rejected, and that neither speed nor interruption changes a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.chain import ChainFormat
from evolve.config import ArchiveConfig, BanditConfig, BudgetConfig, ModelConfig, OperatorsConfig, SearchConfig
from evolve.manifest import Manifest, PromptFormat
from evolve.program import IterationRecord, Rejected, Reply, Usage
from evolve.search import NotReady, Search
from evolve.task import OpenEvolveTask
from tests.evolve.builders import evaluation
from tests.evolve.world import BITS, SEED_SOURCE, answer, judge, new_search, reply_to, run, step, task

ADAPTIVE = OperatorsConfig(
    crossover=1, repair=1, diverge=1, simplify=1, bandit=BanditConfig(policy="thompson", cost_weight=1.0)
)

configs = st.builds(
    SearchConfig,
    lag=st.integers(1, 4),
    samples=st.integers(1, 2),
    answers=st.integers(1, 3),
    islands=st.integers(1, 3),
    migration_interval=st.integers(1, 4),
    inspirations=st.integers(0, 2),
    scratch_probability=st.sampled_from([0.0, 0.3]),
    dedupe=st.booleans(),
    stop_when_solved=st.just(False),
    strategy=st.sampled_from(["evolve", "evolve", "sample"]),
    edit=st.sampled_from(["whole", "whole", "auto"]),
    notes=st.booleans(),
    operators=st.sampled_from([OperatorsConfig(), ADAPTIVE]),
    models=st.sampled_from([(), (ModelConfig(name="a"), ModelConfig(name="b", completion_price=2.0))]),
    model_bandit=st.just(BanditConfig(policy="ucb", cost_weight=0.5)),
    archive=st.sampled_from([ArchiveConfig(), ArchiveConfig(kind="cvt", centroids=4, novelty=0.1)]),
    migration_trigger=st.sampled_from(["interval", "stagnation"]),
    budget=st.builds(
        BudgetConfig,
        tokens=st.none() | st.integers(1, 250),
        calls=st.none() | st.integers(1, 20),
        stagnation=st.none() | st.integers(1, 8),
    ),
)


def begun(config: SearchConfig, *, seed: int = 0, manifest: Manifest | None = None) -> Search:
    search = new_search(config, seed=seed, manifest=manifest)
    search.begin(judge(SEED_SOURCE))
    return search


def reply(*texts: str, finished: bool = True) -> Reply:
    return Reply(texts=texts, finished=(finished,) * len(texts), usage=Usage(calls=1))


def with_parent(config: SearchConfig) -> Search:
    """A search whose next request improves a program that returns 3."""
    search = begun(config)
    request = search.ask()
    told = reply(answer(3))
    search.tell(request, told, search.read(request, told), [judge(search.read(request, told).children[0].source)])
    return search


def test_the_seed_is_program_0_and_a_worthless_one_gives_a_scratch_prompt() -> None:
    search = new_search(SearchConfig())
    program = search.begin(judge(SEED_SOURCE))
    assert (program.number, program.iteration, program.operator) == (0, 0, "seed")
    request = search.ask()
    assert (request.iteration, request.operator, request.parents, request.parent_source) == (1, "scratch", (), None)
    keeps = begun(SearchConfig(scratch_when_zero=False, scratch_probability=0)).ask()
    assert (keeps.operator, keeps.parents, keeps.parent_source) == ("rewrite", (0,), SEED_SOURCE)


def test_a_child_becomes_a_parent_and_the_prompt_shows_it() -> None:
    request = with_parent(SearchConfig(islands=1, scratch_probability=0)).ask()
    assert request.parents == (1,)
    assert request.operator == "rewrite"
    assert "return 3" in str(request.messages)
    assert request.text is None


def test_asking_is_bounded_by_the_lag_and_by_begin_and_end() -> None:
    with pytest.raises(NotReady):
        new_search(SearchConfig()).ask()
    search = begun(SearchConfig(lag=2))
    requests = [search.ask(), search.ask()]
    assert not search.can_ask
    with pytest.raises(NotReady, match="iteration 3 cannot be asked: 0 are told, lag 2"):
        search.ask()
    solving = reply(answer(2**BITS - 1))
    candidates = search.read(requests[0], solving)
    record = search.tell(requests[0], solving, candidates, [judge(candidates.children[0].source)])
    assert record.solved
    assert search.finished
    assert search.first_solved == 1
    with pytest.raises(NotReady):
        search.ask()
    with pytest.raises(NotReady, match="begun already"):
        search.begin(judge(SEED_SOURCE))


def test_a_solved_seed_ends_the_run_before_it_begins() -> None:
    search = new_search(SearchConfig())
    search.begin(evaluation([1.0] * BITS))
    assert search.finished
    assert search.first_solved == 0
    assert not search.can_ask


def test_results_are_told_in_order_complete_and_judged() -> None:
    search = begun(SearchConfig(lag=2))
    first, second = search.ask(), search.ask()
    told = reply(answer(1))
    candidates = search.read(second, told)
    with pytest.raises(ValueError, match="iteration 2 was told where 1 is due"):
        search.tell(second, told, candidates, [judge(answer(1)[9:-10])])
    with pytest.raises(ValueError, match="1 children but 0 evaluations"):
        search.tell(first, told, search.read(first, told), [])
    with pytest.raises(ValueError, match="could not be judged"):
        search.tell(first, told, search.read(first, told), [evaluation([0.0], infrastructure="no jail")])
    assert search.told == 0


def test_every_answer_is_a_child_or_has_a_reason() -> None:
    search = with_parent(SearchConfig(islands=1, answers=6, scratch_probability=0))
    request = search.ask()
    text = answer(5) + answer(5) + "<answer>\ndef f(:\n</answer>" + answer(3) + answer(6)
    candidates = search.read(request, reply(text))
    assert [(child.index, child.source) for child in candidates.children] == [
        (0, "def f(x):\n    return 5\n"),
        (4, "def f(x):\n    return 6\n"),
    ]
    reasons = [(item.index, item.reason) for item in candidates.rejected]
    assert reasons == [(1, "duplicate"), (2, "unparsable"), (3, "known"), (5, "missing")]
    assert candidates.rejected[2].detail == "program 1"


def test_samples_of_one_reply_are_compared_with_each_other() -> None:
    search = begun(SearchConfig(samples=3, answers=2))
    candidates = search.read(search.ask(), reply(answer(1) + answer(2), answer(2) + answer(4)))
    assert [child.index for child in candidates.children] == [0, 1, 3]
    assert [(item.index, item.reason) for item in candidates.rejected] == [
        (2, "duplicate"),
        (4, "missing"),
        (5, "missing"),
    ]


@pytest.mark.parametrize(
    ("text", "finished", "children", "cut"),
    [
        (answer(1), False, 1, 1),  # closed before the limit
        ("<answer>\ndef f(x):\n    return 1\n", False, 0, 1),
        ("def f(x):\n    return 1\n", False, 0, 1),  # would parse, but may have gone on
        ("def f(x):\n    return 1\n", True, 1, 0),
        ("```python\ndef f(x):\n    return 1\n```", False, 1, 1),
        ("<answer>\ndef f(x):\n    return '\\d' and 1\n</answer>", True, 1, 0),  # a warning is no error
        ("I am not able to do this.", True, 0, 0),
        ("", True, 0, 0),
    ],
)
def test_a_reply_cut_off_or_without_code(text: str, finished: bool, children: int, cut: int) -> None:
    search = begun(SearchConfig())
    candidates = search.read(search.ask(), reply(text, finished=finished))
    assert len(candidates.children) == children
    assert candidates.cut == cut
    if not children:
        detail = "no program in its place of the reply" if finished else "cut off by the token limit"
        assert candidates.rejected == (Rejected(index=0, reason="missing", detail=detail),)


def test_a_diff_is_applied_to_the_parent_and_a_bad_one_named() -> None:
    search = with_parent(SearchConfig(islands=1, edit="diff", samples=2, scratch_probability=0))
    request = search.ask()
    assert request.operator == "diff"
    good = "<<<<<<< SEARCH\n    return 3\n=======\n    return 7\n>>>>>>> REPLACE"
    bad = good.replace("return 3", "return 4")
    told = reply(f"<answer>\n{good}\n</answer>", f"<answer>\n{bad}\n</answer>")
    candidates = search.read(request, told)
    assert [child.source for child in candidates.children] == ["def f(x):\n    return 7\n"]
    assert [(item.index, item.reason) for item in candidates.rejected] == [(1, "bad_edit")]
    record = search.tell(request, told, candidates, [judge(candidates.children[0].source)])
    assert [(p.number, p.parents, p.operator) for p in record.programs] == [(2, (1,), "diff")]


def test_what_another_iteration_brought_meanwhile_is_known_at_tell() -> None:
    search = begun(SearchConfig(lag=2))
    first, second = search.ask(), search.ask()
    same = reply(answer(6))
    early, late = search.read(second, same), search.read(first, same)
    verdict = judge("return 6")
    assert search.tell(first, same, late, [verdict]).evaluations == 1
    record = search.tell(second, same, early, [verdict])
    assert record.programs == ()
    assert record.evaluations == 0
    assert record.rejected == (Rejected(index=0, reason="known", detail="program 1"),)


def test_without_dedupe_every_answer_counts() -> None:
    search = begun(SearchConfig(dedupe=False))
    for number in (1, 2):
        request = search.ask()
        candidates = search.read(request, reply(answer(6)))
        record = search.tell(request, reply(answer(6)), candidates, [judge("return 6")])
        assert [program.number for program in record.programs] == [number]


def test_a_refused_request_is_an_iteration_without_result() -> None:
    search = begun(SearchConfig())
    record = search.fail(search.ask(), "the prompt is too long")
    assert (record.iteration, record.reply, record.programs, record.error) == (1, None, (), "the prompt is too long")
    assert search.ask().iteration == 2


def test_sampling_never_has_a_parent() -> None:
    search = begun(SearchConfig(strategy="sample", stop_when_solved=False, migration_interval=1))
    records = run(search, 20)
    assert all(not record.parents for record in records)
    assert {program.operator for record in records for program in record.programs} == {"scratch"}


def test_an_openevolve_task_is_never_asked_without_a_program() -> None:
    files = {"initial_program.py": SEED_SOURCE, "evaluator.py": "def evaluate(path):\n    return {}\n"}
    for strategy in ("evolve", "sample"):
        config = SearchConfig.model_validate({"strategy": strategy, "scratch_probability": 1.0, "edit": "diff"})
        search = Search(OpenEvolveTask(name="bits", files=files), config, seed=0)
        search.begin(judge(SEED_SOURCE))
        for _ in range(3):
            request = search.ask()
            assert (request.parents, request.operator, request.inspirations) == ((0,), "diff", ())
            told = reply(answer(request.iteration))
            search.tell(request, told, search.read(request, told), [judge(f"return {request.iteration}")])


def test_a_chat_prompt_can_be_bounded() -> None:
    def length(chars: int | None) -> int:
        config = SearchConfig(prompt_chars=chars, scratch_when_zero=False, scratch_probability=0)
        search = Search(task("# long\n" * 1000 + SEED_SOURCE), config, seed=0)
        search.begin(judge(SEED_SOURCE))
        return sum(len(message["content"]) for message in search.ask().messages or ())

    assert length(None) > 7000
    assert length(1000) < 3500


def test_migrants_are_copies_with_lineage() -> None:
    search = begun(SearchConfig(islands=2, migration_interval=4, migration_count=1, stop_when_solved=False))
    records = run(search, 8)
    programs = {program.number: program for record in records for program in record.programs}
    migrants = [program for program in programs.values() if program.operator == "migrant"]
    assert migrants
    for migrant in migrants:
        original = programs[migrant.parents[0]]
        assert migrant.iteration % 4 == 0
        assert migrant.island != original.island
        assert (migrant.digest, migrant.evaluation) == (original.digest, original.evaluation)
    assert sum(record.evaluations for record in records) == len(programs) - len(migrants)
    assert sorted(programs) == list(range(1, len(programs) + 1))


def completion(**changes: object) -> Manifest:
    prompt = PromptFormat(kind="completion", template="T {{ statement }} {{ m }}\n", stop=("END",), max_tokens=33)
    values = {"name": "tiny", "domain": "bits", "estimator": "vpo", "seed": 0, "context_length": 128}
    return Manifest.model_validate(values | {"chain": ChainFormat(m=3), "prompt": prompt} | changes)


def test_a_completion_model_is_asked_by_its_own_template() -> None:
    request = begun(SearchConfig(max_tokens=500, answers=2, samples=2), manifest=completion()).ask()
    assert request.messages is None
    assert request.text == "T Return the number whose bits are all set. 3\n"
    assert (request.n, request.m, request.max_tokens, request.stop) == (2, 3, 33, ("END",))


def test_token_limits_of_chat_models() -> None:
    chat = completion(prompt=PromptFormat(max_tokens=77))
    assert begun(SearchConfig(max_tokens=500), manifest=chat).ask().max_tokens == 500
    assert begun(SearchConfig(), manifest=chat).ask().max_tokens == 77
    assert begun(SearchConfig()).ask().max_tokens == 1024


def test_manifest_and_config_must_fit() -> None:
    with pytest.raises(ValueError, match="use edit 'whole'"):
        new_search(SearchConfig(edit="diff"), manifest=completion())
    with pytest.raises(ValueError, match="has no template"):
        new_search(SearchConfig(), manifest=completion(prompt=PromptFormat(kind="completion")))


@settings(deadline=None, max_examples=25)
@given(configs, st.integers(0, 50), st.data())
def test_neither_speed_nor_order_changes_a_run(config: SearchConfig, seed: int, data: st.DataObject) -> None:
    expected = run(begun(config, seed=seed), 14)
    search = begun(config, seed=seed)
    records: list[IterationRecord] = []
    asked, read = {}, {}
    while len(records) < len(expected):
        moves = ["ask"] * (search.can_ask and search.told + len(asked) < 14)
        moves += ["read"] * bool(asked.keys() - read.keys()) + ["tell"] * (search.told + 1 in read)
        move = data.draw(st.sampled_from(moves))
        if move == "ask":
            request = search.ask()
            asked[request.iteration] = request
        elif move == "read":
            iteration = data.draw(st.sampled_from(sorted(asked.keys() - read.keys())))
            read[iteration] = search.read(asked[iteration], reply_to(asked[iteration]))
        else:
            request, candidates = asked.pop(search.told + 1), read.pop(search.told + 1)
            verdicts = [judge(child.source) for child in candidates.children]
            records.append(search.tell(request, reply_to(request), candidates, verdicts))
    assert records == expected


@settings(deadline=None, max_examples=20)
@given(configs, st.integers(0, 50))
def test_a_run_resumed_anywhere_equals_the_uninterrupted_one(config: SearchConfig, seed: int) -> None:
    whole = begun(config, seed=seed)
    seed_program = whole.best
    assert seed_program is not None
    expected = run(whole, 12)
    for cut in range(0, len(expected) + 1, 3):
        resumed = new_search(config, seed=seed)
        resumed.restore(seed_program, expected[:cut])
        assert run(resumed, 12) == expected[cut:]
        assert resumed.best == whole.best
        assert resumed.first_solved == whole.first_solved


def test_stored_iterations_must_be_complete() -> None:
    search = begun(SearchConfig())
    seed_program = search.best
    assert seed_program is not None
    records = run(search, 3)
    bad: list[Iterable[IterationRecord]] = [records[1:], [records[0], records[0]], [records[0], records[2]]]
    for rows in bad:
        with pytest.raises(ValueError, match="one is missing or double"):
            new_search(SearchConfig()).restore(seed_program, rows)


@settings(deadline=None, max_examples=20)
@given(configs, st.integers(0, 50))
def test_the_books_balance(config: SearchConfig, seed: int) -> None:
    search = begun(config, seed=seed)
    best, number, digests = 0.0, 1, Counter([search.best.digest if search.best else ""])
    for record in run(search, 12):
        places = config.samples * config.answers
        made = [program for program in record.programs if program.operator != "migrant"]
        assert record.evaluations == len(made)
        assert sorted([p.index for p in made] + [r.index for r in record.rejected]) == list(range(places))
        assert [program.number for program in record.programs] == list(range(number, number + len(record.programs)))
        number += len(record.programs)
        digests.update(program.digest for program in made)
        best = max([best] + [program.evaluation.scalar for program in record.programs])
        assert record.best_scalar == best
    if config.dedupe:
        assert max(digests.values()) == 1


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    config = SearchConfig(stop_when_solved=False)
    assert run(begun(config, seed=1), 10) == run(begun(config, seed=1), 10)
    assert run(begun(config, seed=1), 10) != run(begun(config, seed=2), 10)


def test_the_population_stays_bounded_while_the_run_goes_on() -> None:
    search = begun(SearchConfig(stop_when_solved=False, dedupe=False, islands=1))
    for _ in range(200):
        step(search)
    assert len(search._waiting) <= search.config.lag
    assert len(search._islands[0]) <= 2**BITS + 12 * 12


def test_a_limit_ends_the_asking_and_keeps_what_is_in_flight() -> None:
    config = SearchConfig(lag=3, stop_when_solved=False, budget=BudgetConfig(calls=4))
    search = begun(config)
    records = run(search, 50)
    assert len(records) == 6  # reached by the fourth, when two more were in flight
    assert (search.ended, search.finished, search.can_ask) == ("calls", True, False)
    assert search.spent.calls == 6
    with pytest.raises(NotReady):
        search.ask()


@pytest.mark.parametrize(
    ("budget", "ended", "iterations"),
    [
        ({"tokens": 45}, "tokens", 3),  # 15 an iteration
        ({"cost": 0.0001}, "cost", 5),  # 10 tokens at 1 and 5 at 2 per million
        ({"stagnation": 4}, "stagnation", None),
        ({"target": 0.4}, "target", None),
        ({"tokens": 45, "calls": 2}, "calls", 2),
    ],
)
def test_what_ends_a_run_first(budget: dict[str, float], ended: str, iterations: int | None) -> None:
    models = [{"name": "toy", "prompt_price": 1.0, "completion_price": 2.0}]
    config = SearchConfig.model_validate({"budget": budget, "models": models, "stop_when_solved": False})
    search = begun(config)
    records = run(search, 200)
    assert search.ended == ended
    if iterations is not None:
        assert len(records) == iterations
    assert search.spent.cost == pytest.approx(20e-6 * len(records))
    assert search.spent.tokens == 15 * len(records)
    assert search.spent.evaluations == sum(record.evaluations for record in records)
    if ended == "target":
        assert records[-1].best_scalar >= 0.4 > max([0.0] + [record.best_scalar for record in records[:-1]])
    if ended == "stagnation":
        assert records[-1].best_scalar == records[-5].best_scalar


def test_a_seed_program_that_reaches_the_target_ends_the_run() -> None:
    search = new_search(SearchConfig(budget=BudgetConfig(target=0.2)))
    search.begin(judge("return 1"))
    assert search.finished
    assert search.ended == "target"
