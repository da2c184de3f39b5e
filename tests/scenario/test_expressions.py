"""Safe expressions: their values against Python's own evaluation, and messages about invalid ones."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.scenario.expressions import LARGEST, Expression, Limit

KEYS: dict[str, int | float | str | bool] = {
    "network.brokers": 12,
    "workload.users": 100,
    "horizon": 86400.0,
    "selection.kind": "static",
    "trace": True,
}


def look_up(name: str) -> int | float | str | bool:
    if name not in KEYS:
        raise InputError(f"unknown key '{name}'")
    return KEYS[name]


def mistake(text: str) -> str:
    with pytest.raises(InputError) as error:
        Expression(text).value(look_up)
    return str(error.value)


NUMBERS = st.integers(-20, 20).map(str) | st.floats(-9, 9).map(lambda x: f"{x:.3g}") | st.sampled_from(["x.a", "x.b"])
ARITHMETIC = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["** 2", "** -1", "** 0.5"])).map(" ".join),
        inner.map("-{}".format),
        inner.map("({})".format),
        inner.map("abs({})".format),
        st.lists(inner, min_size=2, max_size=4).map(lambda parts: f"max({', '.join(parts)})"),
    ),
    max_leaves=8,
)
COMPARISONS = st.tuples(
    ARITHMETIC,
    st.sampled_from(["<", "<=", "==", "!=", ">", ">="]),
    ARITHMETIC,
    st.sampled_from(["", " < 3", " != x.a"]),
).map(lambda parts: " ".join(parts))
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join), inner.map("not ({})".format)
    ),
    max_leaves=4,
)


class X:
    a, b = 7, 2.5


def parts(text: str) -> Iterator[str]:
    """The arithmetic operations in an expression."""
    return (ast.unparse(node) for node in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(node, ast.BinOp))


def is_undefined(text: str) -> bool:
    try:
        found = eval(text, {"x": X, "max": max, "abs": abs})
    except (ZeroDivisionError, OverflowError):
        return True
    return isinstance(found, complex) or abs(found) >= LARGEST or math.isnan(found)


@given(ARITHMETIC | CONDITIONS)
def test_an_expression_comes_to_what_python_says(text: str) -> None:
    try:
        expected = eval(text, {"x": X, "max": max, "abs": abs})
    except (ZeroDivisionError, OverflowError):
        expected = math.nan
    undefined = isinstance(expected, complex) or abs(expected) >= LARGEST or math.isnan(expected)
    try:
        found = Expression(text).value(lambda name: getattr(X, name.removeprefix("x.")))
    except InputError:
        # what is on the way may be too large, or none, where the end is not
        assert undefined or any(is_undefined(part) for part in parts(text))
    else:
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("network.brokers <= workload.users / 8", True),
        ("network.brokers * 10 < workload.users", False),
        ("horizon == '1d' and '23h' < horizon < '25h'", True),
        ("'2 h' - '1h'", 3600.0),
        ("selection.kind == 'static'", True),
        ("selection.kind != 3", True),
        ("not trace or false", False),
        ("trace", True),
        ("trace or nothing.of / 0 > 1", True),  # what decides is enough
        ("min('1min', horizon)\n  # over lines", 60.0),
    ],
)
def test_keys_durations_and_words(text: str, value: object) -> None:
    assert Expression(text).value(look_up) == value


def test_the_names_of_an_expression() -> None:
    assert Expression("min(a.b, c) < a.b and not true").names == ["a.b", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("network.broker < 3", "at 'network.broker < 3' (character 1): unknown key 'network.broker'"),
        ("trace and 3", "at '3' (character 11): expected a comparison, which is true or false, found 3"),
        ("é == 'é' or x[0]", "at 'x[0]' (character 13): not allowed in an expression (allowed: numbers, 'text', true"),
        ("horizon < 'soon'", "at \"'soon'\" (character 11): expected a number or a duration, found 'soon'"),
        ("1 < 1 / 0", "at '1 / 0' (character 5): a division by zero"),
        ("(0 - 8) ** 0.5", "(character 1): is not a real number"),
        ("1 + trace", "at 'trace' (character 5): expected a number or a duration, found true"),
        ("2 +", "at the end (character 4): not an expression"),
        ("minn(1, 2)", "unknown function, did you mean 'min'? (allowed: min, max, abs)"),
        ("min(1)", "expected two arguments or more, found 1"),
        ("abs(1, 2)", "expected one argument, found 2"),
        ("", "expected an expression such as network.brokers <= workload.users / 10, found 0 characters"),
        (" " * 9 + "1" * 1001, "found 1,001 characters (allowed: 1 to 1,000)"),
    ],
)
def test_mistakes_name_the_place(text: str, message: str) -> None:
    assert message in mistake(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "f'{horizon}'",
        "max(*a)",
        "max(1, 2, key=abs)",
        "(x := 3)",
        "'a' in 'abc'",
        "1 if trace else 2",
        "b'x' == 1",
        "1j < 3",
        "1\x00",
        "-" * 900 + "1",
        "(" * 400 + "1" + ")" * 400,
    ],
)
def test_code_is_refused(text: str) -> None:
    assert re.search("not (allowed in )?an expression|nested too deeply|expected two arguments", mistake(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9 ** 9 ** 9 ** 9", "too large"),
        ("(2 ** 1000) ** 1000", "too large"),
        ("'x' * 10 ** 9", "expected a number or a duration"),
        ("2.0 ** 5000", "too large"),
        ("1e300 * 1e300", "too large"),
        ("1e999", "not allowed in an expression"),
    ],
)
def test_nothing_grows_without_bounds(text: str, message: str) -> None:
    assert message in mistake(text)


def test_a_limit_holds_or_not() -> None:
    delay = Limit.parse(" notification_delay_p99<= 200ms ")
    assert (delay.metric, delay.op, delay.value, str(delay)) == (
        "notification_delay_p99", "<=", 0.2, "notification_delay_p99 <= 200 ms",
    )  # fmt: skip
    assert [delay.holds(value) for value in (0.1, 0.2, 0.3, math.nan, None)] == [True, True, False, False, False]
    assert not Limit.parse("load_stddev < 0.5").holds(0.5)
    assert Limit.parse("delivery_ratio > 1e-1").holds(0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "load_stdev < 0.5",
            "'load_stdev < 0.5': unknown metric 'load_stdev', did you mean 'load_stddev'? (there are ",
        ),
        ("load_stddev < 5s", "'load_stddev < 5s': expected a number, found '5s'"),
        ("notification_delay < soon", "expected a number of seconds or a duration such as '200ms', found 'soon'"),
        ("due", "'due': expected a metric and its limit, such as 'notification_delay_p99 <= 200ms'"),
        ("due = 3", "'due = 3': expected a metric and its limit"),
        ("due < nan", "expected a number, found 'nan'"),
    ],
)
def test_limits_that_are_none(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        Limit.parse(text)
    assert message in str(error.value)
