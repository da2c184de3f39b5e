"""Brokers change places while users publish, subscribe and move: nothing is lost or delivered twice, and trees equal new ones."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least
from hypothesis import given
from hypothesis import strategies as st
from oracles import reconfiguration as oracle
from oracles.draws import subkey, uniform
from test_against_oracle import (
    GRAIN,
    Case,
    built,
    cases,
    compare_brokers,
    compare_delays,
    compare_messages,
    compare_metrics,
    compare_windows,
    expected_setting,
    expected_world,
    names,
    overlay,
    reproducible,
)
from test_folded import NOTHING_CONTENDS
from tiny import run, tables

from sim.base.errors import BrokersimError, ScenarioError
from sim.brokers.control.healing import HealingSetting
from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.control.transition import Stage
from sim.brokers.network import Network
from sim.overlay.chord import Chord
from sim.overlay.geometry import GeometrySetting
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem
from sim.policies.reconfiguration.process import ProcessParameters
from sim.scenario.reader import load_scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.faults.fault import BrokenLink, Fault, Outage
from sim.workloads.faults.schedule import resolve_faults

PAYS = (-1e9, 0.0, 0.0)  # what moving costs, so that it always pays; a scenario may not say so
STEPS = (
    "_on_init",
    "_drained",
    "_on_dht_update",
    "_on_tree_update",
    "_on_table",
    "_repaired",
    "_answered",
    "_on_finish",
    "_record",
    "_over",
    "_give_up",
)
TREE = ("nodes", "parents", "first_child", "depth")


class Shuffle:
    """A policy that puts so many brokers on each other's nodes, at random."""

    def __init__(self, brokers: int) -> None:
        self.brokers = brokers

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        n = len(problem.node_of)
        order = sorted(range(n), key=lambda broker: uniform(problem.key, broker))[: self.brokers]
        node_of = problem.node_of.copy()
        node_of[order] = np.roll(node_of[order], 1)
        return Reconfiguration(node_of)


def reconfigured(case: Case, process: dict[str, Any], plane: str = "auto", **more: Any) -> Network:
    """A network that shuffles brokers again and again."""
    parameters = {"threshold": 1.0, "constants": PAYS, **process}
    brokers, dead = 2 + case.seed % 4, parameters.pop("manager_dead", ())
    setting = ReconfigurationSetting(Shuffle(brokers), ProcessParameters().model_copy(update=parameters), case.seed)
    faults = tiny.dead(dead, case.brokers)
    return built(case, plane=plane, subscribers=True, reconfiguration=setting, faults=faults, **more)


@st.composite
def processes(draw: st.DrawFn) -> dict[str, Any]:
    """Periods of some seconds, and times in which the manager is dead."""
    starts = draw(st.lists(st.integers(1, 120), max_size=6))
    return {
        "period": draw(st.sampled_from((1.0, 1.3, 3.0))),
        "timeout": draw(st.sampled_from((0.1, GRAIN, 1.0, 2.0))),
        "manager_dead": tuple(
            (start * GRAIN / 2, start * GRAIN / 2 + draw(st.integers(1, 4)) * GRAIN) for start in starts
        ),
    }


def test_planes_agree_to_the_last_bit() -> None:
    tally: Counter[str] = Counter()

    @reproducible(80)
    @given(cases(geometry="chord", **NOTHING_CONTENDS), processes())
    def run(case: Case, process: dict[str, Any]) -> None:
        one, other = (reconfigured(case, process, plane) for plane in ("events", "folded"))
        one.run()
        other.run()
        mine, others = tables(one), tables(other)
        assert [name for name in mine if mine[name] != others[name]] == []
        metrics = one.metrics()
        tally.update({name: metrics[name] for name in ("delivered", "reconfigurations", "in_flight")})

    run()
    assert min(tally.values()) >= least(20), tally


# -- stories; nodes 0 ── 1 ── 2 ── 3, root 1, every hop takes 1 s unless said


class To:
    """A policy that puts brokers on given nodes, and remembers what it was asked."""

    def __init__(self, *node_of: int) -> None:
        self.node_of = np.array(node_of, np.int32)
        self.asked: list[ReconfigurationProblem] = []

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        self.asked.append(problem)
        return Reconfiguration(self.node_of)


def line(
    publications: list[tuple[float, int, int, int]],
    events: list[tuple[float, int, int, int]] = [],  # noqa: B006
    policy: To | None = None,
    hop: Any = 1.0,
    process: dict[str, Any] = {},  # noqa: B006
    dead: tuple[float, float] | None = None,
    fails: tuple[Fault, ...] = (),
    **setting: Any,
) -> Network:
    """User 0 at broker 0 wants both topics, user 1 at broker 3 the first; brokers 0 and 3 are to swap after 4 s."""
    world = tiny.workload([{0, 1}, {0}], publications, events, topics=2, horizon=setting.pop("horizon", 30.0))
    parameters = ProcessParameters().model_copy(
        update={"period": 4.0, "threshold": 1.0, "constants": PAYS, "timeout": 0.1, **process}
    )
    swap = ReconfigurationSetting(policy or To(3, 1, 2, 0), parameters, 1)
    overlaid = tiny.graph([(0, 1), (1, 2), (2, 3)], [1, 1])
    faults = resolve_faults(fails, 4, 100.0) if fails else None if dead is None else tiny.dead([dead], 4)
    return tiny.network(world, overlaid, [0, 3], hop, reconfiguration=swap, faults=faults, **setting)


def steps(network: Network, *names: str) -> list[tuple[Any, ...]]:
    """Notes (time, step, broker) of the protocol while the network runs."""
    seen: list[tuple[Any, ...]] = []

    def spy(part: Any, name: str) -> None:
        act = getattr(part, name)

        def spied(transition: Any, *rest: Any) -> None:
            seen.append((network.clock.now, name, *rest))
            act(transition, *rest)

        setattr(part, name, spied)

    for name in names:
        for part in (network._protocol, network._protocol._agreement, network._protocol.watch):
            if hasattr(part, name):
                spy(part, name)
    return seen


def test_publications_wait_for_the_drain_and_updates_for_publications() -> None:
    """One is on its way at INIT, 4 s, and has arrived at 6.5 s; then brokers swap; the next one was published at 5 s."""
    network = line([(3.5, 0, 0, 1), (5.0, 0, 0, 1)], [(5.25, 1, 0, -1)], horizon=12.0)
    run(network)
    trace = network.tables()["trace"]
    hops = [
        tuple(trace[name][row] for name in ("publication", "received", "source", "destination")) for row in range(8)
    ]
    assert hops == [
        (0, 4.5, 0, 1),
        (0, 5.5, 1, 0),
        (0, 5.5, 1, 2),
        (0, 6.5, 2, 3),
        (1, 7.5, 0, 2),  # at 6.5 s, from node 3
        (1, 8.5, 2, 1),
        (1, 9.5, 1, 3),  # who no longer wants it, but did when brokers began to hold back
        (1, 9.5, 1, 2),
    ]
    metrics = network.metrics()
    assert metrics["delivered"] == 4
    assert metrics["notification_delay_max"] == 5.5  # 10.5 - 5
    assert metrics["broker_subscription_changes"] == 1
    assert network.node_of.tolist() == [3, 1, 2, 0]
    assert network.tables()["decisions/configuration"]["time"].tolist() == [0.0] * 4 + [6.5] * 2
    # all INIT, TREE_UPDATE and FINISH; the two that move: UPDATE, UPDATED, log2(4)^2 to rejoin, the table over 3 hops, TREE_UPDATED;
    # the second topic: node 0 leaves, 2 hops, node 3 joins, 4 hops
    assert metrics["reconfiguration_overhead"] == 3 * 4 + 2 * (1 + 1 + 4 + 3 + 1) + 6
    assert metrics["drain_messages"] == 4
    assert (metrics["reconfigurations"], metrics["reconfigured_brokers"]) == (1, 2)
    tables = network.tables()["decisions/reconfiguration"]
    assert (tables["time"], tables["moved"], tables["enacted"]) == ([4.0], [2], [True])  # at 8 s the update still waits


@pytest.mark.parametrize("plane", ["events", "folded"])
def test_a_protocol_that_ends_with_a_period_is_decided_on_at_the_end_of_the_next(plane: str) -> None:
    """Published at 2 s, and with broker 3 after three hops of 2 s, at 8 s: then brokers swap, and nothing else is decided."""
    policy = To(3, 1, 2, 0)
    published = [(2.0, 0, 0, 1), *[(8.5, 0, 0, 1)] * 5]
    network = line(published, policy=policy, hop=2.0, horizon=13.0, plane=plane, trace=False)
    run(network)
    assert network.tables()["decisions/configuration"]["time"].tolist() == [0.0] * 4 + [8.0] * 2
    assert network.tables()["decisions/reconfiguration"]["time"] == [4.0, 12.0]
    # one in the first period, none in the second, five in the third
    assert [problem.publications[0] for problem in policy.asked] == pytest.approx([1.0, 0.7 * 0.7 + 0.3 * 5])


@pytest.mark.parametrize("plane", ["events", "folded"])
def test_a_run_may_end_while_brokers_hold_publications_back(plane: str) -> None:
    """The drain lasts until 6.5 s; at the end the first publication is on its way to broker 3, and the second held back: both of
    its subscribers' brokers are still to get it."""
    network = line([(3.5, 0, 0, 1), (5.0, 0, 0, 1)], horizon=6.0, plane=plane, trace=False)
    run(network)
    metrics = network.metrics()
    assert (metrics["publications"], metrics["due"], metrics["delivered"], metrics["in_flight"]) == (2, 4, 1, 3)
    assert metrics["uplink_messages"] == 1
    assert metrics["reconfigurations"] == 0


@pytest.mark.parametrize(
    ("down", "decided"),
    [((8.0, 9.0), [4.0, 12.0]), ((7.0, 8.0), [4.0, 8.0, 12.0]), ((4.0, 8.5), [12.0])],
)
def test_a_manager_is_dead_from_the_instant_on_and_lives_at_the_instant_that_ends_it(
    down: tuple[float, float], decided: list[float]
) -> None:
    """It decides at the end of each period of 4 s; nobody has to move."""
    network = line([(1.0, 0, 0, 1)], policy=To(0, 1, 2, 3), horizon=13.0, dead=down)
    run(network)
    assert network.tables()["decisions/reconfiguration"]["time"] == decided


FAR = [[0, 10, 1, 10], [10, 0, 1, 1], [1, 1, 0, 6], [10, 1, 6, 0]]
"""Hop times between brokers: the manager is beside broker 2, and broker 3 hears of it late."""


def test_a_table_that_comes_early_waits_until_the_own_one_has_left() -> None:
    network = line([], hop=FAR, join="message", horizon=50.0)
    seen = steps(
        network, "_on_init", "_drained", "_on_dht_update", "_on_tree_update", "_on_table", "_repair", "_on_finish"
    )
    run(network)
    assert [note for note in seen if note[2:] in ((), (0,), (3,))] == [
        (5.0, "_on_init", 0),
        (10.0, "_on_init", 3),
        (10.0, "_drained"),
        (17.0, "_on_dht_update", 0),
        (22.0, "_on_dht_update", 3),
        (29.0, "_on_tree_update", 0),
        (32.0, "_on_table", 3),  # by brokers 2 and 1
        (34.0, "_on_tree_update", 3),
        (34.0, "_repair", 3),  # leaves a tree, and has an answer at 36 s
        (37.0, "_on_table", 0),
        (37.0, "_repair", 0),  # joins a tree, and has an answer at 41 s
        (43.0, "_on_finish", 0),
        (48.0, "_on_finish", 3),
    ]
    assert network.metrics()["reconfiguration_overhead"] == 38


def test_answers_to_the_manager_do_not_queue_at_the_broker_beside_it() -> None:
    """Brokers need a second for a message, the manager none: INIT is with broker 3 at 4 + 6 + 1 s, and its answer back at 17 s."""
    busy = {"join": "message", "service": "deterministic", "service_time": 1.0}
    network = line([], hop=FAR, horizon=40.0, **busy)
    seen = steps(network, "_drained", "_on_dht_update", "_on_tree_update")
    network.run()
    assert seen == [
        (11.0, "_drained"),
        (19.0, "_on_dht_update", 0),
        (24.0, "_on_dht_update", 3),
        (31.0, "_on_tree_update", 2),  # 6 s back, and no hop
        (32.0, "_on_tree_update", 0),
        (32.0, "_on_tree_update", 1),
        (37.0, "_on_tree_update", 3),
    ]


def test_whoever_has_finish_tells_those_who_ask() -> None:
    """The manager dies at 43.5 s, when FINISH has come to all but broker 3, which asks the others 0.1 s later."""
    network = line([(44.0, 0, 1, 1)], hop=FAR, join="message", horizon=60.0, dead=(43.5, 60.0))
    seen = steps(network, "ask", "_finish")
    run(network)
    assert seen[-2:] == [(43.6, "ask", 3), (45.6, "_finish", 3)]  # broker 1 is 1 s away
    assert network.node_of.tolist() == [3, 1, 2, 0]
    assert network.metrics()["reconfiguration_overhead"] == 38 + 3 + 3
    trace = network.tables()["trace"]
    assert (trace["sent"][0], trace["source"][0]) == (45.6, 3)


def test_where_nobody_has_finish_all_fall_back() -> None:
    """The manager dies at 41.5 s, when everything is done but FINISH; brokers 0 and 1, or 0 and 3, are 10 s apart."""
    network = line([(10.0, 0, 0, 1)], hop=FAR, join="message", horizon=63.0, dead=(41.5, 60.0))
    seen = steps(network, "ask", "_resume")
    started: list[list[bool]] = []
    drained = network._protocol._drained

    def spied(transition: Any) -> None:
        started.extend(network.setting.overlay.joined(node).tolist() for node in range(4))
        drained(transition)

    network._protocol._drained = spied
    run(network)
    assert sorted(seen) == [(41.6, "ask", broker) for broker in range(4)] + [
        (pytest.approx(time), "_resume", broker) for time, broker in ((57.6, 2), (61.6, 0), (61.6, 1), (61.6, 3))
    ]
    assert network.node_of.tolist() == [0, 1, 2, 3]
    assert [network.setting.overlay.joined(node).tolist() for node in range(4)] == started
    # what was done, two more to rejoin, and each tells three others twice
    assert network.metrics()["reconfiguration_overhead"] == 38 - 4 + 2 * 4 + 2 * 4 * 3
    assert network.metrics()["reconfigurations"] == 0
    assert network.metrics()["uplink_messages"] == 1  # what was held back has left


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_nobody_waits_for_a_broker_that_does_not_come_up_again(plane: str) -> None:
    """Broker 2 crashes at 20 s, in the middle; a timeout later all fall back, at once, and publish what was held back.

    Nothing is decided any more while it is down. Of a publication of 50 s, that to broker 3 comes to it, a relay.
    """
    crash = (Outage(20.0, math.inf, 2),)
    network = line([(10.0, 0, 0, 1), (50.0, 0, 0, 1)], hop=FAR, join="message", horizon=90.0, fails=crash, plane=plane)
    seen = steps(network, "_resume")
    network.run()
    assert seen == [(20.1, "_resume", broker) for broker in range(4)]
    assert network.node_of.tolist() == [0, 1, 2, 3]
    metrics = network.metrics()
    assert (metrics["reconfigurations"], metrics["delivered"], metrics["lost_crashed"]) == (0, 2, 2)
    assert [decision.enacted for decision in network.manager.decisions] == [True]


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_a_broker_that_crashes_before_finish_comes_knows_of_it_when_it_is_up_again(plane: str) -> None:
    """FINISH is on its way to broker 3, which crashes at 43.4 s: the new configuration stands, at 43.5 s for all."""
    network = line([], hop=FAR, join="message", horizon=60.0, fails=(Outage(43.4, 50.0, 3),), plane=plane)
    seen = steps(network, "_finish")
    network.run()
    assert seen[-1] == (43.5, "_finish", 3)
    assert network.node_of.tolist() == [3, 1, 2, 0]
    assert network.metrics()["reconfigurations"] == 1


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_a_broker_that_is_back_in_time_changes_places_with_the_others(plane: str) -> None:
    network = line(
        [],
        hop=FAR,
        join="message",
        horizon=60.0,
        fails=(Outage(20.0, 21.0, 2),),
        process={"timeout": 5.0},
        plane=plane,
    )
    network.run()
    assert network.node_of.tolist() == [3, 1, 2, 0]


def test_a_cut_that_lasts_ends_a_transition() -> None:
    network = line([], hop=FAR, join="message", horizon=60.0, fails=(BrokenLink(20.0, math.inf, 0, 1),))
    seen = steps(network, "_resume")
    network.run()
    assert seen == [(20.1, "_resume", broker) for broker in range(4)]
    assert network.node_of.tolist() == [0, 1, 2, 3]


def test_brokers_that_are_routed_around_stay_and_the_others_change_places() -> None:
    """Of six on a ring, broker 2 has crashed: the policy is asked for the five others on their nodes, and they move."""
    shuffle, nodes = Shuffle(5), [4, 2, 0, 5, 1, 3]
    ring = Chord(Chord.Parameters(), GeometrySetting(6, 2, 1))
    world = tiny.workload([{0}, {1}], [(time / 2, 0, 0, 1) for time in range(40)], topics=2, horizon=30.0)
    parameters = ProcessParameters().model_copy(update={"period": 4.0, "threshold": 1.0, "constants": PAYS})
    network = tiny.network(
        world,
        ring,
        [0, 1],
        0.25,
        node_of=nodes,
        reconfiguration=ReconfigurationSetting(shuffle, parameters, 1),
        faults=resolve_faults([Outage(1.0, math.inf, 2)], 6, 30.0),
        healing=HealingSetting(1.0),
    )
    network.run()
    assert network.metrics()["reconfigurations"] >= 3
    assert network.node_of.item(2) == nodes[2]
    assert network.node_of.tolist() != nodes
    assert sorted(network.node_of.tolist()) == list(range(6))
    assert network.metrics()["lost"] == 0


def test_finish_that_comes_after_the_question_comes_too_late() -> None:
    """Brokers need a second for a message: the manager dies when FINISH has come to all, and none has got to it."""
    busy = {"join": "message", "service": "deterministic", "service_time": 1.0, "horizon": 100.0}
    network = line([], **busy, process={"period": 50.0})
    finished = steps(network, "_on_finish")
    run(network)
    assert network.node_of.tolist() == [3, 1, 2, 0]
    death = finished[0][0] - 0.25
    network = line([], **busy, process={"period": 50.0}, dead=(death, 100.0))
    late = steps(network, "_on_finish", "_finish", "_resume")
    run(network)
    assert [step for _, step, _ in late].count("_on_finish") == 4
    assert [step for _, step, _ in late].count("_resume") == 4
    assert "_finish" not in [step for _, step, _ in late]
    assert network.node_of.tolist() == [0, 1, 2, 3]


def test_rates_are_filtered_and_what_does_not_pay_is_left() -> None:
    policy = To(3, 1, 2, 0)
    times = [0.5, 1.0, 1.5, 2.0, 4.0, 7.0, 9.0, 13.0]
    network = line(
        [(time, 0, 0, 1) for time in times],
        policy=policy,
        process={"constants": (1000.0, 1.0, 1.0), "threshold": 0.0},
        dead=(11.5, 12.5),
    )
    run(network)
    expected = [4.0]
    for seen in (2.0, 1.0):  # what was seen by 12 s nobody knows
        expected.append(0.7 * expected[-1] + 0.3 * seen)
    found = [problem.publications[0] for problem in policy.asked[:3]]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("threshold", "constants", "asked", "enacted"),
    [
        (0.2, (1.0, 1.0, 1.0), False, False),  # the most that moving may cost is 4 + (4 + 2 · 2) · 4 = 36
        (0.25, (4.0, 0.0, 0.0), False, False),  # 16
        (0.1, (1.0, 1.0, 1.0), True, False),  # to move two costs 4 + (4 + 2 · 2) · 2 = 20
        (0.1, (0.5, 0.0, 0.0), True, False),  # 2
        (0.1, (0.4, 0.0, 0.0), True, True),  # 1.6
    ],
)
def test_nothing_is_computed_where_little_is_at_stake_nor_done_where_little_is_gained(
    threshold: float, constants: tuple[float, ...], asked: bool, enacted: bool
) -> None:
    """Broker 0 is a hop from the root, broker 3 two, past a relay: a publication costs 4. Were 2 and 3 to swap, it would cost 2."""
    policy, process = To(0, 1, 3, 2), {"threshold": threshold, "constants": constants}
    network = line([(1.0, 0, 0, 1)], policy=policy, process=process, horizon=8.0)
    run(network)
    (decision,) = network.manager.decisions
    assert (decision.cost, bool(policy.asked), decision.enacted) == (4.0, asked, enacted)
    assert decision.benefit == (2.0 if asked else None)
    assert network.metrics()["ssbr_cost"] == (2.0 if enacted else 4.0)


def test_a_policy_that_puts_two_brokers_on_a_node_is_told_so() -> None:
    network = line([(1.0, 0, 0, 1)], policy=To(0, 0, 1, 2))
    with pytest.raises(BrokersimError, match="reconfiguration policy To: node_of is not a permutation of 4 nodes"):
        network.run()


@pytest.mark.parametrize(
    "geometry",
    [{"kind": "star"}, {"kind": "full-mesh"}, {"kind": "topic-connected"}, {"kind": "tapestry", "pns": True}],
    ids=lambda geometry: geometry["kind"],
)
def test_where_nodes_are_brokers_for_good_none_is_moved(geometry: dict[str, Any]) -> None:
    raw = {
        "workload": {"kind": "poisson", "users": 10, "topics": 10, "horizon": "1h"},
        "network": {"brokers": 4, "geometry": geometry},
        "reconfiguration": {"kind": "lsap"},
    }
    complaint = rf'reconfiguration\.kind: "lsap" moves brokers .* geometry "{geometry["kind"]}" .* \(allowed: "none"\)'
    with pytest.raises(ScenarioError, match=complaint):
        load_scenario(raw)


@pytest.mark.parametrize("geometry", ["chord", "tapestry"])
def test_brokers_that_move_where_it_pays_are_nearer_to_what_they_want(geometry: str) -> None:
    raw = {
        "workload": {"kind": "poisson", "users": 60, "topics": 30, "horizon": "6h", "publication_rate": 60},
        "network": {"brokers": 20, "geometry": {"kind": geometry}},
    }
    still, moving = (
        simulate(scenario, prepare_workload(scenario, 0, None), 0)
        for scenario in (
            load_scenario(raw).variants["base"],
            load_scenario({**raw, "reconfiguration": {"kind": "lsap", "period": "1h"}}).variants["base"],
        )
    )
    assert moving.metrics["reconfigurations"] >= 1
    assert moving.metrics["due"] == still.metrics["due"]
    assert moving.metrics["tree_hops"] < 0.9 * still.metrics["tree_hops"]
    moves = moving.tables["decisions/configuration"]
    assert sorted(moves["node"][:20]) == list(range(20))
    assert len(moves["node"]) == 20 + moving.metrics["reconfigured_brokers"]
    last = dict(zip(moves["broker"].tolist(), moves["node"].tolist(), strict=True))
    assert list(last.values()) == moving.tables["brokers"]["node"].tolist()
    assert "decisions/reconfiguration" not in still.tables


# -- what holds at every step


class Witness:
    """Looks at the network at the steps of the protocol."""

    def __init__(self, network: Network, case: Case) -> None:
        assert network._protocol is not None
        self.network, self.case, self.protocol = network, case, network._protocol
        self.tally: Counter[str] = Counter()
        self.before: Any = None
        self.anew = overlay(case)
        self.expected: dict[int, set[int]] = {}  # released publication → brokers to which it shall be due
        self.steps: list[float] = []  # when something of the protocol happened
        for name in STEPS:
            self.spy(name)
        release = network.engine.release

        def released(broker: int) -> None:
            for number in network.engine._held.get(broker, []):
                topic = int(network.workload.publications.topic[number])
                self.expected[number] = set(np.flatnonzero(network.subscriptions.wanted.row(topic)).tolist())
            release(broker)

        network.engine.release = released

    def spy(self, name: str) -> None:
        act = getattr(self.protocol, name)

        def spied(*given: Any) -> None:
            self.steps.append(self.network.clock.now)
            if (look := getattr(self, "before" + name, None)) is not None:
                look(*given)
            act(*given)

        setattr(self.protocol, name, spied)

    @property
    def state(self) -> tuple[Any, ...]:
        """Who stands where, and all tables."""
        overlaid, nodes = self.network.setting.overlay, range(self.case.brokers)
        return (
            self.network.node_of.tolist(),
            self.network.broker_of.tolist(),
            [overlaid.joined(node).tolist() for node in nodes],
            overlaid._members.dense().tolist(),
            [self.tree(topic) for topic in range(self.case.topics)],
        )

    def tree(self, topic: int) -> list[list[int]]:
        tree = self.network.setting.overlay.tree(topic, 0)
        return [getattr(tree, name).tolist() for name in TREE]

    def fresh(self, topic: int) -> list[list[int]]:
        """The tree of an overlay that has none, once brokers have joined for what they want where they stand now."""
        nodes = self.network.node_of[self.network.subscriptions.wanted.row(topic) > 0].tolist()
        for node in nodes:
            self.anew.join(topic, node)
        tree = self.anew.tree(topic, 0)
        for node in nodes:
            self.anew.leave(topic, node)
        return [getattr(tree, name).tolist() for name in TREE]

    def before_drained(self, transition: Any) -> None:
        if Stage.HOLDING in transition.stage:
            assert not self.network.engine._in_transit.flights
            self.before = transition, self.state

    def before_on_tree_update(self, transition: Any, broker: int) -> None:
        if not set(transition.stage) & {Stage.REPAIRING, Stage.REPAIRED, Stage.ASKING, Stage.FALLEN_BACK}:
            trees = self.before[1][-1]
            assert trees == [self.tree(topic) for topic in range(self.case.topics)]  # step 3.1: node edges unchanged
            assert self.network.node_of.tolist() == transition.new
            assert self.network.broker_of[self.network.node_of].tolist() == list(range(self.case.brokers))

    def before_record(self, transition: Any) -> None:
        self.tally["carried out"] += 1
        assert self.network.node_of.tolist() == transition.new
        for topic in range(self.case.topics):
            assert self.tree(topic) == self.fresh(topic)

    def before_over(self, _: Any) -> None:
        transition = self.protocol._transition
        stages = set(transition.stage)
        assert stages == {Stage.FINISHED} if transition.outcome else stages == {Stage.FALLEN_BACK}
        if not transition.outcome:
            self.tally["fallen back"] += 1
            if self.before is not None and self.before[0] is transition:
                self.tally["fallen back after the drain"] += 1
                assert self.state == self.before[1]

    def before_give_up(self, transition: Any) -> None:
        for stage in set(transition.stage):
            self.tally[f"given up with brokers {stage.name}"] += 1


def check(case: Case, process: dict[str, Any]) -> Witness:
    """Run a case in which brokers move, and check all that must hold."""
    last = max([case.horizon, *(row[0] for row in case.publications)])
    stop = last + 1.0
    case.horizon = last + 1000.0
    network = reconfigured(case, process, "events")
    witness = Witness(network, case)
    decide = network.manager._decide
    network.manager._decide = lambda number: decide(number) if network.clock.now < stop else None
    finished: list[Any] = []
    finish = network.engine.rule.finished.add
    network.engine.rule.finished.add = lambda flight, *sent, **named: (
        finished.append(flight),
        finish(flight, *sent, **named),
    )
    network.run()
    metrics = network.metrics()
    assert not network._protocol.running
    assert len(finished) == len(case.publications) == len({flight.number for flight in finished})
    assert metrics["duplicates"] == metrics["in_flight"] == 0
    for flight in finished:
        assert not np.isnan(np.array(flight.served)[flight.due_users > 0]).any()
        if flight.number in witness.expected and case.join == "instant":
            due = {broker for broker, users in zip(flight.brokers, flight.due_users.tolist(), strict=True) if users}
            assert due == witness.expected[flight.number]
    for topic in range(case.topics):
        assert witness.tree(topic) == witness.fresh(topic)
    witness.tally["held back"] += len(witness.expected)
    witness.tally["delivered"] += metrics["delivered"]
    return witness


def test_nothing_is_lost_and_trees_are_as_if_built_anew_whenever_the_manager_dies() -> None:
    tally: Counter[str] = Counter()

    @reproducible(80)
    @given(cases(geometry="chord", queue=None), processes())
    def run(case: Case, process: dict[str, Any]) -> None:
        tally.update(check(case, process).tally)

    run()
    assert min(tally[what] for what in ("carried out", "fallen back")) >= least(20), tally


def test_the_manager_may_die_at_any_step() -> None:
    tally: Counter[str] = Counter()

    @reproducible(60)
    @given(
        cases(geometry="chord", queue=None, join="message"),
        st.floats(0, 1),
        st.sampled_from((0.0, 1e-6)),
        st.sampled_from((1e-3, GRAIN, 1.0)),
    )
    def run(case: Case, share: float, after: float, timeout: float) -> None:
        process = {"period": 2.0, "timeout": timeout}
        alive = check(replace(case), process)
        if alive.steps:
            death = alive.steps[int(share * (len(alive.steps) - 1))] + after
            tally.update(check(replace(case), {**process, "manager_dead": ((death, death + 0.5),)}).tally)

    run()
    stages = (Stage.OPEN, Stage.HOLDING, Stage.MOVED, Stage.REPAIRING, Stage.REPAIRED, Stage.FINISHED)
    assert min(tally[f"given up with brokers {stage.name}"] for stage in stages) >= least(3), tally
    assert min(tally[what] for what in ("carried out", "fallen back after the drain")) >= least(10), tally


# -- against the oracle


def expected(case: Case, process: dict[str, Any]) -> oracle.Network:
    key, shuffle = case.seed, Shuffle(2 + case.seed % 4)

    def choose(number: int, node_of: list[int]) -> list[int]:
        problem = SimpleNamespace(key=subkey(key, number), node_of=np.array(node_of))
        return shuffle.reconfigure(problem).node_of.tolist()

    return oracle.Network(
        expected_setting(case),
        expected_world(case),
        oracle.Process(process["period"], choose, 0.3, PAYS, process["timeout"], process["manager_dead"]),
        [case.horizon * look / 100 for look in case.looks],
    )


def test_simulator_and_oracle_agree_on_everything() -> None:
    tally: Counter[str] = Counter()

    @reproducible(120)
    @given(cases(geometry="chord", join="instant"), processes())
    def run(case: Case, process: dict[str, Any]) -> None:
        network = reconfigured(case, process, "events", trace=True)
        flights: list[Any] = []
        finish = network.engine.rule.finished.add
        network.engine.rule.finished.add = lambda flight, *sent: (flights.append(flight), finish(flight, *sent))
        network.run()
        truth = expected(case, process)
        compare_messages(network, flights, truth)
        compare_metrics(network.metrics(), oracle.metrics(truth, case.warm_up, case.horizon))
        compare_windows(network.recorder.timeseries(), truth, oracle.metrics)
        compare_delays(network, truth)
        compare_brokers(network, case, truth)
        moves = list(
            zip(
                *(column[case.brokers :].tolist() for column in network.tables()["decisions/configuration"].values()),
                strict=True,
            )
        )
        ids = names(case)
        assert [(time, b, ids[old], ids[new]) for time, b, old, new in moves] == truth.moves
        tally.update({"moves": len(moves), "released": len(truth.released), "held to the end": len(truth.held)})

    run()
    assert min(tally.values()) >= least(100), tally
