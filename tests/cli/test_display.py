"""Progress of runs: all are counted from the beginning, and the time left is estimated without start-up costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.api.progress import Display, display
from sim.api.runs import run
from sim.experiments.outlook import _estimate
from sim.experiments.plan import RunSpec, plan
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario

SCENARIO: dict[str, Any] = {
    "replications": 3,
    "horizon": "3h",
    "workload": {"kind": "poisson", "users": 6, "topics": 9},
    "network": {"brokers": 2},
    "variant": [{"name": "a"}, {"name": "b", "network": {"brokers": 3}}],
}


def experiment(**more: object) -> Experiment:
    return load_scenario({**SCENARIO, **more})


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Work:
    """Six runs of 10 s, one after another; the first takes 20 s to start, and 20 s more to write its result."""

    def __init__(self, parts: bool = True) -> None:
        self.clock = Clock()
        self.asked = experiment()
        self.display = Display(self.asked, self.clock)
        self.specs = plan(self.asked, {})
        self.parts = parts
        for spec in self.specs:
            self.display(spec, 0.0)

    def run(self, spec: RunSpec) -> None:
        start = 20.0 if spec is self.specs[0] else 0.0
        self.clock.now += start
        for part in range(1, 100):
            self.clock.now += 0.1
            if self.parts:
                self.display(spec, part / 100)
        self.clock.now += 0.1 + start
        self.display(spec, 1.0)


def test_the_first_estimate_leaves_out_what_only_the_first_run_takes() -> None:
    work = Work()
    work.run(work.specs[0])
    assert work.clock.now == pytest.approx(50)
    assert work.display.left == ", about 50 s left"
    work.run(work.specs[1])
    assert work.display.left == ", about 40 s left"


def test_nothing_is_estimated_before_anything_is_known() -> None:
    work = Work()
    assert work.display.left == ""
    work.clock.now = 20.0
    work.display(work.specs[0], 0.01)
    assert work.display.left == ""
    work.clock.now = 22.0
    work.display(work.specs[0], 0.21)
    assert work.display.left == ", about 57.9 s left"


def test_runs_of_which_no_parts_are_heard_are_counted_from_the_beginning() -> None:
    work = Work(parts=False)
    work.run(work.specs[0])
    assert work.display.left == ", about 4.17 min left"


@pytest.mark.parametrize(
    ("more", "first", "last"),
    [
        ({}, "6", "6"),
        ({"warm_up": "detect", "window": "5min"}, "12", "12"),
        ({"precision": {"relative": 0.0001, "max_replications": 5}}, "6 to 10", "10"),
        ({"warm_up": "detect", "window": "5min", "precision": {"relative": 0.0001, "max_replications": 5}}, "12 to 16", "16"),
    ],
)  # fmt: skip
def test_the_number_of_runs_is_that_of_all_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any], first: str, last: str
) -> None:
    asked = experiment(**more)
    with display(asked) as shown:
        run(asked, tmp_path / "r", progress=shown)
    lines = capsys.readouterr().err.splitlines()
    assert f"brokersim: 1 of {first} runs done" in lines[0]
    assert f"brokersim: {last} of {last} runs done" in lines[-1]
    assert all(f" of {first} runs" in line for line in lines[:6])


def test_a_plan_estimates_by_replications_that_did_not_compile() -> None:
    specs = plan(experiment(), {})
    a, b = ([spec for spec in specs if spec.variant == name] for name in "ab")
    known = [(a[0], 60.0), (a[1], 10.0), (b[0], 10.0)]
    assert _estimate([a[2]], 0, known, 1) == 10
    assert _estimate([a[2], b[1], b[2]], 4, known, 2) == (30 + 40) / 2
