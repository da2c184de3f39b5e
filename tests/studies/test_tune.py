"""Tuning: the best of the points that are tried, the same ones however often it is interrupted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.base.errors import InputError, ResultsError
from sim.scenario.tuning import Choices, Tune, TunedRange
from sim.studies.journal import Journal
from sim.studies.search import Measure, Measured, Values
from sim.studies.tune import Tuned, tune, tune_sentences

TABLE: dict[str, Any] = {
    "minimise": "queue_wait",
    "trials": 12,
    "a": {"from": 1, "to": 60},
    "b.c": {"from": 0.1, "to": 10, "scale": "log"},
    "kind": ["x", {"kind": "y", "n": 1}],
}


def objective(noise: float = 0.1, **others: Callable[[Values], float]) -> Measure:
    """A bowl with its ground at a = 20, c = 1, kind = x, and noise that all points share."""

    def measure(values: Values, replications: int) -> Measured:
        wait = abs(values["a"] - 20) / 10 + abs(math.log(values["b.c"])) + (values["kind"] != "x")
        more = {name: function(values) for name, function in others.items()}
        draws = np.random.default_rng(1).normal(0, noise, replications)
        return Measured([{"queue_wait": wait + draw, "saturated_brokers": 0, **more} for draw in draws])

    return measure


def search(folder: Path, measure: Measure, replications: int = 12, name: str = "s", **over: Any) -> Tuned:
    wanted = Tune.model_validate({**TABLE, **over})
    journal = Journal(folder / "study.journal", name, wanted, seed=1)
    return tune(wanted, measure, replications, journal, {"a": 50, "b.c": 20.0, "kind": "x"})


def points(tuned: Tuned) -> list[tuple[Any, ...]]:
    return [(*map(str, trial.values.values()), trial.state, len(trial.measured.metrics)) for trial in tuned.trials]


def test_a_search_gets_better_and_prunes_what_is_surely_worse(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned = search(tmp_path, objective(), trials=40)
    (best,) = tuned.best
    assert best.interval("queue_wait").mean == min(
        trial.interval("queue_wait").mean for trial in tuned.trials if trial.state == "complete"
    )
    assert best.interval("queue_wait").mean < 0.5
    assert tuned.trials[0].values["a"] == 50, "the first point is where the scenario stands"
    assert 0.1 <= tuned.trials[0].values["b.c"] <= 10, "but where that is not allowed"
    pruned = [trial for trial in tuned.trials if trial.state == "pruned"]
    assert len(pruned) > 10
    assert {len(trial.measured.metrics) for trial in pruned} == {3}
    assert all(trial.reason.startswith("worse than trial ") for trial in pruned)
    assert len({str(trial.values) for trial in tuned.trials}) == 40, "no point is tried twice"


MANY = {"minimise": ["queue_wait", "load_stddev"], "subject_to": "load_jain > 2"}
OTHERS: dict[str, Callable[[Values], float]] = {
    "load_stddev": lambda values: values["a"] / 60,
    "load_jain": lambda values: values["b.c"] + 1,
}


@pytest.mark.parametrize("over", [{}, MANY])
def test_interrupted_at_every_trial_a_search_comes_to_the_same_trials(tmp_path: Path, over: dict[str, Any]) -> None:
    whole = search(tmp_path, objective(**OTHERS), name="whole", **over)
    seen = set[str]()

    def breaking(values: Values, replications: int) -> Measured:
        if str(values) not in seen:
            seen.add(str(values))
            raise KeyboardInterrupt
        return objective(**OTHERS)(values, replications)

    for _ in range(12):
        with pytest.raises(KeyboardInterrupt):
            search(tmp_path, breaking, **over)
        # what a killed process leaves: its lock, and half a line
        (tmp_path / "study.journal.lock").symlink_to("nowhere")
        with (tmp_path / "study.journal").open("ab") as file:
            file.write(b'{"op_code":4,"study_id":0,"sta')
    pieces = search(tmp_path, breaking, **over)
    assert points(pieces) == points(whole)
    assert len(seen) == 12
    assert [trial.number for trial in pieces.best] == [trial.number for trial in whole.best]


def test_more_trials_go_on_where_fewer_ended(tmp_path: Path) -> None:
    few = search(tmp_path, objective(), name="few")
    more = search(tmp_path, objective(), name="few", trials=15)
    assert points(more)[:12] == points(few)
    assert points(more) == points(search(tmp_path, objective(), name="other", trials=15))
    assert points(search(tmp_path, objective(), name="few", trials=3)) == points(more), "none is taken back"


def test_the_best_of_several_metrics_are_those_that_none_dominates(tmp_path: Path) -> None:
    tuned = search(tmp_path, objective(**OTHERS), trials=30, **MANY)
    found = {
        trial.number: (trial.interval("queue_wait").mean, trial.interval("load_stddev").mean)
        for trial in tuned.trials
        if trial.state == "complete" and trial.values["b.c"] > 1
    }
    front = [
        number
        for number, one in found.items()
        if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in found.values())
    ]
    assert [trial.number for trial in tuned.best] == front
    assert len(front) > 1
    assert {trial.reason for trial in tuned.trials if trial.values["b.c"] <= 1} == {"misses load_jain > 2"}


def test_maximised_and_limited(tmp_path: Path) -> None:
    tuned = search(
        tmp_path, objective(**OTHERS), minimise=[], maximise="load_jain", subject_to=["queue_wait < 2"], trials=40
    )
    (best,) = tuned.best
    kept = [trial for trial in tuned.trials if trial.state == "complete" and trial.interval("queue_wait").mean < 2]
    assert best.values["b.c"] == max(trial.values["b.c"] for trial in kept) > 2
    unkept = search(tmp_path, objective(), name="none", subject_to=["queue_wait < -9"])
    assert unkept.best == ()


def crowded(values: Values, replications: int) -> Measured:
    """The more arrives, the shorter the wait of what gets through; above 30 a broker cannot keep up."""
    one = {"queue_wait": 1 / values["a"], "load_stddev": 1 / values["a"], "saturated_brokers": int(values["a"] > 30)}
    return Measured([one] * replications)


@pytest.mark.parametrize("over", [{}, {"minimise": "load_stddev", "subject_to": "queue_wait < 1"}])
def test_no_point_at_which_a_broker_is_saturated_is_the_best_in_delay_or_within_a_limit_on_it(
    tmp_path: Path, over: dict[str, Any]
) -> None:
    tuned = search(tmp_path, crowded, trials=20, **over)
    (best,) = tuned.best
    kept = [trial for trial in tuned.trials if trial.values["a"] <= 30]
    assert best.values["a"] == max(trial.values["a"] for trial in kept)
    behind = [trial for trial in tuned.trials if trial.values["a"] > 30]
    assert behind, "not all points keep up"
    assert {trial.reason for trial in behind} == {"misses saturated_brokers < 0.5"}
    (said,) = (x for x in tune_sentences(tuned, Tune.model_validate({**TABLE, **over})) if "saturated" in x)
    assert said.startswith(f"In {len(behind)} of them brokers are saturated: delays and deliveries there cover only")


def test_a_saturated_point_may_be_the_best_in_what_does_not_depend_on_deliveries(tmp_path: Path) -> None:
    tuned = search(tmp_path, crowded, trials=20, minimise="load_stddev")
    (best,) = tuned.best
    assert best.values["a"] == max(trial.values["a"] for trial in tuned.trials) > 30


def test_what_fails_is_told_and_others_go_on(tmp_path: Path) -> None:
    def failing(values: Values, replications: int) -> Measured:
        if values["kind"] != "x":
            return Measured((), "ValueError: no y here")
        if values["a"] > 30:
            return Measured([{"queue_wait": None, "saturated_brokers": 0}] * replications)
        return objective()(values, replications)

    tuned = search(tmp_path, failing)
    for trial in tuned.trials:
        expected = "ValueError: no y here" if trial.values["kind"] != "x" else "queue_wait is undefined"
        fails = trial.values["kind"] != "x" or trial.values["a"] > 30
        assert (trial.state, trial.reason) == ("failed", expected) if fails else trial.state != "failed"
    assert {trial.state for trial in tuned.trials} >= {"failed", "complete"}
    assert points(search(tmp_path, failing)) == points(tuned)


def test_a_search_ends_where_all_points_were_tried(tmp_path: Path) -> None:
    wanted = Tune(minimise=("queue_wait",)).model_copy(
        update={"trials": 100, "vary": {"a": TunedRange(18, 22), "b.c": Choices((1, 2)), "kind": Choices(("x", "y"))}}
    )
    journal = Journal(tmp_path / "j", "s", wanted, seed=1)
    tuned = tune(wanted, objective(), 3, journal, {})
    assert tuned.exhausted
    assert len(tuned.trials) == len({str(trial.values) for trial in tuned.trials}) == 20
    assert tuned.best[0].values == {"a": 20, "b.c": 1, "kind": "x"}


@pytest.mark.parametrize("content", [b"nonsense\n", b"[1]\n{}\n"])
def test_a_damaged_journal_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "study.journal").write_bytes(content)
    with pytest.raises(ResultsError, match=r"study\.journal: not a journal of trials, or damaged; remove it"):
        search(tmp_path, objective())


def test_options_lie_over_the_table() -> None:
    table = Tune.model_validate({**TABLE, "subject_to": "load_jain > 0.5"})
    tuned = table.with_options(
        maximise=["load_jain"], vary=["a=1.5..3", "d.e=1h..2d:log", "f=x,y", "g={ kind = 'a' },{ kind = 'b', n = 1 }"]
    ).checked()
    assert tuned.objectives == {"load_jain": -1}
    assert tuned.metrics == ["load_jain"]
    assert tuned.trials == 12
    assert tuned.vary == {
        "a": TunedRange(1.5, 3),
        "b.c": TunedRange(0.1, 10, log=True),
        "kind": Choices(("x", {"kind": "y", "n": 1})),
        "d.e": TunedRange(3600.0, 172800.0, log=True),
        "f": Choices(("x", "y")),
        "g": Choices(({"kind": "a"}, {"kind": "b", "n": 1})),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vary": ["a"]}, "--vary a: expected KEY=FROM..TO"),
        ({"vary": ["a=3..1"]}, "--vary a=3..1: expected more than 'from' \\(3\\), found 1"),
        ({"vary": ["a=0..1:log"]}, "expected more than 0 on a logarithmic scale, found 0"),
        ({"vary": ["a=0..1:lin"]}, "unknown scale, did you mean 'linear'?"),
        ({"vary": ["a=x..1"]}, "expected a number or a duration such as '10h', found 'x'"),
        ({"vary": ["a=1"]}, "expected two values or more"),
        ({"minimise": ["queue_weight"]}, "--minimise: unknown metric, did you mean 'queue_wait'?"),
        ({"subject_to": ["queue_wait"]}, "--subject-to: 'queue_wait': expected a metric and its limit"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", "\\?")):
        Tune().with_options(**options)


def test_a_search_needs_a_metric_and_a_parameter() -> None:
    with pytest.raises(InputError, match="nothing to tune for"):
        Tune.model_validate({"a": [1, 2]}).checked()
    with pytest.raises(InputError, match="nothing to tune: give a key"):
        Tune(minimise=("queue_wait",)).checked()
    with pytest.raises(InputError, match="'queue_wait' cannot be both minimised and maximised"):
        Tune.model_validate({**TABLE, "maximise": "queue_wait"}).checked()
