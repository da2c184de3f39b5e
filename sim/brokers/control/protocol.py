"""The reconfiguration protocol (DYNATOPS III.D4), message by message, including failures of the manager."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.brokers.control.agreement import Agreement
from sim.brokers.control.transition import Placement, Stage, Transition
from sim.brokers.control.trees import TreeControl
from sim.brokers.control.watch import Ends, TransitionWatch
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.changes import Changes
from sim.brokers.users.subscriptions import Subscriptions
from sim.overlay.trees import RendezvousTrees


class ReconfigurationProtocol:
    """Carries out one transition at a time, and keeps the live mapping of brokers to nodes.

    From INIT to FINISH brokers hold back their users' publications, subscriptions and movements, in order. The manager proceeds
    from INIT once nothing is in transit. At FINISH a broker releases its publications; updates wait until all publications that
    were held back have left their roots, so that these are due to the subscribers at INIT. If joins are messages, so are all of the
    protocol's, which load brokers; otherwise they take no time and are only counted.

    The manager is co-located with the broker that has the least mean time to the others, the lowest on ties. While `manager_dead`
    (from, to), it does nothing, and a transition in progress is not continued: `timeout` seconds after its death brokers ask each
    other. If any has FINISH, the new configuration stands, otherwise all fall back to the old one. `watch` is about what fails.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        control: TreeControl,
        engine: Engine,
        changes: Changes,
        subscriptions: Subscriptions,
        timeout: float,
        manager_dead: Sequence[tuple[float, float]],
    ) -> None:
        assert isinstance(fabric.overlay, RendezvousTrees)
        self._fabric, self._clock, self._recorder = fabric, fabric.clock, recorder
        self._overlay, self.placement = fabric.overlay, Placement(fabric)
        self._courier, self._control, self._engine, self._changes = control.courier, control, engine, changes
        brokers, self._subscriptions = len(fabric.node_of), subscriptions
        self._timeout, self._manager_dead = timeout, manager_dead
        sums = [math.fsum(times) for times in fabric.links.hops]  # exact, so that ties are
        self._manager = sums.index(min(sums))
        self._rejoin = math.ceil(math.log2(brokers) ** 2)  # messages that repair the ring when a broker rejoins
        self._holding = [False] * brokers
        self._agreement = Agreement(self._send, self._finish, self._restore, self._resume)
        self._transition: Transition | None = None
        ends = Ends(self._finish, self._restore, self._resume, self._over)
        self.watch = TransitionWatch(fabric, recorder, control, engine, timeout, ends, manager_dead)
        # what is called when a transition is over; and when this one is, before and after what was held back is enacted
        self.moved: Callable[[], None] = lambda: None
        self._waiting: tuple[list[Callable[[], None]], list[Callable[[], None]]] = ([], [])

    @property
    def running(self) -> bool:
        """Whether a transition is in progress, or updates still wait for publications held back by it."""
        return self._transition is not None

    def when_over(self, then: Callable[[], None], enacted: bool = True) -> None:
        """Call `then()` once, when the current transition is over and everything held back is `enacted`, or about to be."""
        self._waiting[enacted].append(then)

    def holds(self, broker: int) -> bool:
        """Whether the broker holds publications back now."""
        return self._holding[broker]

    # -- messages

    def _send(self, path: Sequence[int], counter: str, arrived: Callable[[], None], to_broker: bool = True) -> None:
        """Send a message over brokers; each hop is counted as `counter`. The manager is co-located with a broker."""
        hops = len(path) - 1

        def passed(position: int) -> None:
            self._recorder.count(counter, self._clock.now, position < hops)

        self._courier.send(path, passed, arrived, to_broker)

    def _order(self, transition: Transition, broker: int, order: Callable[[Transition, int], None]) -> None:
        """Send an order from the manager to a broker."""
        self._send((self._manager, broker), "reconfiguration_overhead", partial(order, transition, broker))

    def _answer(self, transition: Transition, broker: int, counter: str) -> None:
        """Send an answer from a broker to the manager."""
        self._send((broker, self._manager), counter, partial(self._answered, transition), to_broker=False)

    # -- the manager

    def carry_out(self, new: NDArray[np.int32]) -> Generator[simpy.Event, object, None]:
        """The manager's part of moving all brokers to these nodes (n): a piece of a SimPy process."""
        clock, manager = self._clock, self._clock.active_process
        assert manager is not None
        death = min((start for start, _ in self._manager_dead if start > clock.now), default=math.inf)
        transition = Transition(self._fabric.node_of, new, death + self._timeout, self.watch.taking_part())
        self._transition, brokers = transition, transition.members
        for broker in transition.aside:
            self._holding[broker] = True  # it may be up again before the transition is over
        self.watch.begin(transition, manager)
        if death < math.inf:
            clock.call(death, CONTROL, partial(self.watch.interrupt, transition))
            clock.call(transition.deadline, CONTROL, partial(self._give_up, transition))
        try:
            for order, addressees, answering in (
                (self._on_init, brokers, brokers),
                (self._on_dht_update, transition.moved, transition.moved),
                (self._on_tree_update, brokers, transition.moved),
            ):
                transition.awaited, transition.answers = len(answering), clock.event()
                for broker in addressees:
                    self._order(transition, broker, order)
                yield transition.answers
        except simpy.Interrupt:
            return
        transition.answers, transition.finishing = None, True
        for broker in brokers:
            self._order(transition, broker, self._on_finish)

    def _answered(self, transition: Transition) -> None:
        transition.awaited -= 1
        if not transition.awaited and transition.answers is not None:
            transition.answers.succeed()

    # -- brokers: step 1, they hold back, and messages in transit arrive

    def _on_init(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is not Stage.OPEN:
            return
        transition.stage[broker] = Stage.HOLDING
        self._holding[broker] = True
        self._changes.hold(broker)
        transition.informed += 1
        if self._clock.now >= transition.deadline:
            self._agreement.ask(transition, broker)
        elif transition.informed == len(transition.members):
            self._control.all_answered(partial(self._drain, transition))

    def _drain(self, transition: Transition) -> None:
        if not transition.given_up:
            self._engine.when_idle(partial(self._drained, transition))

    def _drained(self, transition: Transition) -> None:
        """The network is drained: each broker reports this."""
        for broker in transition.members:
            if transition.stage[broker] is Stage.HOLDING:
                self._answer(transition, broker, "drain_messages")

    # -- step 2, they change places

    def _on_dht_update(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is Stage.HOLDING:
            transition.stage[broker] = Stage.MOVED
            self._stand(broker, transition.new[broker])
            self._answer(transition, broker, "reconfiguration_overhead")

    def _stand(self, broker: int, node: int) -> None:
        """Leave the ring and rejoin it on another node."""
        self._recorder.count("reconfiguration_overhead", self._clock.now, self._rejoin)
        self.placement.stand(broker, node)
        self._engine.brokers_moved()

    # -- step 3.1, tables stay with the nodes; step 3.2, trees follow the brokers' interests

    def _on_tree_update(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is not Stage.MOVED:
            return
        transition.stage[broker] = Stage.REPAIRING
        route = self._overlay.route(transition.new[broker], transition.old[broker])
        successor = transition.successor[broker]
        self._send(
            self._fabric.broker_of[route].tolist(),
            "reconfiguration_overhead",
            partial(self._on_table, transition, successor),
        )
        if transition.table[broker]:
            self._repair(transition, broker)

    def _on_table(self, transition: Transition, broker: int) -> None:
        transition.table[broker] = True
        if transition.stage[broker] is Stage.REPAIRING:  # otherwise its own has not left yet, and this one waits
            self._repair(transition, broker)

    def _repair(self, transition: Transition, broker: int) -> None:
        """Join and leave trees where the table differs from the broker's interests."""
        node, serving = transition.new[broker], self._subscriptions.serving(broker)
        wrong = np.flatnonzero(serving != self._overlay.joined(node)).tolist()
        transition.unanswered[broker] = len(wrong)
        for topic in wrong:
            change = 1 if serving[topic] else -1
            answered = partial(self._repaired, transition, broker, topic, change)
            self._control.ask(topic, node, "reconfiguration_overhead", answered)
        if not wrong:
            self._ready(transition, broker)

    def _repaired(self, transition: Transition, broker: int, topic: int, change: int) -> None:
        if transition.stage[broker] is not Stage.REPAIRING:
            return
        node = transition.new[broker]
        self._control.enact(topic, node, change)
        transition.repairs[node].append((topic, change))
        transition.unanswered[broker] -= 1
        if not transition.unanswered[broker]:
            self._ready(transition, broker)

    def _ready(self, transition: Transition, broker: int) -> None:
        transition.stage[broker] = Stage.REPAIRED
        self._answer(transition, broker, "reconfiguration_overhead")

    # -- step 4, they resume

    def _on_finish(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] in (Stage.HOLDING, Stage.REPAIRED):
            self._finish(transition, broker)

    def _finish(self, transition: Transition, broker: int) -> None:
        transition.stage[broker] = Stage.FINISHED
        if transition.outcome is None:
            transition.outcome = True
            self._record(transition)
        self._resume(transition, broker)

    def _record(self, transition: Transition) -> None:
        """Record that the new configuration stands."""
        self._recorder.count("reconfigurations", self._clock.now)
        self._recorder.count("reconfigured_brokers", self._clock.now, len(transition.moved))
        self.placement.record(transition)

    def _resume(self, transition: Transition, broker: int) -> None:
        if broker in transition.resumed:
            return
        transition.resumed.add(broker)
        everybody = len(transition.resumed) == len(transition.members)
        for released in (broker, *(transition.aside if everybody else ())):
            self._holding[released] = False
            self._engine.release(released)
        if everybody:
            self._engine.when_rooted(partial(self._over, transition))

    def _over(self, transition: Transition) -> None:
        if self._transition is not transition:
            return
        self.watch.end()
        self._transition, waiting, self._waiting = None, self._waiting, ([], [])
        for then in (self.moved, *waiting[False], self._changes.release, *waiting[True]):
            then()

    # -- the manager is dead

    def _give_up(self, transition: Transition) -> None:
        """Let all brokers that wait for the manager time out."""
        for broker in transition.members:
            if transition.stage[broker] in (Stage.HOLDING, Stage.MOVED, Stage.REPAIRING, Stage.REPAIRED):
                self._agreement.ask(transition, broker)

    def _restore(self, transition: Transition, broker: int) -> None:
        """Return the broker to its old node, with its old table, which it has kept."""
        node = transition.old[broker]
        if self._fabric.node_of[broker] != node:
            self._stand(broker, node)
        self._fabric.broker_of[node] = broker
        for topic, change in reversed(transition.repairs[node]):
            self._control.enact(topic, node, -change)
