"""Graphs from files: links and their times in a network, and messages where file and brokers do not match."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import tiny

from sim.base.errors import ScenarioError
from sim.scenario.reader import load_scenario
from sim.simulation import build
from sim.workloads.format.workload import Workload

PLACES = [(0.5, 0.5), (0.5, 2.5), (0.5, 4.5), (0.5, 6.5)]
SQUARE = "source,target,rtt_ms\nt0,t1,10\nt1,t2,20\nt2,t3,\nt3,t0,100\n"


def world() -> Workload:
    """A user in each of four cells, who wants all; each publishes on each topic."""
    return tiny.workload(
        [set(range(4))] * 4,
        [(0.1 * n, n % 4, n // 4, 100) for n in range(16)],
        topics=4,
        places=PLACES,
        cell=1.0,
    )


def network(folder: Path, text: str, **keys: Any) -> Any:
    (folder / "links.csv").write_text(text)
    (folder / "s.toml").write_text("")
    geometry = {"kind": "graph", "file": str(folder / "links.csv")}
    scenario = load_scenario({"network": {"latency": {"kind": "distance"}, "geometry": geometry, **keys}, "seed": 3})
    return build(scenario.base, world(), 0)


def test_delays_are_the_lengths_of_shortest_paths(tmp_path: Path) -> None:
    built = network(tmp_path, SQUARE, hop_cost="rtt")
    built.run()
    hop, homes = built.setting.hop_delay, built.users.host
    assert (hop[0, 1], hop[1, 0], hop[2, 1], hop[0, 3]) == (0.01, 0.01, 0.02, 0.1)
    assert hop[2, 3] == pytest.approx(0.001 + 0.00002 * 222.4, rel=1e-3)  # the latency model's
    assert hop[0, 2] == pytest.approx(0.001 + 0.00002 * 444.8, rel=1e-3)  # of no link: what path_stretch compares with
    expected = nx.Graph()
    expected.add_weighted_edges_from((a, b, hop[a, b]) for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)))
    lengths = dict(nx.all_pairs_dijkstra_path_length(expected))
    delays = [lengths[homes[n // 4]][broker] for n in range(16) for broker in set(homes.tolist())]
    metrics = built.metrics()
    assert metrics["delivered"] == metrics["due"] == len(delays)
    assert metrics["notification_delay"] == pytest.approx(np.mean(delays), rel=1e-9)
    assert metrics["uplink_messages"] == 0


def test_the_links_are_the_files_even_where_no_path_takes_them(tmp_path: Path) -> None:
    overlay = network(tmp_path, SQUARE).setting.overlay
    assert overlay.edges().tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [2, 3], [3, 0], [3, 2]]
    assert overlay.parents(0, 0)[3] == 2


def test_without_times_in_the_file_all_are_the_latency_models(tmp_path: Path) -> None:
    built = network(tmp_path, "source,target\n" + "".join(f"t{a},t{b}\n" for a, b in itertools.pairwise(range(4))))
    assert built.setting.overlay.round_trips is None
    assert built.setting.hop_delay[0, 1] == pytest.approx((0.001 + 0.00002 * 222.4) / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            SQUARE + "t0,t12,1\n",
            r"links\.csv, line 6: unknown broker 't12', did you mean 't2'\? \(there are 4, such as 't0'\)",
        ),
        ("source,target\nt0,t1\nt2,t3\n", r"links\.csv: no path between brokers 't0' and 't2'"),
        ("source,target\nt0,t1\n", r"links\.csv: no link to broker 't2' and 1 more"),
        ("source,target\nt0,t1\nt1,t2\n", r"links\.csv: no link to broker 't3'$"),
        (SQUARE + "t1,t0,4\n", r"links\.csv, line 6: the link between 't1' and 't0' appears twice \(first: line 2\)"),
    ],
)
def test_a_file_that_does_not_fit_the_brokers(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=r"network\.geometry\.file: .*" + complaint):
        network(tmp_path, text)


def test_content_tells_scenarios_apart_and_place_does_not(tmp_path: Path) -> None:
    def identity(folder: str, text: str) -> Any:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "links.csv").write_text(text)
        (tmp_path / folder / "s.toml").write_text('[network]\ngeometry = { kind = "graph", file = "links.csv" }')
        return load_scenario(tmp_path / folder / "s.toml").base.identity()

    assert identity("a", SQUARE) == identity("b", SQUARE) != identity("c", SQUARE + "t1,t3,5\n")
