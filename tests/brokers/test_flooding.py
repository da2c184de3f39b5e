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
from sim.files.inputs import File
from sim.overlay.broadcast import Broadcast
from sim.overlay.edges import Edge
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.overlay.graph import Graph
from sim.overlay.sites import Sites
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.overlay.topic_connected.interests import coin_flips
from sim.overlay.topic_connected.measures import topic_diameters
from sim.scenario.reader import load_scenario

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


def over_links(
    links: list[tuple[int, int]], wants: list[set[int]], publications: Any, hop: Any = 1.0, **setting: Any
) -> Network:
    """A graph that is flooded, with a user at each broker who wants this."""
    n, more = len(wants), {name: setting.pop(name) for name in ("hops",) if name in setting}
    names, nowhere = tuple(map(str, range(n))), np.full(n, np.nan)
    overlay = Graph(
        Graph.Parameters(
            file=File("links", "", tuple(Edge(names[a], names[b], None, "") for a, b in links)),
            dissemination="flood",
            **more,
        ),
        GeometrySetting(n, 2, 1, Sites(names, nowhere, nowhere), np.where(np.eye(n), 0.0, 1.0)),
    )
    world = tiny.workload(wants, publications, topics=2, horizon=setting.pop("horizon", 50.0))
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


LINE = [(0, 1), (1, 2), (2, 3)]


def test_a_flood_over_a_graph_passes_brokers_that_do_not_want_the_topic() -> None:
    """0 ── 1 ── 2 ── 3, of which 0 and 3 want the topic: 1 and 2 relay, and nobody has to know."""
    network = over_links(LINE, [{0}, set(), set(), {0}], [(1.0, 0, 0, 10), (2.0, 1, 3, 10)])
    network.run()
    metrics = network.metrics()
    assert (metrics["due"], metrics["delivered"], metrics["duplicates"]) == (2, 2, 0)
    assert (metrics["internal_overhead"], metrics["external_overhead"]) == (1, 2 + 3)  # nobody wants what 3 publishes
    assert metrics["bootstrap_messages"] == metrics["subscription_overhead"] == 0
    assert metrics["notification_delay_max"] == 3.0
    assert network.tables()["brokers"]["relayed"].tolist() == [1, 2, 2, 0]


@pytest.mark.parametrize(("limit", "delivered", "messages"), [(1, 2, 1), (2, 3, 2), (3, 4, 3), (4, 4, 3)])
def test_what_lies_beyond_the_hop_limit_is_lost(limit: int, delivered: int, messages: int) -> None:
    for plane in ("events", "compiled"):
        network = over_links(LINE, [{0}] * 4, [(1.0, 0, 0, 10)], hops=limit, plane=plane)
        network.run()
        metrics = network.metrics()
        assert (metrics["delivered"], metrics["lost_hop_limit"], metrics["lost"]) == (delivered, *[4 - delivered] * 2)
        assert metrics["notification_overhead"] == messages


def test_a_first_copy_that_took_more_hops_keeps_others_from_being_sent_on() -> None:
    """
      1
     ╱ ╲       0 to 2 takes 5 s, and by 1 only 2 s, but both hops that a copy may go: so 2 does not send it to 3,
    0 ── 2 ── 3    and the copy that came straight is a duplicate.
    """
    slow = np.ones((4, 4))
    slow[0, 2] = slow[2, 0] = 5.0
    triangle = [(0, 1), (1, 2), (0, 2), (2, 3)]
    for limit, lost, duplicates in ((2, 1, 1), (3, 0, 2)):  # with three hops 2 sends it to 0 too
        network = over_links(triangle, [{0}] * 4, [(1.0, 0, 0, 10)], slow.tolist(), hops=limit)
        network.run()
        metrics = network.metrics()
        assert (metrics["lost_hop_limit"], metrics["duplicates"]) == (lost, duplicates)


def test_what_is_beyond_a_copy_that_was_refused_is_lost_with_it_as_far_as_it_could_have_gone() -> None:
    """0 ── 1 ── 2 ── 3: broker 1 has no room for the second publication, which would have gone to 2, and no further."""
    slow = {"service": "deterministic", "service_time": 1.5, "capacity": np.array([2.0, 0.5, 2.0, 2.0]), "queue": 0}
    for plane in ("events", "compiled"):
        rows = [(1.0, 0, 0, 1), (3.0, 0, 0, 1)]
        network = over_links(LINE, [{0}] * 4, rows, hops=2, plane=plane, **slow)
        network.run()
        metrics = network.metrics()
        assert (metrics["due"], metrics["delivered"]) == (8, 3 + 1)
        assert (metrics["lost_queue_full"], metrics["lost_hop_limit"]) == (2, 1 + 1)


def test_copies_at_the_end_are_in_flight_as_far_as_their_hops_go() -> None:
    for plane in ("events", "compiled"):
        network = over_links(LINE, [{0}] * 4, [(1.0, 0, 0, 1)], hops=2, horizon=1.5, plane=plane)
        network.run()
        metrics = network.metrics()
        assert (metrics["delivered"], metrics["in_flight"], metrics["lost_hop_limit"]) == (1, 2, 1)


@pytest.mark.parametrize("plane", ["events", "compiled"])
@pytest.mark.parametrize(
    ("queue", "later", "horizon"), [(2, [(4.0, 1, 3, 1)], 5.0), (1, [], 50.0)], ids=["at the end", "itself"]
)
def test_a_first_copy_that_is_dropped_is_lost_though_a_duplicate_waits(
    plane: str, queue: int, later: list[Any], horizon: float
) -> None:
    """
      1        Both copies of the publication come to 3 while that serves another, for ten seconds: the first of them is dropped
     ╱ ╲       for what comes next, be that another publication or the other copy. That is a duplicate, and thrown away.
    0   3
     ╲ ╱
      2
    """
    square = [(0, 1), (0, 2), (1, 3), (2, 3)]
    hop = np.ones((4, 4))
    hop[2, 3] = 1.5
    slow = {"service": "deterministic", "service_time": 0.001, "capacity": np.array([1.0, 1.0, 1.0, 1e-4])}
    slow |= {"queue": queue, "overflow": "drop-oldest"}
    rows = [(0.0, 1, 3, 1), (1.0, 0, 0, 1), *later]
    network = over_links(square, [{0}] * 4, rows, hop.tolist(), horizon=horizon, plane=plane, **slow)
    network.run()
    metrics = network.metrics()
    assert metrics["duplicates"] >= 1
    assert (metrics["due"], metrics["delivered"], metrics["lost_queue_full"], metrics["in_flight"]) == (4, 3, 1, 0)


def test_a_flood_of_one_hop_over_all_pairs_is_a_broadcast() -> None:
    setting = GeometrySetting(5, 2, 1)
    rows = [(0.5 * n, n % 2, n % 5, 10) for n in range(20)]
    world = tiny.workload([{0}, {1}, set(), {0, 1}, {1}], rows, topics=2, horizon=50.0)
    found = []
    for overlay in (
        FullMesh(FullMesh.Parameters(dissemination="flood", hops=1), setting),
        Broadcast(Broadcast.Parameters(), setting),
    ):
        network = tiny.network(world, overlay, list(range(5)), trace=False)
        network.run()
        found.append(network.metrics())
    assert found[0] == found[1]
    assert found[0]["notification_overhead"] == 20 * 4
    without_limit = FullMesh(FullMesh.Parameters(dissemination="flood"), setting)
    network = tiny.network(world, without_limit, list(range(5)), trace=False)
    network.run()
    assert network.metrics()["notification_overhead"] == 20 * 4 * 4  # 2 E - (V - 1) = (V - 1)²


@pytest.mark.parametrize(
    ("geometry", "complaint"),
    [
        (
            {"kind": "full-mesh", "dissemination": "flood", "hops": 0},
            r"geometry\.hops: expected a value greater than or",
        ),
        ({"kind": "full-mesh", "dissemination": "flood", "hops": 1.5}, r"geometry\.hops: .*integer"),
        ({"kind": "full-mesh", "hops": 3}, r'geometry\.hops: only with dissemination = "flood" \(found 3\)'),
        ({"kind": "topic-connected", "hops": 3}, r'geometry\.hops: only with dissemination = "flood" \(found 3\)'),
        ({"kind": "chord", "dissemination": "flood"}, r"geometry\.dissemination: unknown key"),
        ({"kind": "broadcast", "hops": 2}, r"geometry\.hops: unknown key"),
        ({"kind": "full-mesh", "dissemination": "floods"}, r"dissemination: unknown value, did you mean 'flood'\?"),
    ],
)
def test_floods_that_cannot_be(geometry: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        load_scenario({"network": {"geometry": geometry}})


def test_the_folded_plane_refuses_and_auto_takes_the_compiled_one() -> None:
    with pytest.raises(ScenarioError, match=r'network\.data_plane: "folded" .* not exact with an overlay that floods'):
        flooded(RING, [], 5, trace=False, plane="folded")
    for plane, engine in (("auto", CompiledEngine), ("events", EventEngine)):
        assert isinstance(flooded(RING, [], 5, trace=False, plane=plane).engine, engine)
