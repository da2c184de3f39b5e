"""How brokers change places: the reconfiguration protocol (DYNATOPS III.D4), message by message, also where the manager dies."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Generator, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.brokers.control.courier import Courier
from sim.brokers.control.trees import TreeControl
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.users import Users
from sim.overlay.trees import RendezvousTrees
from sim.policies.reconfiguration.process import ProcessParameters


class Stage(Enum):
    """How far a broker is."""

    OPEN = auto()  # INIT has not come
    HOLDING = auto()  # it holds back publications and updates of its users
    MOVED = auto()  # it stands on its new node
    REPAIRING = auto()  # its table has left for the broker on its old node
    REPAIRED = auto()  # it has joined and left the trees in which its new node was wrong
    FINISHED = auto()  # FINISH has come: the new configuration stands
    ASKING = auto()  # it has given up waiting for the manager, and asks the others; whatever else comes from the manager comes too late
    FALLEN_BACK = auto()  # it stands where it stood before


class Transition:
    """One run of the protocol: from which nodes brokers move to which, and how far each of them is."""

    def __init__(self, old: NDArray[np.int32], new: NDArray[np.int32], deadline: float) -> None:
        brokers = len(old)
        self.old: list[int] = old.tolist()
        self.new: list[int] = new.tolist()
        self.successor = np.argsort(new)[old].tolist()  # who comes to stand on each broker's old node
        self.moved: list[int] = np.flatnonzero(old != new).tolist()
        self.deadline = deadline  # when brokers give up waiting for a manager that dies on the way
        self.stage = [Stage.OPEN] * brokers
        self.informed = 0  # brokers that INIT has come to
        self.table = [False] * brokers  # whether the table of the new node has come
        self.unanswered = [0] * brokers  # joins and leaves
        self.repairs: list[list[tuple[int, int]]] = [[] for _ in range(brokers)]  # per node: topic, ±1, enacted in turn
        self.refusals = [0] * brokers  # others that have said that they have no FINISH either
        self.fallen_back = [0] * brokers  # others that have said so
        self.resumed = 0
        self.answers: simpy.Event | None = None  # what the manager waits for
        self.awaited = 0
        self.outcome: bool | None = None  # whether the new configuration stands; None: open


class Protocol:
    """Carries out one transition at a time, and keeps the live mapping of brokers to nodes.

    From INIT to FINISH brokers hold back what their users publish, subscribe to and move to, in order. The manager goes on from
    INIT once nothing is on its way any more. At FINISH a broker lets its publications go; updates wait until all publications that
    were held back have left their roots, so that what is due is due to those who subscribed at INIT. Where joins are messages, all
    of these are, and load brokers; else they take no time and are counted only.

    The manager stands beside the broker with the least mean time to the others, the lowest on ties. While it is dead, during
    `manager_down` (from, to), it does nothing, and what it had begun does not go on: `timeout` seconds after its death brokers ask
    each other. If any has FINISH, the new configuration stands, else all fall back to the old one.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        courier: Courier,
        control: TreeControl,
        engine: Engine,
        users: Users,
        wanted: NDArray[np.int32],
        parameters: ProcessParameters,
    ) -> None:
        assert isinstance(fabric.overlay, RendezvousTrees)
        self._fabric, self._clock, self._recorder = fabric, fabric.clock, recorder
        self._overlay = fabric.overlay
        self._courier, self._control, self._engine, self._users = courier, control, engine, users
        self._wanted, self._timeout, self._manager_down = wanted, parameters.timeout, parameters.manager_down
        brokers = len(fabric.node_of)
        sums = [math.fsum(times) for times in fabric.links.hop_delay]  # exact, so that ties are
        self._manager = sums.index(min(sums))
        self._rejoin = math.ceil(math.log2(brokers) ** 2)  # messages that mend the ring when a broker rejoins
        self._holding = [False] * brokers
        self._transition: Transition | None = None
        self._waiting: list[Callable[[], None]] = []  # for the transition to be over
        self._post: deque[Callable[[], None]] = deque()  # messages that take no time
        self._delivering = False
        self.moved_at = array("d")  # s; beside it (broker, from, node) of each move
        self.moves = array("i")

    @property
    def running(self) -> bool:
        """Whether a transition is under way, or updates still wait for publications that it held back."""
        return self._transition is not None

    def when_over(self, then: Callable[[], None]) -> None:
        """Have `then()` called once, when the transition that is under way is over and what was held back is enacted."""
        self._waiting.append(then)

    def holds(self, number: int, broker: int) -> bool:
        """Whether the broker holds back a publication that arrives now; then it has taken it."""
        if self._holding[broker]:
            self._engine.hold(number, broker)
        return self._holding[broker]

    def down(self, now: float) -> bool:
        """Whether the manager is dead."""
        return any(start <= now < end for start, end in self._manager_down)

    # -- messages

    def _send(self, path: Sequence[int], counter: str, arrived: Callable[[], None], to_broker: bool = True) -> None:
        """Send a message over brokers; each hop is counted as `counter`. The manager is no broker, but stands beside one."""
        hops = len(path) - 1

        def passed(position: int) -> None:
            self._recorder.count(counter, self._clock.now, position < hops)

        if not self._fabric.joins_instantly:
            self._courier.send(path, passed, arrived, to_broker)
            return
        for position in range(hops):
            passed(position)
        self._post.append(arrived)
        if not self._delivering:
            self._delivering = True
            while self._post:
                self._post.popleft()()
            self._delivering = False

    def _order(self, transition: Transition, broker: int, order: Callable[[Transition, int], None]) -> None:
        """From the manager to a broker."""
        path = (self._manager, broker)
        self._send(path, "reconfiguration_overhead", partial(order, transition, broker))

    def _answer(self, transition: Transition, broker: int, counter: str) -> None:
        """From a broker to the manager."""
        path = (broker, self._manager)
        self._send(path, counter, partial(self._answered, transition), to_broker=False)

    def _tell(self, here: int, there: int, message: Callable[[], None]) -> None:
        """From a broker to another."""
        self._send((here, there), "reconfiguration_overhead", message)

    # -- the manager

    def carry_out(self, new: NDArray[np.int32]) -> Generator[simpy.Event, Any, None]:
        """The manager's part of moving all brokers to these nodes (n): a piece of a SimPy process."""
        clock, brokers = self._clock, range(len(new))
        manager = clock.active_process
        assert manager is not None
        death = min((start for start, _ in self._manager_down if start > clock.now), default=math.inf)
        transition = Transition(self._fabric.node_of, new, death + self._timeout)
        self._transition = transition
        if death < math.inf:
            clock.call(death, CONTROL, partial(self._die, transition, manager))
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
        transition.answers = None
        for broker in brokers:
            self._order(transition, broker, self._on_finish)

    def _answered(self, transition: Transition) -> None:
        transition.awaited -= 1
        if not transition.awaited and transition.answers is not None:
            transition.answers.succeed()

    def _die(self, transition: Transition, manager: simpy.Process) -> None:
        if transition.answers is not None:
            transition.answers = None
            manager.interrupt()

    # -- brokers: step 1, they hold back, and what is on its way arrives

    def _on_init(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is not Stage.OPEN:
            return
        transition.stage[broker] = Stage.HOLDING
        self._holding[broker] = True
        self._users.hold(broker)
        transition.informed += 1
        if self._clock.now >= transition.deadline:
            self._ask(transition, broker)
        elif transition.informed == len(self._holding):
            self._control.all_answered(partial(self._engine.when_idle, partial(self._drained, transition)))

    def _drained(self, transition: Transition) -> None:
        """Nothing is on its way any more; each broker reports so."""
        for broker, stage in enumerate(transition.stage):
            if stage is Stage.HOLDING:
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
        self._fabric.node_of[broker] = node
        self._fabric.broker_of[node] = broker
        self._engine.brokers_moved()

    # -- step 3.1, tables stay with the nodes; step 3.2, trees follow what brokers want

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
        if transition.stage[broker] is Stage.REPAIRING:  # else its own has not left yet, and this one waits
            self._repair(transition, broker)

    def _repair(self, transition: Transition, broker: int) -> None:
        """Compare the table with what the broker wants."""
        node = transition.new[broker]
        wrong = np.flatnonzero((self._wanted[:, broker] > 0) != self._overlay.joined(node)).tolist()
        transition.unanswered[broker] = len(wrong)
        for topic in wrong:
            change = 1 if self._wanted[topic, broker] else -1
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

    # -- step 4, they go on

    def _on_finish(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] in (Stage.HOLDING, Stage.REPAIRED):
            self._finish(transition, broker)

    def _finish(self, transition: Transition, broker: int) -> None:
        transition.stage[broker] = Stage.FINISHED
        if transition.outcome is None:
            transition.outcome = True
            self._enter(transition)
        self._resume(transition, broker)

    def _enter(self, transition: Transition) -> None:
        """Enter the new configuration into the books."""
        self._recorder.count("reconfigurations", self._clock.now)
        self._recorder.count("reconfigured_brokers", self._clock.now, len(transition.moved))
        for broker in transition.moved:
            self.moved_at.append(self._clock.now)
            self.moves.extend((broker, transition.old[broker], transition.new[broker]))

    def _resume(self, transition: Transition, broker: int) -> None:
        self._holding[broker] = False
        self._engine.release(broker)
        transition.resumed += 1
        if transition.resumed == len(self._holding):
            self._engine.when_rooted(self._over)

    def _over(self) -> None:
        self._transition = None
        self._users.release()
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    # -- the manager is dead: brokers settle among themselves

    def _give_up(self, transition: Transition) -> None:
        """The time-out of all brokers that wait for the manager."""
        for broker, stage in enumerate(transition.stage):
            if stage in (Stage.HOLDING, Stage.MOVED, Stage.REPAIRING, Stage.REPAIRED):
                self._ask(transition, broker)

    def _ask(self, transition: Transition, broker: int) -> None:
        """Tell all others that the broker has no FINISH, and takes none any more; whether they have?"""
        transition.stage[broker] = Stage.ASKING
        for other in range(len(self._holding)):
            if other != broker:
                self._tell(broker, other, partial(self._on_question, transition, other, broker))
        self._fall_back_if_all_do(transition, broker)

    def _on_question(self, transition: Transition, broker: int, asking: int) -> None:
        if transition.stage[broker] is Stage.FINISHED:
            self._tell(broker, asking, partial(self._on_word_of_finish, transition, asking))
            return
        transition.refusals[broker] += 1
        if transition.stage[broker] is not Stage.ASKING:
            self._ask(transition, broker)
        self._fall_back_if_all_do(transition, broker)

    def _on_word_of_finish(self, transition: Transition, broker: int) -> None:
        if transition.stage[broker] is Stage.ASKING:
            self._finish(transition, broker)

    def _fall_back_if_all_do(self, transition: Transition, broker: int) -> None:
        """Nobody has FINISH, and nobody will: back to the old node with its old table, which the broker has kept."""
        others = len(self._holding) - 1
        if transition.stage[broker] is not Stage.ASKING or transition.refusals[broker] < others:
            return
        transition.stage[broker] = Stage.FALLEN_BACK
        transition.outcome = False
        node = transition.old[broker]
        if self._fabric.node_of[broker] != node:
            self._stand(broker, node)
        self._fabric.broker_of[node] = broker
        for topic, change in reversed(transition.repairs[node]):
            self._control.enact(topic, node, -change)
        for other in range(len(self._holding)):
            if other != broker:
                self._tell(broker, other, partial(self._on_fallen_back, transition, other))
        self._resume_if_all_fell_back(transition, broker)

    def _on_fallen_back(self, transition: Transition, broker: int) -> None:
        transition.fallen_back[broker] += 1
        self._resume_if_all_fell_back(transition, broker)

    def _resume_if_all_fell_back(self, transition: Transition, broker: int) -> None:
        others = len(self._holding) - 1
        if transition.stage[broker] is Stage.FALLEN_BACK and transition.fallen_back[broker] == others:
            self._resume(transition, broker)
