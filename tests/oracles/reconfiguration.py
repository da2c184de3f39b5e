"""Tiny networks whose brokers change places by the instant protocol: its messages take no time, and the drain is the only wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from oracles import network
from oracles.network import ARRIVALS, TICKS, Setting, World

BARRIERS = ARRIVALS + 1


@dataclass
class Process:
    """At the end of each period `choose(number, node_of)` says where brokers shall stand, by their present nodes."""

    period: float
    choose: Callable[[int, list[int]], list[int]]
    smoothing: float
    constants: tuple[float, float, float]
    timeout: float
    manager_dead: Iterable[tuple[float, float]]


class Network(network.Network):
    def __init__(self, setting: Setting, world: World, process: Process, moments: Iterable[float] = ()) -> None:
        self.process = process
        self.holding = False  # publications
        self.updates_wait = False
        self.draining = False
        self.dead = False
        self.running = False
        self.attempt = 0
        self.late: int | None = None  # an offloading decision that waits
        self.held: list[tuple[int, int]] = []  # broker, publication
        self.held_changes: list[float] = []
        self.released: set[int] = set()
        self.expected: list[float] | None = None  # publications per topic and period
        self.protocol: list[float] = []  # when a message was sent
        self.drain: list[float] = []
        self.begun: list[tuple[float, float]] = []  # and eq. 11
        self.moves: list[tuple[float, int, int, int]] = []  # time, broker, from, to
        self.costs: list[tuple[float, float]] = []
        super().__init__(setting, world, moments)

    def run(self, moments: Iterable[float]) -> None:
        for number in range(1, int(self.setting.horizon / self.process.period) + 2):
            self.at(number * self.process.period, TICKS, partial(self.decide_places, number))
        super().run(moments)
        for broker, number in self.held:  # published, and due to those who want it at the end
            self.origin[number] = [broker]
            self.miss_root(number)

    # -- the manager

    def decide_places(self, number: int) -> None:
        process = self.process
        if any(start <= self.now < end for start, end in process.manager_dead):
            return
        seen = [0] * len(self.setting.roots)
        for time, topic, *_ in self.world.publications:
            seen[topic] += (number - 1) * process.period <= time < number * process.period
        old = self.expected
        a = process.smoothing
        self.expected = [(1 - a) * old[t] + a * seen[t] for t in range(len(seen))] if old else [float(n) for n in seen]
        if self.running:
            return
        new = process.choose(number, list(self.setting.node_of))
        moved = [broker for broker, node in enumerate(new) if node != self.setting.node_of[broker]]
        self.costs.append((self.now, self.cost(new if moved else self.setting.node_of)))
        if not moved:
            return
        n, topics = len(new), len(seen)
        each, rejoin, trees = process.constants
        self.begun.append(
            (self.now, each * n + (rejoin * math.log2(n) ** 2 + trees * topics * math.log2(n)) * len(moved))
        )
        self.protocol += [self.now] * n  # INIT
        self.running = self.holding = self.updates_wait = self.draining = True
        self.attempt += 1
        self.target, self.dead = new, False
        death = min((start for start, _ in process.manager_dead if start > self.now), default=math.inf)
        if death < math.inf:
            self.at(death, TICKS, partial(self.die, self.attempt))
            self.at(death + process.timeout, TICKS, partial(self.give_up, self.attempt))
        self.look()

    def cost(self, node_of: list[int]) -> float:
        """Eq. 6 with delay in hops and weight 1."""
        assert self.expected is not None
        brokers = dict(zip(node_of, range(len(node_of)), strict=True))
        total = 0.0
        for topic, root in enumerate(self.setting.roots):
            wanting = {broker for broker in range(len(self.brokers)) if topic in self.carried(broker)}
            tree = self.setting.overlay.tree(root, {node_of[broker] for broker in wanting})
            for node in tree:
                relays = node != root and brokers[node] not in wanting
                delay = self.depth_of(tree, node) if brokers[node] in wanting else 0
                total += self.expected[topic] * (relays + delay)
        return total

    def die(self, attempt: int) -> None:
        if attempt == self.attempt:
            self.dead = True

    def give_up(self, attempt: int) -> None:
        """Each tells all others that it has no FINISH, and then that it has fallen back.

        The last to fall back has heard of all others, and goes on at once; they go on as they hear of it. Of two, the one that is
        asked falls back first, so the other goes on first.
        """
        if attempt == self.attempt and self.running and self.holding:
            n = len(self.brokers)
            self.protocol += [self.now] * (2 * n * (n - 1))
            self.resume([0, 1] if n == 2 else [n - 1, *range(n - 1)])

    # -- the protocol

    def look(self) -> None:
        """Resume when nothing is in transit, after everything else of that instant."""
        if self.draining and not self.travelling:
            self.draining = False
            self.at(self.now, BARRIERS, partial(self.drained, self.attempt))

    def gone(self, number: int) -> None:
        super().gone(number)
        self.look()
        if number in self.dropped:
            self.left(number)

    def drained(self, attempt: int) -> None:
        """All brokers report that they are drained; a dead manager receives nothing."""
        if attempt == self.attempt and self.holding:
            self.drain += [self.now] * len(self.brokers)
            if not self.dead:
                self.move()

    def move(self) -> None:
        setting, new, n = self.setting, self.target, len(self.brokers)
        old = list(setting.node_of)
        moved = [broker for broker in range(n) if new[broker] != old[broker]]
        setting.node_of[:] = new
        self.broker_at = {node: broker for broker, node in enumerate(new)}
        route = setting.overlay.route
        messages = n + n  # TREE_UPDATE, FINISH
        for broker in moved:
            self.moves.append((self.now, broker, old[broker], new[broker]))
            messages += 2 + math.ceil(math.log2(n) ** 2)  # DHT_UPDATE, DHT_UPDATED, mending the ring
            messages += len(route(new[broker], old[broker])) - 1  # the table
            messages += 1  # TREE_UPDATED
            for topic, root in enumerate(setting.roots):
                before = new[broker] in self.joined[topic]
                if before != (topic in self.carried(broker)):
                    there, back = route(new[broker], root), route(root, new[broker])
                    messages += 2 if setting.two_requests else len(there) - 1 + len(back) - 1
        self.protocol += [self.now] * messages
        for topic in range(len(setting.roots)):
            self.joined[topic] = {new[broker] for broker in range(n) if topic in self.carried(broker)}
        self.trees = self.all_trees()
        self.resume(range(n))

    def resume(self, order: Iterable[int]) -> None:
        """All publications that brokers hold back leave, broker by broker."""
        self.draining = self.holding = False
        held = [(broker, number) for broker in order for holder, number in sorted(self.held) if holder == broker]
        self.held = []
        self.released = {number for _, number in held}
        for _, number in held:
            super().publish(number)
        if not held:
            self.at(self.now, BARRIERS, self.over)

    def left(self, number: int) -> None:
        """A publication has left its root, or has been dropped."""
        if number in self.released:
            self.released.remove(number)
            if not self.released:
                self.at(self.now, BARRIERS, self.over)

    def over(self) -> None:
        self.running = self.updates_wait = False
        whole, instants = self.world, self.held_changes
        self.held_changes = []
        for instant in instants:
            changes = [(self.now, *row[1:]) for row in whole.changes if row[0] == instant]
            movements = [(self.now, user) for time, user in whole.movements if time == instant]
            self.world = replace(whole, changes=changes, movements=movements)
            self.change()
        self.world = whole
        if self.late is not None:
            number, self.late = self.late, None
            self.offload(number)

    def offload(self, number: int) -> None:
        if self.running:
            self.late = number
        else:
            super().offload(number)

    def publish(self, number: int) -> None:
        if self.holding:
            publisher = self.world.publications[number][2]
            broker = self.outside(number) if publisher is None else self.host[publisher]
            assert broker is not None
            self.held.append((broker, number))
        else:
            super().publish(number)

    def leave_root(self, number: int) -> None:
        super().leave_root(number)
        self.left(number)

    def change(self) -> None:
        if self.updates_wait:
            self.held_changes.append(self.now)
        else:
            super().change()


def metrics(truth: Network, since: float, until: float) -> dict[str, float | int | None]:
    def count(times: Iterable[float]) -> int:
        return sum(since <= time < until for time in times)

    found = network.metrics(truth, since, until)
    moves = [row for row in truth.moves if since <= row[0] < until]
    costs = [cost for time, cost in truth.costs if since <= time < until]
    return {
        **found,
        "reconfigurations": len({time for time, *_ in moves}),
        "reconfigured_brokers": len(moves),
        "reconfiguration_overhead": count(truth.protocol),
        "reconfiguration_bound": math.fsum(bound for time, bound in truth.begun if since <= time < until),
        "drain_messages": count(truth.drain),
        "ssbr_cost": fmean(costs) if costs else None,
    }
