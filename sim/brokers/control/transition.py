"""Transitions between configurations: the stage of each broker, and the live mapping of brokers to nodes."""

from __future__ import annotations

from array import array
from enum import Enum, auto

import numpy as np
import simpy
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.fabric.fabric import Fabric


class Stage(Enum):
    """The stage of a broker in a transition."""

    OPEN = auto()  # INIT has not arrived
    HOLDING = auto()  # it holds back publications and updates of its users
    MOVED = auto()  # it is on its new node
    REPAIRING = auto()  # its table has left for the broker on its old node
    REPAIRED = auto()  # it has joined and left trees to correct its new node's table
    FINISHED = auto()  # FINISH has arrived: the new configuration stands
    ASKING = (
        auto()
    )  # it no longer waits for the manager, and asks the others; later messages from the manager are ignored
    FALLEN_BACK = auto()  # it is back on its old node


class Transition:
    """One run of the protocol among its `members`, the brokers that take part: their old and new nodes, and stages."""

    def __init__(
        self, old: NDArray[np.int32], new: NDArray[np.int32], deadline: float, members: NDArray[np.int64]
    ) -> None:
        brokers = len(old)
        self.members: list[int] = members.tolist()
        self.aside: list[int] = np.delete(np.arange(brokers), members).tolist()
        self.old: list[int] = old.tolist()
        self.new: list[int] = new.tolist()
        self.successor = np.argsort(new)[old].tolist()  # the broker that moves to each broker's old node
        self.moved: list[int] = np.flatnonzero(old != new).tolist()
        self.deadline = deadline  # when brokers stop waiting for a manager that dies meanwhile
        self.stage = [Stage.OPEN] * brokers
        self.informed = 0  # brokers that INIT has reached
        self.table = [False] * brokers  # whether the table of the new node has arrived
        self.unanswered = [0] * brokers  # joins and leaves
        self.repairs: list[list[tuple[int, int]]] = [
            [] for _ in range(brokers)
        ]  # per node: (topic, ±1), enacted in turn
        self.refusals = [0] * brokers  # other brokers that have reported that they have no FINISH either
        self.fallen_back = [0] * brokers  # others that have reported that
        self.resumed: set[int] = set()
        self.finishing = False  # whether the manager has sent FINISH
        self.given_up = False  # because of something that fails: messages that are still under way have no effect
        self.answers: simpy.Event | None = None  # the event that the manager waits for
        self.awaited = 0
        self.outcome: bool | None = None  # whether the new configuration stands; None: undecided


class Placement:
    """The live mapping of brokers to nodes, and its changes since the start."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, self._first = fabric, fabric.node_of.copy()
        self._moved_at = array("d")  # s; with it, (broker, from, node) of each move
        self._moves = array("i")

    def stand(self, broker: int, node: int) -> None:
        """Move the broker to another node."""
        self._fabric.node_of[broker] = node
        self._fabric.broker_of[node] = broker

    def record(self, transition: Transition) -> None:
        """Record that brokers have moved permanently."""
        for broker in transition.moved:
            self._moved_at.append(self._fabric.clock.now)
            self._moves.extend((broker, transition.old[broker], transition.new[broker]))

    def table(self) -> Columns:
        """The node of each broker from a time on, as columns of a table; `from` is -1 initially."""
        n, moves = len(self._first), np.array(self._moves, np.int32).reshape(-1, 3)
        return {
            "time": np.concatenate([np.zeros(n), np.array(self._moved_at)]),
            "broker": np.concatenate([np.arange(n), moves[:, 0]]),
            "from": np.concatenate([np.full(n, -1), moves[:, 1]]),
            "node": np.concatenate([self._first, moves[:, 2]]),
        }
