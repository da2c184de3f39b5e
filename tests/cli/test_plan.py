"""`brokersim plan`, and sweeps with `brokersim run`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sweeping import SWEEP, Spy

from sim.cli import shown
from sim.experiments import perform
from sim.experiments.store import Store

Brokersim = Callable[..., tuple[int, str, str]]
REFUSED = "brokersim: error: r: another command is writing there; wait until it has ended, or give another folder\n"


@pytest.fixture(autouse=True)
def sweep(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    made = Spy()
    monkeypatch.setattr(perform, "simulate", made)
    return made


def test_a_plan_tells_what_is_there_and_what_is_to_do(brokersim: Brokersim, spy: Spy) -> None:
    def told(*arguments: str) -> list[str]:
        status, out, err = brokersim("plan", "sweep.toml", "--out", "r", "--jobs", "2", *arguments)
        assert (status, err) == (0, "")
        return out.splitlines()

    assert told() == [
        "Small",
        "points        2",
        "              network.brokers = 2, 4",
        "variants      2: static, one broker",
        "replications  2",
        "runs          8, 6 of them distinct",
        "              0 finished, 6 to do",
        "time          unknown, as no run has finished yet",
        "results       r",
    ]
    spy.fails[4, 1] = ValueError("no")
    assert brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1", "-q")[0] == 1
    assert told()[6:] == ["              5 finished, 1 failed, 0 to do", "results       r"]
    more = told("--set", "replications=3")
    assert more[5:7] == ["runs          12, 9 of them distinct", "              5 finished, 1 failed, 3 to do"]
    assert more[7].startswith("time          about ")
    assert more[7].endswith(" in 2 processes")
    assert told("--set", "precision.max_replications=20")[7].startswith(
        "precision     notification_delay within 0.02 at 95% confidence: at most 80 runs in all"
    )
    assert "warm-up       detected from these runs, before 8 more" in told("--set", 'warm_up="detect"')


def test_a_run_that_has_failed_keeps_no_later_round_from_the_plan(brokersim: Brokersim, spy: Spy) -> None:
    spy.fails[4, 1] = ValueError("no")
    rounds = ("--set", "precision.relative=0.001", "--set", "precision.max_replications=3")
    assert brokersim("run", "sweep.toml", "--out", "r", "-q", "--jobs", "1", *rounds)[0] == 1
    _, out, _ = brokersim("plan", "sweep.toml", "--out", "r", *rounds)
    assert "runs          12, 9 of them distinct\n              8 finished, 1 failed, 0 to do\n" in out


def test_durations_have_their_unit_wherever_a_point_is_named(brokersim: Brokersim, tmp_path: Path, spy: Spy) -> None:
    service = (
        "--set",
        "brokers.service.kind=exponential",
        "--set",
        "sweep.brokers.service.time=[0.001, '2.5ms', 3601]",
    )
    common = ("sweep.toml", *service, "--set", "network.brokers=2", "--out", "r", "--jobs", "1")
    _, out, _ = brokersim("plan", *common)
    assert "              brokers.service.time = 1 ms, 2.5 ms, 3601 s\n" in out
    status, out, err = brokersim("run", *common)
    assert status == 0
    assert "(brokers.service.time = 2.5 ms, static, replication 1 of 2)" in err
    assert [row.split("│")[1].strip() for row in out.splitlines() if "│ one broker" in row] == [
        "1 ms",
        "2.5 ms",
        "3601 s",
    ]
    _, out, _ = brokersim("best", "r", "--minimise", "load_stddev", "--subject-to", "queue_wait < 0.08")
    assert re.search(r"(do|does) not meet queue_wait < 80 ms", out)
    assert re.search(r"--set brokers.service.time=(1ms|2.5ms|3601s)\n", out)


def test_a_plan_as_json(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, _ = brokersim("plan", "sweep.toml", "--json", "--jobs", "3")
    assert status == 0
    assert json.loads(out) == {
        "title": "Small", "results": "results/sweep", "points": 2, "variants": 2, "replications": 2, "runs": 8, "distinct": 6,
        "there": 0, "failed": 0, "to_do": 6, "later": 0, "most": 8, "jobs": 3, "seconds": None,
    }  # fmt: skip
    assert [entry.name for entry in tmp_path.iterdir()] == ["sweep.toml"]


def test_a_sweep_is_summarised_by_its_points(brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, spy: Spy) -> None:
    monkeypatch.setattr(shown, "SHOWN", 3)
    spy.fails[4, 1] = ValueError("no")
    status, out, err = brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1")
    assert status == 1
    assert [
        line.split("│")[1:3] for line in out.splitlines() if line.startswith("│ ") and "[" not in line.split("│")[3]
    ]
    assert "3 of 4 rows; all of them: brokersim compare r" in out
    lines = err.splitlines()
    assert lines[0].startswith("brokersim: 1 of 8 runs done (network.brokers = 2, static, replication 1 of 2), about ")
    failed = "brokersim: network.brokers = 4, variant static, replication 1 failed: ValueError: no"
    assert lines[-3:] == [
        failed,
        "brokersim: 8 of 8 runs done, 1 failed (network.brokers = 4, static, replication 2 of 2)",
        "brokersim: 1 of 8 runs failed; --retry-failed repeats them",
    ]
    status, out, err = brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1", "--json", "--quiet")
    assert (status, err.splitlines()[-2:]) == (1, [failed, lines[-1]])
    assert json.loads(out)["failed"] == [
        {"point": 1, "label": "network.brokers = 4", "variant": "static", "replication": 1, "reason": "ValueError: no"}
    ]


def test_the_first_failure_ends_a_command_that_wants_it_so(brokersim: Brokersim, spy: Spy) -> None:
    spy.fails[2, 0] = ValueError("no")
    status, out, err = brokersim("run", "sweep.toml", "--out", "r", "--jobs", "1", "--fail-fast", "-q")
    assert (status, out) == (1, "")
    assert err.splitlines()[-2:] == [
        "brokersim: network.brokers = 2, variant static, replication 0 failed: ValueError: no",
        "brokersim: stopped; finished runs are kept in r, the same command resumes with the others, "
        "or --retry-failed with this one too",
    ]


def test_a_second_command_is_refused(brokersim: Brokersim, tmp_path: Path) -> None:
    with Store(tmp_path / "r"):
        assert brokersim("run", "sweep.toml", "--out", "r") == (2, "", REFUSED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "pol"), "unknown engine 'pol', did you mean 'pool'? (allowed: auto, in-process, pool, spark)"),
        (
            ("--engine", "pool", "--master", "spark://h:7077"),
            "master: only the engine 'spark' uses a cluster (found 'pool')",
        ),
    ],
)
def test_engines_that_are_not_there(brokersim: Brokersim, arguments: tuple[str, ...], message: str) -> None:
    assert brokersim("run", "sweep.toml", *arguments) == (2, "", f"brokersim: error: {message}\n")
