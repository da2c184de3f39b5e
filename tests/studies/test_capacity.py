"""Capacity: the smallest or largest value at which a limit holds, found with few replications at few values."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.experiments.results import load_results
from sim.scenario.expressions import Limit
from sim.studies.capacity import (
    CapacityAnswer,
    CapacityQuestion,
    SearchRange,
    capacity,
    capacity_of,
    capacity_sentences,
    first_beyond,
    values,
)
from sim.studies.search import FEW, Bench, Measure, Measured, Values

KEY = "network.brokers"


def whole(first: int, last: int, step: int = 1) -> SearchRange:
    return SearchRange(Fraction(first), Fraction(last), Fraction(step))


def metric(function: object, noise: float = 0.0, asked: list[int] | None = None) -> Measure:
    """A delay that is a function of the value, with noise that follows from value and replication."""

    def measure(values: Values, replications: int) -> Measured:
        value = values[KEY]
        if asked is not None:
            asked.append(value)
        draws = [np.random.default_rng([value, r]).normal(0, noise) if noise else 0.0 for r in range(replications)]
        return Measured([{"queue_wait": function(value) + draw} for draw in draws])  # type: ignore[operator]

    return measure


def ask(limit: str, range: SearchRange, measure: Measure, **more: object) -> CapacityAnswer:
    return capacity(CapacityQuestion(KEY, Limit.parse(limit), range, **more), measure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "last", "step"),
    [("0", "1", "0.01"), ("1", "20", "0.1"), ("0", "100", "1"), ("36000", None, "1"), ("0.002", None, "0.001")],
)
def test_steps_are_small_where_the_range_of_a_key_with_fractions_is(first: str, last: str | None, step: str) -> None:
    assert values(first, last, integer=False).step == Fraction(step)
    assert values(first, last, "0.5", integer=False).step == Fraction("0.5")


@given(st.integers(0, 200), st.integers(1, 200), st.integers(1, 7), st.data())
def test_smallest_and_largest_are_those_of_a_search_through_all_values(
    first: int, length: int, step: int, data: st.DataObject
) -> None:
    steps = range(first, first + length, step)
    threshold = data.draw(st.integers(first - 1, first + length))
    found = ask(f"queue_wait <= {threshold}", whole(first, first + length - 1, step), metric(float), largest=True)
    met = [value for value in steps if value <= threshold]
    assert (found.answer.value if found.answer else None) == max(met, default=None)
    found = ask(f"queue_wait >= {threshold}", whole(first, first + length - 1, step), metric(float))
    met = [value for value in steps if value >= threshold]
    assert (found.answer.value if found.answer else None) == min(met, default=None)
    assert not found.turns


@given(st.integers(1, 5000), st.data())
def test_neighbours_have_been_asked_and_few_others(size: int, data: st.DataObject) -> None:
    turn, asked = data.draw(st.integers(0, size)), list[int]()

    def beyond(index: int) -> bool:
        asked.append(index)
        return index >= turn

    found = first_beyond(beyond, size, lambda index: 2 * index + 1)
    assert found == (turn if turn < size else None)
    assert {max(turn - 1, 0), min(turn, size - 1)} <= set(asked)
    assert len(asked) == len(set(asked)) <= 2 * max(turn, 1).bit_length() + 2


def test_values_are_doubled_then_halved_between() -> None:
    asked: list[int] = []
    found = ask("queue_wait < 0.11", whole(1, 1000), metric(lambda value: 1 / value, asked=asked))
    assert asked == [1, 2, 4, 8, 16, 12, 10, 9]
    assert [one.value for one in found.tried] == sorted(asked)
    assert found.answer is not None
    assert found.answer.value == 10


def test_fractions_are_exact_where_steps_are() -> None:
    tenths = SearchRange(Fraction("0.1"), Fraction("0.9"), Fraction("0.1"))
    assert [tenths[i] for i in range(len(tenths))] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert [whole(0, 9)[i] for i in range(3)] == [0, 1, 2]


def test_replications_are_added_until_an_interval_lies_on_one_side() -> None:
    """Far from the limit a few do; near it there are more; on it, all that are allowed, and the value counts as missed."""
    counts: dict[int, int] = {}
    noisy = metric(lambda value: 10.0 - value, noise=0.5)

    def measure(values: Values, replications: int) -> Measured:
        counts[values[KEY]] = replications
        return noisy(values, replications)

    found = ask("queue_wait < 5", whole(1, 9), measure, max_replications=24)
    verdicts = {one.value: one.verdict for one in found.tried}
    assert verdicts == {1: "missed", 2: "missed", 4: "missed", 5: "undecided", 6: "met", 8: "met"}
    assert found.answer is not None
    assert found.answer.value == 6
    assert counts[1] == FEW < counts[4] <= counts[5] == 24


def test_a_metric_that_turns_is_told() -> None:
    found = ask(
        "queue_wait < 3", whole(1, 64), metric({1: 5.0, 2: 9.0, 4: 7.0, 8: 4.0, 16: 2.0, 12: 2.5, 10: 3.5, 11: 3.2}.get)
    )
    assert found.answer is not None
    assert found.answer.value == 12
    assert [(a.value, b.value) for a, b in found.turns] == [(1, 2), (1, 4)]


def test_failed_and_undefined_values_are_missed_and_told() -> None:
    def measure(values: Values, replications: int) -> Measured:
        if values[KEY] == 1:
            return Measured([], "ValueError: too few")
        return Measured([{"queue_wait": None if values[KEY] == 2 else 1.0}] * replications)

    found = ask("queue_wait < 2", whole(1, 8), measure)
    assert [(one.value, one.verdict, one.reason) for one in found.tried] == [
        (1, "failed", "ValueError: too few"),
        (2, "failed", "queue_wait is undefined"),
        (3, "met", ""),
        (4, "met", ""),
    ]


@pytest.mark.parametrize(("first", "last", "step", "message"), [(5, 4, 1, "--to 4"), (1, 2, 0, "--step 0")])
def test_ranges_without_values_are_refused(first: int, last: int, step: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        whole(first, last, step)


ONE_SERVER = """
warm_up = "200s"
horizon = "3200s"
workload = { kind = "poisson", users = 1, topics = 1, topics_per_user = 1, change_rate = 0, publication_rate = 1 }
network.brokers = 1
brokers.service = { kind = "exponential", time = "1s" }
"""


def test_the_load_that_one_server_takes_is_that_of_queueing_theory(tmp_path: Path) -> None:
    """In M/M/1 with a service time of 1 s the mean wait is ρ / (1 − ρ) s: below 0.8 s up to ρ = 0.44."""
    (tmp_path / "s.toml").write_text(ONE_SERVER)
    key = "workload.publication_rate"
    question = CapacityQuestion(key, Limit.parse("queue_wait < 800ms"), values("720", "2880", "720"), largest=True)
    with Bench(tmp_path / "s.toml", tmp_path / "r") as bench:
        found = capacity_of(bench, question)
        again = capacity_of(bench, question)
    assert found == again
    assert found.answer is not None
    assert found.answer.value == 0.4 * 3600
    for one in found.tried:
        rho = float(one.value) / 3600
        assert one.interval.low is not None
        assert one.interval.high is not None
        assert one.interval.low <= rho / (1 - rho) <= one.interval.high
    results = load_results(tmp_path / "r")
    assert results.points[key].tolist() == [one.value for one in found.tried]
    assert results.runs.groupby("point").size().tolist() == [one.interval.n for one in found.tried]


OVERLOADED = """
horizon = "2000s"
workload = { kind = "poisson", users = 1, topics = 1, topics_per_user = 1, change_rate = 0, publication_rate = 1 }
network.brokers = 1
brokers.service = { kind = "deterministic", time = "1s" }
brokers.queue = 1
"""


@pytest.mark.parametrize("limit", ["delivery_ratio > 0.001", "notification_delay <= 2s", "lost < 1000000"])
def test_no_limit_on_what_gets_through_is_met_where_a_broker_is_saturated(tmp_path: Path, limit: str) -> None:
    """With room for one to wait, each that is served takes 2 s at most, at any load: only what the broker can do bounds it."""
    (tmp_path / "s.toml").write_text(OVERLOADED)
    question = CapacityQuestion(
        "workload.publication_rate", Limit.parse(limit), values("1800", "14400", "1800"), largest=True
    )
    with Bench(tmp_path / "s.toml", tmp_path / "r") as bench:
        found = capacity_of(bench, question)
    assert found.answer is not None
    assert found.answer.value in (1800, 3600)
    beyond = [one for one in found.tried if float(one.value) > 3600]
    assert {one.verdict for one in beyond} == {"saturated"}
    assert any(
        "brokers are saturated: delays and deliveries there" in sentence
        for sentence in capacity_sentences(question, found)
    )


def test_a_limit_that_asks_for_a_late_delivery_is_judged_by_what_is_measured() -> None:
    def measure(values: Values, replications: int) -> Measured:
        return Measured([{"queue_wait": float(values[KEY]), "saturated_brokers": 1}] * replications)

    assert [one.verdict for one in ask("queue_wait > 2", whole(3, 3), measure).tried] == ["met"]
    assert [one.verdict for one in ask("queue_wait < 5", whole(3, 3), measure).tried] == ["saturated"]
