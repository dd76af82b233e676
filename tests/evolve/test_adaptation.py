"""Operators, models and forms of answer in a running search; notes and lineage."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evolve.adaptation import Adaptation, Form, well_formed
from evolve.config import SearchConfig, SelectionConfig
from evolve.ensemble import Ensemble, check_clients
from evolve.lineage import REMEMBERED, Lineage, change
from evolve.manifest import Manifest, PromptFormat, read_manifest
from evolve.notes import Notes
from evolve.program import IterationRecord, Rejected, Reply, Usage
from evolve.request import Request
from evolve.search import Search
from evolve.task import load_suite
from tests.evolve.builders import program
from tests.evolve.world import BITS, SEED_SOURCE, answer, judge, new_search, reply_to, run

ELITE = SelectionConfig.only("elite").model_dump()
ROOT = Path(__file__).parents[2]


def config(**values: Any) -> SearchConfig:
    body = {"islands": 1, "scratch_probability": 0, "scratch_when_zero": False, "stop_when_solved": False}
    return SearchConfig.model_validate(body | values)


def begun(settings: SearchConfig, *, manifest: Manifest | None = None) -> Search:
    search = new_search(settings, manifest=manifest)
    search.begin(judge(SEED_SOURCE))
    return search


def tell(search: Search, *values: int) -> IterationRecord:
    """Answer the next request with these numbers."""
    request = search.ask()
    return tell_request(search, request, *values)


def tell_request(search: Search, request: Request, *values: int) -> IterationRecord:
    reply = Reply(texts=("".join(map(answer, values)),), finished=(True,), usage=Usage(calls=1, completion_tokens=9))
    candidates = search.read(request, reply)
    return search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])


def message(request: Request) -> str:
    assert request.messages is not None
    return request.messages[-1]["content"]


def test_by_default_a_parent_is_improved() -> None:
    record = tell(begun(config()), 1)
    assert (record.info["operator"], record.info["move"], record.info["improved"]) == ("rewrite", "improve", True)
    assert "model" not in record.info
    assert "form" not in record.info


def test_crossover_shows_two_parents_that_complement_each_other() -> None:
    search = begun(config(operators={"improve": 0, "crossover": 1}, answers=2, selection=ELITE))
    first = search.ask()
    assert (first.operator, first.move) == ("rewrite", "improve")  # nothing to combine yet
    reply = Reply(texts=(answer(0b00111) + answer(0b11000),), finished=(True,), usage=Usage(calls=1))
    candidates = search.read(first, reply)
    search.tell(first, reply, candidates, [judge(child.source) for child in candidates.children])
    request = search.ask()
    assert request.operator == "crossover"
    assert set(request.parents) == {1, 2}
    assert request.base == 0.6
    text = message(request)
    assert "# Second program" in text
    wanted = "t3, t4" if request.parents == (1, 2) else "t0, t1, t2"
    assert f"The second program passes what the current one fails: {wanted}." in text
    record = tell_request(search, request, 0b11111)
    assert record.programs[0].parents == request.parents
    assert record.programs[0].operator == "crossover"


def test_repair_names_one_failing_test() -> None:
    search = begun(config(operators={"improve": 0, "repair": 1}, selection=ELITE))
    tell(search, 0b11110)
    request = search.ask()
    assert request.operator == "repair"
    assert "Find out why the test t0 fails" in message(request)
    tell_request(search, request, 2**BITS - 1)
    assert search.ask().operator == "rewrite"  # nothing is left to mend


@pytest.mark.parametrize(
    ("name", "words"), [("diverge", "fundamentally different"), ("simplify", "simpler and shorter")]
)
def test_other_operators_say_what_they_want(name: str, words: str) -> None:
    request = begun(config(operators={"improve": 0, name: 1})).ask()
    assert request.operator == name
    assert words in message(request)


def completion(template: str) -> Manifest:
    prompt = PromptFormat(kind="completion", template=template, max_tokens=33)
    return Manifest(name="tiny", domain="bits", estimator="vpo", seed=0, context_length=128, prompt=prompt)


@pytest.mark.parametrize(
    ("template", "carried"),
    [
        ("{{ parent.source if parent else '' }}", {"improve"}),
        ("{{ parent.source if parent else '' }} {{ inspirations | length }}", {"improve", "crossover"}),
        ("{{ mate.source if mate else '' }}", {"improve", "crossover"}),
        ("{{ focus | join(',') }}", {"improve", "repair"}),
        ("{{ operator }}", {"improve", "diverge", "simplify"}),
    ],
)
def test_a_compact_model_gets_what_its_template_can_carry(template: str, carried: set[str]) -> None:
    every = dict.fromkeys(["improve", "crossover", "repair", "diverge", "simplify"], 1)
    search = begun(config(operators=every), manifest=completion(template))
    assert set(search._adaptation.operators.weights) == carried
    assert {record.info["move"] for record in run(search, 25)} <= carried
    only = config(operators={"improve": 0, "crossover": 1})
    if "crossover" not in carried:
        with pytest.raises(ValueError, match="can carry none of the operators"):
            new_search(only, manifest=completion(template))


def test_without_a_place_of_its_own_the_mate_comes_first_among_the_others() -> None:
    template = "{{ parent.source if parent else '' }}|{% for p in inspirations %}{{ p.source }}{% endfor %}"
    settings = config(operators={"improve": 0, "crossover": 1}, inspirations=0)
    search = begun(settings, manifest=completion(template))
    tell(search, 0b00111)
    for _ in range(5):
        request = search.ask()
        if request.operator == "crossover":
            assert request.text is not None
            assert request.text.count("return") == 2
            return
        tell_request(search, request, 0b11000)
    raise AssertionError("no crossover")


def test_the_shipped_models_are_asked_in_the_words_they_were_trained_on() -> None:
    """Their template mentions none of the new parts, and renders the same whatever the configuration says."""
    suite = load_suite(ROOT / "examples" / "minicode" / "suite.json")
    manifest = read_manifest(ROOT / "checkpoints" / "minicode-vpo")
    rich = {"notes": True, "history": 5, "edit": "auto", "operators": {"improve": 1, "crossover": 1, "repair": 1}}
    texts = []
    for values in ({}, rich):
        search = Search(suite.tasks[0], config(**values), seed=0, manifest=manifest)
        search.begin(replace(judge("return 0"), **fields(suite.tasks[0])))
        texts.append(search.ask().text)
    assert texts[0] == texts[1]
    tests = suite.tasks[0].model_dump()["tests"]
    shown = [case for case in tests if case["visible"]]
    marks = [f"- {' '.join(map(str, c['args'][0]))} -> {' '.join(map(str, c['expected']))}\n" for c in shown]
    hidden = len(tests) - len(shown)
    seed_source = suite.tasks[0].seed_source
    assert texts[0] == f"{''.join(marks)}# {hidden}\n{seed_source}= {manifest.chain.m}\n"


def fields(some_task: Any) -> dict[str, Any]:
    names = some_task.components
    failed = judge("return 0").statuses[0]
    return {
        "components": names,
        "reward": (0.0,) * len(names),
        "statuses": (failed,) * len(names),
        "messages": ("",) * len(names),
    }


class Clumsy:
    """Answers well in one form of edit only."""

    def __init__(self, manages: str) -> None:
        self.manages = manages

    def reply(self, request: Request) -> Reply:
        value = request.iteration % 32
        good = request.form is not None and request.form.startswith(self.manages)
        texts = tuple(answer(value) if good else "I cannot." for _ in range(request.n))
        tokens = 100 if request.edit == "whole" else 20
        return Reply(texts=texts, finished=(True,) * request.n, usage=Usage(calls=1, completion_tokens=tokens))


@pytest.mark.parametrize("manages", ["whole", "diff"])
def test_the_edit_form_becomes_what_the_model_manages(manages: str) -> None:
    search, model, forms = begun(config(edit="auto", dedupe=False)), Clumsy(manages), Counter[str]()
    for t in range(60):
        request = search.ask()
        reply = model.reply(request)
        candidates = search.read(request, reply)
        record = search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])
        forms[record.info["form"]] += t >= 30
    assert forms[manages] >= 24


def test_a_model_that_cannot_keep_a_chain_apart_is_asked_one_by_one() -> None:
    search, forms = begun(config(edit="auto", answers=3, dedupe=False)), Counter[str]()
    for t in range(60):
        request = search.ask()
        assert request.n * request.m == 3
        texts = tuple(answer((request.iteration + i) % 32) for i in range(request.n))
        reply = Reply(texts=texts, finished=(True,) * request.n, usage=Usage(calls=1, completion_tokens=30))
        candidates = search.read(request, reply)
        record = search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])
        assert len(record.rejected) + record.evaluations == 3
        forms[record.info["form"]] += t >= 30
    assert sum(count for name, count in forms.items() if name.endswith("-single")) >= 24


def test_forms_without_a_parent_are_whole_programs() -> None:
    adaptation = Adaptation(config(edit="auto"), seed=0, operators=("improve",), edits=("whole", "diff"), splits=False)
    assert {adaptation.form(t, parent=False) for t in range(20)} == {Form("whole")}
    only_diff = Adaptation(config(edit="diff"), seed=0, operators=("improve",), edits=("diff",), splits=False)
    assert only_diff.form(1, parent=False) == Form("whole")
    assert only_diff.form(1, parent=True) == Form("diff")


def test_the_better_model_for_its_price_is_asked_more() -> None:
    models = [{"name": "small", "completion_price": 1.0}, {"name": "large", "completion_price": 50.0}]
    bandit = {"policy": "thompson", "cost_weight": 0.5, "discount": 1.0}
    search, asked = begun(config(models=models, model_bandit=bandit)), Counter[str]()
    for t in range(120):
        request = search.ask()
        assert request.model is not None
        asked[request.model] += t >= 60
        reply = reply_to(request)
        candidates = search.read(request, reply)
        search.tell(request, reply, candidates, [judge(child.source) for child in candidates.children])
    assert asked["small"] > 40
    assert search.spent.cost > 0


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, request: Request) -> Reply:
        return Reply(texts=(self.name,), finished=(True,), usage=Usage())


async def test_an_ensemble_sends_each_request_to_its_model() -> None:
    ensemble = Ensemble({"a": Named("a"), "b": Named("b")})
    for name in ("a", "b"):
        assert (await ensemble.complete(Request(iteration=1, island=0, model=name))).texts == (name,)
    with pytest.raises(ValueError, match="there is only a, b"):
        await ensemble.complete(Request(iteration=1, island=0))
    with pytest.raises(ValueError, match="at least one"):
        Ensemble({})
    two = config(models=[{"name": "a"}, {"name": "c"}])
    with pytest.raises(ValueError, match="models c have no client"):
        check_clients(two, ensemble)
    with pytest.raises(ValueError, match="models a, c have no client"):
        check_clients(two, Named("a"))
    check_clients(config(models=[{"name": "a"}]), Named("a"))


def test_well_formed_answers_are_those_that_could_be_read() -> None:
    record = tell(begun(config(answers=4)), 1, 1, 0)
    assert [item.reason for item in record.rejected] == ["duplicate", "known", "missing"]
    assert well_formed(record) == 0.75
    assert well_formed(replace(record, evaluations=0, rejected=())) == 0.0


def test_the_prompt_tells_how_the_parent_came_to_be_and_what_is_known() -> None:
    search = begun(config(notes=True, history=2, selection=ELITE))
    for value in (0b00001, 0b00011, 0b00111):
        tell(search, value)
    text = message(search.ask())
    assert "# How the current program came to be" in text
    assert "rewrite, score 0.200 to 0.400" in text
    assert "rewrite, score 0.400 to 0.600" in text
    assert "-    return 3\n+    return 7" in text
    assert "score 0.000 to 0.200" not in text.split("# How the current program")[1]
    assert "# What is known so far" in text
    assert "No program has passed yet: t3, t4." in text
    assert "raised the best score from 0.400 to 0.600 (rewrite): -    return 3 | +    return 7" in text
    assert "Verdicts on the current program, in order (+ passed): +++--" in text
    silent = message(begun(config(history=0)).ask())
    assert "came to be" not in silent
    assert "known so far" not in silent


def test_notes_count_what_went_wrong_and_never_speak_of_hidden_tests() -> None:
    notes, lineage = Notes(("t0",)), Lineage()
    notes.begin(program(0, [0, 0]))
    assert notes.lines() == ()
    rejected = (
        Rejected(index=0, reason="bad_edit", detail="search_not_found: block 1 \x00"),
        Rejected(index=1, reason="known", detail="program 3"),
        Rejected(index=2, reason="unparsable", detail="whatever"),
    )
    for t in range(1, 30):
        info = {"move": "crossover" if t % 2 else "improve", "improved": t == 1}
        notes.absorb(record(t, rejected=rejected, parents=(0,), info=info), lineage)
    lines = notes.lines()
    assert lines[0] == "No program has passed yet: t0."
    assert "Improved on its parent: crossover 1 of 15, improve 0 of 14." in lines
    assert lines[-1] == (
        "Of the last 60 answers these were of no use: not valid code 20, equal to an earlier program 20, "
        "edit failed (search not found) 20."
    )


def record(iteration: int, **values: Any) -> IterationRecord:
    body: dict[str, Any] = {"island": 0, "parents": (), "reply": None, "programs": (), "rejected": (), "evaluations": 0}
    body |= {"best_scalar": 0.0, "solved": False}
    return IterationRecord(iteration=iteration, **(body | values))


def test_lineage_forgets_and_skips_copies() -> None:
    lineage = Lineage()
    seed = program(0, [0, 0], source="a\n")
    child = replace(program(1, [1, 0], source="b\n"), parents=(0,))
    copy = replace(child, number=2, parents=(1,), operator="migrant")
    grandchild = replace(program(3, [1, 1], source="c\n"), parents=(2,), operator="diff")
    for item in (seed, child, copy, grandchild):
        lineage.remember(item)
    steps = lineage.history(grandchild, 5, lambda number: None)
    assert [(step.operator, step.before, step.after, step.diff) for step in steps] == [
        ("rewrite", 0.0, 0.5, "-a\n+b"),
        ("diff", 0.5, 1.0, "-b\n+c"),
    ]
    assert len(lineage.history(grandchild, 1, lambda number: None)) == 1
    for number in range(4, 4 + REMEMBERED):
        lineage.remember(program(number, [0]))
    assert lineage.history(grandchild, 5, lambda number: None) == ()
    assert len(lineage.history(grandchild, 5, {2: copy, 1: child}.get)) == 1


def test_long_changes_are_cut() -> None:
    before = program(0, [0], source="\n".join(f"old {i}" for i in range(100)))
    after = program(1, [0], source="\n".join(f"new {i}" for i in range(100)))
    lines = change(before, after).diff.splitlines()
    assert len(lines) == 41
    assert lines[-1] == "… 160 more lines"


def test_what_a_record_says_is_json() -> None:
    search = begun(config(models=[{"name": "a"}], edit="auto", operators={"crossover": 1}, notes=True))
    for item in run(search, 5):
        assert json.loads(json.dumps(item.info)) == item.info
