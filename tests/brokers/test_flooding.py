"""Flooding: first copies are deliveries and go on to all neighbours but their sender, later ones are duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

from sim.base.errors import ScenarioError
from sim.brokers.data.compiled.engine import CompiledEngine
from sim.brokers.data.events import EventEngine
from sim.brokers.network import Network
from sim.overlay.geometry import GeometrySetting
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.overlay.topic_connected.interests import coin_flips
from sim.overlay.topic_connected.measures import topic_diameters

RING = [{0, 3, 4}, {0, 1, 4}, {1, 2, 4}, {2, 3, 4}]  # 0-1-2-3-0, and topic 4 for all of them


def flooded(wants: list[set[int]], publications: Any, topics: int, hop: Any = 1.0, **setting: Any) -> Network:
    """A user at each broker, who wants this."""
    n = len(wants)
    overlay = TopicConnected(
        TopicConnected.Parameters(design="gm", dissemination="flood"),
        GeometrySetting(n, topics, 1, round_trips=np.where(np.eye(n), 0.0, 1.0)),
    )
    world = tiny.workload(wants, publications, topics=topics, horizon=setting.pop("horizon", 50.0))
    return tiny.network(world, overlay, list(range(n)), hop, **setting)


def hops(network: Network) -> list[tuple[Any, ...]]:
    trace = network.tables()["trace"]
    assert trace is not None
    return list(zip(*(trace[name] for name in ("sent", "received", "source", "destination", "kind")), strict=True))


def test_the_first_copy_is_the_delivery_and_the_others_are_duplicates() -> None:
    """
    1 ── 2        between 0 and 3 a hop takes 5 s, elsewhere 1 s
    │    │
    0 ── 3
    """
    slow = [[1.0, 1, 1, 5], [1, 1, 1, 1], [1, 1, 1, 1], [5, 1, 1, 1]]
    network = flooded(RING, [(1.0, 4, 0, 100)], 5, slow)
    network.run()
    assert hops(network) == [
        (1.0, 2.0, 0, 1, "flood"),
        (2.0, 3.0, 1, 2, "flood"),
        (3.0, 4.0, 2, 3, "flood"),
        (1.0, 6.0, 0, 3, "flood"),
        (4.0, 9.0, 3, 0, "flood"),
    ]
    metrics = network.metrics()
    assert (metrics["due"], metrics["delivered"], metrics["duplicates"]) == (4, 4, 2)
    assert metrics["notification_delay"] == metrics["tree_hops"] == (0 + 1 + 2 + 3) / 4
    assert metrics["notification_overhead"] == metrics["internal_overhead"] == 5
    assert (metrics["notification_bytes"], metrics["external_overhead"]) == (500, 0)
    links, brokers = network.tables()["links"], network.tables()["brokers"]
    used = zip(links["source"].tolist(), links["destination"].tolist(), links["bytes"].tolist(), strict=True)
    assert sorted(used) == [(0, 1, 100), (0, 3, 100), (1, 2, 100), (2, 3, 100), (3, 0, 100)]
    assert (brokers["received"].tolist(), brokers["sent"].tolist()) == ([1, 1, 1, 2], [2, 1, 1, 1])
    assert (brokers["delivered"].tolist(), brokers["relayed"].tolist()) == ([1] * 4, [0] * 4)


def test_a_copy_that_a_full_queue_refuses_is_no_loss_where_another_arrives() -> None:
    """Every broker needs a second for a message and lets none wait: of the two copies that come to 2 at once one is refused."""
    network = flooded(RING, [(1.0, 4, 0, 1)], 5, service="deterministic", service_time=1.0, queue=0)
    network.run()
    metrics = network.metrics()
    assert [row[:4] for row in hops(network)] == [
        (2.0, 3.0, 0, 1),
        (2.0, 3.0, 0, 3),
        (4.0, 5.0, 1, 2),
        (6.0, 7.0, 2, 3),
    ]
    assert network.tables()["brokers"]["queue_full"] == [0, 0, 1, 0]
    assert (metrics["delivered"], metrics["lost"], metrics["duplicates"]) == (4, 0, 1)
    assert metrics["notification_overhead"] == 5  # the one that was refused had been sent
    assert network.tables()["brokers"]["served"] == [1, 1, 1, 2]  # a duplicate has to be served too


def test_what_is_due_is_lost_when_the_last_copy_is_refused() -> None:
    """0 ── 1 ── 2: broker 1 still has the first publication in hand when the second comes, of which 2 then gets nothing either."""
    slow = {"service": "deterministic", "service_time": 1.5, "capacity": np.array([1.0, 0.2, 1.0]), "queue": 0}
    network = flooded([{0}, {0, 1}, {0, 1}], [(1.0, 0, 0, 1), (3.0, 0, 0, 1)], 2, **slow)
    network.run()
    metrics = network.metrics()
    assert (metrics["due"], metrics["delivered"], metrics["lost_queue_full"]) == (6, 4, 2)


def test_copies_at_the_end_are_in_flight_to_all_that_they_may_reach() -> None:
    network = flooded(RING, [(1.0, 4, 0, 1)], 5, horizon=2.5)
    network.run()
    metrics = network.metrics()
    assert (metrics["due"], metrics["delivered"], metrics["in_flight"], metrics["duplicates"]) == (4, 3, 1, 0)


@pytest.mark.parametrize(
    "more", [{}, {"jitter": 0.5}, {"service": "exponential", "service_time": 0.01}], ids=["even", "jitter", "service"]
)
def test_a_flood_sends_two_messages_per_link_but_one_per_broker_that_is_reached(more: dict[str, Any]) -> None:
    """Σ (degree - 1) over all brokers of the topic, and 1 more for the root: 2 · E - (V - 1), whatever arrives first."""
    interests = coin_flips(40, 6, 3, np.random.default_rng(5))
    wants = [set(interests.row(node).tolist()) for node in range(40)]
    for topic in range(6):
        members = [node for node in range(40) if topic in wants[node]]
        network = flooded(wants, [(0.0, topic, members[0], 1)], 6, trace=False, **more)
        network.run()
        metrics = network.metrics()
        links = sum(u < v and {u, v} <= set(members) for u, v in network.setting.overlay.edges().tolist())
        assert metrics["notification_overhead"] == 2 * links - (len(members) - 1)
        assert metrics["duplicates"] == 2 * (links - (len(members) - 1))
        assert metrics["delivered"] == metrics["due"] == len(members)
        if not more:  # all hops take a second: every broker is reached along a shortest way
            assert (
                metrics["notification_delay_max"] <= topic_diameters(interests, network.setting.overlay._links)[topic]
            )


def test_the_folded_plane_refuses_and_auto_takes_the_compiled_one() -> None:
    with pytest.raises(ScenarioError, match=r'network\.data_plane: "folded" .* not exact with an overlay that floods'):
        flooded(RING, [], 5, trace=False, plane="folded")
    for plane, engine in (("auto", CompiledEngine), ("events", EventEngine)):
        assert isinstance(flooded(RING, [], 5, trace=False, plane=plane).engine, engine)
