"""Shared subscriptions on brokers without service times: who gets each publication, one publication after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from oracles.clients import Clients, Coming, User


@dataclass
class Shared:
    """A tree of brokers with hops of `hop` seconds. `root` (topic); `host`, `wants` (user); changes (time, user, topic, ±1) and
    publications (time, topic, publisher or None, size, the broker that it comes to) in order of time, no two of the latter leave a
    root at once; `group` of shared (topic, user). `draw(identity, group)` is in [0, 1)."""

    edges: list[tuple[int, int]]
    root: list[int]
    host: list[int]
    wants: list[set[int]]
    changes: list[tuple[float, int, int, int]]
    publications: list[tuple[float, int, int | None, int, int]]
    group: dict[tuple[int, int], int]
    strategy: str
    draw: Callable[[int, int], float]
    hop: float
    horizon: float
    clients: Clients = field(default_factory=Clients)


class Outcome:
    """What becomes of all: pairs of users by fate (None: in flight), what each user gets by topic, and messages between brokers."""

    def __init__(self, world: Shared) -> None:
        self.world = world
        self.came: dict[int, list[Coming]] = {user: [] for user in range(len(world.host))}
        self.turn: Counter[int] = Counter()
        self.last: dict[int, int] = {}
        self.fates: Counter[str | None] = Counter()
        self.messages = self.relayed = 0
        leaving = []
        for number, (time, topic, _, _, origin) in enumerate(world.publications):
            if time >= world.horizon:
                continue
            rooted = time
            for _ in self.path(origin, world.root[topic])[1:]:
                rooted += world.hop
            leaving.append((rooted, number))
        for rooted, number in sorted(leaving):
            self.leave(number, rooted)
        users = {user: User(world.clients, user, came, world.horizon) for user, came in self.came.items()}
        self.waited = any(user.waited for user in users.values())
        self.received: Counter[tuple[int, int]] = Counter()
        self.sessions = sum(coming.kind == "waited" for came in self.came.values() for coming in came)
        for user, came in self.came.items():
            for coming in came:
                self.fates[coming.fate] += 1
                if coming.fate == "delivered":
                    self.received[world.publications[coming.number][1], user] += 1

    def path(self, here: int, there: int) -> list[int]:
        """The brokers from one to another."""
        ways, seen = [[here]], {here}
        for way in ways:
            if way[-1] == there:
                return way
            for a, b in self.world.edges:
                for one, other in ((a, b), (b, a)):
                    if one == way[-1] and other not in seen:
                        seen.add(other)
                        ways.append([*way, other])
        raise AssertionError

    def leave(self, number: int, now: float) -> None:
        """A publication leaves its root, or would have."""
        world = self.world
        _, topic, publisher, size, origin = world.publications[number]
        wants = [set(topics) for topics in world.wants]
        for time, user, changed, action in world.changes:
            if time <= min(now, world.horizon):
                (wants[user].add if action > 0 else wants[user].remove)(changed)
        everyone = [user for user, topics in enumerate(wants) if topic in topics]
        groups = sorted({world.group[topic, user] for user in everyone if (topic, user) in world.group})
        own = [user for user in everyone if (topic, user) not in world.group]
        if now >= world.horizon:
            self.fates[None] += len(own) + len(groups)
            return
        due = list(own)
        for group in groups:
            members = [user for user in everyone if world.group.get((topic, user)) == group]
            states = {user: self.state(user, now) for user in members}
            there = [user for user, state in states.items() if state.away_until <= now and not state.session]
            there = there or [user for user, state in states.items() if state.session in ("resumed", "over")]
            loads = {user: self.load(states[user], now) for user in there}
            if not loads:
                self.fates["disconnected"] += 1
                continue
            chosen = self.choose(group, topic, publisher, origin, number, loads)
            self.turn[group] += 1
            self.last[group] = chosen
            due.append(chosen)
        sent: set[tuple[int, int]] = set()
        for user in due:
            time = now
            path = self.path(world.root[topic], world.host[user])
            for here, there in pairwise(path):
                if time < world.horizon and (here, there) not in sent:
                    sent.add((here, there))
                    self.relayed += there not in {world.host[other] for other in due}
                time += world.hop
            if time < world.horizon:
                self.came[user].append(Coming(number, time, time, size))
            else:
                self.fates[None] += 1
        self.messages += len(sent)

    def state(self, user: int, now: float) -> User:
        """How a user is."""
        before = [Coming(c.number, c.arrived, c.served, c.size) for c in self.came[user] if c.served < now]
        return User(self.world.clients, user, before, now)

    def load(self, state: User, now: float) -> int:
        """What waits for a user, is being sent or not acknowledged."""
        out = sum(time > now for time in state.acknowledged) if state.way.window is not None else int(state.free > now)
        return len(state.waiting) + (0 if state.session else out)

    def choose(
        self, group: int, topic: int, publisher: int | None, origin: int, number: int, loads: dict[int, int]
    ) -> int:
        """The member that gets it."""
        members, last = sorted(loads), self.last.get(group)
        client = -1 if publisher is None else publisher

        def next_of(some: list[int]) -> int:
            return min(some) if last is None else min((user for user in some if user > last), default=min(some))

        def any_of(some: list[int], identity: int) -> int:
            return some[int(self.world.draw(identity, group) * len(some))]

        if self.world.strategy == "round-robin":
            return next_of(members)
        if self.world.strategy == "sticky":
            return last if last is not None and last in members else any_of(members, number)
        if self.world.strategy == "least-loaded":
            return next_of([user for user in members if loads[user] == min(loads.values())])
        if self.world.strategy == "local-first":
            local = [user for user in members if self.world.host[user] == origin]
            return any_of(local or members, number)
        return any_of(members, {"hash-client": client, "hash-topic": topic}.get(self.world.strategy, number))
