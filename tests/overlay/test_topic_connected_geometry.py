"""Topic-connected overlays as a geometry: links follow joins and are counted, trees and floods follow the links."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tiny
from oracles import topic_connected as oracle
from test_trees import as_lists

from sim.base.errors import ScenarioError
from sim.overlay import source_trees
from sim.overlay.geometry import GeometrySetting
from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate

DESIGNS = ["gm", "minmax-oda", "low-oda", "cd-oda", "cd-oda-i", "cd-oda-ii", "dcb-m"]
LINE = [[0], [0, 1], [1, 2], [2]]  # 0 ─ 1 ─ 2 ─ 3: each shares a topic with the next


def geometry(wants: Sequence[Sequence[int]], times: Any = None, topics: int = 3, **parameters: Any) -> TopicConnected:
    n = len(wants)
    times = np.where(np.eye(n), 0.0, 1.0) if times is None else np.array(times, float)
    overlay = TopicConnected(TopicConnected.Parameters(**parameters), GeometrySetting(n, topics, 1, round_trips=times))
    for node, wanted in enumerate(wants):
        for topic in wanted:
            overlay.join(topic, node)
    return overlay


def rows(interests: BrokerInterests) -> list[list[int]]:
    return [interests.row(node).tolist() for node in range(interests.nodes)]


def links(overlay: TopicConnected) -> list[tuple[int, int]]:
    return [(u, v) for u, v in overlay.edges().tolist() if u < v]


# -- links


def test_parts_may_be_designed_for_a_low_maximum_degree() -> None:
    wanted = rows(coin_flips(60, 30, 6, np.random.default_rng(1)))
    degrees = {}
    for parts_design in ("gm", "minmax-oda"):
        overlay = geometry(wanted, topics=30, design="dcb-m", parts=3, parts_design=parts_design)
        overlay.adjust()
        assert overlay.topic_diameters().min() > 0
        degrees[parts_design] = np.bincount(overlay.edges()[:, 0]).max()
    assert degrees["minmax-oda"] < degrees["gm"]
    default = geometry(wanted, topics=30, design="dcb-m", parts=3)
    assert links(default) == links(geometry(wanted, topics=30, design="dcb-m", parts=3, parts_design="gm"))


def test_links_are_those_of_the_design_and_cost_two_messages_each() -> None:
    wanted = coin_flips(30, 12, 4, np.random.default_rng(1))
    for algorithm in DESIGNS[:-1]:
        overlay = geometry(rows(wanted), topics=12, design=algorithm, k="3/2")
        expected = sorted(map(tuple, design(wanted, algorithm).tolist()))
        assert overlay.adjust() == 2 * len(expected)
        assert links(overlay) == expected
        both = [*expected, *((v, u) for u, v in expected)]
        assert overlay.edges().tolist() == [list(edge) for edge in sorted(both)]
        assert overlay.adjust() == 0


@pytest.mark.parametrize("on_change", ["repair", "rebuild", "break"])
@pytest.mark.parametrize("algorithm", DESIGNS)
def test_after_every_change_every_topic_is_connected_and_the_difference_is_paid_for(
    algorithm: str, on_change: str
) -> None:
    rng = np.random.default_rng(7)
    wants = [set(row) for row in rows(coin_flips(25, 8, 3, rng))]
    overlay = geometry(
        [sorted(row) for row in wants], topics=8, design=algorithm, on_change=on_change, parts=3, check=4
    )
    before = set(links(overlay))
    assert overlay.adjust() == 2 * len(before)
    for _ in range(40):
        for _ in range(rng.integers(1, 4)):  # several at one instant
            node, topic = int(rng.integers(25)), int(rng.integers(8))
            (overlay.leave if topic in wants[node] else overlay.join)(topic, node)
            wants[node] ^= {topic}
        cost, after = overlay.adjust(), set(links(overlay))
        assert cost == 2 * len(before ^ after)
        assert not any(oracle.weights(wants, sorted(after)).values())
        assert rows(overlay.interests) == [sorted(row) for row in wants]
        if algorithm != "dcb-m" and (on_change == "rebuild" or (on_change == "break" and after != before)):
            assert sorted(after) == sorted(map(tuple, design(overlay.interests, algorithm).tolist()))
        before = after


@pytest.mark.parametrize("algorithm", ["gm", "cd-oda-ii", "dcb-m"])
def test_links_stay_until_a_topic_breaks(algorithm: str) -> None:
    """Changes that leave all topics connected cost nothing; the first that does not has the design made anew, for all that changed."""
    rng = np.random.default_rng(11)
    wants = [set(row) for row in rows(coin_flips(25, 8, 5, rng))]
    overlay = geometry([sorted(row) for row in wants], topics=8, design=algorithm, parts=4, on_change="break")
    overlay.adjust()
    since: set[int] = set()  # nodes that have changed since the links did
    breaks = kept = 0
    for _ in range(300):
        before, node, topic = links(overlay), int(rng.integers(25)), int(rng.integers(8))
        (overlay.leave if topic in wants[node] else overlay.join)(topic, node)
        wants[node] ^= {topic}
        since ^= {node} if node not in since else set()
        broken = any(oracle.weights(wants, before).values())
        cost, after = overlay.adjust(), links(overlay)
        assert not any(oracle.weights(wants, after).values())
        assert broken or (cost == 0 and after == before)
        if broken and algorithm == "dcb-m":
            part = overlay._designed.part
            anew = {int(part[node]) for node in since}
            for u, v in set(before) - set(after):  # links inside other parts, and between parts, are kept
                assert part[u] == part[v] in anew
        if broken:
            since = set()
        breaks, kept = breaks + broken, kept + (not broken)
    assert breaks > 5
    assert kept > 100


def test_links_that_follow_periodically_serve_what_they_can_meanwhile() -> None:
    rng = np.random.default_rng(5)
    wants = [set(row) for row in rows(coin_flips(20, 6, 2, rng))]
    times = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    overlay = geometry(
        [sorted(row) for row in wants], times, topics=6, design="dcb-m", parts=3, on_change="periodic", period=60
    )
    assert overlay.period == 60
    assert geometry(LINE, on_change="break", period=60).period is None
    overlay.adjust()
    served, left = 0, 0
    for step in range(200):
        before, node, topic = links(overlay), int(rng.integers(20)), int(rng.integers(6))
        (overlay.leave if topic in wants[node] else overlay.join)(topic, node)
        wants[node] ^= {topic}
        assert links(overlay) == before
        members = oracle.subscribers(wants, topic)
        for source in range(20):
            root = int(overlay.uplink(topic, source)[-1])
            tree = overlay.tree(topic, root)
            assert set(tree.nodes.tolist()) == (set(oracle.reached(members, before, root)) if members else set())
            served, left = served + len(tree), left + len(members) - len(tree)
        spans = oracle.topic_diameters(wants, before)
        assert sorted(overlay.topic_diameters().tolist()) == sorted(span for span in spans.values() if span is not None)
        if step % 10 == 9:
            overlay.adjust()
            assert not any(oracle.weights(wants, links(overlay)).values())
    assert 0 < left < served


def test_a_link_may_count_as_one_message() -> None:
    one, two = (geometry(LINE, design="gm", messages_per_link=number) for number in (1, 2))
    assert (one.adjust(), two.adjust()) == (3, 6)


def test_what_is_joined_and_left_at_one_instant_changes_nothing() -> None:
    overlay = geometry(LINE)
    overlay.adjust()
    tree = overlay.tree(1, 2)
    overlay.join(2, 0)
    overlay.leave(2, 0)
    assert overlay.adjust() == 0
    assert overlay.tree(1, 2) is tree
    with pytest.raises(ValueError, match="node 0 is on the tree of topic 0 already"):
        overlay.join(0, 0)
    with pytest.raises(ValueError, match="node 0 is not on the tree of topic 2"):
        overlay.leave(2, 0)


def test_a_fresh_design_takes_over_where_repairs_have_drifted() -> None:
    """Nodes come and go one by one; with a check after each repair the links stay within 1.05 of a fresh design."""
    rng = np.random.default_rng(3)
    wants = [set(row) for row in rows(coin_flips(60, 10, 3, rng))]
    drifted = {}
    for check in (1, 1000):
        overlay = geometry([sorted(row) for row in wants], topics=10, design="gm", check=check)
        held = [set(row) for row in wants]
        steps, worst = np.random.default_rng(4), 0.0
        for _ in range(150):
            node, topic = int(steps.integers(60)), int(steps.integers(10))
            (overlay.leave if topic in held[node] else overlay.join)(topic, node)
            held[node] ^= {topic}
            worst = max(worst, len(links(overlay)) / len(design(overlay.interests, "gm")))
        drifted[check] = worst
    assert drifted[1] <= 1.05 < drifted[1000]


# -- trees


def test_a_tree_is_breadth_first_over_the_topics_own_links() -> None:
    """Topic 1 is wanted by all, the others tell whom to link: 0-1-2-3 and 0-3, a ring.

    1 ── 2
    │    │
    0 ── 3
    """
    overlay = geometry([[0, 3, 4], [0, 1, 4], [1, 2, 4], [2, 3, 4]], topics=5, design="gm")
    assert links(overlay) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert as_lists(overlay.tree(4, 2)) == [[2, 1, 3, 0], [-1, 0, 0, 1], [1, 3, 4, 4, 4], [0, 1, 1, 2]]
    assert as_lists(overlay.tree(2, 3)) == [[3, 2], [-1, 0], [1, 2, 2], [0, 1]]
    assert overlay.tree(2, 3).neighbours == ()


def test_floods_know_the_neighbours_in_the_topic_alone() -> None:
    overlay = geometry([[0, 3, 4], [0, 1, 4], [1, 2, 4], [2, 3, 4]], topics=5, design="gm", dissemination="flood")
    tree = overlay.tree(4, 2)
    assert tree.nodes.tolist() == [2, 1, 3, 0]
    assert list(map(list, tree.neighbours)) == [[1, 2], [3, 0], [3, 0], [1, 2]]  # by position
    assert list(map(list, overlay.tree(2, 3).neighbours)) == [[1], [0]]


def test_a_tree_is_the_same_object_until_its_topic_changes() -> None:
    overlay = geometry(LINE, design="gm")
    trees = [overlay.tree(topic, topic) for topic in range(3)]
    assert [overlay.tree(topic, topic) for topic in range(3)] == trees
    overlay.leave(2, 3)
    assert [overlay.tree(topic, topic) is trees[topic] for topic in range(3)] == [True, True, False]


def test_a_tree_is_forgotten_where_a_repair_for_another_topic_takes_its_link() -> None:
    """0, 1 and 2 want topic 0; that 0 and 2 share topic 1 too put the link between them. It goes when another is there."""
    overlay = geometry([[0, 1], [0], [0, 1]], design="gm", on_change="rebuild")
    assert links(overlay) == [(0, 1), (0, 2)]
    before = as_lists(overlay.tree(0, 0))
    overlay.leave(1, 0)
    overlay.join(1, 1)  # now 1 and 2 share both topics
    assert links(overlay) == [(0, 1), (1, 2)]
    assert before == [[0, 1, 2], [-1, 0, 0], [1, 3, 3, 3], [0, 1, 1]]
    assert as_lists(overlay.tree(0, 0)) == [[0, 1, 2], [-1, 0, 1], [1, 2, 3, 3], [0, 1, 2]]


def test_no_more_trees_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_trees, "_REMEMBERED", 100)
    overlay = geometry([[0]] * 40, topics=1, dissemination="flood")
    for root in range(40):
        overlay.tree(0, root)
        assert sum(map(len, overlay._snapshots.values())) <= 2


# -- where publications start


def test_a_publisher_that_does_not_subscribe_hands_over_to_the_nearest_that_does() -> None:
    times = [[0, 3, 2, 2], [3, 0, 1, 1], [2, 1, 0, 1], [2, 1, 1, 0]]
    overlay = geometry([[1], [0], [0], [0]], times)
    assert overlay.uplink(0, 0).tolist() == [0, 2]  # 2 and 3 are as near
    assert overlay.uplink(0, 1).tolist() == [1]
    assert overlay.uplink(2, 3).tolist() == [3]  # nobody wants it
    assert as_lists(overlay.tree(2, 3)) == [[], [], [0], []]
    overlay.leave(0, 2)
    assert overlay.uplink(0, 0).tolist() == [0, 3]


def test_a_gateway_that_leaves_meanwhile_hands_on_to_the_next() -> None:
    overlay = geometry([[], [0], [0], [0]], design="gm", dissemination="flood")
    overlay.adjust()
    overlay.leave(0, 1)
    tree = overlay.tree(0, 1)
    assert as_lists(tree) == [[1, 2, 3], [-1, 0, 1], [1, 2, 3, 3], [0, 1, 2]]
    assert list(map(list, tree.neighbours)) == [[1], [2], [1]]


# -- in a network


def scenario(**network: Any) -> Scenario:
    return load_scenario(
        {
            "network": {"brokers": 12, **network},
            "workload": {"kind": "poisson", "users": 30, "topics": 6, "horizon": "2h"},
            "selection": {"kind": "static"},
            "seed": 3,
        }
    ).base


def world(brokers: int) -> Any:
    """A user at each broker who wants two topics of six; all publish on everything; some change their minds."""
    rng = np.random.default_rng(brokers)
    wants = [set(rng.choice(6, 2, replace=False).tolist()) for _ in range(3 * brokers)]
    publications = [(0.25 * n, n % 6, n % len(wants), 10) for n in range(160)]
    events = []
    for n in range(20):
        user = int(rng.integers(len(wants)))
        lost = min(wants[user]) if len(wants[user]) == 2 else None
        if lost is not None and all(event[1] != user for event in events):
            events.append((2.0 * n + 1, user, lost, -1))
    return tiny.workload(wants, publications, events, topics=6, horizon=50.0)


@pytest.mark.parametrize("dissemination", ["tree", "flood"])
@pytest.mark.parametrize("algorithm", DESIGNS)
def test_nobody_relays_and_everything_arrives(algorithm: str, dissemination: str) -> None:
    used = scenario(geometry={"kind": "topic-connected", "design": algorithm, "dissemination": dissemination})
    metrics = simulate(used, world(12), 0).metrics
    assert metrics["external_overhead"] == metrics["lost"] == 0
    if dissemination == "tree":
        assert metrics["duplicates"] == 0
    assert metrics["due"] == metrics["delivered"] + metrics["in_flight"]
    assert metrics["delivered"] > 500
    assert metrics["uplink_messages"] > 0
    assert metrics["bootstrap_messages"] > 0
    assert metrics["reconfiguration_overhead"] % 2 == metrics["bootstrap_messages"] % 2 == 0
    assert metrics["subscription_overhead"] == 0
    if algorithm.startswith("cd"):
        assert metrics["diameter"] <= 2


@pytest.mark.parametrize("dissemination", ["tree", "flood"])
@pytest.mark.parametrize("plane", ["events", "auto"])
def test_what_a_periodic_design_does_not_reach_is_lost_and_counted(dissemination: str, plane: str) -> None:
    """Each topic has few subscribers, so that new ones are often without links until the next design."""
    rng = np.random.default_rng(8)
    wants = [{int(rng.integers(6))} for _ in range(24)]
    events = [event for n in range(24) for event in ((2.0 * n + 1, n, (min(wants[n]) + 1) % 6, +1),)]
    world = tiny.workload(wants, [(0.25 * n, n % 6, n % 24, 10) for n in range(190)], events, topics=6, horizon=50.0)
    said = {"kind": "topic-connected", "design": "gm", "dissemination": dissemination}
    found = {}
    for on_change in ("periodic", "break"):
        table = {**said, "on_change": on_change, **({"period": 10} if on_change == "periodic" else {})}
        found[on_change] = simulate(scenario(geometry=table, data_plane=plane), world, 0).metrics
        assert found[on_change]["external_overhead"] == 0
    late, at_once = found["periodic"], found["break"]
    assert late["due"] == late["delivered"] + late["lost_unreachable"] + late["in_flight"]
    assert late["lost_unreachable"] == late["lost"] > 0
    assert at_once["lost"] == 0
    assert late["due"] == pytest.approx(at_once["due"], rel=0.02)
    assert late["reconfiguration_overhead"] > 0
    assert late["subscription_overhead"] == at_once["subscription_overhead"] == 0


def test_both_planes_lose_the_same() -> None:
    table = {"kind": "topic-connected", "design": "dcb-m", "on_change": "periodic", "period": 7}
    runs = [
        simulate(scenario(geometry=table, data_plane=plane), world(12), 0).metrics for plane in ("events", "folded")
    ]
    assert runs[0] == runs[1]


def test_the_metrics_of_a_network_are_those_of_its_links() -> None:
    network = build(scenario(geometry={"kind": "topic-connected", "design": "gm"}), world(12), 0)
    network.run()
    found = network.metrics()
    overlay = network.setting.overlay
    wants = [set(row) for row in rows(overlay.interests)]
    edges = [(int(u), int(v)) for u, v in overlay.edges() if u < v]
    degrees = oracle.degrees(12, edges)
    spans = list(oracle.topic_diameters(wants, edges).values())
    assert (found["edges"], found["maximum_degree"]) == (len(edges), max(degrees))
    assert found["average_degree"] == pytest.approx(np.mean(degrees))
    assert (found["diameter"], found["mean_topic_diameter"]) == (max(spans), pytest.approx(np.mean(spans)))


def test_other_geometries_have_degrees_but_no_diameters_of_topics() -> None:
    metrics = simulate(scenario(geometry={"kind": "full-mesh"}), world(12), 0).metrics
    assert (metrics["edges"], metrics["average_degree"], metrics["maximum_degree"]) == (66, 11.0, 11)
    assert metrics["diameter"] is metrics["mean_topic_diameter"] is None


def test_joins_by_message_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r'network\.join: "message" asks .* kind "topic-connected" has a tree'):
        build(scenario(geometry={"kind": "topic-connected"}, join="message"), world(12), 0)


# -- parameters


@pytest.mark.parametrize(("given", "exact"), [(1.1, "11/10"), ("3/2", "3/2"), (2, "2"), ("1.25", "5/4")])
def test_k_is_an_exact_fraction(given: Any, exact: str) -> None:
    used = scenario(geometry={"kind": "topic-connected", "k": given})
    assert used.network.geometry.parameters.k == Fraction(exact)
    assert used.network.geometry.dump()["k"] == exact


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.5, r"k: .*greater than or equal to 1|k: .*at least 1"),
        ("1/0", r"k: .*a number such as 1\.5 or '3/2'"),
        (True, r"k: .*a number such as 1\.5 or '3/2'"),
    ],
)
def test_a_k_that_cannot_be(given: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario(geometry={"kind": "topic-connected", "k": given})
