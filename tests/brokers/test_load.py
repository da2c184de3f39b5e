"""The load of brokers by window: the sums of its table, and its memory with many windows."""

from __future__ import annotations

import numpy as np
import pytest
from generated import generated, network

from sim.brokers.network import Network
from sim.brokers.statistics import traffic

TRAFFIC = (
    *("received", "sent", "delivered", "relayed", "published", "copies"),
    *("bytes_in", "bytes_out", "client_bytes_in", "client_bytes_out"),
)


def over_windows(network: Network, name: str) -> list[float]:
    """The sum of a column over all windows, by broker."""
    table = network.tables()["load"]
    weights = np.asarray(table[name], float)
    return np.bincount(table["broker"], weights, minlength=len(network.node_of)).tolist()


@pytest.mark.parametrize("plane", ["events", "compiled"])
@pytest.mark.parametrize("seed", range(12))
def test_all_windows_add_up_to_the_run(seed: int, plane: str) -> None:
    run = network(generated(seed), plane)
    run.run()
    brokers, seconds = run.tables()["brokers"], run.setting.measured_seconds
    for name in TRAFFIC:
        assert over_windows(run, name) == brokers[name].tolist()
    if brokers["served"][0] is None:
        return
    assert over_windows(run, "served") == brokers["served"]
    assert over_windows(run, "queue_full") == brokers["queue_full"]
    table, edges = run.tables()["load"], np.array(run.recorder.edges)
    width = np.diff(edges)[table["window"]]
    for name in ("utilisation", "offered_load", "queue_length"):
        area = np.bincount(table["broker"], table[name] * width, minlength=len(run.node_of))
        assert area / seconds == pytest.approx(np.array(brokers[name]), rel=1e-9, abs=1e-9)
    most = np.zeros(len(run.node_of), np.int64)
    np.maximum.at(most, table["broker"], table["queue_max"])
    assert most.tolist() == brokers["queue_max"]


@pytest.mark.parametrize("plane", ["events", "compiled"])
@pytest.mark.parametrize("seed", range(12))
def test_windows_that_are_closed_meanwhile_lose_nothing(seed: int, plane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where windows are many: room for the traffic of one only, beside those of publications in transit."""
    made = generated(seed)
    made.case.window = 0.2
    ample = network(made, plane)
    ample.run()
    monkeypatch.setattr(traffic, "_MOST_ROWS", 1)
    scarce = network(made, plane)
    scarce.run()
    for name, column in ample.tables()["load"].items():
        np.testing.assert_array_equal(scarce.tables()["load"][name], column)
