"""Tiny networks in which brokers crash and links are cut, against the oracle: stories worked out by hand, and random ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from generated import difference
from hypothesis import given
from hypothesis import strategies as st
from oracles.faults import CRASH, CUT, DRAIN, JOIN, LOSS, MEND, RESTART, SLOW, Network, metrics
from test_against_oracle import (
    FLOOD,
    FLOODED,
    GRAIN,
    RENDEZVOUS,
    Case,
    built,
    cases,
    compare,
    limited,
    loaded,
    random_faults,
    random_healing,
    random_members,
    reproducible,
)

# -- stories: a star, whose hub is broker 0 and the root of all topics; hops take 1 s


def story(hosts: list[int], wants: list[set[int]], rows: list[tuple[Any, ...]], **more: Any) -> Case:
    """Users stay at their brokers; `rows` are (time, what, broker or side) and more where that matters."""
    brokers = 1 + max(hosts)
    reconnect, filled = more.pop("reconnect", {}), [(*row, -1, 0.0)[:5] if len(row) < 5 else row for row in rows]
    sides, drains, joins = (more.pop(name, []) for name in ("sides", "drains", "joins"))
    return Case(
        **{
            "brokers": brokers,
            "topics": 2,
            "geometry": "star",
            "ids": "even",
            "bits": 8,
            "seed": 0,
            "node_of": list(range(brokers)),
            "links": [],
            "design": ("gm", "1", False, "repair"),
            "dissemination": "tree",
            "delay": [[float(here != there) for there in range(brokers)] for here in range(brokers)],
            "jitter": 0.0,
            "wants": wants,
            "changes": [],
            "movements": [],
            "policy": ("scripted", hosts, ()),
            "horizon": 20.0,
            "warm_up": 0.0,
            "window": 100.0,
            "join": "instant",
            "control_count": "hops",
            "service": ("none", 0.0),
            "queue": None,
            "regions": None,
            "looks": [],
            "faults": {"rows": filled, "sides": sides, "drains": drains, "joins": joins, **reconnect},
            **more,
        }
    )


def outcome(case: Case) -> tuple[Network, dict[str, Any]]:
    """What the oracle comes to, and both engines with it."""
    truth = compare(case)
    assert isinstance(truth, Network)
    planes = [built(case, plane=plane, subscribers=True) for plane in ("events", "compiled")]
    for plane in planes:
        plane.run()
    assert difference(*planes) is None
    return truth, metrics(truth, case.warm_up, case.horizon)


def test_a_crash_at_the_root_loses_what_is_in_service_and_what_comes_meanwhile() -> None:
    """Services take 2 s. Broker 1 serves from 0, 2, 4, 6; the hub has them at 3, 5, 7, 9.

    The hub crashes at 6, in the middle of the second, is down when the third comes, and up again at 8. The first left it at 5, the
    fourth leaves it at 11; broker 2 has them a second later, and has served them after 2 more.
    """
    case = story(
        hosts=[1, 2],
        wants=[set(), {0}],
        rows=[(6.0, CRASH, 0), (8.0, RESTART, 0)],
        publications=[(float(time), 0, 0, 1) for time in range(4)],
        service=("deterministic", 2.0),
    )
    truth, found = outcome(case)
    assert truth.delivered == {(0, 2): 8.0, (3, 2): 14.0}
    assert truth.lost == {(1, 2): "crashed", (2, 2): "crashed"}
    assert truth.became_due == {0: 5.0, 1: 6.0, 2: 7.0, 3: 11.0}
    assert found["crashes"] == 1
    assert found["broker_availability"] == pytest.approx(1 - 2 / (20 * 3))
    assert found["publications_dropped"] == 2
    assert found["notification_delay"] == (8.0 + 11.0) / 2
    assert found["utilisation"] == pytest.approx((8 + (2 + 1 + 2) + 4) / (20 * 3))
    assert found["queue_wait"] == pytest.approx((0 + 1 + 2 + 3) / 9)  # at broker 1 alone; nine were taken into service


def test_a_crash_loses_the_queue_and_the_users_of_a_broker() -> None:
    """The second of the same is in service at broker 1 when that crashes at 3.5, two more wait; it restarts at 5.

    The publisher notices at 3.75, and tries each second: it fails twice and is back at 5.75. What it publishes at 5.5 enters nowhere;
    that of 6 is served until 8, at the hub from 9 to 11, and at broker 2 from 12 to 14.
    """
    case = story(
        hosts=[1, 2],
        wants=[set(), {0}],
        rows=[(3.5, CRASH, 1), (5.0, RESTART, 1)],
        publications=[(time, 0, 0, 1) for time in (0.0, 1.0, 2.0, 3.0, 5.5, 6.0)],
        service=("deterministic", 2.0),
        reconnect={"detection": 0.25, "exponential": False},
    )
    truth, found = outcome(case)
    assert truth.delivered == {(0, 2): 8.0, (5, 2): 14.0}
    assert truth.lost == {(number, 2): "crashed" for number in (1, 2, 3, 4)}
    assert truth.became_due == {0: 5.0, 1: 3.5, 2: 3.5, 3: 3.5, 4: 5.5, 5: 11.0}
    assert truth.attempts == [3.75, 4.75, 5.75]
    assert found["connection_attempts"] == 3
    assert found["reconnections"] == 1
    assert found["resubscriptions"] == 0
    assert found["user_unavailability"] == pytest.approx(2.25 / (20 * 2))
    assert found["uplink_messages"] == 2


STORM = {"detection": 0.5, "wait": 1.0, "longest": 2.0, "rate": 2.0}


def storm(*rows: tuple[Any, ...]) -> Case:
    """Five users at broker 1, which crashes at 1 and restarts at 4, and a publisher at the hub, who publishes at 2 and at 5.75.

    They notice at 1.5, and fail then and at 2.5; after 2 s more, at 4.5, they are accepted, one each half second.
    """
    return story(
        hosts=[1, 1, 1, 1, 1, 0],
        wants=[{0}, {0}, {0}, {0}, {0}, set()],
        rows=[(1.0, CRASH, 1), (4.0, RESTART, 1), *rows],
        publications=[(2.0, 0, 5, 1), (5.75, 0, 5, 1)],
        reconnect=STORM,
        horizon=10.0,
    )


def test_users_reconnect_one_after_the_other() -> None:
    """The tree keeps broker 1 until it restarts: the copy of 2 gets there at 3, and nobody is there. Two of five are back at 5.75.

    Broker 1 leaves the tree when it restarts, and joins it when the first user is back: two hops each, there and back.
    """
    truth, found = outcome(storm())
    assert truth.attempts == [1.5] * 5 + [2.5] * 5 + [4.5] * 5
    assert truth.connected == [(5.0 + user / 2, user, 1) for user in range(5)]
    assert truth.decisions[6:11] == [(1.0, user, 1, -1) for user in range(5)]
    assert truth.decisions[11:] == [(5.0 + user / 2, user, None, 1) for user in range(5)]
    assert found["user_unavailability"] == pytest.approx(5 * (6.0 - 1.0) / (10 * 6))
    assert found["fault_messages"] == 2
    assert found["subscription_overhead"] == 2
    assert found["broker_subscription_changes"] == 1
    assert found["handovers"] == 0
    assert truth.delivered == {(1, 1): 6.75}
    assert truth.due == {(1, 1): 2}
    assert found["lost"] == 0
    assert found["lost_disconnected"] == 5 + 3
    assert found["delivery_ratio"] == pytest.approx(2 / 10)
    assert found["notification_overhead"] == 2
    assert found["external_overhead"] == 1


def test_a_crash_fails_the_attempts_that_a_broker_has_accepted() -> None:
    """At 6 two are back and the third is about to be: faults come first. These two notice at 6.5, and are back at 7 and 7.5.

    The others have failed for the third time, and try again at 8.
    """
    truth, found = outcome(storm((6.0, CRASH, 1), (6.25, RESTART, 1)))
    again = [(7.0, 0, 1), (7.5, 1, 1), (8.5, 2, 1), (9.0, 3, 1), (9.5, 4, 1)]
    assert truth.connected == [(5.0, 0, 1), (5.5, 1, 1), *again]
    assert found["connection_attempts"] == 15 + 2 + 3
    assert found["fault_messages"] == 4


def test_a_crash_fails_what_is_on_its_way_to_the_broker() -> None:
    """The copy that left the hub at 5.75 comes at 6.75: a broker that is up again by then serves it, else it is lost."""
    assert outcome(storm((6.0, CRASH, 1), (6.5, RESTART, 1)))[0].delivered == {(1, 1): 6.75}
    assert outcome(storm((6.0, CRASH, 1), (7.0, RESTART, 1)))[0].lost == {(1, 1): "crashed"}


def test_a_partition_loses_copies_and_keeps_control_messages() -> None:
    """Broker 2 is cut off from 2 to 6. Lost is what is sent then, and what comes then: faults are first at an instant.

    A user of broker 2 subscribes to topic 0 at 3: the request leaves at 6, is at the hub at 7, and its answer back at 8, after what is
    published then has left the hub.
    """
    sends_to_2 = [1.0, 1.5, 2.25, 5.5, 6.0]
    case = story(
        hosts=[0, 2, 1, 2],
        wants=[set(), set(), {0}, {1}],
        rows=[(2.0, CUT, 0), (6.0, MEND, 0)],
        sides=[[False, False, True]],
        changes=[(3.0, 1, 0, +1)],
        publications=[(time, 1, 0, 1) for time in sends_to_2] + [(time, 0, 0, 1) for time in (7.5, 8.0, 8.25)],
        join="message",
    )
    truth, found = outcome(case)
    assert {number: cause for (number, _), cause in truth.lost.items() if number < 5} == dict.fromkeys(
        range(4), "partitioned"
    )
    assert truth.delivered[4, 2] == 7.0
    assert truth.control == [3.0, 7.0]
    assert {pair for pair, cause in truth.lost.items() if cause == "joining"} == {(5, 2), (6, 2)}
    assert {pair[0]: time for pair, time in truth.delivered.items() if pair[1] == 1} == {5: 8.5, 6: 9.0, 7: 9.25}
    assert truth.delivered[7, 2] == 9.25
    assert found["lost_partitioned"] == 4
    assert found["notification_overhead"] == 5 + 4


def test_joins_that_were_under_way_change_nothing_after_a_crash() -> None:
    """Broker 2 asks for topic 0 at 1, crashes at 2.5 and restarts at 2.75. The answer of 3 changes nothing.

    Its user is back at 3; broker 2 asks for topics 0 and 1 then, which it has left at the restart, and has both answers at 5.
    """
    case = story(
        hosts=[0, 2],
        wants=[set(), {1}],
        rows=[(2.5, CRASH, 2), (2.75, RESTART, 2)],
        changes=[(1.0, 1, 0, +1)],
        publications=[(2.6, 1, 0, 1), (4.0, 0, 0, 1), (4.0, 1, 0, 1), (5.25, 0, 0, 1)],
        reconnect={"detection": 0.5},
        join="message",
    )
    truth, found = outcome(case)
    assert truth.lost == {(1, 2): "joining", (2, 2): "joining"}
    assert truth.delivered == {(3, 2): 6.25}
    assert truth.control == [1.0, 2.0, 3.0, 3.0, 4.0, 4.0]
    assert truth.connected == [(3.0, 1, 2)]
    assert found["lost_disconnected"] == 1
    assert found["fault_messages"] == 2
    assert found["external_overhead"] == 1  # what was published at 2.6 comes to a broker that is up and hosts nobody


def test_control_messages_at_a_broker_that_crashes_are_served_anew() -> None:
    """Services take 1 s. The request of broker 2 is with the hub at 2 and in service when it crashes at 2.5; that of 1 comes at 3.

    After the restart at 4 they are served from 4 and 5. The answers come at 6 and 7, and are served for a second.
    """
    case = story(
        hosts=[0, 2, 1],
        wants=[set(), set(), set()],
        rows=[(2.5, CRASH, 0), (4.0, RESTART, 0)],
        changes=[(1.0, 1, 0, +1), (2.0, 2, 0, +1)],
        reconnect={"wait": 100.0},
        join="message",
        service=("deterministic", 1.0),
        publications=[],
        looks=[34, 36, 39, 41],
    )
    truth, found = outcome(case)
    assert [set(look[0]) for look in truth.looks] == [set(), {0, 2}, {0, 2}, {0, 1, 2}]
    assert found["utilisation"] == pytest.approx((0.5 + 2 + 2) / (20 * 3))
    assert found["queue_wait"] == pytest.approx((0 + 0 + 1 + 0 + 0) / 5)


def test_slow_brokers_and_links_that_lose_do_so_for_a_time() -> None:
    """Services take 1 s, those that come to broker 1 from 2 on and before 5 three: it is done at 2, 5, 8 and 9.

    The hub is done at 4, 7, 10 and 11. Links lose everything from 9.5 to 10.5, so the third; broker 2 is done 2 s after the hub.
    """
    case = story(
        hosts=[1, 2],
        wants=[set(), {0}],
        rows=[(2.0, SLOW, 1, -1, 3.0), (5.0, SLOW, 1, -1, 1.0), (9.5, LOSS, -1, -1, 1.0), (10.5, LOSS, -1, -1, 0.0)],
        publications=[(time, 0, 0, 1) for time in (1.0, 2.0, 3.0, 5.0)],
        service=("deterministic", 1.0),
    )
    truth, found = outcome(case)
    assert truth.delivered == {(0, 2): 6.0, (1, 2): 9.0, (3, 2): 13.0}
    assert truth.lost == {(2, 2): "link"}
    assert found["crashes"] == 0


def test_floods_go_round_what_has_crashed() -> None:
    """A square of 0, 1, 3, 2; 1 is down from 0.5 on: the copy to it is lost, 3 has the one by 2, and sends it on to 1 in vain.

    From 6 on the link 2–3 is cut: what is due at 3 is lost, by 1 as well as by the cut, and `crashed` goes first.
    """
    case = story(
        hosts=[0, 1, 2, 3],
        wants=[set(), {0}, set(), {0}],
        rows=[(0.5, CRASH, 1), (6.0, CUT, 2, 3)],
        publications=[(0.0, 0, 0, 1), (3.5, 0, 0, 1), (7.0, 0, 0, 1)],
        reconnect={"wait": 100.0},
        geometry="graph",
        links=[(0, 1, None), (0, 2, None), (1, 3, None), (2, 3, None)],
        dissemination="flood",
    )
    truth, found = outcome(case)
    assert truth.due == {(0, 1): 1, (0, 3): 1, (1, 3): 1, (2, 3): 1}
    assert truth.lost == {(0, 1): "crashed", (2, 3): "crashed"}
    assert truth.delivered == {(0, 3): 2.0, (1, 3): 5.5}
    assert found["lost_disconnected"] == 2
    assert found["notification_overhead"] == 4 + 4 + 3
    only_cut = replace(case, faults={**case.faults, "rows": [(6.0, CUT, 2, 3, 0.0), (6.0, CUT, 1, 3, 0.0)]})
    assert outcome(only_cut)[0].lost == {(2, 3): "partitioned"}


def test_a_drain_moves_users_one_by_one_and_loses_nothing() -> None:
    """Users 0 to 2 are at broker 1; from 2 on one is moved each half second, to broker 2 if the policy says so.

    If it says broker 1, they go to the nearest: all are as near, and broker 0 has no more users than others. A publication of 2.25
    leaves the hub at 3.25, when one user is still at broker 1, and is with it at 4.25: it goes down at 3.5 + 1, and is up at 7.5.
    Broker 2 is drained then, with users 1 and 3, whom broker 1 takes.
    """
    case = story(
        hosts=[1, 1, 1, 2, 3],
        wants=[{0}, {0}, {0}, set(), set()],
        rows=[(2.0, DRAIN, 0)],
        drains=[((1, 2), 2.0, 1.0, 3.0)],
        publications=[(2.25, 0, 4, 1), (5.0, 0, 4, 1)],
    )
    truth, found = outcome(case)
    moves = [(time, user, former, to) for time, user, former, to in truth.decisions if time > 0]
    assert moves == [(2.5, 0, 1, 0), (3.0, 1, 1, 2), (3.5, 2, 1, 0), (8.0, 1, 2, 1), (8.5, 3, 2, 1)]
    assert truth.delivered == {(0, 0): 3.25, (0, 2): 4.25, (0, 1): 4.25, (1, 0): 6.0, (1, 2): 7.0}
    assert found["lost"] == found["lost_disconnected"] == 0
    assert found["user_unavailability"] == 0
    assert found["crashes"] == 0
    assert (found["drained_users"], found["drained_brokers"], found["drain_time"]) == (5, 2, (1.5 + 1.0) / 2)
    assert found["handovers"] == 5
    assert found["broker_availability"] == pytest.approx(1 - (3 + 3) / (20 * 4))


def test_drains_take_turns_and_wait_while_nobody_takes_users() -> None:
    """Two brokers: 0 is to be drained at 2 and 1 at 3. But 1 is down from 1 to 5, so the user of 0 stays until then.

    Broker 0 goes down at 5.5, and is up at 6.5, when its user is moved back from broker 1, which does not return.
    """
    case = story(
        hosts=[0, 1],
        wants=[{0}, set()],
        rows=[(1.0, CRASH, 1), (2.0, DRAIN, 0), (3.0, DRAIN, 1), (5.0, RESTART, 1)],
        drains=[((0,), 4.0, 0.5, 1.0), ((1,), None, 0.25, math.inf)],
        publications=[(4.0, 0, 0, 1), (7.0, 0, 0, 1)],
        reconnect={"wait": 100.0, "longest": 100.0},
    )
    truth, found = outcome(case)
    assert [row for row in truth.decisions if row[0] > 1] == [(5.0, 0, 0, 1), (6.5, 0, 1, 0)]
    assert truth.delivered == {(0, 0): 4.0, (1, 0): 7.0}
    assert found["broker_availability"] == pytest.approx(1 - (4.0 + 1.0 + 13.25) / (20 * 2))
    assert found["drain_time"] == pytest.approx((3.0 + 0.0) / 2)


def test_a_hub_that_leaves_hands_all_over_and_loses_nothing() -> None:
    """The hub's user is moved to broker 2 at 2.5; at 3.5 broker 1 becomes the hub; at 4.5 broker 0 is gone, and stays so.

    A publication of 2.75 comes to the former hub at 3.75, which sends it to broker 1, and that to the others. Those from outside
    would enter at broker 0, and enter at broker 1 from 2 on. Two topics get another root, with a message and its answer each; on
    the tree of topic 0, brokers 2 and 3 have another parent, with a request and its answer each.
    """
    case = story(
        hosts=[0, 3, 2, 3],
        wants=[{0}, set(), {0}, {0}],
        rows=[(2.0, DRAIN, 0)],
        drains=[((0,), 2.0, 1.0, math.inf, True)],
        publications=[(2.75, 0, 1, 1), (5.0, 0, 1, 1), (8.0, 0, -1, 1), (9.0, 0, -1, 1), (10.0, 0, -1, 1)],
    )
    truth, found = outcome(case)
    assert [row for row in truth.decisions if row[0] > 0] == [(2.5, 0, 0, 2)]
    told = {pair: time for pair, time in truth.delivered.items() if pair[0] < 2}
    assert told == {(0, 2): 5.75, (0, 3): 5.75, (1, 2): 7.0, (1, 3): 7.0}
    assert found["lost"] == found["lost_disconnected"] == found["crashes"] == 0
    assert found["broker_availability"] == 1.0
    assert found["user_unavailability"] == 0.0
    names = "broker_departures", "moved_users", "moved_topics", "moved_trees", "membership_messages"
    assert tuple(found[name] for name in names) == (1, 1, 2, 1, 2 * 2 + 2 * 2)
    assert found["healing_messages"] == found["fault_messages"] == 0


def test_a_broker_that_joins_gets_its_share_of_users_one_by_one() -> None:
    """Broker 0, the hub, is there from 5 on; until then broker 1 is the hub, and its users are at brokers 1 and 2, one each.

    Of the users of broker 2, which has three, the first moves at 5.5; then nobody has more than one more than broker 0.
    """
    case = story(
        hosts=[0, 0, 1, 2, 2],
        wants=[{0}, {0}, set(), {0}, set()],
        rows=[(5.0, JOIN, 0)],
        joins=[(0, 2.0, "share", frozenset({0, 1, 2}))],
        publications=[(1.0, 0, 4, 1), (4.5, 0, 4, 1), (7.0, 0, 4, 1)],
    )
    truth, found = outcome(case)
    assert truth.decisions[0][3] == 1
    assert truth.came_in == [5.0]
    assert found["lost"] == 0
    assert found["broker_availability"] == 1.0
    assert (found["broker_arrivals"], found["moved_topics"], found["moved_trees"]) == (1, 2, 1)
    assert [row for row in truth.decisions if row[0] > 0] == [(5.5, 1, 2, 0)]


def test_users_of_a_broker_that_has_left_go_where_the_policy_says() -> None:
    """Broker 1 crashes at 1 with its user, leaves at 2, and is never up again; the user would retry it, and goes to broker 0."""
    case = story(
        hosts=[1, 0],
        wants=[{0}, set()],
        rows=[(1.0, CRASH, 1), (2.0, DRAIN, 0)],
        drains=[((1,), None, 0.5, math.inf, True)],
        publications=[(6.0, 0, 1, 1)],
        reconnect={"wait": 2.0, "exponential": False},
    )
    truth, found = outcome(case)
    assert truth.connected == [(3.0, 0, 1)]
    assert truth.delivered == {(0, 0): 6.0}
    assert found["broker_availability"] == pytest.approx((1.0 + 1.5 / 2 + 17.5) / 20)


# -- random ones


@st.composite
def faulted(draw: st.DrawFn, heals: bool = False, **fixed: Any) -> Case:
    """Any case, with anything that may fail; half of them where joins are messages, two thirds where much waits."""
    if not fixed and draw(st.booleans()):
        fixed = {"geometry": draw(st.sampled_from(RENDEZVOUS)), "join": "message"}
    waits = {"service": ("exponential", 2 * GRAIN), "queue": draw(st.sampled_from((None, 2, 5))), **fixed}
    case: Case = draw(st.one_of(loaded(**fixed), cases(**waits), limited(**waits)))
    rng, loss = random.Random(f"faults {case.seed}"), case.lines.get("loss", 0.0)
    case.faults = random_faults(rng, case.brokers, case.horizon, case.service[0] != "none", loss)
    if heals:
        case.healing = random_healing(random.Random(f"healing {case.seed}"))
        if rng.random() < 0.7:
            case.faults = random_members(rng, case.faults, case.brokers, case.horizon)
    return case


def test_simulator_and_oracle_agree_whatever_fails() -> None:
    tally: Counter[str] = Counter()

    @reproducible(200)
    @given(faulted())
    def run(case: Case) -> None:
        truth = compare(case)
        assert isinstance(truth, Network)
        tally.update({"cases": 1, "partitions": any(row[1] == CUT and row[3] < 0 for row in case.faults["rows"])})
        tally.update({"drains": bool(truth.moved)})
        tally.update({"reconnections at a limited rate": case.faults["rate"] is not None and bool(truth.connected)})
        tally.update(
            {
                name: any(row[1] == what for row in case.faults["rows"])
                for name, what in (("loss", LOSS), ("slow", SLOW))
            }
        )
        tally.update(name for name, often in truth.seen.items() if often)
        tally.update(set(truth.lost.values()))

    run()
    assert min(tally[what] for what in OFTEN) >= tally["cases"] / 4, tally
    assert min(tally[what] for what in RARELY) >= tally["cases"] / 20, tally


OFTEN = (
    "crashes with publications waiting",
    "crashes with publications in service",
    "crashes with joins under way",
    "cuts with copies on the link",
    "control messages that slept",
    "changes of absent users",
    "handovers to brokers that are down",
    "connections that waited",
    "reconnections at a limited rate",
    "partitions",
    "loss",
    "slow",
    "crashed",
    "partitioned",
)
RARELY = (
    "drains",
    "handovers to brokers that are drained",
    "crashes while users connect",
    "control messages before a cut",
    "queue_full",
    "link",
    "joining",
)


def test_floods_agree_whatever_fails() -> None:
    tally: Counter[str] = Counter()

    @reproducible(100)
    @given(st.sampled_from(FLOODED).flatmap(lambda geometry: faulted(**FLOOD, geometry=geometry, join="instant")))
    def run(case: Case) -> None:
        truth = compare(case)
        tally.update(set(truth.lost.values()))
        tally["cases"] += 1

    run()
    assert min(tally["crashed"], tally["partitioned"]) >= tally["cases"] / 3, tally
    assert min(tally["queue_full"], tally["link"], tally["hop_limit"]) >= tally["cases"] / 20, tally


def test_simulator_and_oracle_agree_whatever_heals() -> None:
    tally: Counter[str] = Counter()

    @reproducible(80)
    @given(faulted(heals=True))
    def run(case: Case) -> None:
        truth = compare(case)
        assert isinstance(truth, Network)
        tally.update(name for name, often in truth.seen.items() if often)
        tally.update({"cases": 1, "crashes that cannot be healed": bool(truth.unhealed)})

    run()
    assert min(tally["brokers routed around"], tally["brokers that rejoin"]) >= tally["cases"] / 3, tally
    assert min(tally["roots that move"], tally["joins sent again"]) >= tally["cases"] / 8, tally
    assert min(tally["brokers that join"], tally["brokers that leave"]) >= tally["cases"] / 3, tally
    assert tally["users who wait to move to a broker that is down"] >= tally["cases"] / 20, tally
    assert tally["crashes that cannot be healed"] >= tally["cases"] / 20, tally
    assert tally["brokers with other links"] >= tally["cases"] / 3, tally
    assert tally["joins sent again over other links"] >= tally["cases"] / 20, tally


def healed(geometry: str, publications: list[Any], others: tuple[int, ...] = (1, 2), **more: Any) -> Case:
    """Broker 0 crashes at 1.2, is routed around from the check at 2 on, and is up again from 10 on. A user at 1 wants nothing."""
    return story(
        hosts=[1, *others],
        wants=[set(), *({0} for _ in others)],
        rows=[(1.2, CRASH, 0), (10.0, RESTART, 0)],
        publications=publications,
        geometry=geometry,
        healing={"period": 2.0, "convergence": 0.0, "successors": 20},
        **more,
    )


def test_another_hub_takes_the_place_of_one_that_is_down() -> None:
    """Broker 1 is the hub from 2 to 10: a copy of 1.5 is lost, that of 3 takes one hop, that of 11 two again.

    At 2 broker 2 joins again at its new parent, 1, and at 10 both join at 0, and 0 connects to the hub, itself: 2 + 4 + 2 messages.
    A round takes 4 messages over two links, while 0 is down 2 over the one that is left. The round at 2 finds things as they were
    before, with 0 down: it takes 2, over the links from the others; so does that at 10.
    """
    truth, found = outcome(healed("star", [(time, 0, 0, 1) for time in (1.5, 3.0, 11.0)]))
    assert truth.lost == {(0, 1): "crashed", (0, 2): "crashed"}
    assert truth.delivered == {(1, 1): 3.0, (1, 2): 4.0, (2, 1): 13.0, (2, 2): 13.0}
    assert found["healing_messages"] == 2 + 4 + 2
    assert found["stabilisation_messages"] == 2 + 2 * 4 + 4 * 4
    assert found["fault_messages"] == 0


def test_a_publication_that_comes_to_a_former_root_goes_on_from_there() -> None:
    """What leaves broker 2 at 9.5 for 1, the hub by then, gets there at 10.5, when 0 is the hub again: 1 sends it to 2 by 0."""
    case = healed("star", [(9.5, 0, 2, 1)])
    truth, found = outcome(case)
    assert truth.delivered == {(0, 1): 10.5, (0, 2): 12.5}
    assert found["lost"] == 0


def test_paths_go_round_a_broker_that_is_down_if_they_can() -> None:
    """A triangle with a tail: 1–0–2, 1–3–2 is slower. Around 0 the copy to 2 takes three hops' time; to 4, behind 0, nothing does."""
    case = healed(
        "graph",
        [(time, 0, 0, 1) for time in (0.0, 1.5, 3.0)],
        others=(1, 2, 4),
        links=[(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.5), (2, 3, 1.5), (0, 4, 1.0)],
    )
    truth, _ = outcome(case)
    assert truth.delivered == {(0, 1): 0.0, (0, 2): 2.0, (0, 4): 2.0, (1, 1): 1.5, (2, 1): 3.0, (2, 2): 6.0}
    assert truth.lost == {(1, 2): "crashed", (1, 4): "crashed", (2, 4): "crashed"}


def test_a_ring_is_broken_where_a_whole_successor_list_is_down() -> None:
    """Brokers 1 and 2 of a ring with lists of two are not routed around, but once 2 is up again, 1 is."""
    case = story(
        hosts=[5],
        wants=[{0}],
        rows=[(1.2, CRASH, 1), (1.2, CRASH, 2), (5.0, RESTART, 2)],
        publications=[],
        geometry="chord",
        healing={"period": 2.0, "convergence": 0.0, "successors": 2},
    )
    truth, found = outcome(case)
    assert found["unhealed_crashes"] == 2
    assert truth.around == {1}


def cut_off(geometry: str, publications: list[Any], others: tuple[int, ...] = (1, 2), **more: Any) -> Case:
    """The link between brokers 0 and 1 is cut at 1.2, routed around from the check at 2 on, and mended at 10."""
    case, rows = healed(geometry, publications, others, **more), [(1.2, CUT, 0, 1, 0.0), (10.0, MEND, 0, 1, 0.0)]
    return replace(case, faults={**case.faults, "rows": rows})


def test_a_broker_that_is_cut_off_from_the_hub_goes_by_another() -> None:
    """What 1 publishes at 1.5 is lost; from 3 on it goes by 2 to the hub, 0, which sends it back to 2; at 11 directly again.

    Nobody beside 1 gets another parent on a tree that it is on, so that healing takes no message.
    """
    truth, found = outcome(cut_off("star", [(time, 0, 0, 1) for time in (1.5, 3.0, 11.0)], others=(2,)))
    assert truth.lost == {(0, 2): "partitioned"}
    assert truth.delivered == {(1, 2): 6.0, (2, 2): 13.0}
    assert found["healing_messages"] == 0


def test_a_member_that_is_cut_off_joins_again_at_another_broker() -> None:
    """1 joins at 2 when the link is cut, and at 0 again later, with 2 messages each. Its publication goes by 2 to 0, and back."""
    truth, found = outcome(cut_off("star", [(3.0, 0, 1, 1)], others=(1, 2)))
    assert truth.delivered == {(0, 2): 6.0, (0, 1): 7.0}
    assert found["healing_messages"] == 4


def test_a_mesh_reaches_a_broker_that_is_cut_off_through_a_third() -> None:
    """1 sends to 0 through 2. Both ends tell the two others that the link is cut, and that it is mended: 2 · 2 · 2 messages."""
    truth, found = outcome(cut_off("full-mesh", [(time, 0, 0, 1) for time in (1.5, 3.0, 11.0)], others=(0, 2)))
    assert truth.lost == {(0, 0): "partitioned"}
    assert truth.delivered == {(0, 2): 2.5, (1, 2): 4.0, (1, 0): 5.0, (2, 0): 12.0, (2, 2): 12.0}
    assert found["healing_messages"] == 8


def test_paths_avoid_a_cut_link_if_they_can() -> None:
    """1–0 is cut: the copy to 2 goes by 3, in 3 s, and on to 0 and to 4 behind it; each end announces it over the four links left."""
    links = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.5), (2, 3, 1.5), (0, 4, 1.0)]
    truth, found = outcome(cut_off("graph", [(3.0, 0, 0, 1)], others=(2, 4), links=links))
    assert truth.delivered == {(0, 2): 6.0, (0, 4): 8.0}
    assert found["healing_messages"] == 2 * 8 + 2 * 10


def test_what_nobody_can_reach_is_lost_on_the_cut_link() -> None:
    """4 is behind 0 alone."""
    case = cut_off("graph", [(3.0, 0, 0, 1)], others=(0,), links=[(0, 1, 1.0)])
    truth, _ = outcome(case)
    assert truth.lost == {(0, 0): "partitioned"}


def test_other_links_connect_a_topic_whose_link_is_cut() -> None:
    """Of 0–1, 0–2, the first is cut: 1–2 takes its place, and goes again, each a link of two messages."""
    truth, found = outcome(cut_off("topic-connected", [(3.0, 0, 0, 1)], others=(0, 1, 2)))
    assert truth.delivered.keys() == {(0, 0), (0, 1), (0, 2)}
    assert found["healing_messages"] == 8


def test_what_enters_over_a_cut_link_goes_by_another() -> None:
    """1 does not want the topic, and sends to 0, who alone does: at 1.5 in vain, from 3 on by 2, and directly at 11."""
    case = cut_off("topic-connected", [(time, 0, 0, 1) for time in (1.5, 3.0, 11.0)], others=(0, 2))
    truth, _ = outcome(replace(case, wants=[set(), {0}, set()]))
    assert truth.lost == {(0, 0): "partitioned"}
    assert truth.delivered == {(1, 0): 5.0, (2, 0): 12.0}


def test_a_topic_that_depended_on_a_link_beside_a_cut_gets_new_links_at_the_mend() -> None:
    """Of 0–1, 0–2, the first is cut, and 1–2 takes its place. 0 leaves at 5, so that at the mend 1 and 2 have no link: 1–2 stays."""
    design = ("gm", "1", False, "break")
    case = cut_off("topic-connected", [(12.0, 0, 0, 1)], others=(0, 1, 2), design=design, changes=[(5.0, 1, 0, -1)])
    truth, _ = outcome(case)
    assert truth.delivered == {(0, 1): 12.0, (0, 2): 13.0}
