"""MuSiQue, EUREQA, ToolRL and collinear: rewards by hand, published formats, synthetic problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolve.chain import ChainFormat, parse_chain
from evolve.randomness import generator
from trainer.domains import make_domain
from trainer.domains.base import DomainError
from trainer.domains.collinear import CollinearDomain, Digits
from trainer.domains.eureqa import EureqaDomain, Narrative
from trainer.domains.musique import MusiqueDomain, Question
from trainer.domains.textual import TextDomain, TextOptions
from trainer.domains.toolrl import Call, ToolDomain, ToolProblem, read_calls, value_match

NAMES = ["collinear", "eureqa", "musique", "toolrl"]
QUESTION = Question("who?", ("p0", "p1", "p2", "p3", "p4"), (3, 1), ("Ada Lovelace", "the Countess"))
NARRATIVE = Narrative(("Person A ...",), ("Person A",) * 5, ("Robert_Rodriguez", "B", "The_C", "D", "E"))
WEATHER = ToolProblem("tools", "weather?", (Call("get_weather", {"city": "New York", "days": 3}), Call("stop", {})))


def domain(name: str, **options: Any) -> TextDomain[Any]:
    made = make_domain(name, options)
    assert isinstance(made, TextDomain)
    return made


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("support: 3, 1\nanswer: Ada Lovelace", [1, 1, 1, 1, 1]),
        ("support: 1\nanswer: countess", [0, 1, 1, 1, 1]),
        ("Support: 0, 2, 4, 0, 1, 3\nAnswer: Ada", [0, 1, 1, 1, 2 / 3]),  # four distinct ones count
        ("support: 3, 1", [0, 0, 0, 0, 0]),
        ("answer: nobody", [0, 0, 1, 1, 0]),
        ("", [0, 0, 0, 0, 0]),
    ],
)
async def test_musique_by_hand(answer: str, expected: list[float]) -> None:
    subject = MusiqueDomain(TextOptions())
    judged = await subject.judge(QUESTION, answer)
    np.testing.assert_allclose(judged.reward, expected)
    assert judged.scalar == pytest.approx((sum(expected[:4]) + 3 * expected[4]) / 7)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A: the robert rodriguez!\nB: b\nC: c\nD: d\nE: x", [1, 1, 1, 1, 0]),
        ("A: Robert_Rodriguez\nA: no", [1, 0, 0, 0, 0]),  # the first counts
        ("A: no\nA: Robert_Rodriguez", [0, 0, 0, 0, 0]),
        ("A:\nB: B", [0, 1, 0, 0, 0]),
        ("Robert_Rodriguez", [0, 0, 0, 0, 0]),
    ],
)
def test_eureqa_by_hand(answer: str, expected: list[float]) -> None:
    np.testing.assert_allclose(EureqaDomain(TextOptions()).rewards(NARRATIVE, answer), expected)


def _tool(*calls: dict[str, Any], thought: bool = True) -> str:
    lines = "\n".join(json.dumps(call) for call in calls)
    return ("<thought>t</thought>" if thought else "") + (f"<tool_call>{lines}</tool_call>" if calls else "")


STOP = {"name": "stop", "parameters": {}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (_tool({"name": "get_weather", "parameters": {"days": 3, "city": "new york"}}, STOP), [1, 1, 1, 1]),
        (_tool(STOP, {"name": "Get_Weather", "arguments": {"days": "3", "city": "York"}}), [1, 1, 1, (5 / 6 + 1) / 2]),
        (_tool({"name": "get_weather", "parameters": {"city": "New York", "x": 1}}), [1, 2 / 3, 1 / 4, 1 / 4]),
        (_tool(STOP, STOP, thought=False), [0, 1 / 2, 1 / 2, 1 / 2]),
        (_tool(), [0, 0, 0, 0]),
        ("", [0, 0, 0, 0]),
    ],
)
def test_toolrl_by_hand(answer: str, expected: list[float]) -> None:
    np.testing.assert_allclose(ToolDomain(TextOptions()).rewards(WEATHER, answer), expected)


def test_toolrl_without_calls() -> None:
    subject, problem = ToolDomain(TextOptions()), ToolProblem("tools", "thanks", ())
    np.testing.assert_allclose(subject.rewards(problem, "<thought>x</thought><response>hi</response>"), [1, 1, 1, 1])
    np.testing.assert_allclose(subject.rewards(problem, _tool(STOP)), [0, 0, 0, 0])
    np.testing.assert_allclose(subject.rewards(problem, "hello"), [0, 1, 1, 1])


@pytest.mark.parametrize(
    ("value", "wanted", "match"),
    [
        (True, True, 1),
        (1, True, 0),
        ("3.0", 3, 1),
        ([3], 3, 0),
        ("big red dog", "red dog", 4 / 5),
        (["a", "b"], ["B", "c"], 1 / 2),
        ("a", ["a"], 1),
        ({"x": 1}, {"x": 2, "y": 3}, 2 / 3),
        ("x", {"x": 1}, 0),
        (None, None, 1),
    ],
)
def test_value_match(value: Any, wanted: Any, match: float) -> None:
    assert value_match(value, wanted) == pytest.approx(match)


def test_calls_are_read_as_a_list_or_in_a_row() -> None:
    assert read_calls('[{"name": "a"}, {"name": "b", "arguments": 3}]') == [Call("a", {}), Call("b", {})]
    assert read_calls('{"name": "a"}, {"name": "b"}\n{"name": "c"} and') == [Call(n, {}) for n in "abc"]
    assert read_calls("nothing") == []
    assert read_calls("[" * 100_000) == []


async def test_collinear_components_rank_alike() -> None:
    subject, problem = CollinearDomain(TextOptions()), Digits((3, 1, 2, 0))
    np.testing.assert_allclose(subject.rewards(problem, "0 1 2 3"), np.ones(5))
    np.testing.assert_allclose(subject.rewards(problem, "0 1 3 2"), [0.5**p for p in (2 / 3, 0.8, 1, 1.25, 1.5)])
    np.testing.assert_allclose(subject.rewards(problem, "0 1 2"), np.zeros(5))
    rows = np.array([subject.rewards(problem, a) for a in ("0 1 2 3", "0 1 3 2", "0 3 2 1", "3 2 1 0", "0 3 1 2")])
    assert np.corrcoef(rows.T)[np.triu_indices(5, 1)].mean() > 0.95
    orders = [rows @ generator(i).dirichlet(np.ones(5)) for i in range(20)]
    assert len({tuple(np.argsort(values, kind="stable")) for values in orders}) == 1


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.sampled_from([1, 3]), heldout=st.booleans())
def test_synthetic_problems(name: str, seed: int, m: int, heldout: bool) -> None:
    subject = domain(name, form="compact")
    problem = subject.problem(generator(seed), heldout=heldout)
    assert subject.problem(generator(seed), heldout=heldout) == problem
    assert subject.content(problem) != subject.content(subject.problem(generator(seed, 1), heldout=not heldout))
    np.testing.assert_allclose(subject.rewards(problem, subject.solution(problem)), 1)
    example = subject.example(generator(seed), m)
    chain = parse_chain(example.completion, ChainFormat(m=m))
    assert len(chain.answers) >= min(m, 2)
    training = subject.problem(generator(seed), heldout=False)
    scores = [subject.rewards(training, answer.text) for answer in chain.answers]
    assert max(score.mean() for score in scores) == 1
    for score in scores:
        assert score.shape == (len(subject.components(training)),)
        assert ((score >= 0) & (score <= 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_compact_texts_read_back_and_fit(name: str) -> None:
    subject = domain(name, form="compact")
    tokenizer = subject.build_tokenizer()
    rng = generator(5)
    for i in range(30):
        example = subject.example(rng, 1 + 2 * (i % 2))
        for text in (example.prompt, example.completion):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text
        assert len(tokenizer(example.completion)["input_ids"]) < subject.prompt_format(1 + 2 * (i % 2)).max_tokens


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["compact", "chat"])
@given(text=st.text(max_size=60))
def test_no_answer_raises(name: str, form: str, text: str) -> None:
    subject = domain(name, form=form)
    problem = subject.problem(generator(6), heldout=False)
    reward = subject.rewards(problem, text)
    assert ((reward >= 0) & (reward <= 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_prompts_state_weights_and_the_number_of_answers(name: str) -> None:
    chat, compact = domain(name), domain(name, form="compact")
    problem = chat.problem(generator(7), heldout=False)
    goal = np.full(len(chat.components(problem)), 1 / len(chat.components(problem)))
    messages = chat.prompt(problem, 3, None, goal)
    assert isinstance(messages, list)
    text = messages[-1]["content"]
    shown = parse_chain(text, ChainFormat(m=9)).answers
    assert [answer.text.rstrip() for answer in shown][-2:] == list(chat.samples)
    assert all(chat.rewards(problem, answer.text).shape == goal.shape for answer in shown)
    assert "3 different answers" in text
    assert f"{chat.components(problem)[0]} {goal[0]:.2f}" in text
    assert chat.facts(problem) in "\n".join(message["content"] for message in messages) or name == "toolrl"
    assert str(compact.prompt(problem, 3, None, goal)).endswith(
        "\nw" + f" {round(10 * goal[0])}" * len(goal) + "\n= 3\n"
    )


MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "X", "paragraph_text": "about X", "is_supporting": False},
        {"idx": 1, "title": "Y", "paragraph_text": "about Y", "is_supporting": True},
        {"idx": 2, "title": "Z", "paragraph_text": "about Z", "is_supporting": True},
    ],
    "question": "Who is it?",
    "question_decomposition": [
        {"id": 1, "question": "q1", "answer": "z", "paragraph_support_idx": 2},
        {"id": 2, "question": "#1 q2", "answer": "y", "paragraph_support_idx": 1},
    ],
    "answer": "Why",
    "answer_aliases": ["Y"],
    "answerable": True,
}
EUREQA = {
    "idx": 4,
    "question": ["Person A wrote Book B.", "What is Person A?"],
    "entity_masks": ["Person A", "Book B", "Film C", "City D", "Country E", "Sea F"],
    "entities": ["Ann", "A_Book", "A_Film", "Rome", "Italy", "Adria"],
}
TOOL_OUTPUT = '<think>x</think>\n<tool_call>\n{"name": "f", "parameters": {"a": 1}}\n</tool_call>'


def test_published_musique(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    train.write_text("\n".join(json.dumps(r) for r in (MUSIQUE, {**MUSIQUE, "answerable": False, "question": "no"})))
    dev.write_text(json.dumps({**MUSIQUE, "question": "Another?"}))
    subject = domain("musique", training=str(train), heldout=str(dev))
    problem = subject.problem(generator(0), heldout=False)
    assert problem == Question("Who is it?", ("X: about X", "Y: about Y", "Z: about Z"), (2, 1), ("Why", "Y"))
    assert subject.problem(generator(0), heldout=True).text == "Another?"
    assert "[1] Y: about Y" in subject.prompt(problem, 1)[0]["content"]
    with pytest.raises(DomainError, match="no training problem"):  # the same question on both sides
        domain("musique", training=str(train), heldout=str(train))


def test_published_eureqa(tmp_path: Path) -> None:
    path = tmp_path / "normal.json"
    path.write_text(json.dumps([{**EUREQA, "question": [f"Version {i}."]} for i in range(60)]))
    subject = domain("eureqa", training=str(path))
    problem = subject.problem(generator(0), heldout=False)
    assert problem.entities == ("Ann", "A_Book", "A_Film", "Rome", "Italy")
    assert problem != subject.problem(generator(0), heldout=True)
    assert "A for Person A, B for Book B" in subject.prompt(problem, 1)[0]["content"]


def test_published_toolrl(tmp_path: Path) -> None:
    parquet, raw = tmp_path / "train.parquet", tmp_path / "rlla_rl.json"
    record = {
        "data_source": "rlla",
        "prompt": [
            {"role": "system", "content": "tools; use <think>"},
            {"role": "user", "content": "do it"},
        ],
        "reward_model": {"style": "rule", "ground_truth": TOOL_OUTPUT},
    }
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([record]), parquet)
    raw.write_text(json.dumps([{"instruction": "other", "input": "now", "output": TOOL_OUTPUT}]))
    subject = domain("toolrl", training=str(parquet), heldout=str(raw))
    problem = subject.problem(generator(0), heldout=False)
    assert problem == ToolProblem("tools; use <thought>", "do it", (Call("f", {"a": 1}),))
    assert subject.problem(generator(0), heldout=True).user == "now"
    messages = subject.prompt(problem, 3)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[0]["content"].startswith("tools; use <thought>")


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"question": "q"}))
    with pytest.raises(DomainError, match="record 0 is not in the format of musique"):
        domain("musique", training=str(path))
    path.write_text(json.dumps({**EUREQA, "entities": ["x"]}))
    with pytest.raises(DomainError, match="6 entity_masks and entities, not 6 and 1"):
        domain("eureqa", training=str(path))
    with pytest.raises(DomainError, match="heldout needs training"):
        domain("eureqa", heldout=str(path))
    with pytest.raises(DomainError, match="form 'chat'"):
        domain("eureqa", training=str(path), form="compact")
    with pytest.raises(DomainError, match="mutation_share"):
        domain("eureqa").prompt(NARRATIVE, 1, "parent")
