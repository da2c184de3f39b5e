"""A trace has every hop of the publications that it takes, the same ones on every data plane, and reports where it ends."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from sim.brokers.network import Network
from sim.brokers.statistics import hops

LINE = [(0, 1), (1, 2), (2, 3)]
BUSY = {"service": "exponential", "service_time": 0.5}
planes = pytest.mark.parametrize("plane", ["events", "compiled"])


def traced(plane: str, share: float, count: int = 400) -> Network:
    rows = [(float(number), 0, number % 4, 10) for number in range(count)]
    world = tiny.workload([{0}] * 4, rows, horizon=count + 20.0)
    made = tiny.network(world, tiny.graph(LINE, [1]), [0, 1, 2, 3], trace=share, plane=plane, **BUSY)
    made.run()
    return made


@planes
def test_a_share_of_publications_is_traced_with_all_their_hops(plane: str) -> None:
    everything, some = traced(plane, 1.0).tables()["trace"], traced(plane, 0.25).tables()["trace"]
    taken = np.unique(some["publication"])
    assert 70 <= len(taken) <= 130
    kept = np.isin(everything["publication"], taken)
    for column in everything:
        assert everything[column][kept].tolist() == some[column].tolist()


def test_the_planes_trace_the_same_hops() -> None:
    one, other = (traced(plane, 0.5).tables()["trace"] for plane in ("events", "compiled"))
    for column in one:
        assert one[column].tolist() == other[column].tolist()


@planes
def test_a_trace_is_bounded_and_says_where_it_ends(monkeypatch: pytest.MonkeyPatch, plane: str) -> None:
    whole = traced(plane, 1.0)
    monkeypatch.setattr(hops.HopTrace.__init__, "__defaults__", (1000,))
    cut = traced(plane, 1.0)
    rows = whole.tables()["trace"]
    for column, values in cut.tables()["trace"].items():
        assert values.tolist() == rows[column][:1000].tolist()
    assert whole.notes == ()
    assert cut.notes == (
        f"the trace ends at {rows['received'][1000]:,.3f} s with 1,000 hops, the most that are kept: trace = 0.01 keeps the hops "
        "of one publication in a hundred",
    )
    assert cut.metrics() == whole.metrics()
