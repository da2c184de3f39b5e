"""When something fails, as charts show it: from the table of what failed when."""

from __future__ import annotations

import math
from typing import cast

import pandas as pd
import pytest

from analysis import tables
from analysis.tables import _spans
from sim.experiments.results import Results


def test_faults_last_from_when_they_strike_to_their_end() -> None:
    rows = [
        (1.0, "crash", [2], 0.0),
        (2.0, "loss", [], 0.5),
        (3.0, "cut", [0, 1], 0.0),
        (4.0, "restart", [2], 0.0),
        (5.0, "loss", [], 0.01),
        (6.0, "slow", [3], 2.0),
        (7.0, "slow", [3], 4.0),
        (8.0, "slow", [3], 1.0),
        (9.0, "crash", [2], 0.0),
        (10.0, "manager dead", [], 0.0),
        (11.0, "drain", [1], 7.0),
        (12.0, "manager back", [], 0.0),
        (13.0, "drained", [1], 2.0),
        (14.0, "down", [1], 0.0),
        (16.0, "up", [1], 0.0),
        (17.0, "join", [4], 3.0),
        (17.0, "leave", [1], 7.0),
        (18.0, "drained", [1], 1.0),
        (19.0, "joined", [4], 5.0),
        (20.0, "left", [1], 2.0),
    ]
    spans = _spans(pd.DataFrame(rows, columns=["time", "what", "brokers", "value"]))
    assert spans.to_numpy().tolist() == [
        [1.0, 4.0, "crash", "2"],
        [2.0, 5.0, "loss", ""],
        [3.0, math.inf, "cut", "0, 1"],
        [6.0, 7.0, "slow", "3"],
        [7.0, 8.0, "slow", "3"],
        [9.0, math.inf, "crash", "2"],
        [10.0, 12.0, "manager dead", ""],
        [11.0, 13.0, "drain", "1"],
        [14.0, 16.0, "down", "1"],
        [17.0, 19.0, "join", "4"],
        [17.0, 20.0, "leave", "1"],
    ]


def test_without_faults_there_are_none() -> None:
    assert _spans(pd.DataFrame()).empty


def test_spans_that_differ_between_runs_are_shaded_by_how_often_they_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain ends when the last user has left, which depends on the run."""
    rows = {
        "a": [(1.0, "drain", [0], 9.0), (3.0, "drained", [0], 2.0)],
        "b": [(1.0, "drain", [0], 9.0), (4.0, "drained", [0], 3.0)],
    }
    spans = {run: _spans(pd.DataFrame(own, columns=["time", "what", "brokers", "value"])) for run, own in rows.items()}
    monkeypatch.setattr(tables, "variants_of", lambda results: ["one"])
    monkeypatch.setattr(tables, "runs_of", lambda results, variant: ["a", "b", "a", "a"])
    monkeypatch.setattr(tables, "faults_of", lambda results, run: spans[run])
    found = tables.failing(cast("Results", None))
    assert found[["end", "share"]].to_numpy().tolist() == [[3.0, 0.75], [4.0, 0.25]]
