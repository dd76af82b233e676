from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import CallTest, StdioTest
from sandbox.comparison import call_matches, stdio_matches, values_match


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (0, False, False),
        (0, None, False),
        (None, None, True),
        ("1", 1, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1, 2], [1, 2, 3], False),
        ([True], [1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": True}, {"a": 1}, False),
        ([], {}, False),
        (math.nan, math.nan, True),
        (math.nan, 0, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (0.3, 0.1 + 0.2, False),
        (10**400, 1.0, False),
        (10**400, 10**400, True),
        (2**53 + 1, float(2**53), False),
    ],
)
def test_exact(expected: Any, actual: Any, same: bool) -> None:
    assert call_matches(CallTest(name="t", expected=expected), actual) is same


@pytest.mark.parametrize(
    ("expected", "actual", "tolerance", "same"),
    [
        (0.3, 0.1 + 0.2, 1e-9, True),
        (1_000_000.0, 1_000_000.5, 1e-6, True),
        (0.0, 1e-7, 1e-6, True),
        (0.0, 1e-5, 1e-6, False),
        ([1.0, [2.0]], [1.0000001, [2]], 1e-6, True),
        (True, 1.0, 1.0, False),
        (math.inf, 1e308, 1.0, False),
        (10**400, 10**400 + 1, 1e-6, False),
        (1.0, 1.5, 0.0, False),
    ],
)
def test_float(expected: Any, actual: Any, tolerance: float, same: bool) -> None:
    test = CallTest(name="t", expected=expected, compare="float", tolerance=tolerance)

    assert call_matches(test, actual) is same


@settings(deadline=None)
@given(json_values)
def test_every_value_matches_itself(value: Any) -> None:
    assert values_match(value, value, 0.0)
    assert values_match(value, value, 1e-6)


@settings(deadline=None)
@given(json_values, json_values)
def test_matching_is_symmetric_without_tolerance(one: Any, other: Any) -> None:
    assert values_match(one, other, 0.0) is values_match(other, one, 0.0)


@pytest.mark.parametrize(
    ("compare", "expected", "actual", "same"),
    [
        ("whitespace", "a\nb\n", "a  \nb", True),
        ("whitespace", "a\nb", "a\r\nb\r\n\n\n", True),
        ("whitespace", "a b", "a  b", False),
        ("whitespace", "a", " a", False),
        ("whitespace", "", "\n\n", True),
        ("exact", "a\n", "a\n", True),
        ("exact", "a\n", "a", False),
        ("float", "0.3 yes", "0.30000000001\nyes\n", True),
        ("float", "0.3", "0.4", False),
        ("float", "1 2", "1", False),
        ("float", "nan", "NaN", True),
        ("float", "yes", "no", False),
        ("unordered", "a\nb\na\n", "b \na\na\n\n", True),
        ("unordered", "a\nb\na\n", "b\na\nb\n", False),
        ("unordered", "a b\nc", "c\nb a", False),
        ("unordered_nested", "a b\nc", "c\nb  a", True),
        ("unordered_nested", "a b\nc", "c a\nb", False),
    ],
)
def test_standard_output(compare: Any, expected: str, actual: str, same: bool) -> None:
    assert stdio_matches(StdioTest(name="t", expected=expected, compare=compare), actual) is same


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"expected": {1, 2}}, "test expected has no JSON form"),
        ({"args": (object(),)}, "test args holds a object; use plain Python values"),
        ({"expected": nested(65)}, "test expected is nested more than 64 levels deep"),
        ({"args": (nested(100_000),)}, "test args is nested more than 64 levels deep"),
        ({"compare": "about"}, "test compare is 'about'; choose one of exact, float, unordered, unordered_nested"),
        ({"tolerance": -1.0}, "test tolerance must be zero or more and finite, not -1.0"),
        ({"tolerance": math.nan}, "test tolerance must be zero or more and finite, not nan"),
    ],
)
def test_a_test_that_cannot_be_judged_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CallTest(name="t", **settings)


def test_expected_values_are_what_json_carries() -> None:
    assert CallTest(name="t", expected={"a": (1, (2,)), 3: None}).expected == {"a": [1, [2]], "3": None}


def test_arguments_are_copied_as_they_are() -> None:
    given: tuple[Any, ...] = ((1, 2), {5: {b"x"}}, [frozenset({1j})], None)

    test = CallTest(name="t", args=given)

    assert test.args == given
    assert test.args[1] is not given[1]


def test_a_standard_output_test_checks_its_comparison() -> None:
    with pytest.raises(ValueError, match="choose one of whitespace, exact, float, unordered"):
        StdioTest(name="t", compare="about")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "actual", "flat", "nested"),
    [
        ([1, 2, 2], [2, 1, 2], True, True),
        ([1, 2, 2], [2, 1, 1], False, False),
        ([1, 2], [1, 2, 2], False, False),
        ([1, 2.0, 10**400], [10**400, 2, 1.0], True, True),
        ([1, True], [True, True], False, False),
        ([1, "1"], ["1", 1], True, True),
        ([1, "1"], [1, 1], False, False),
        ([[1, 2], [3]], [[3], [1, 2]], True, True),
        ([[1, 2], [3]], [[3], [2, 1]], False, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False, True),
        ([{"a": [1, 2], "b": None}], [{"b": None, "a": [1, 2]}], True, True),
        ([math.nan, 1], [1, math.nan], True, True),
        ([0.1, 0.2], [0.2, 0.1], True, True),
        (3, 3, True, True),
        ("ab", "ba", False, False),
        (["a,b"], ["a", "b"], False, False),
        ([], {}, False, False),
    ],
)
def test_unordered(expected: Any, actual: Any, flat: bool, nested: bool) -> None:
    assert call_matches(CallTest(name="t", expected=expected, compare="unordered"), actual) is flat
    assert call_matches(CallTest(name="t", expected=expected, compare="unordered_nested"), actual) is nested


@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.randoms(use_true_random=False))
def test_any_order_of_the_same_items_matches_and_one_more_does_not(items: list[Any], random: Any) -> None:
    shuffled = random.sample(items, len(items))
    for compare in ("unordered", "unordered_nested"):
        test = CallTest(name="t", expected=items, compare=compare)
        assert call_matches(test, json.loads(json.dumps(shuffled)))
        assert not call_matches(test, [*shuffled, None])
