"""`brokersim run --check-deliveries`: what users received against the trace, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny

from sim.experiments.results import load_results
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Deliveries, Workload

Brokersim = Callable[..., tuple[int, str, str]]
RUN = ("run", "check.toml", "--check-deliveries", "--jobs", "1", "--quiet")

SCENARIO = """\
title = "Check"
workload = {{ kind = "prepared", path = "w"{more} }}
network = {{ brokers = 3, latency = {{ kind = "unit", rtt = "1ms" }} }}
"""


def delivered(*rows: tuple[float, int, int, int]) -> Deliveries:
    time, topic, publisher, subscriber = np.array(rows).T
    return Deliveries(time, *(column.astype(np.int32) for column in (topic, publisher, subscriber)))


def world(horizon: float = 10.0) -> Workload:
    """Users 0 and 1 want topic 0, of which user 1 has enough at 5 s; user 2 publishes at 1, 4 and 7 s, on topic 1 at 8 s."""
    made = tiny.workload(
        [{0}, {0, 1}, set()],
        [(1.0, 0, 2, 1), (4.0, 0, 2, 1), (7.0, 0, 2, 1), (8.0, 1, 2, 1)],
        [(5.0, 1, 0, -1)],
        topics=2,
        horizon=horizon,
    )
    told = [(1.1, 0, 2, 0), (1.2, 0, 2, 1), (4.1, 0, 2, 0), (4.2, 0, 2, 1), (7.1, 0, 2, 0), (8.1, 1, 2, 1)]
    return replace(made, deliveries=delivered(*told))


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., None]:
    def write(workload: Workload, more: str = "", text: str = "") -> None:
        write_workload(workload, tmp_path / "w")
        (tmp_path / "check.toml").write_text(SCENARIO.format(more=more) + text)

    return write


def test_equal_counts_end_well(brokersim: Brokersim, scenario: Callable[..., None], tmp_path: Path) -> None:
    scenario(world())
    status, out, err = brokersim(*RUN)
    assert (status, err) == (0, "")
    assert "Deliveries of base, replication 1" in out
    assert "│ t0    │ u0         │            3 │         3 │          0 │" in out
    assert "│ t0    │ u1         │            2 │         2 │          0 │" in out
    assert "6 deliveries in the trace, 6 simulated: equal for each of 3 pairs of topic and subscriber." in out
    results = load_results(tmp_path / "results" / "check")
    table = results.table(results.runs["run"][0], "subscribers")
    assert table.to_dict("list") == {"topic": [0, 0, 1], "user": [0, 1, 1], "delivered": [3, 2, 1]}
    status, out, _ = brokersim("run", "check.toml", "--jobs", "1", "--quiet", "--json")
    assert "deliveries" not in json.loads(out)


def test_differences_are_told_and_end_with_1(brokersim: Brokersim, scenario: Callable[..., None]) -> None:
    """The trace lacks what user 0 got at 7 s, and has a delivery to user 2, who never subscribed."""
    told = [(1.1, 0, 2, 0), (1.2, 0, 2, 1), (4.1, 0, 2, 0), (4.2, 0, 2, 1), (8.1, 1, 2, 1), (9.0, 1, -1, 2)]
    scenario(replace(world(), deliveries=delivered(*told)))
    status, out, _ = brokersim(*RUN)
    assert status == 1
    assert "│ t0    │ u0         │            2 │         3 │         +1 │" in out
    assert "│ t1    │ u2         │            1 │         0 │         -1 │" in out
    assert "6 deliveries in the trace, 6 simulated: 2 of 4 pairs of topic and subscriber differ, by 2 in all." in out

    status, out, _ = brokersim(*RUN, "--json")
    assert status == 1
    rows = [tuple(row.values()) for row in json.loads(out)["deliveries"]]
    assert rows == [
        ("base", 0, "t0", "u0", 2, 3, 1),
        ("base", 0, "t0", "u1", 2, 2, 0),
        ("base", 0, "t1", "u1", 1, 1, 0),
        ("base", 0, "t1", "u2", 1, 0, -1),
    ]


def test_each_run_is_checked_up_to_its_own_horizon(brokersim: Brokersim, scenario: Callable[..., None]) -> None:
    scenario(world(), text='replications = 2\n[[variant]]\nname = "all"\n[[variant]]\nname = "half"\nhorizon = "5s"\n')
    status, out, _ = brokersim(*RUN)
    assert status == 0
    assert out.count("6 deliveries in the trace, 6 simulated: equal") == 2
    assert out.count("4 deliveries in the trace, 4 simulated: equal") == 2


def test_of_many_pairs_only_those_that_differ_are_shown(brokersim: Brokersim, scenario: Callable[..., None]) -> None:
    """Of thirty subscribers the trace forgets the last publication to one."""
    made = tiny.workload([{0}] * 30, [(1.0, 0, -1, 1), (2.0, 0, -1, 1)])
    told = [(time, 0, -1, user) for time in (1.5, 2.5) for user in range(30) if (time, user) != (2.5, 17)]
    scenario(replace(made, deliveries=delivered(*told)))
    status, out, _ = brokersim(*RUN)
    assert status == 1
    assert [line for line in out.splitlines() if line.startswith("│ t0")] == [
        "│ t0    │ u17        │            1 │         2 │         +1 │"
    ]
    assert "1 of 30 pairs" in out


def plain(made: Workload) -> Workload:
    return replace(made, deliveries=Deliveries.none())


@pytest.mark.parametrize(
    ("workload", "more", "arguments", "message"),
    [
        (
            plain(world()),
            "",
            (),
            "check.toml: variant base: w has no deliveries to compare with; logs with deliver rows",
        ),
        (world(), ", resample_users = true", (), "check.toml: variant base: workload.resample_users draws users other"),
        (world(), "", ("--set", "workload.kind=poisson"), "variant base: a workload of kind 'poisson' is synthetic"),
        (world(), "", ("--workload", "x"), "--workload x: no such folder; brokersim generate"),
    ],
)
def test_what_cannot_be_checked_is_told_before_it_is_run(
    brokersim: Brokersim, scenario: Callable[..., None], tmp_path: Path, workload: Workload, more: str,
    arguments: tuple[str, ...], message: str,
) -> None:  # fmt: skip
    scenario(workload, more)
    status, out, err = brokersim(*RUN, *arguments)
    assert (status, out) == (2, "")
    assert message in err.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "results").exists()
