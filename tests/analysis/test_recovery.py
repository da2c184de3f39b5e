"""What faults did, as the report tells: time to recover, losses by fault, absences of users, peaks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sim
from analysis.recovery import absences, effects, fault_tables
from analysis.report import render_report
from analysis.stepped import trees_in_faults
from sim.metrics.causes import CAUSES


def series(delivered: list[int], **columns: list[int]) -> pd.DataFrame:
    """Windows of 10 s, the first of them warm-up, in which 100 pairs each are due to users."""
    n = len(delivered)
    counted = [f"lost_{cause}" for cause in CAUSES]
    counted += ["subscription_overhead", "handover_messages", "reconfiguration_overhead", "membership_messages"]
    counted += ["drain_messages", "offload_messages", "fault_messages", "stabilisation_messages", "healing_messages"]
    counted += ["duplicates", "duplicate_deliveries"]
    zeros = {name: [0] * n for name in counted}
    start = 10.0 * np.arange(n)
    shown = {"start": start, "end": start + 10, "warm_up": start < 10, "due_users": [100] * n}
    return pd.DataFrame({**shown, "delivered_users": delivered, **zeros, **columns})


def faults(*rows: tuple[float, float, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["start", "end", "what", "brokers"])


def test_a_fault_is_over_when_deliveries_are_back_even_if_it_lasts() -> None:
    """Down from 25 s to 75 s, but as good as before from 50 s on, and then half as good by another fault, for good."""
    found = effects(
        series(
            [0, 100, 80, 60, 98, 99, 100, 100, 50, 50],
            lost_crashed=[9, 1, 20, 40, 2, 1, 0, 0, 0, 0],
            lost_partitioned=[0, 0, 0, 0, 0, 0, 0, 0, 50, 50],
            duplicates=[5, 0, 1, 2, 0, 0, 0, 0, 4, 0],
            duplicate_deliveries=[0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
            fault_messages=[0, 5, 7, 9, 0, 0, 0, 3, 0, 0],
            stabilisation_messages=[1] * 10,
            healing_messages=[0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        ),
        faults((25.0, 75.0, "crash", "2"), (80.0, math.inf, "cut", "0, 1")),
    )
    assert found["recovered"].tolist() == [25.0, math.inf]
    assert found["lowest"].tolist() == [0.6, 0.5]
    assert found["lost_crashed"].tolist() == [20 + 40 + 2 + 1, 0]
    assert found["lost_partitioned"].tolist() == [0, 100]
    assert found["control"].tolist() == [9 + 1 + 2, 1]
    assert found["duplicates"].tolist() == [1 + 2, 4]
    assert found["duplicate_deliveries"].tolist() == [2, 0]


def test_deliveries_recover_after_they_have_fallen_not_before() -> None:
    """From 25 s on; the window until 30 s does not show it yet."""
    found = effects(series([0, 100, 100, 60, 60, 100, 100]), faults((25.0, 50.0, "crash", "2")))
    assert found["recovered"].tolist() == [25.0]


def test_what_an_older_run_did_not_know_of_it_did_not_count() -> None:
    before = series([0, 100, 100, 60, 60, 100, 100])
    older = before.drop(columns=["lost_session_expired", "duplicate_deliveries", "membership_messages"])
    crash = faults((25.0, 50.0, "crash", "2"))
    pd.testing.assert_frame_equal(effects(older, crash), effects(before, crash))


def test_a_fault_without_effect_is_recovered_from_at_once() -> None:
    found = effects(series([100, 100, 100, 99, 100]), faults((20.0, 30.0, "drain", "1"), (40.0, 45.0, "slow", "1")))
    assert found["recovered"].tolist() == [0.0, 0.0]
    assert found["lowest"].tolist() == [0.99, 1.0]


SCENARIO: dict[str, Any] = {
    "title": "faults",
    "horizon": "1h",
    "window": "1min",
    "warm_up": "10min",
    "replications": 2,
    "workload": {"kind": "interests", "users": 60, "topics": 10, "per_user": 3, "publication_rate": 360},
    "network": {"brokers": 6, "geometry": {"kind": "full-mesh"}, "latency": {"kind": "unit", "rtt": "10ms"}},
    "faults": [
        {"brokers": 3, "at": "20min", "for": "10min"},
        {"kind": "drain", "brokers": 2, "at": "40min", "rate": 0.1, "for": "1min"},
    ],
}


def test_users_are_absent_for_as_long_as_their_broker_is_down(tmp_path: Path) -> None:
    results = sim.run(SCENARIO, tmp_path / "results")
    for run, mean in zip(results.runs["run"], results.runs["user_unavailability"], strict=True):
        shares = absences(results, run)
        assert len(shares) == 60
        assert shares.mean() == pytest.approx(mean)
        assert set(shares[shares > 0] >= 10 / 50) == {True}  # ten minutes of fifty, and the wait
    listed, seen = fault_tables(results)
    assert [row[0] for row in listed.rows] == ["crash 3", "drain 2", "down 2"]
    assert [row[1] for row in listed.rows[:2]] == ["20 min", "40 min"]
    assert "disconnected" in listed.rows[0][5]
    assert listed.rows[1][5] == "none"
    assert len(seen.rows) == 1
    page = render_report(results)
    assert '<h2 id="faults">Faults</h2>' in page
    assert 'data-chart="chart-time-control_messages"' in page


def test_nothing_is_told_where_nothing_fails(tmp_path: Path) -> None:
    results = sim.run({**SCENARIO, "faults": [], "replications": 1}, tmp_path / "results")
    assert fault_tables(results) == []
    assert 'id="faults"' not in render_report(results)


def test_the_tree_is_shown_before_during_and_after_a_fault(tmp_path: Path) -> None:
    ring = {"geometry": {"kind": "chord"}, "healing": {"period": "10s"}}
    changes = {
        "replications": 1,
        "network": {"brokers": 6, "data_plane": "events", **ring},
        "faults": SCENARIO["faults"][:1],
    }
    results = sim.run({**SCENARIO, **changes}, tmp_path / "results")
    (chart,) = trees_in_faults(results)
    texts = next(param["value"] for param in chart.spec["params"] if param["name"] == "texts")
    assert texts == [
        "20 min: nothing fails",
        "21 min: crash 3",
        "30 min: crash 3",
        "31 min: after all of them",
        "1 h: after all of them",
    ]
    rows = [row for data in chart.spec["datasets"].values() for row in data]
    roles = [row["role"] for row in rows if row.get("broker") == 3]
    assert roles[1:3] == ["down", "down"]
    assert "down" not in [*roles[:1], *roles[3:]]
    edges = [sum("x2" in row and row["step"] == step for row in rows) for step in range(5)]
    assert edges[0] > edges[2] > 0
    assert all(row["load"] > 0 for row in rows if row.get("role") == "root")
