"""Three brokers that run, in three kinds of networks, pass on and deliver as many messages as the simulated ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import broker_networks as networks
import pytest

LINE = "source,target\n0,1\n1,2\n"
CASES = 20


def cases(geometry: Mapping[str, Any]) -> list[networks.Case]:
    made = [networks.generated(number, geometry) for number in range(CASES)]
    assert sum(case.links != {} for case in made) > CASES // 2
    return made


def line(folder: Path, **more: str) -> dict[str, str]:
    (folder / "line.csv").write_text(LINE)
    return {"kind": "graph", "file": str(folder / "line.csv"), **more}


def delivered(clients: networks.MqttClients | networks.NatsClients, case: networks.Case) -> dict[tuple[int, int], int]:
    return {(topic, user): n for (number, topic, user), n in clients.received.items() if number == case.number}


@pytest.mark.parametrize("floods", [False, True], ids=["interests", "flood"])
def test_a_tree_of_mosquitto_bridges(tmp_path: Path, floods: bool) -> None:
    made = cases(line(tmp_path, dissemination="flood") if floods else line(tmp_path))
    with networks.mosquitto_tree(tmp_path, made, floods) as (ports, links):
        clients = networks.MqttClients(ports, made)
        for case in made:
            clients.publish(case)
        networks.settle(clients, sum(sum(case.delivered.values()) for case in made), 0.2)
        clients.close()
        counted = links()
    for case in made:
        assert delivered(clients, case) == case.delivered
        assert counted.get(case.number, {}) == case.links


@pytest.mark.parametrize("kind", ["mesh", "leaves"])
def test_a_cluster_of_nats_servers_and_leaf_nodes(tmp_path: Path, kind: str) -> None:
    made = cases({"kind": "full-mesh"} if kind == "mesh" else line(tmp_path))
    network = networks.nats_mesh if kind == "mesh" else networks.nats_leaves
    with ExitStack() as opened:
        ports, links = opened.enter_context(network(tmp_path))
        clients = opened.enter_context(closing(networks.NatsClients(ports, made)))
        expected, before = 0, links()
        for case in made:
            clients.publish(case)
            expected += sum(case.delivered.values())
            networks.settle(clients, expected, 0.01)
            now = links()
            assert {link: n - before.get(link, 0) for link, n in now.items() if n > before.get(link, 0)} == case.links
            before = now
        networks.settle(clients, expected, 0.2)
    for case in made:
        assert delivered(clients, case) == case.delivered
