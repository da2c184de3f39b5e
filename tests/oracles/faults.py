"""Tiny networks whose brokers crash and restart, whose links are cut and lose more, and whose users have to reconnect."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from operator import ne
from typing import Any

from oracles import network
from oracles.network import ANSWERS, CHANGES, DECISIONS, FAULTS, LOOKS, Job, Setting, World
from oracles.overlays import Overlay, TopicConnected

RESTART, MEND, LOSS, SLOW, CRASH, CUT = range(6)  # in this order at equal times
DRAIN, JOIN = 8, 9
CONNECTING = CHANGES + 0.5  # after what the workload changes at that instant
DRAINING = CHANGES + 0.75
HEALING, NOTICING = DECISIONS + 0.5, DECISIONS + 0.6  # what heals at the instant of a round is nothing to notice
Row = tuple[float, int, int, int, float]  # time, what, target, other, value


@dataclass
class Faults:
    """`rows` as the schedule has them, in order; `sides` tells for each parting on which side each broker is.

    `drains`: brokers, users per second (None: all at once), how long they stay up once drained, and are down then; and whether they
    leave instead. `joins`: the broker, which is not there before, users per second, which users ("policy" or "share"), from where.

    A user notices a crash `detection` later and tries to connect to the `same` broker or to the one that `select` gives; again after
    `wait` seconds, or twice as long each time up to `longest` if `exponential`, times 1 - `jitter` · `draw(user, its attempts so far)`.
    Brokers take `rate` connections per second (None: any number at once). Where a link loses what is sent, `chance(what, source,
    destination)` is below the probability of a loss.
    """

    rows: list[Row]
    sides: list[list[bool]] = field(default_factory=list)
    drains: list[tuple[Any, ...]] = field(default_factory=list)
    joins: list[tuple[int, float | None, str, frozenset[int]]] = field(default_factory=list)
    detection: float = 0.0
    same: bool = True
    exponential: bool = True
    wait: float = 1.0
    longest: float = 60.0
    jitter: float = 0.0
    draw: Callable[[int, int], float] = lambda user, attempts: 0.0
    rate: float | None = None
    chance: Callable[[int, int, int], float] = lambda what, source, destination: 1.0


@dataclass
class Healing:
    """Each `period` brokers check each other, `convergence` seconds later the overlay has healed.

    `overlay(nodes, links)` gives it and the roots of topics once these nodes and cut links are routed around, if it is another one;
    `checks(overlay, nodes, up)` the messages of a round among nodes of which some are up, and
    `costs(overlay, nodes, failed, back, apart)` those of healing if so many fail, so many are back, and so many others have other
    links that are cut. On a ring, as many consecutive nodes as `successors` cannot be routed around.
    """

    period: float
    convergence: float
    overlay: Callable[[frozenset[int], frozenset[frozenset[int]]], tuple[Overlay, list[int | None]]] | None
    checks: Callable[[Overlay, set[int], set[int]], int]
    costs: Callable[[Overlay, set[int], int, int, int], int]
    successors: int | None = None


@dataclass
class Absence:
    """A user without a broker: where it was, and since when; how often it has failed; where it has been accepted, if so."""

    former: int
    since: float
    due: float  # when it tries to connect, or is connected
    failed: int = 0
    accepted: int | None = None


class Network(network.Network):
    """Runs at once. Trees keep a broker that has crashed until it restarts, or until the overlay heals."""

    def __init__(
        self,
        setting: Setting,
        world: World,
        faults: Faults,
        moments: Iterable[float] = (),
        healing: Healing | None = None,
    ) -> None:
        brokers = len(setting.node_of)
        setting = replace(setting)
        self.faults, self.healing = faults, healing
        self.around: set[int] = set()  # brokers that the overlay routes around
        self.topic_of: dict[int, int] = {}  # join or leave, or one sent again → topic
        self.sent_for: dict[int, Callable[[], None]] = {}  # → what its answer does
        self.checking: list[float] = []  # when a message was sent by which brokers check each other
        self.mending: list[float] = []  # and when one was sent by which the overlay heals
        self.unhealed: list[float] = []
        self.given_up: dict[int, int] = {}  # broker → the last of its crashes that could not be healed
        self.fell: dict[int, float] = {}  # when each broker that is down crashed
        self.cuts: Counter[frozenset[int]] = Counter()  # how much cuts each link
        self.cutting: set[tuple[int, ...]] = set()  # what does: a parting, or both ends of a link
        self.noticed: set[tuple[int, ...]] = set()  # of these
        self.avoided: frozenset[frozenset[int]] = frozenset()  # links that the overlay routes around
        self.heals = 0
        self.heals_before: dict[int, int] = {}  # a control message was sent
        self.loss: float | None = None  # None: as links have it
        self.slow = [1.0] * brokers
        self.again: dict[int, Callable[[], object]] = {}  # by control message at a broker: has it served anew
        self.asleep: dict[int, list[tuple[int, Callable[[], object]]]] = defaultdict(
            list
        )  # control messages at brokers that are down, by their numbers
        self.at_cuts: list[tuple[int, int, int, Callable[[], None]]] = []  # and before links that are cut
        self.void = [0] * brokers  # the last join or leave of each broker that changes nothing when its answer comes
        self.asked: dict[int, int] = {}  # join or leave under way → broker
        self.asker: dict[int, int] = {}  # any join or leave, also one sent again → broker
        self.away: dict[int, Absence] = {}
        self.free = [0.0] * brokers  # when each broker takes the next connection
        self.tried: Counter[int] = Counter()  # attempts of each user

        self.why: Counter[int] = Counter()  # for how many reasons each broker is down
        self.plan: list[tuple[Any, ...]] = []  # drains to come: broker, rate, grace, time down, leaves
        self.drain: tuple[Any, ...] | None = None
        self.missing = {broker for broker, *_ in faults.joins}  # brokers that are yet to join, are leaving or have left
        self.closed = set(self.missing)  # and those to which users never connect again
        self.late: list[tuple[int, int]] = []  # joins whose next step could not be taken, and users moved by them
        self.shares = [(0.0, 1.0)]  # how many of the brokers that are not absent are up from when on
        self.came_in: list[float] = []
        self.went: list[float] = []
        self.resettled: list[float] = []  # when a user was moved by that
        self.rerooted: list[float] = []
        self.regrown: list[float] = []
        self.rearranging: list[float] = []  # when a message was sent for it
        self.stuck = False  # the drain, as no broker takes its users

        self.moved: list[float] = []
        self.drained: list[tuple[float, float]] = []  # when, and how long it took
        self.crashes: list[float] = []
        self.crashed: Counter[int] = Counter()  # how often each broker
        self.absences: list[tuple[float, float]] = []
        self.attempts: list[float] = []
        self.connected: list[tuple[float, int, int]] = []  # time, user, topics
        self.leaving: list[float] = []  # when a message was sent since a broker restarted
        self.seen: Counter[str] = Counter()  # what happened at a bad moment
        if setting.service is not None:
            took = setting.service
            setting = replace(
                setting, service=lambda what, broker, *rest: took(what, broker, *rest) * self.slow[broker]
            )
        super().__init__(setting, world, moments)

    def run(self, moments: Iterable[float] = ()) -> None:
        for broker in self.missing:
            self.fell[broker], self.why[broker], self.around = 0.0, 1, set(self.missing)
        if self.missing and self.healing is not None and self.healing.overlay is not None:
            self.setting.overlay, self.setting.roots = self.healing.overlay(self.around_nodes(), frozenset())
        for time in {row[0] for row in self.faults.rows}:
            self.at(time, FAULTS, self.fail)
        healing, rounds = self.healing, 1
        while healing is not None and rounds * healing.period < self.setting.horizon:
            self.at(rounds * healing.period, LOOKS, self.check)
            self.at(rounds * healing.period, NOTICING, self.notice)
            rounds += 1
        super().run(moments)
        end = self.setting.horizon
        self.absences += [(absence.since, end) for absence in self.away.values()]

    def fail(self) -> None:
        """All that fails or works again at this instant."""
        for time, what, target, other, value in self.faults.rows:
            if time != self.now:
                continue
            if what == RESTART:
                self.come_up(target)
            elif what == CRASH:
                if not self.why[target]:
                    self.crashes.append(self.now)
                self.go_down(target)
            elif what == DRAIN:
                brokers, *how = self.faults.drains[target]
                self.plan += [(broker, *how) for broker in brokers]
                if self.drain is None:
                    self.begin_drain()
            elif what == JOIN:
                self.come_in_as_planned(target)
            elif what == LOSS:
                self.loss = value
            elif what == SLOW:
                self.slow[target] = value
            else:
                cause = (target,) if other < 0 else (min(target, other), max(target, other))
                (self.cutting.add if what == CUT else self.cutting.discard)(cause)
                self.cut(self.between(target, other), +1 if what == CUT else -1)
        if self.stuck:
            self.stuck = False
            self.at(self.now, DRAINING, self.move_users)
        late, self.late = self.late, []
        for waiting in late:
            self.at(self.now, DRAINING, partial(self.attract, *waiting))
        self.relinking += [self.now] * self.adjust()
        self.rejoin()
        self.note_hosting()

    # -- drains

    def begin_drain(self) -> None:
        self.drain = None
        if not self.plan:
            return
        broker, rate, _, _, *leaves = self.drain = self.plan.pop(0)
        self.drained_since = self.now
        if any(leaves):
            self.closed.add(broker)
        for user, absence in self.away.items():
            if absence.accepted == broker:
                self.seen["drains while users connect"] += 1
                self.try_later(user)
        self.at(self.now + (1 / rate if rate else 0.0), DRAINING, self.move_users)

    def takers(self) -> list[int]:
        """The brokers that take users."""
        drained = None if self.drain is None else self.drain[0]
        closed = {drained} | self.closed | self.fell.keys()
        return [other for other in range(len(self.brokers)) if other not in closed]

    def move_users(self) -> None:
        """One of them, or all."""
        assert self.drain is not None
        broker, rate, grace, _, *leaves = self.drain
        users = [user for user, host in enumerate(self.host) if host == broker]
        if users and not self.takers():
            self.seen["drains that waited"] += 1
            self.stuck = True
            return
        for user in users[:1] if rate else users:
            chosen = self.choose(user)
            (self.resettled if any(leaves) else self.moved).append(self.now)
            self.resettle(user, self.nearest(chosen))
        if rate and len(users) > 1:
            self.at(self.now + 1 / rate, DRAINING, self.move_users)
        else:
            self.drained.append((self.now, self.now - self.drained_since))
            self.at(self.now + grace, DRAINING, self.give_away if any(leaves) else self.shut)

    def nearest(self, chosen: int) -> int:
        """The broker, or the nearest one that takes users if it does not."""
        if chosen in self.takers():
            return chosen
        hosts, delay = Counter(self.host), self.setting.delay[chosen]
        return min(self.takers(), key=lambda other: (delay[other], hosts[other], other))

    def resettle(self, user: int, broker: int) -> None:
        self.attach(user, broker, self.wants[user], self.wants[user])
        self.relinking += [self.now] * self.adjust()
        self.note_hosting()

    def give_away(self) -> None:
        """A broker that leaves has no users any more: the overlay routes around it."""
        assert self.drain is not None
        broker, _, grace, *_ = self.drain
        self.seen["brokers that leave"] += 1
        self.missing.add(broker)
        self.void[broker] = self.requests
        self.went.append(self.now)
        self.heal(self.around & self.fell.keys(), planned=True)
        self.note_shares()
        self.at(self.now + grace, DRAINING, self.shut)

    def come_in_as_planned(self, number: int) -> None:
        broker, rate, *_ = self.faults.joins[number]
        self.seen["brokers that join"] += 1
        self.missing.remove(broker)
        self.closed.remove(broker)
        self.why[broker] -= 1
        if not self.why[broker]:
            del self.fell[broker]
        self.note_shares()
        self.came_in.append(self.now)
        self.relinking += [self.now] * self.adjust()
        self.heal(self.around & self.fell.keys(), planned=True)
        self.at(self.now + (1 / rate if rate else 0.0), DRAINING, partial(self.attract, number, 0))

    def attract(self, number: int, first: int) -> None:
        """One user, from the first who has not been asked on, or all."""
        broker, rate, users, among = self.faults.joins[number]
        if broker not in self.takers():
            self.seen["users who wait to move to a broker that is down"] += 1
            self.late.append((number, first))
            return
        if users == "policy":
            for user in range(first, len(self.host)):
                if self.host[user] in (None, broker) or self.choose(user) != broker:
                    continue
                self.resettled.append(self.now)
                self.resettle(user, broker)
                if rate:
                    self.at(self.now + 1 / rate, DRAINING, partial(self.attract, number, user + 1))
                    return
        while users == "share":
            hosts = Counter(host for host in self.host if host in among and host != broker)
            most = min(hosts, key=lambda other: (-hosts[other], other), default=broker)
            if hosts[most] < self.host.count(broker) + 2:
                return
            self.resettled.append(self.now)
            self.resettle(self.host.index(most), broker)
            if rate:
                self.at(self.now + 1 / rate, DRAINING, partial(self.attract, number, 0))
                return

    def choose(self, user: int) -> int:
        """The broker by the policy, whether it takes users or not."""
        return network.Network.decide(self, user, self.wants[user])

    def note_shares(self) -> None:
        there = len(self.brokers) - len(self.missing)
        self.shares.append((self.now, 1 - len(self.fell.keys() - self.missing) / max(there, 1)))

    def shut(self) -> None:
        assert self.drain is not None
        broker, _, _, down, *_ = self.drain
        self.go_down(broker)
        self.relinking += [self.now] * self.adjust()
        self.note_hosting()
        if down == math.inf:
            self.begin_drain()
        else:
            self.at(self.now + down, DRAINING, self.open)

    def open(self) -> None:
        assert self.drain is not None
        self.come_up(self.drain[0])
        self.relinking += [self.now] * self.adjust()
        self.rejoin()
        self.begin_drain()
        self.note_hosting()

    # -- healing

    def rejoin(self) -> None:
        """Route through brokers that are up again, and over links that are mended."""
        if self.around - self.fell.keys() - self.missing or self.noticed - self.cutting:
            self.heal(self.around & self.fell.keys())

    def check(self) -> None:
        """Everybody checks its neighbours, as things were before this instant."""
        assert self.healing is not None
        nodes, up = self.nodes_but(self.around), self.nodes_but(self.fell.keys() | self.missing)
        self.checking += [self.now] * self.healing.checks(self.setting.overlay, nodes, up)

    def around_nodes(self) -> frozenset[int]:
        return frozenset(self.setting.node_of[broker] for broker in self.around)

    def nodes_but(self, brokers: Iterable[int]) -> set[int]:
        return {node for broker, node in enumerate(self.setting.node_of) if broker not in brokers}

    def notice(self) -> None:
        assert self.healing is not None
        noticed, cuts = self.fell.keys() - self.around, set(self.cutting)
        if noticed or cuts - self.noticed:
            self.at(
                self.now + self.healing.convergence,
                HEALING,
                lambda: self.heal(self.around | (noticed & self.fell.keys()), cuts=cuts),
            )

    def heal(self, down: set[int], planned: bool = False, cuts: Iterable[tuple[int, ...]] = ()) -> None:
        """Route around these brokers and absent ones, and through all others again; the same with what cuts links."""
        assert self.healing is not None
        down = down | self.missing
        self.noticed = self.noticed.union(cuts) & self.cutting
        avoided = frozenset(link for cause in self.noticed for link in self.between(cause[0], [-1, *cause[1:]][-1]))
        if len(down) == len(self.brokers):
            avoided = self.avoided
        if down == self.around and avoided == self.avoided:
            return
        around = self.reach(down)
        for broker in down - around - self.missing:
            crash = self.crashed[broker]
            if self.given_up.get(broker) != crash:
                self.given_up[broker] = crash
                self.unhealed.append(self.now)
        if around == self.around and avoided == self.avoided:
            return
        failed, back = around - self.around, self.around - around
        self.seen["brokers routed around"] += len(failed)
        self.seen["brokers that rejoin"] += len(back)
        before, roots = self.all_trees(), self.setting.roots
        changed = [link for link in avoided ^ self.avoided if link.isdisjoint(around)]
        apart = len(frozenset().union(*changed))
        self.seen["brokers with other links"] += apart
        self.around, self.avoided = around, avoided
        for joined in self.joined:
            joined -= self.around_nodes()
        if self.healing.overlay is not None:
            self.setting.overlay, self.setting.roots = self.healing.overlay(self.around_nodes(), self.nodes_of(avoided))
        elif isinstance(self.setting.overlay, TopicConnected):
            self.setting.overlay.route_around(self.nodes_of(avoided), sorted(self.nodes_but(around)))
        self.seen["roots that move"] += any(map(ne, roots, self.setting.roots))
        messages = self.adjust() + self.healing.costs(
            self.setting.overlay, self.nodes_but(around), len(failed), len(back), apart
        )
        self.trees = self.all_trees()
        new_edges = [0]
        if None not in self.setting.roots:
            new_edges = [
                sum(above is not None and (node, above) not in old.items() for node, above in new.items())
                for old, new in zip(before, self.trees, strict=True)
            ]
        messages += 2 * sum(new_edges)
        if planned:
            others = sum(map(ne, roots, self.setting.roots))
            self.rearranging += [self.now] * (messages + 2 * others)
            self.rerooted += [self.now] * others
            self.regrown += [self.now] * sum(map(bool, new_edges))
        else:
            self.mending += [self.now] * messages
        self.heals += 1
        for broker in sorted(failed):
            for number, _ in self.asleep.pop(broker, []):
                self.ask_again(number)
        self.go_on_at_cuts()

    def nodes_of(self, links: Iterable[frozenset[int]]) -> frozenset[frozenset[int]]:
        return frozenset(frozenset(self.setting.node_of[broker] for broker in link) for link in links)

    def reach(self, down: set[int]) -> set[int]:
        """Those of these brokers that can be routed around."""
        healing, brokers = self.healing, len(self.brokers)
        assert healing is not None
        if len(down) == brokers:
            return self.around
        if healing.successors is None:
            return down
        ring = [self.broker_at[node] for node in sorted(self.setting.node_of)]
        ring = [broker for broker in ring if broker not in down & (self.around | self.missing)]
        found = set(down)
        for first in range(len(ring)):
            run = [ring[(first + step) % len(ring)] for step in range(healing.successors)]
            if set(run) <= down:
                found -= set(run)
        return found

    def ask_again(self, number: int) -> None:
        """A join or leave that waits for a broker that is routed around."""
        self.seen["joins sent again"] += 1
        enact, topic, asking = self.sent_for[number], self.topic_of[number], self.asker[number]
        if asking in self.fell.keys() | self.missing:
            enact()
            return
        self.requests += 1
        self.topic_of[self.requests] = topic
        there, back = self.ways(topic, self.setting.node_of[asking])
        path = [self.broker_at[node] for node in there + back[1:]]
        self.control_message(self.requests, path, 0, len(there) - 1, enact)

    def control_message(
        self, number: int, path: list[int], position: int, root: int, enact: Callable[[], None]
    ) -> None:
        if position == 0:
            self.asker[number], self.sent_for[number] = path[0], enact
            self.heals_before[number] = self.heals
        super().control_message(number, path, position, root, enact)

    # -- brokers

    def go_down(self, broker: int) -> None:
        self.why[broker] += 1
        if self.why[broker] == 1:
            self.crash(broker)

    def come_up(self, broker: int) -> None:
        self.why[broker] -= 1
        if not self.why[broker]:
            self.restart(broker)

    def crash(self, broker: int) -> None:
        self.crashed[broker] += 1
        self.fell[broker] = self.now
        self.note_shares()
        at = self.brokers[broker]
        jobs = [*at.serving, *at.front, *at.queue]
        self.seen["crashes with publications waiting"] += any(job.what >= 0 for job in at.queue)
        self.seen["crashes with publications in service"] += any(job.what >= 0 for job in at.serving)
        self.seen["crashes with control messages at the broker"] += any(job.what < 0 for job in jobs)
        self.seen["crashes with joins under way"] += broker in self.asked.values()

        self.void[broker] = self.requests
        self.registered = {row for row in self.registered if row[0] != broker}
        for user, host in enumerate(self.host):
            if host == broker:
                self.host[user] = None
                self.decisions.append((self.now, user, broker, -1))
                self.away[user] = Absence(broker, self.now, 0.0)
                self.attend_at(user, self.now + self.faults.detection)
        for user, absence in self.away.items():
            if absence.accepted == broker:
                self.seen["crashes while users connect"] += 1
                self.try_later(user)
        self.free[broker] = 0.0

        at.serving.clear()
        at.front.clear()
        at.queue.clear()
        at.anew = len(at.jobs)
        at.changed = self.now
        for job in jobs:
            job.cut_short = job.done = self.now
            if -ANSWERS < job.what < 0:
                self.asleep[broker].append((-job.what, self.again[id(job)]))
        for job in jobs:
            if job.what >= 0:
                job.dropped("crashed")

    def restart(self, broker: int) -> None:
        del self.fell[broker]
        self.note_shares()
        node = self.setting.node_of[broker]
        for topic in range(len(self.setting.roots)):
            if node in self.joined[topic]:
                self.leaving += [self.now] * self.messages(topic, node)
                self.enact(topic, node, -1)
        for _, arrive in self.asleep.pop(broker, []):
            self.seen["control messages that slept"] += 1
            arrive()

    def offer(
        self,
        broker: int,
        what: int,
        stage: int,
        work: tuple[int, int, int],
        handled: Callable[[], None],
        dropped: Callable[[str], None] = lambda cause: None,
    ) -> bool:
        taken = super().offer(broker, what, stage, work, handled, dropped)
        if what < 0 and self.setting.service is not None:
            self.again[id(self.brokers[broker].jobs[-1])] = partial(self.offer, broker, what, stage, work, handled)
        return taken

    def served(self, broker: int, job: Job) -> None:
        if job.cut_short is None:
            super().served(broker, job)

    # -- trees

    def tree(self, topic: int, source: int | None = None) -> dict[int, int | None]:
        """A broker that leaves sends what still comes to it as a root to the present root."""
        root = self.setting.roots[topic]
        if source is None or root is None or self.broker_at[source] not in self.around & self.missing:
            return super().tree(topic, source)
        below = super().tree(topic)
        self.seen["publications that come to a root that is leaving"] += bool(below)
        return {source: None, **below, root: source} if below else {}

    def members(self, topic: int) -> set[int]:
        return self.joined[topic]

    def linked(self, node: int) -> set[int]:
        return {topic for topic, nodes in enumerate(self.joined) if node in nodes}

    def transition(self, topic: int, broker: int, change: int) -> None:
        if self.trees and self.setting.join_by_message and (topic, broker) not in self.offloaded:
            self.asked[self.requests + 1] = broker
            self.topic_of[self.requests + 1] = topic
        super().transition(topic, broker, change)

    def answer(self, topic: int, broker: int, change: int, sides: int, request: int) -> None:
        del self.asked[request]
        if request > self.void[broker]:
            super().answer(topic, broker, change, sides, request)

    # -- links

    def between(self, target: int, other: int) -> list[frozenset[int]]:
        """The links that one cut is about: one, or all between the sides of a parting."""
        if other >= 0:
            return [frozenset({target, other})]
        sides, brokers = self.faults.sides[target], range(len(self.brokers))
        return [frozenset({a, b}) for a in brokers for b in brokers if sides[a] and not sides[b]]

    def cut(self, links: list[frozenset[int]], by: int) -> None:
        for link in links:
            self.cuts[link] += by
        self.go_on_at_cuts()

    def go_on_at_cuts(self) -> None:
        """Control messages that wait before cuts go on, if they can."""
        waiting, self.at_cuts = self.at_cuts, []
        for message in waiting:
            self.send(*message)

    def is_cut(self, source: int, destination: int) -> bool:
        return self.cuts[frozenset({source, destination})] > 0

    def send(self, what: int, source: int, destination: int, arrive: Callable[[], None]) -> None:
        """Control messages wait where they cannot go on."""
        if what >= 0:
            super().send(what, source, destination, arrive)
            return

        def wake() -> None:
            if destination in self.around & self.fell.keys():
                self.ask_again(-what)
            elif destination in self.fell:
                self.asleep[destination].append((-what, arrive))
            else:
                arrive()

        if self.is_cut(source, destination):
            self.seen["control messages before a cut"] += 1
            if frozenset({source, destination}) in self.avoided and self.heals_before[-what] < self.heals:
                self.seen["joins sent again over other links"] += 1
                self.ask_again(-what)
            else:
                self.at_cuts.append((what, source, destination, arrive))
        else:
            super().send(what, source, destination, wake)

    def transmit(
        self,
        number: int,
        source: int,
        destination: int,
        arrive: Callable[[], None],
        lost: Callable[[str], None],
        before: int = 0,
    ) -> None:
        """Copies are lost where they cannot go on."""

        def check() -> None:
            if self.is_cut(source, destination):
                self.seen["cuts with copies on the link"] += 1
                lost("partitioned")
            elif destination in self.fell:
                lost("crashed")
            else:
                arrive()

        if self.is_cut(source, destination):
            lost("partitioned")
        else:
            super().transmit(number, source, destination, check, lost, before)

    def loses(self, number: int, source: int, destination: int) -> bool:
        if self.loss is None:
            return super().loses(number, source, destination)
        return self.faults.chance(number, source, destination) < self.loss

    # -- users

    def outside(self, number: int) -> int:
        """Nothing enters at brokers that are absent or leaving: it does at the next one."""
        broker = super().outside(number)
        while broker in self.closed:
            broker = (broker + 1) % len(self.brokers)
        return broker

    def crashes_on(self, user: int) -> list[float]:
        return [time for time, who, _, to in self.decisions if who == user and to < 0]

    def reconnects_on(self, user: int) -> list[float]:
        return [time for time, who, _ in self.connected if who == user]

    def is_connected(self, user: int) -> bool:
        return user not in self.away

    def publish(self, number: int) -> None:
        """What is published where no broker is up enters nowhere."""
        publisher = self.world.publications[number][2]
        lost = self.outside(number) in self.fell if publisher is None else publisher in self.away
        if lost:
            self.origin[number] = []
            self.travelling[number] += 1
            self.drop_short_of_root(number, "crashed")
        else:
            super().publish(number)

    def update(self, user: int, after: set[int], asks: bool) -> None:
        if user in self.away:
            self.seen["changes of absent users"] += 1
        else:
            super().update(user, after, asks)

    def decide(self, user: int, topics: set[int]) -> int:
        """Who has a broker stays there if the policy says one that takes nobody."""
        chosen, current = super().decide(user, topics), self.host[user]
        if not self.trees:
            return self.nearest(chosen)
        if current is None or chosen in (current, *self.takers()):
            return chosen
        self.seen[f"handovers to brokers that are {'down' if chosen in self.fell else 'drained'}"] += 1
        return current

    @property
    def handovers(self) -> list[tuple[float, int, int, int]]:
        return [row for row in super().handovers if row[3] >= 0]

    def attend_at(self, user: int, time: float) -> None:
        self.away[user].due = time
        self.at(time, CONNECTING, self.attend)

    def attend(self) -> None:
        """All users who try to connect now, or are connected now."""
        for user in sorted(self.away):
            if self.away[user].due == self.now:
                broker = self.away[user].accepted
                if broker is None:
                    self.try_to_connect(user)
                else:
                    self.connect(user, broker)

    def try_to_connect(self, user: int) -> None:
        self.attempts.append(self.now)
        self.tried[user] += 1
        absence, faults = self.away[user], self.faults
        same = faults.same and absence.former not in self.closed
        broker = absence.former if same else self.decide(user, self.wants[user])
        if broker not in self.takers() and not same and self.takers():
            broker = min(self.takers(), key=lambda other: (self.setting.delay[broker][other], other))
            self.seen["decisions for brokers that are down"] += 1
        if broker not in self.takers():
            self.try_later(user)
        elif faults.rate is None:
            self.connect(user, broker)
        else:
            self.seen["connections that waited"] += self.free[broker] > self.now
            self.free[broker] = max(self.now, self.free[broker]) + 1 / faults.rate
            absence.accepted = broker
            self.attend_at(user, self.free[broker])

    def try_later(self, user: int) -> None:
        absence, faults = self.away[user], self.faults
        wait = min(faults.wait * 2**absence.failed, faults.longest) if faults.exponential else faults.wait
        absence.failed += 1
        absence.accepted = None
        self.attend_at(user, self.now + wait * (1 - faults.jitter * faults.draw(user, self.tried[user])))

    def connect(self, user: int, broker: int) -> None:
        absence = self.away.pop(user)
        self.absences.append((absence.since, self.now))
        self.connected.append((self.now, user, len(self.wants[user])))
        self.attach(user, broker, set(), self.wants[user])
        self.relinking += [self.now] * self.adjust()
        if not self.setting.clients.sessions.survive:
            for topic in sorted(self.wants[user]):
                self.hand_out(topic, [user])
        self.note_hosting()


def metrics(truth: Network, since: float, until: float) -> dict[str, float | int | None]:
    def count(times: Iterable[float]) -> int:
        return sum(since <= time < until for time in times)

    def seconds(spans: list[tuple[float, float]]) -> float:
        return sum(max(min(end, until) - max(start, since), 0.0) for start, end in spans)

    connected = [row for row in truth.connected if since <= row[0] < until]
    drained = [took for time, took in truth.drained if since <= time < until]
    return {
        **network.metrics(truth, since, until),
        "crashes": count(truth.crashes),
        "broker_availability": sum(
            share * seconds([(start, end)])
            for (start, share), (end, _) in pairwise([*truth.shares, (truth.setting.horizon, 0.0)])
        )
        / (until - since),
        "connection_attempts": count(truth.attempts),
        "reconnections": len(connected),
        "resubscriptions": sum(topics for *_, topics in connected),
        "fault_messages": count(truth.leaving),
        "drained_users": count(truth.moved),
        "drained_brokers": len(drained),
        "drain_time": sum(drained) / len(drained) if drained else None,
        "broker_arrivals": count(truth.came_in),
        "broker_departures": count(truth.went),
        "moved_users": count(truth.resettled),
        "moved_topics": count(truth.rerooted),
        "moved_trees": count(truth.regrown),
        "membership_messages": count(truth.rearranging),
        "stabilisation_messages": count(truth.checking),
        "healing_messages": count(truth.mending),
        "unhealed_crashes": count(truth.unhealed),
        "user_unavailability": seconds(truth.absences) / ((until - since) * len(truth.wants)),
    }
