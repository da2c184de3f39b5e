"""The reconfiguration manager: it observes publications, asks a policy, and enacts changes that pay off (DYNATOPS algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.base.arrays import frozen
from sim.base.errors import PluginError
from sim.base.randomness_kernels import keyed_subkey
from sim.brokers.control.protocol import ReconfigurationProtocol
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.overlay.pair_times import PairTimes
from sim.overlay.tree_kernels import route_lengths
from sim.overlay.trees import RendezvousTrees
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import ReconfigurationPolicy, ReconfigurationProblem
from sim.policies.reconfiguration.process import ProcessParameters


@dataclass(frozen=True, eq=False)
class ReconfigurationSetting:
    """The reconfiguration policy, the parameters of the process, and the key of the policy's draws."""

    policy: ReconfigurationPolicy
    parameters: ProcessParameters
    key: int


@dataclass
class ReconfigurationRecord:
    """The decision at the end of a period: the cost of the configuration (eq. 6), and the `threshold` for asking the policy.

    If it was exceeded: the cost of the policy's configuration, the benefit (eq. 10), the cost of moving (eq. 11) and the number of
    brokers to move. `enacted` is whether the protocol began.
    """

    time: float
    cost: float
    threshold: float
    cost_after: float | None = None
    benefit: float | None = None
    move_cost: float | None = None
    moved: int | None = None
    enacted: bool = False


class Manager:
    """The reconfiguration manager. `published(start, end)`: publications per topic from one time to another.

    At the end of each period it weighs the last one's publications with those before (eq. 12). If the cost of notifications is
    above a share of the largest cost of reconfiguration, the policy is asked, and its configuration enacted if that saves more than
    it costs. While a protocol runs or the manager is dead, nothing is decided; publications that it does not see do not count.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        protocol: ReconfigurationProtocol,
        subscriptions: Subscriptions,
        published: Callable[[float, float], NDArray[np.int64]],
        setting: ReconfigurationSetting,
    ) -> None:
        assert isinstance(fabric.overlay, RendezvousTrees)
        self._fabric, self._overlay, self._protocol, self._recorder = fabric, fabric.overlay, protocol, recorder
        self._subscriptions, self._published, self._setting = subscriptions, published, setting
        self._rates: NDArray[np.float64] | None = None  # publications per topic and period
        self._round_trips = _relative(fabric.links.hops) if setting.parameters.delay == "round-trips" else None
        self.decisions: list[ReconfigurationRecord] = []

    def start(self) -> None:
        """Start the periodic decisions."""
        self._fabric.clock.process(self._run())

    def _run(self) -> Generator[simpy.Event, object, None]:
        clock, period = self._fabric.clock, self._setting.parameters.period
        number = 0
        while True:
            number += 1
            if number * period < clock.now:  # the protocol was running
                self._watch(number)
                continue
            yield clock.until(number * period, CONTROL)
            self._watch(number)
            if not (
                self._protocol.running or self._protocol.watch.manager_down(clock.now) or self._protocol.watch.hampered
            ):
                target = self._decide(number)
                if target is not None:
                    yield from self._protocol.carry_out(target)

    def table(self) -> dict[str, list[float | int | bool | None]]:
        """The decisions at the ends of periods, as columns of a table."""
        names = [field.name for field in fields(ReconfigurationRecord)]
        return {name: [getattr(decision, name) for decision in self.decisions] for name in names}

    def _watch(self, number: int) -> None:
        """Weigh the publications of a period that has ended with those before."""
        parameters = self._setting.parameters
        start, end = (number - 1) * parameters.period, number * parameters.period
        if self._protocol.watch.manager_down(end):
            return
        seen = self._published(start, end).astype(np.float64)
        weight = parameters.smoothing
        self._rates = seen if self._rates is None else (1 - weight) * self._rates + weight * seen

    def _decide(self, number: int) -> NDArray[np.int32] | None:
        """Ask the policy; returns the new node of each broker, or None where they do not move."""
        setting, parameters = self._setting, self._setting.parameters
        recorder, now = self._recorder, self._fabric.clock.now
        problem = self._problem(number)
        objective = CostModel(problem)
        decision = ReconfigurationRecord(now, objective.cost, parameters.threshold * objective.max_move_cost)
        self.decisions.append(decision)
        if decision.cost <= decision.threshold:
            self._count_cost(decision.cost)
            return None
        brokers = self._protocol.watch.taking_part()
        nodes, target = np.sort(self._fabric.node_of[brokers]), setting.policy.reconfigure(problem).node_of
        try:
            objective.place(target)
        except ValueError as error:
            raise PluginError(f"reconfiguration policy {type(setting.policy).__name__}: {error}") from None
        decision.moved, decision.cost_after = objective.moved, objective.cost
        decision.benefit = decision.cost - decision.cost_after
        decision.move_cost = objective.move_cost(objective.moved)
        decision.enacted = objective.moved > 0 and decision.benefit > decision.move_cost
        self._count_cost(decision.cost_after if decision.enacted else decision.cost)
        if not decision.enacted:
            return None
        recorder.count("reconfiguration_bound", now, decision.move_cost)
        moved = self._fabric.node_of.copy()
        moved[brokers] = nodes[np.asarray(target)]
        return moved

    def _count_cost(self, cost: float) -> None:
        """The cost of the configuration that holds from now on."""
        now = self._fabric.clock.now
        self._recorder.count("ssbr_cost_sum", now, cost)
        self._recorder.count("ssbr_cost_count", now)

    def _problem(self, number: int) -> ReconfigurationProblem:
        """The problem of the brokers that take part, and their nodes, both numbered by their order."""
        parameters, overlay, brokers = self._setting.parameters, self._overlay, self._protocol.watch.taking_part()
        assert self._rates is not None
        nodes = np.sort(self._fabric.node_of[brokers])
        place = np.full(overlay.nodes + 1, -1, np.int32)  # the last entry stands for no node
        place[nodes] = np.arange(len(nodes))
        trips = self._round_trips
        if len(nodes) == overlay.nodes:
            parent, hops = overlay.parent, overlay.hops
        else:
            parent = place[np.stack([overlay.last_hops(node)[nodes] for node in nodes.tolist()])]
            hops = np.stack([route_lengths(row) for row in parent])
            trips = None if trips is None else frozen(trips[np.ix_(brokers, brokers)])
        return ReconfigurationProblem(
            parent=frozen(parent.view()),
            hops=frozen(hops.view()),
            roots=frozen(place[np.array(overlay.roots)]),
            wanted=frozen(self._subscriptions.all_serving()[:, brokers]),
            publications=frozen(self._rates.copy()),
            node_of=frozen(place[self._fabric.node_of[brokers]]),
            delay_weight=parameters.delay_weight,
            round_trips=trips,
            count_rendezvous=parameters.count_rendezvous,
            constants=parameters.constants,
            key=keyed_subkey(self._setting.key, number, 0),
        )


def _relative(times: PairTimes) -> NDArray[np.float64] | None:
    """Times (brokers, brokers) relative to their mean; None where that is 0."""
    trips, others = np.asarray(times), len(times) * (len(times) - 1)
    mean = float(trips.sum()) / others if others else 0.0
    return frozen(trips / mean) if mean > 0 else None
