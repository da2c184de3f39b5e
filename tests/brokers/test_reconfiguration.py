"""Brokers change places while users publish, subscribe and move: nothing is lost or delivered twice, and trees are as if built anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_against_oracle import GRAIN, Case, built, cases, overlay, reproducible
from test_folded import NOTHING_CONTENDS, tables

from sim.brokers.network import Network
from sim.brokers.protocol import Stage
from sim.brokers.reconfiguration import ReconfigurationSetting
from sim.policies.reconfiguration.problem import Problem, Reconfiguration
from sim.policies.reconfiguration.process import ProcessParameters
from sim.randomness import uniform

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
    "_enter",
    "_over",
    "_give_up",
)
TREE = ("nodes", "parents", "first_child", "depth")


class Shuffle:
    """A policy that puts so many brokers on each other's nodes, at random."""

    def __init__(self, brokers: int) -> None:
        self.brokers = brokers

    def reconfigure(self, problem: Problem) -> Reconfiguration:
        n = len(problem.node_of)
        order = sorted(range(n), key=lambda broker: uniform(problem.key, broker))[: self.brokers]
        node_of = problem.node_of.copy()
        node_of[order] = np.roll(node_of[order], 1)
        return Reconfiguration(node_of)


def reconfigured(case: Case, process: dict[str, Any], plane: str = "auto") -> Network:
    """A network that shuffles brokers again and again."""
    parameters = {"threshold": 1.0, "constants": PAYS, **process}
    brokers = 2 + case.seed % 4
    setting = ReconfigurationSetting(Shuffle(brokers), ProcessParameters().model_copy(update=parameters), case.seed)
    return built(case, plane=plane, subscribers=True, reconfiguration=setting)


@st.composite
def processes(draw: st.DrawFn) -> dict[str, Any]:
    """Periods of some seconds, and times in which the manager is dead."""
    starts = draw(st.lists(st.integers(1, 120), max_size=6))
    return {
        "period": draw(st.sampled_from((1.0, 1.3, 3.0))),
        "timeout": draw(st.sampled_from((0.1, GRAIN, 1.0, 2.0))),
        "manager_down": tuple(
            (start * GRAIN / 2, start * GRAIN / 2 + draw(st.integers(1, 4)) * GRAIN) for start in starts
        ),
    }


def all_tables(network: Network) -> dict[str, bytes]:
    return tables(network) | {
        name: repr({key: np.asarray(value).tolist() for key, value in columns.items()}).encode()
        for name, columns in (("moves", network.configurations()), ("decisions", network.reconfigurations() or {}))
    }


def test_planes_agree_to_the_last_bit() -> None:
    tally: Counter[str] = Counter()

    @reproducible(80)
    @given(cases(geometry="chord", **NOTHING_CONTENDS), processes())
    def run(case: Case, process: dict[str, Any]) -> None:
        one, other = (reconfigured(case, process, plane) for plane in ("messages", "folded"))
        one.run()
        other.run()
        mine, others = all_tables(one), all_tables(other)
        assert [name for name in mine if mine[name] != others[name]] == []
        metrics = one.metrics()
        tally.update({name: metrics[name] for name in ("delivered", "reconfigurations", "in_flight")})

    run()
    print(tally)


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
        release = network.plane.release

        def released(number: int, broker: int) -> None:
            topic = int(network.workload.publications.topic[number])
            self.expected[number] = set(np.flatnonzero(network.subscriptions.wanted[topic]).tolist())
            release(number, broker)

        network.plane.release = released

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
        counts = {topic: counts.tolist() for topic, counts in overlaid._counts.items() if counts.any()}
        return (
            self.network.node_of.tolist(),
            self.network.broker_of.tolist(),
            [overlaid.joined(node).tolist() for node in nodes],
            counts,
            [self.tree(topic) for topic in range(self.case.topics)],
        )

    def tree(self, topic: int) -> list[list[int]]:
        tree = self.network.setting.overlay.tree(topic, 0)
        return [getattr(tree, name).tolist() for name in TREE]

    def fresh(self, topic: int) -> list[list[int]]:
        """The tree of an overlay that has none, once brokers have joined for what they want where they stand now."""
        nodes = self.network.node_of[self.network.subscriptions.wanted[topic] > 0].tolist()
        for node in nodes:
            self.anew.join(topic, node)
        tree = self.anew.tree(topic, 0)
        for node in nodes:
            self.anew.leave(topic, node)
        return [getattr(tree, name).tolist() for name in TREE]

    def before_drained(self, transition: Any) -> None:
        if Stage.HOLDING in transition.stage:
            assert not self.network.plane._active
            self.before = transition, self.state

    def before_on_tree_update(self, transition: Any, broker: int) -> None:
        if not set(transition.stage) & {Stage.REPAIRING, Stage.REPAIRED, Stage.ASKING, Stage.FALLEN_BACK}:
            trees = self.before[1][-1]
            assert trees == [self.tree(topic) for topic in range(self.case.topics)]  # step 3.1: node edges unchanged
            assert self.network.node_of.tolist() == transition.new
            assert self.network.broker_of[self.network.node_of].tolist() == list(range(self.case.brokers))

    def before_enter(self, transition: Any) -> None:
        self.tally["carried out"] += 1
        assert self.network.node_of.tolist() == transition.new
        for topic in range(self.case.topics):
            assert self.tree(topic) == self.fresh(topic)

    def before_over(self) -> None:
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
    """Run a case with brokers that move, and check everything that shall hold."""
    last = max([case.horizon, *(row[0] for row in case.publications)])
    stop = last + 1.0
    case.horizon = last + 1000.0
    network = reconfigured(case, process, "messages")
    witness = Witness(network, case)
    decide = network.manager._decide
    network.manager._decide = lambda number: decide(number) if network.clock.now < stop else None
    finished: list[Any] = []
    finish = network.recorder.finish
    network.recorder.finish = lambda flight, *sent, **named: (finished.append(flight), finish(flight, *sent, **named))
    network.run()
    metrics = network.metrics()
    assert not network._protocol.running
    assert len(finished) == len(case.publications) == len({flight.number for flight in finished})
    assert metrics["duplicates"] == metrics["in_flight"] == 0
    for flight in finished:
        assert not np.isnan(np.array(flight.arrival)[flight.due_users > 0]).any()
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
    print(tally)


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
            tally.update(check(replace(case), {**process, "manager_down": ((death, death + 0.5),)}).tally)

    run()
    print(tally)
