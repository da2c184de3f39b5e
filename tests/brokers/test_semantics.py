"""What exactly happens and when: tiny stories on drawn networks. Every hop takes 1 s unless said; brokers have their node's number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tiny
from oracles.draws import uniform
from tiny import run

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.brokers.network import Network
from sim.policies.selection.fixed import LocationSelection
from sim.policies.selection.similarity import SimilaritySelection
from sim.policies.views import Selection, SelectionSetting, SelectionView

SUB, UNSUB = +1, -1
LINE = [(0, 1), (1, 2), (2, 3)]


def log(network: Network, *columns: str) -> list[tuple[Any, ...]]:
    """The trace as rows, in the order in which messages arrived."""
    trace = network.tables()["trace"]
    assert trace is not None
    return list(zip(*(trace[name] for name in columns), strict=True))


def hops(network: Network) -> list[tuple[Any, ...]]:
    return log(network, "publication", "sent", "received", "source", "destination", "kind", "due")


def control_times(network: Network) -> list[float]:
    """Notes when a control message is sent, while the network runs."""
    times: list[float] = []
    links = network.control._fabric.links
    arrival = links.arrival

    def spy(now: float, source: int, destination: int, identity: int) -> float:
        if identity < 0:
            times.append(now)
        return arrival(now, source, destination, identity)

    links.arrival = spy
    return times


def transitions(network: Network) -> list[tuple[float, int, int, int]]:
    """Notes (time, topic, broker, ±1) whenever a broker begins or ceases to want a topic, while the network runs."""
    seen: list[tuple[float, int, int, int]] = []
    subscriptions = network.subscriptions
    transition = subscriptions._transition

    def spy(topic: int, broker: int, change: int) -> None:
        seen.append((network.clock.now, topic, broker, change))
        transition(topic, broker, change)

    subscriptions._transition = spy
    return seen


class Asked:
    """Selection that stays put and remembers what it was asked."""

    exchange = None
    reacts_to = frozenset({"subscription", "movement"})

    def __init__(self, decide: Callable[[SelectionView], int]) -> None:
        self.decide, self.views = decide, []

    def select(self, view: SelectionView) -> Selection:
        if view.current >= 0:
            self.views.append(view)
        return Selection(self.decide(view))


# -- publications


def test_a_publication_climbs_to_the_root_and_descends_the_tree() -> None:
    """
    publisher at 0, root R, subscribers S, relay r:

        0 ── 1 ── 2 ── 3
        S    R    r    S
    """
    world = tiny.workload([{0}, {0}], [(1.0, 0, 0, 100)])
    network = tiny.network(world, tiny.graph(LINE, [1]), [0, 3])
    metrics = run(network)
    assert hops(network) == [
        (0, 1.0, 2.0, 0, 1, "uplink", False),
        (0, 2.0, 3.0, 1, 0, "tree", True),
        (0, 2.0, 3.0, 1, 2, "tree", False),
        (0, 3.0, 4.0, 2, 3, "tree", True),
    ]
    assert {name: metrics[name] for name in ("due", "delivered", "internal_overhead", "external_overhead")} == {
        "due": 2,
        "delivered": 2,
        "internal_overhead": 2,
        "external_overhead": 1,
    }
    assert metrics["uplink_messages"] == metrics["uplink_hops"] == 1
    assert metrics["notification_delay"] == pytest.approx((2 + 3) / 2)
    assert metrics["tree_delay"] == metrics["tree_hops"] == pytest.approx((1 + 2) / 2)
    assert (metrics["notification_bytes"], metrics["uplink_bytes"]) == (300, 100)
    assert network.tables()["brokers"]["relayed"].tolist() == [0, 0, 1, 0]


def test_delays_of_centuries_add_up() -> None:
    """1,200 publications take 8e9 s each, the longest run has 9e9 s: together more than 2^63 of the parts that are summed first."""
    world = tiny.workload([(), {0}], [(float(n), 0, 0, 100) for n in range(1200)], horizon=9e9)
    network = tiny.network(world, tiny.graph(LINE, [0]), [0, 1], hop=8e9, window=1e9, trace=False)
    metrics = run(network)
    assert (metrics["delivered"], metrics["notification_delay"], metrics["tree_delay"]) == (1200, 8e9, 8e9)
    assert metrics["user_notification_delay"] == 8e9


def test_a_root_that_subscribes_is_served_when_the_publication_leaves_it() -> None:
    """
    0 ── 1     publisher at 0, root and only subscriber at 1
         RS
    """
    world = tiny.workload([set(), {0}, {0}], [(1.0, 0, 0, 1)])
    metrics = run(tiny.network(world, tiny.graph([(0, 1)], [1]), [0, 1, 1]))
    assert (metrics["due"], metrics["delivered"], metrics["notification_overhead"]) == (1, 1, 0)
    assert (metrics["notification_delay"], metrics["tree_delay"], metrics["path_stretch"]) == (1.0, 0.0, 1.0)


def test_what_nobody_wants_ends_at_the_root() -> None:
    """
    0 ── 1     publisher at 0, root 1, nobody subscribes
    """
    network = tiny.network(tiny.workload([set()], [(1.0, 0, 0, 1)]), tiny.graph([(0, 1)], [1]), [0])
    metrics = run(network)
    assert hops(network) == [(0, 1.0, 2.0, 0, 1, "uplink", False)]
    assert (metrics["publications"], metrics["due"], metrics["uplink_hops"]) == (1, 0, 1.0)
    assert metrics["delivery_ratio"] is metrics["notification_delay"] is metrics["path_stretch"] is None


def test_publications_from_outside_enter_at_a_broker_that_depends_on_the_publication_alone() -> None:
    """
    0 ── 1 ── 2 ── 3     root 0
    """
    times = [float(t) for t in range(8)]
    networks = [
        tiny.network(tiny.workload([wants], [(t, 0, -1, 1) for t in times]), tiny.graph(LINE, [0]), [host])
        for wants, host in (({0}, 1), (set(), 3))
    ]
    entered = []
    for network in networks:
        run(network)
        first = {
            number: (source, sent) for number, sent, _, source, _, kind, _ in hops(network)[::-1] if kind == "uplink"
        }
        entered.append([first.get(number, (0, t))[0] for number, t in enumerate(times)])
    key = Streams(1).key("outside publishers")
    assert entered[0] == entered[1] == [int(uniform(key, number) * 4) for number in range(8)]


def test_a_publisher_publishes_at_the_broker_that_hosts_it_then() -> None:
    """
    0 ── 1 ── 2     root 1; the publisher hands over from 0 to 2 at 3 s and publishes at 2 s and at 3 s
    """
    world = tiny.workload([set()], [(2.0, 0, 0, 1), (3.0, 0, 0, 1)], movements=[(3.0, 0, 0.0, 0.0)])
    network = tiny.network(world, tiny.graph(LINE[:2], [1]), tiny.Scripted([0], {(3.0, 0): 2}))
    run(network)
    assert log(network, "sent", "source") == [(2.0, 0), (3.0, 2)]


# -- who is due


@pytest.mark.parametrize(("action", "wants", "due"), [(SUB, set(), 1), (UNSUB, {0}, 0)])
@pytest.mark.parametrize("publisher", [0, 1])
def test_a_change_at_the_instant_at_which_a_publication_leaves_the_root_comes_first(
    action: int, wants: set[int], due: int, publisher: int
) -> None:
    """
    0 ── 1     root 0; the user at 1 changes its mind at 2 s

    Published at 2 s at the root, or at 1 s one hop away: both leave the root at 2 s.
    """
    published = 2.0 if publisher == 0 else 1.0
    world = tiny.workload([set(), wants], [(published, 0, publisher, 1)], [(2.0, 1, 0, action)])
    network = tiny.network(world, tiny.graph([(0, 1)], [0]), [0, 1])
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"]) == (due, due)


@pytest.mark.parametrize("plane", ["events", "folded"])
@pytest.mark.parametrize("horizon", [10.0, 1000.0])
def test_a_change_comes_first_at_its_instant_however_much_was_published_before(plane: str, horizon: float) -> None:
    """
    0 ── 1     root 0; the user at 1 leaves at 5 s

    Published at the root at 3 and 5 s, and a hop away at 2, 4 and 4.5 s: three of these leave the root at 5 s or later.
    """
    published = [(2.0, 0, 1, 1), (3.0, 0, 0, 1), (4.0, 0, 1, 1), (4.5, 0, 1, 1), (5.0, 0, 0, 1)]
    world = tiny.workload([set(), {0}], published, [(5.0, 1, 0, UNSUB)], horizon=horizon)
    metrics = run(tiny.network(world, tiny.graph([(0, 1)], [0]), [0, 1], plane=plane, trace=False))
    assert (metrics["due"], metrics["delivered"]) == (2, 2)


def test_a_subscriber_that_leaves_changes_nothing_for_what_is_on_its_way() -> None:
    """
    0 ── 1 ── 2 ── 3     root 0, subscriber at 3 leaves at 2 s, when the publication of 0 s is between 2 and 3
    R              S

    That of 1.5 s is between 0 and 1 then and is due as well; that of 2 s is due to nobody.
    """
    world = tiny.workload([set(), {0}], [(t, 0, 0, 1) for t in (0.0, 1.5, 2.0)], [(2.0, 1, 0, UNSUB)])
    network = tiny.network(world, tiny.graph(LINE, [0]), [0, 3])
    metrics = run(network)
    assert [row for row in log(network, "publication", "received", "due") if row[2]] == [(0, 3.0, True), (1, 4.5, True)]
    assert (metrics["due"], metrics["delivered"]) == (2, 2)
    assert len(network.setting.overlay.tree(0, 0)) == 0


# -- trees that change by messages


def test_what_is_due_before_the_answer_of_the_root_is_back_is_lost_as_joining() -> None:
    """
    0 ── 1 ── 2     root 0; the user at 2 subscribes at 1 s: request 2 → 1 → 0, answer 0 → 1 → 2, there at 5 s
    R         S

    At 5 s publications come before arrivals, so that the one of 5 s is still too early.
    """
    times = [0.5, 1.0, 4.0, 5.0, 5.25]
    world = tiny.workload([set(), set()], [(t, 0, 0, 1) for t in times], [(1.0, 1, 0, SUB)])
    network = tiny.network(world, tiny.graph(LINE[:2], [0]), [0, 2], join="message")
    sent = control_times(network)
    metrics = run(network)
    assert sent == [1.0, 2.0, 3.0, 4.0]
    assert (metrics["due"], metrics["delivered"], metrics["lost_joining"]) == (4, 1, 3)
    assert metrics["delivery_ratio"] == 0.25
    assert log(network, "publication", "received", "due") == [(4, 6.25, False), (4, 7.25, True)]
    assert metrics["subscription_overhead"] == 4


def test_a_broker_that_leaves_is_a_relay_until_the_answer_is_back() -> None:
    """
    0 ── 1 ── 2     root 0; the user at 2 unsubscribes at 1 s, the branch goes at 5 s
    R         S
    """
    world = tiny.workload([set(), {0}], [(t, 0, 0, 1) for t in (2.0, 5.5)], [(1.0, 1, 0, UNSUB)])
    network = tiny.network(world, tiny.graph(LINE[:2], [0]), [0, 2], join="message")
    metrics = run(network)
    assert log(network, "publication", "destination", "due") == [(0, 1, False), (0, 2, False)]
    assert (metrics["due"], metrics["internal_overhead"], metrics["external_overhead"]) == (0, 0, 2)


def test_a_relay_that_joins_is_on_the_tree_already() -> None:
    """
    0 ── 1 ── 2     root 0, subscriber at 2; a user at 1 subscribes at 1 s, its answer is back at 3 s
    R    s    S
    """
    world = tiny.workload([set(), set(), {0}], [(1.5, 0, 0, 1)], [(1.0, 1, 0, SUB)])
    metrics = run(tiny.network(world, tiny.graph(LINE[:2], [0]), [0, 1, 2], join="message"))
    assert (metrics["due"], metrics["delivered"], metrics["lost_joining"]) == (2, 2, 0)


@pytest.mark.parametrize("join", ["instant", "message"])
@pytest.mark.parametrize(("count", "messages"), [("hops", 4 + 0), ("requests", 2 + 2)])
def test_a_join_counts_as_its_hops_or_as_two_messages(join: str, count: str, messages: int) -> None:
    """
    0 ── 1 ── 2     root 0; users at 2 and at 0 subscribe

    At the root itself there is no hop, but by requests it counts as two messages like any other.
    """
    world = tiny.workload([set(), set()], events=[(1.0, 0, 0, SUB), (1.0, 1, 0, SUB)])
    network = tiny.network(world, tiny.graph(LINE[:2], [0]), [2, 0], join=join, control_count=count)
    metrics = run(network)
    assert metrics["subscription_overhead"] == messages
    assert metrics["broker_subscription_changes"] == 2
    assert network.setting.overlay.tree(0, 0).nodes.tolist() == [0, 1, 2]


# -- brokers that take time


def test_a_full_queue_loses_what_is_due_at_the_broker_and_below_it() -> None:
    """
    topic 0 from root 0 and topic 1 from root 1, wanted at 2 and 3; a broker needs 2 s for a message, nobody may wait

        0 ── 2 ── 3        published at 0 s at both roots, served at 2 s, at broker 2 at 3 s
        1 ───┘             topic 0 is first and is on to 3 at 5 s; topic 1 is lost for 2 and for 3
    """
    world = tiny.workload([set(), set(), {0, 1}, {0, 1}], [(0.0, 0, 0, 1), (0.0, 1, 1, 1)], topics=2)
    network = tiny.network(
        world,
        tiny.graph([(0, 2), (1, 2), (2, 3)], [0, 1]),
        [0, 1, 2, 3],
        service="deterministic",
        service_time=2.0,
        queue=0,
    )
    metrics = run(network)
    assert hops(network) == [(0, 2.0, 3.0, 0, 2, "tree", True), (0, 5.0, 6.0, 2, 3, "tree", True)]
    assert (metrics["due"], metrics["delivered"], metrics["lost_queue_full"]) == (4, 2, 2)
    assert metrics["notification_overhead"] == 3  # that which was lost had been sent
    assert network.tables()["brokers"]["queue_full"] == [0, 0, 1, 0]


def test_what_a_full_queue_on_the_way_up_drops_is_due_there_and_then_and_lost() -> None:
    """
    0     root and only broker: serves one in 2 s, one may wait; the third and fourth of 4 publications find the queue full
    RS
    """
    world = tiny.workload([{0}], [(t, 0, 0, 1) for t in (0.0, 0.5, 1.0, 1.5)])
    network = tiny.network(world, tiny.graph([], [0]), [0], service="deterministic", service_time=2.0, queue=1)
    metrics = run(network)
    assert (metrics["publications"], metrics["publications_dropped"], metrics["due"], metrics["lost"]) == (4, 2, 4, 2)
    assert (metrics["lost_queue_full"], metrics["delivery_ratio"]) == (2, 0.5)
    assert metrics["notification_delay"] == pytest.approx((2.0 + 3.5) / 2)
    assert metrics["queue_wait"] == pytest.approx((0.0 + 1.5) / 2)
    assert metrics["utilisation"] == pytest.approx(4.0 / 10)
    assert network.tables()["brokers"]["queue_length"] == pytest.approx([1.5 / 10])


def test_control_messages_are_served_ahead_of_publications_that_wait() -> None:
    """
    0 ── 1 ── 2     root 0, 2 s of service; publications at 1 at 0 s and at 0.5 s
    R

    The join that 2 sends at 0.5 s is at 1 at 1.5 s: served from 2 s to 4 s, before the publication that has waited since 0.5 s.
    """
    world = tiny.workload([set(), set()], [(0.0, 0, 0, 1), (0.5, 0, 0, 1)], [(0.5, 1, 0, SUB)])
    network = tiny.network(
        world,
        tiny.graph(LINE[:2], [0]),
        [1, 2],
        join="message",
        service="deterministic",
        service_time=2.0,
        queue=1,
    )
    sent = control_times(network)
    run(network)
    assert log(network, "publication", "sent", "received", "kind") == [(0, 2.0, 3.0, "uplink"), (1, 6.0, 7.0, "uplink")]
    assert sent[:3] == [0.5, 4.0, 7.0]  # at the root at 5 s, served from 5 s to 7 s


def test_messages_stay_in_order_on_a_link_with_jitter() -> None:
    """
    0 ── 1     publisher at 1, root 0: 50 publications, 0.05 s apart, over one link with a lot of jitter
    """
    world = tiny.workload([set()], [(0.05 * n, 0, 0, 1) for n in range(50)], horizon=1e6)
    network = tiny.network(world, tiny.graph([(0, 1)], [0]), [1], jitter=1.5)
    run(network)
    rows = log(network, "publication", "received", "sent")
    assert [number for number, *_ in rows] == list(range(50))
    received = [time for _, time, _ in rows]
    assert received == sorted(received)
    assert len(set(received)) < 50  # some would have overtaken, and came with the one before
    assert len({time - sent for _, time, sent in rows}) > 5


# -- users


def test_the_changes_of_a_user_at_one_instant_are_one_update_and_one_question() -> None:
    """
    0 ── 1     the user at 0 gives up topic 0 for topics 1 and 2, moves, and hands over to 1, all at 4 s
    """
    world = tiny.workload(
        [{0}],
        events=[(4.0, 0, 1, SUB), (4.0, 0, 0, UNSUB), (4.0, 0, 2, SUB)],
        movements=[(4.0, 0, 5.0, 6.0)],
        topics=3,
    )
    policy = Asked(lambda view: 0 if view.current < 0 else 1)
    network = tiny.network(world, tiny.graph([(0, 1)], [0, 0, 0]), policy)
    seen = transitions(network)
    metrics = run(network)
    (view,) = policy.views
    assert (view.topics.tolist(), view.latitude, view.longitude) == ([1, 2], 5.0, 6.0)
    assert (view.own_wanted.tolist(), view.own_topics, view.own_load, view.own_users) == ([0, 0], 0, 0, 0)
    assert seen[1:] == [(4.0, 1, 1, +1), (4.0, 2, 1, +1), (4.0, 0, 0, -1)]
    assert (metrics["handovers"], metrics["handover_messages"], metrics["broker_subscription_changes"]) == (1, 4, 3)


def test_a_change_and_its_reverse_at_one_instant_cause_nothing() -> None:
    """
    0 ── 1     the user at 1 subscribes and unsubscribes at 4 s
    """
    world = tiny.workload([set()], events=[(4.0, 0, 0, SUB), (4.0, 0, 0, UNSUB)])
    metrics = run(tiny.network(world, tiny.graph([(0, 1)], [0]), [1]))
    assert metrics["broker_subscription_changes"] == metrics["subscription_overhead"] == 0


def test_a_handover_to_another_place_keeps_a_wanted_topic_on_the_tree() -> None:
    """
    0 ── 1 ── 2     root 0; user 0 travels from the place of 1 to that of 2, and back; user 1 stays at 2

    Both want topic 0. At 3 s broker 2 has it already and only 1 gives it up; at 6 s only 1 begins, and 2 keeps it for user 1.
    """
    latitude, longitude = np.zeros(3), np.array([0.0, 10.0, 20.0])
    where = SelectionSetting(2, latitude, longitude, None, key=1, capacity=np.ones(3))
    policy = LocationSelection(LocationSelection.Parameters(), where)
    world = tiny.workload(
        [{0}, {0}],
        movements=[(0.0, 0, 0.0, 11.0), (0.0, 1, 0.0, 19.0), (3.0, 0, 0.0, 21.0), (6.0, 0, 0.0, 9.0)],
    )
    network = tiny.network(world, tiny.graph(LINE[:2], [0]), policy)
    seen = transitions(network)
    run(network)
    assert network.users.host.tolist() == [1, 2]
    assert [row for row in seen if row[0] > 0] == [(3.0, 0, 1, -1), (6.0, 0, 1, +1)]


def test_a_user_is_added_at_the_new_broker_before_it_is_removed_at_the_old() -> None:
    """
    0 ── 1 ── 2     root 0; the only subscriber hands over from 1 to 2 at 3 s: relay 1 never leaves the tree
    """
    world = tiny.workload([{0}], movements=[(3.0, 0, 0.0, 0.0)])
    network = tiny.network(world, tiny.graph(LINE[:2], [0]), tiny.Scripted([1], {(3.0, 0): 2}))
    seen = transitions(network)
    metrics = run(network)
    assert seen[1:] == [(3.0, 0, 2, +1), (3.0, 0, 1, -1)]
    assert metrics["subscription_overhead"] == 4 + 2
    assert network.setting.overlay.tree(0, 0).nodes.tolist() == [0, 1, 2]


def test_other_brokers_are_seen_as_of_the_last_exchange() -> None:
    """
    0   1     one cluster, states exchanged every 2 s

    At 1 s a user at 1 begins to want topic 1. At 1.5 s user 0, at 0, changes to topic 1 and does not know of it; at 2 s brokers tell
    each other, and at the same instant, but after that, its next change takes it there.
    """
    policy = SimilaritySelection(
        SimilaritySelection.Parameters(update_period=2.0, cluster_size=2, load_weight=0.0),
        SelectionSetting(3, np.full(2, np.nan), np.full(2, np.nan), None, key=1, capacity=np.ones(2)),
    )
    joins = {0: 0, 1: 1, 2: 1}
    select = policy.select
    policy.select = lambda view: Selection(joins[view.user]) if view.current < 0 else select(view)
    world = tiny.workload(
        [{0}, {2}, {2}],
        events=[(1.0, 1, 1, SUB), (1.5, 0, 0, UNSUB), (1.5, 0, 1, SUB), (2.0, 0, 3, SUB)],
        topics=4,
    )
    network = tiny.network(world, tiny.graph([(0, 1)], [0, 0, 0, 0]), policy)
    metrics = run(network)
    assert network.tables()["decisions/selection"]["time"].tolist() == [0.0, 0.0, 0.0, 2.0]
    assert network.users.host.tolist() == [1, 1, 1]
    assert metrics["handovers"] == 1
    exchanged = 4 * 2  # at 2, 4, 6 and 8 s, one message each way
    joined = 2 + 2  # broker 1 joins the trees of topics 1 and 3; broker 0 is the root of all
    assert metrics["subscription_overhead"] == exchanged + joined


def test_a_change_that_cannot_be_is_an_error_that_names_the_row() -> None:
    world = tiny.workload([{0}], events=[(1.0, 0, 0, UNSUB), (2.0, 0, 0, UNSUB)])
    with pytest.raises(WorkloadError, match=r"row 1: user 0 unsubscribes from topic 0 but does not want it"):
        run(tiny.network(world, tiny.graph([], [0]), [0]))


# -- measures


def test_what_comes_before_the_warm_up_counts_for_nothing() -> None:
    """
    0 ── 1 ── 2     root 0, warm-up 2 s; publications at 1.5 s and 2 s at the root; the user at 2 joins at 0.5 s by messages
    R    S    s

    The publication of 1.5 s arrives after the warm-up and still does not count. Of the join's messages (0.5, 1.5, 2.5, 3.5 s) two do.
    """
    world = tiny.workload(
        [set(), {0}, set()], [(1.5, 0, 0, 7), (2.0, 0, 0, 8)], [(0.5, 2, 0, SUB)], movements=[(1.0, 0, 0.0, 0.0)]
    )
    network = tiny.network(
        world,
        tiny.graph(LINE[:2], [0]),
        tiny.Scripted([1, 1, 2], {(1.0, 0): 0}),
        join="message",
        warm_up=2.0,
    )
    metrics = run(network)
    assert log(network, "publication", "received", "due") == [(0, 2.5, True), (1, 3.0, True)]
    assert (metrics["publications"], metrics["due"], metrics["delivered"], metrics["lost_joining"]) == (1, 2, 1, 1)
    assert metrics["notification_bytes"] == 8
    assert (metrics["handovers"], metrics["broker_subscription_changes"]) == (0, 0)
    assert (metrics["bootstrap_messages"], metrics["subscription_overhead"]) == (2, 2)
    assert network.tables()["links"]["messages"].tolist() == [1]
    assert network.tables()["brokers"]["delivered"].tolist() == [0, 1, 0]


def test_windows_are_cut_at_the_warm_up_and_hold_what_was_published_in_them() -> None:
    """
    0 ── 1     root 0, subscriber at 1; windows of 3 s, warm-up 4 s, horizon 10 s
    R    S

    A delivery counts where its publication does: that of 5.5 s arrives in the next window.
    """
    world = tiny.workload([set(), {0}], [(t, 0, 0, 1) for t in (0.0, 2.9, 3.0, 5.5, 9.5)])
    network = tiny.network(world, tiny.graph([(0, 1)], [0]), [0, 1], window=3.0, warm_up=4.0)
    metrics = run(network)
    series = network.recorder.timeseries()
    assert list(zip(series["start"], series["end"], series["warm_up"], strict=True)) == [
        (0.0, 3.0, True),
        (3.0, 4.0, True),
        (4.0, 6.0, False),
        (6.0, 9.0, False),
        (9.0, 10.0, False),
    ]
    assert series["publications"] == [2, 1, 1, 0, 1]
    assert series["delivered"] == [2, 1, 1, 0, 0]
    assert series["in_flight"] == [0, 0, 0, 0, 1]
    assert series["notification_delay_sum"] == [2.0, 1.0, 1.0, 0.0, 0.0]
    assert series["notification_delay"] == [1.0, 1.0, 1.0, None, None]
    assert (metrics["publications"], metrics["delivered"], metrics["in_flight"]) == (2, 1, 1)


@pytest.mark.parametrize(("horizon", "width"), [(0.1 + 0.2, 0.1), (2.4000000000000004, 0.1), (10.0, 1e9)])
def test_every_window_has_a_width(horizon: float, width: float) -> None:
    """
    0     windows whose width is no binary fraction: rounding must not leave an empty one at the end
    """
    network = tiny.network(tiny.workload([{0}], horizon=horizon), tiny.graph([], [0]), [0], window=width)
    run(network)
    series = network.recorder.timeseries()
    assert (np.subtract(series["end"], series["start"]) > 0).all()
    assert series["end"][-1] == horizon


def test_the_horizon_cuts_what_is_on_links_in_queues_and_on_its_way_up() -> None:
    """
    0 ── 1 ── 2 ── 3     root 1, subscribers at 1, 2 and 3; 1 s of service, horizon 5.5 s; published at 0
         RS   S    S

    Publication 0 (0 s) is at the root at 2 s, leaves it at 3 s, is at 2 at 4 s, served there until 5 s, on its way to 3 at the end.
    Publication 1 (1 s) leaves the root at 4 s, is at 2 at 5 s and in service there at the end: neither 2 nor 3 has it. 2 (4 s) is on
    its way up, to all three.
    """
    world = tiny.workload([set(), {0}, {0}, {0}], [(t, 0, 0, 1) for t in (0.0, 1.0, 4.0, 5.5, 6.0)])
    network = tiny.network(
        world, tiny.graph(LINE, [1]), [0, 1, 2, 3], horizon=5.5, service="deterministic", service_time=1.0
    )
    metrics = run(network)
    assert [row for row in hops(network) if row[5] == "tree"] == [
        (0, 3.0, 4.0, 1, 2, "tree", True),
        (1, 4.0, 5.0, 1, 2, "tree", True),
    ]
    assert (metrics["publications"], metrics["due"], metrics["delivered"], metrics["in_flight"]) == (3, 9, 3, 6)
    assert (metrics["uplink_messages"], metrics["notification_overhead"]) == (3, 3)


def test_the_delay_histogram_is_that_of_the_trace() -> None:
    """
    0 ── 1 ── 2 ── 3     root 0, two users at 1, one at 3; hops take 0.3 s
    R    SS        S
    """
    world = tiny.workload([set(), {0}, {0}, {0}], [(t, 0, 0, 1) for t in (0.0, 1.0, 2.0)])
    network = tiny.network(world, tiny.graph(LINE, [0]), [0, 1, 1, 3], hop=0.3)
    metrics = run(network)
    delays = sorted(
        received - number for number, received, due in log(network, "publication", "received", "due") if due
    )
    table = network.recorder.delays()
    assert table["brokers"].tolist() == [3, 3]
    assert table["users"].tolist() == [6, 3]
    for lower, upper, some in zip(table["lower"], table["upper"], (delays[:3], delays[3:]), strict=True):
        assert upper - lower == 2.0 ** (math.floor(math.log2(lower)) - 7)  # 128 bins between powers of two
        assert all(lower <= delay < upper for delay in some)
    assert metrics["notification_delay_p50"] == pytest.approx(0.3, rel=0.004)
    assert metrics["notification_delay_p95"] == pytest.approx(0.9, rel=0.004)
    assert metrics["notification_delay_max"] == max(delays)
    assert metrics["user_notification_delay"] == pytest.approx((6 * 0.3 + 3 * 0.9) / 9)


def test_path_stretch_compares_with_the_direct_hop_from_the_publishers_broker() -> None:
    """
    0 ── 1 ── 2     root 0; publisher and a subscriber at 2, another at 1; the direct hop 2 → 1 takes 2 s, the others 1 s
    R    S    S

    2 → 1 → 0 → 1 is 2 + 1 + 1 = 4 s against 2 s. The subscriber at the publisher's own broker has no direct hop to compare with.
    """
    hop = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    world = tiny.workload([{0}, {0}], [(0.0, 0, 0, 1)])
    metrics = run(tiny.network(world, tiny.graph(LINE[:2], [0]), [2, 1], hop=hop))
    assert metrics["delivered"] == 2
    assert metrics["path_stretch"] == pytest.approx(2.0)


def test_load_is_averaged_over_time() -> None:
    """
    0   1     user 0 (two topics) at 0, user 1 (two topics) at 1; at 4 s user 1 hands over to 0

    Shares (½, ½) for 4 s, then (1, 0) for 6 s: standard deviation over mean 0 and 1, Jain's index 1 and ½.
    """
    world = tiny.workload([{0, 1}, {0, 1}], movements=[(4.0, 1, 0.0, 0.0)], topics=2)
    network = tiny.network(world, tiny.graph([(0, 1)], [0, 0]), tiny.Scripted([0, 1], {(4.0, 1): 0}))
    metrics = run(network)
    assert metrics["load_stddev"] == pytest.approx(0.6)
    assert metrics["load_jain"] == pytest.approx(0.4 * 1 + 0.6 * 0.5)
    assert network.tables()["brokers"]["subscriptions"] == pytest.approx([0.4 * 2 + 0.6 * 4, 0.4 * 2])
    assert network.tables()["brokers"]["users"] == pytest.approx([0.4 * 1 + 0.6 * 2, 0.4 * 1])
