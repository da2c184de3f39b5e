"""A simulation that is stopped, looked at and continued has the results of one that is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import sim

LOADED: dict[str, Any] = {
    "horizon": "1h",
    "replications": 1,
    "workload": {"kind": "poisson", "users": 20, "topics": 10, "publication_rate": 600},
    "network": {"brokers": 4, "geometry": {"kind": "star"}},
    "brokers": {"service": {"kind": "deterministic", "time": "1s"}},
}


def test_results_are_those_of_a_run_wherever_it_is_stopped(tmp_path: Path) -> None:
    ran = sim.run(LOADED, tmp_path / "r").runs.iloc[0]
    simulation = sim.Simulation(LOADED)
    busy = 0
    for minutes in (7, 20, 41.5):
        before = simulation.now
        simulation.until(f"{minutes}min")
        assert simulation.now == 60 * minutes > before
        assert simulation.step() >= 60 * minutes
        busy += int((simulation.brokers["waiting"] + simulation.brokers["in_service"]).sum())
    assert busy > 0
    with pytest.raises(sim.InputError, match=r"^metrics: the run is at 41\.5 min"):
        _ = simulation.metrics
    with pytest.raises(sim.InputError, match=r"^until: expected a time from .* to 1 h, found 5 s$"):
        simulation.until("5s")
    metrics = simulation.until("1h").metrics
    for name in ("publications", "delivered", "notification_delay", "notification_overhead"):
        assert metrics[name] == ran[name], name
    assert simulation.step() == simulation.horizon


def test_the_network_is_seen_as_graphs_and_drawn() -> None:
    simulation = sim.Simulation(LOADED).until("10min")
    assert nx.diameter(simulation.overlay().to_undirected()) == 2
    tree = simulation.tree("3")
    assert nx.is_arborescence(tree)
    assert any(about["subscribes"] for _, about in tree.nodes(data=True))
    assert sorted(set(simulation.users["broker"])) <= [0, 1, 2, 3]
    shown = simulation._repr_html_()
    assert shown.startswith("<p>10 min of 1 h</p><svg")
    assert (shown.count("<circle"), shown.count("<line")) == (4, 3)
