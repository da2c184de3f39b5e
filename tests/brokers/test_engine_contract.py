"""The contract of all engines (sim.brokers.data.engine), for all rules, ways of joining trees, and ends of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import tiny

from sim.brokers.data.compiled.engine import CompiledEngine
from sim.brokers.data.events import EventEngine
from sim.brokers.data.folded import FoldedEngine
from sim.brokers.fabric.clock import CHANGES, PUBLICATIONS
from sim.brokers.network import Network
from sim.overlay.geometry import GeometrySetting
from sim.overlay.topic_connected.geometry import TopicConnected

LINE = [(0, 1), (1, 2), (2, 3)]  # brokers 0 to 3, a hop takes 1 s; all want topic 0, whose root is broker 1
PUBLISHED = (1.0, 1.0, 1.5, 4.0)  # s, by users 0, 3, 0 and 2
PUBLISHERS = (0, 3, 0, 2)
ENGINES = {
    ("tree", "events"): EventEngine,
    ("tree", "compiled"): CompiledEngine,
    ("tree", "folded"): FoldedEngine,
    ("content", "events"): EventEngine,
    ("content", "compiled"): CompiledEngine,
    ("content", "folded"): EventEngine,
    ("flood", "events"): EventEngine,
    ("flood", "compiled"): CompiledEngine,
}


def cases() -> Iterator[Any]:
    for (rule, plane), engine in ENGINES.items():
        for join in ("instant", "message"):
            if rule != "flood" or join == "instant":  # a flood's links follow interests, nobody asks a root
                yield pytest.param(rule, plane, join, id=f"{rule}-{engine.__name__}-{join}")


every_engine = pytest.mark.parametrize(("rule", "plane", "join"), list(cases()))
anywhere = pytest.mark.parametrize("horizon", [1.0, 1.2, 1.5, 2.0, 3.5, 5.0, 100.0])


def network(rule: str, plane: str, join: str, horizon: float = 20.0, **setting: Any) -> Network:
    """A user at each of four brokers, all of whom want everything that is published."""
    setting = {"plane": plane, "join": join, "horizon": horizon, "trace": False, **setting}
    if rule == "content":
        rows = [(time, who, 100, [1]) for time, who in zip(PUBLISHED, PUBLISHERS, strict=True)]
        world = tiny.content([(user, {0: 1}) for user in range(4)], rows, users=4, horizon=50.0)
        topics = len(world.topics)
    else:
        rows = [(time, 0, who, 100) for time, who in zip(PUBLISHED, PUBLISHERS, strict=True)]
        world, topics = tiny.workload([{0}] * 4, rows, horizon=50.0), 1
    if rule == "flood":
        overlay: Any = TopicConnected(
            TopicConnected.Parameters(design="gm", dissemination="flood"),
            GeometrySetting(4, topics, 1, round_trips=np.where(np.eye(4), 0.0, 1.0)),
        )
    else:
        overlay = tiny.graph(LINE, [1] * topics)
    made = tiny.network(world, overlay, [0, 1, 2, 3], **setting)
    assert isinstance(made.engine, ENGINES[rule, plane])
    return made


def joined(*case: Any, **setting: Any) -> Network:
    """A network that all users have joined, and on which nothing is published but by the test."""
    made = network(*case, **setting)
    made.users.join_all()
    made.control.adjust()
    made.control.bootstrapping = False
    return made


def until(made: Network, time: float) -> None:
    made.clock.run(until=time)
    made.engine.advance(time)


def ended(made: Network) -> dict[str, Any]:
    """The metrics of a run that ends now, at its horizon."""
    made.clock.run(until=made.setting.horizon)
    made.close()
    return made.metrics()


@every_engine
@anywhere
def test_what_is_due_is_delivered_once_or_in_flight(rule: str, plane: str, join: str, horizon: float) -> None:
    made = network(rule, plane, join, horizon)
    made.run()
    metrics = made.metrics()
    published = sum(time < horizon for time in PUBLISHED)
    assert (metrics["publications"], metrics["due"]) == (published, 4 * published)
    assert metrics["delivered"] + metrics["in_flight"] == metrics["due"]
    assert metrics["in_flight"] == 0 or horizon < 10
    assert metrics["delivered"] == 16 or horizon < 10


@every_engine
def test_delays_are_hops_along_the_way(rule: str, plane: str, join: str) -> None:
    made = joined(rule, plane, join)
    until(made, 1.0)
    made.engine.publish(1, np.array([3], np.int32))
    metrics = ended(made)
    if rule == "flood":  # from broker 3 itself, over the topic's links, which take 1 s each
        assert (metrics["uplink_hops"], metrics["notification_delay"]) == (0, metrics["tree_hops"])
    else:  # up from 3 to 1 in 2 s, there to brokers 0 and 2 in 3 s, and to 3 in 4 s
        assert (metrics["uplink_hops"], metrics["notification_delay_max"]) == (2, 4.0)
        assert metrics["notification_delay"] == (2 + 3 + 3 + 4) / 4


@every_engine
def test_what_is_held_back_to_the_end_is_due_and_in_flight(rule: str, plane: str, join: str) -> None:
    made = joined(rule, plane, join)
    until(made, 1.0)
    made.engine.hold(0, 0)
    metrics = ended(made)
    assert (metrics["publications"], metrics["due"], metrics["in_flight"], metrics["delivered"]) == (1, 4, 4, 0)


@every_engine
def test_delays_of_what_was_released_count_from_publication(rule: str, plane: str, join: str) -> None:
    late, once = joined(rule, plane, join), joined(rule, plane, join)
    until(late, 1.0)
    late.engine.hold(0, 0)
    until(late, 4.0)
    late.engine.release(0)
    late.engine.release(3)  # which holds nothing back
    until(once, 1.0)
    once.engine.publish(0, np.array([0], np.int32))
    waited, at_once = ended(late), ended(once)
    assert waited["delivered"] == at_once["delivered"] == 4
    assert waited["notification_delay"] == at_once["notification_delay"] + 3.0
    assert waited["tree_delay"] == at_once["tree_delay"]


@every_engine
def test_what_leaves_its_root_goes_by_what_holds_then(rule: str, plane: str, join: str) -> None:
    """Broker 0's publications leave their root after 1 s on a tree, at once where they are flooded."""
    if rule == "content":
        pytest.skip("subscriptions to content do not change")
    leaves = 1.0 if rule == "flood" else 2.0
    for change, due in ((leaves - 0.25, 3), (leaves, 3), (leaves + 0.25, 4)):
        made = joined(rule, plane, join)

        def unsubscribe(made: Network = made) -> None:
            made.engine.advance(made.clock.now)
            made.users._update(3, [])
            made.control.changed()

        made.clock.call(change, CHANGES, unsubscribe)
        made.clock.call(1.0, PUBLICATIONS, partial(made.engine.publish, 0, np.array([0], np.int32)))
        assert ended(made)["due"] == due


@every_engine
def test_whoever_waits_for_an_idle_network_is_called_once_when_the_last_copy_has_arrived(
    rule: str, plane: str, join: str
) -> None:
    made, called = joined(rule, plane, join), list[float]()
    made.engine.when_idle(lambda: called.append(made.clock.now))
    until(made, 0.5)
    assert called == [0.0]  # nothing was on its way
    made.clock.run(until=1.0)
    made.engine.publish(1, np.array([3], np.int32))
    made.engine.when_idle(lambda: called.append(made.clock.now))
    made.clock.run(until=19.0)
    metrics = ended(made)
    longest = metrics["notification_delay_max"]
    assert len(called) == 2
    assert called[1] >= 1.0 + longest if rule == "flood" else called[1] == 1.0 + longest  # a duplicate may come later


@every_engine
def test_whoever_waits_for_what_was_released_is_called_when_it_has_left_its_root(
    rule: str, plane: str, join: str
) -> None:
    made, called = joined(rule, plane, join), list[float]()
    until(made, 1.0)
    made.engine.hold(0, 0)
    made.engine.hold(1, 3)
    until(made, 5.0)
    made.engine.release(0)
    made.engine.release(3)
    made.engine.when_rooted(lambda: called.append(made.clock.now))
    ended(made)
    assert called == [5.0 if rule == "flood" else 7.0]  # the root is two hops from broker 3


@every_engine
def test_brokers_that_moved_are_reached_where_they_stand_now(rule: str, plane: str, join: str) -> None:
    if rule == "flood":
        pytest.skip("nodes of a topic-connected overlay are brokers, for good")
    made = joined(rule, plane, join)
    until(made, 1.0)
    made.engine.publish(0, np.array([0], np.int32))
    made.clock.run(until=9.0)
    made.engine.advance(9.0)
    made.node_of[:], made.broker_of[:] = [3, 1, 2, 0], [3, 1, 2, 0]  # brokers 0 and 3 have changed places
    made.engine.brokers_moved()
    made.engine.publish(3, np.array([0], np.int32))
    ended(made)
    delays = made.tables()["links"]
    used = set(zip(delays["source"].tolist(), delays["destination"].tolist(), strict=True))
    assert used == {(0, 1), (1, 0), (1, 2), (2, 3)} | {(0, 2), (2, 1), (1, 3), (2, 0)}


@every_engine
def test_the_next_time_is_never_after_what_the_engine_does(rule: str, plane: str, join: str) -> None:
    made = joined(rule, plane, join)
    until(made, 1.0)
    assert made.engine.next_time() == math.inf
    made.clock.call(1.5, 1, lambda: None)  # something may change before the publication leaves its root
    made.engine.publish(1, np.array([3], np.int32))
    assert made.engine.next_time() in (math.inf, 3.0)
    until(made, 10.0)
    assert made.engine.next_time() == math.inf
    assert ended(made)["delivered"] == 4
