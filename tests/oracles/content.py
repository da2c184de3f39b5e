"""Content-based subscriptions, matched literally: all predicates of one must hold.

On a network every predicate is a topic, and a publication travels as if it were one of its own on each of its predicates' topics:
copies are the publications of `oracles.network`, `fields` in a row for each. What they come to together is worked out from that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from oracles import network as topics
from oracles.clients import Coming
from oracles.guarantees import Network as Guaranteed
from oracles.network import AGAIN

Subscription = tuple[int, Mapping[int, int]]  # owner, field → value
Predicate = tuple[int, int]  # field, value


def holding(wanted: Mapping[int, int], published: Sequence[int]) -> int:
    """The number of predicates that hold."""
    return sum(published[field] == value for field, value in wanted.items())


def matching(subscriptions: Sequence[Subscription], published: Sequence[int]) -> list[int]:
    """The subscriptions that match a publication."""
    return [s for s, (_, wanted) in enumerate(subscriptions) if holding(wanted, published) == len(wanted)]


@dataclass
class Content:
    """What is subscribed and published; predicates are numbered by field and value."""

    subscriptions: Sequence[Subscription]
    published: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        wanted = {pair for _, predicates in self.subscriptions for pair in predicates.items()}
        self.predicates = sorted(wanted | {pair for row in self.published for pair in enumerate(row)})

    def waits(self, wanted: Mapping[int, int]) -> int:
        """The predicate at which a subscription waits: the one of its own that fewest publications carry."""

        def carried(pair: Predicate) -> tuple[int, int]:
            return sum(row[pair[0]] == pair[1] for row in self.published), self.predicates.index(pair)

        return self.predicates.index(min(wanted.items(), key=carried))

    def wants(self, users: int) -> list[set[int]]:
        """The topics of each user."""
        found: list[set[int]] = [set() for _ in range(users)]
        for owner, wanted in self.subscriptions:
            found[owner].add(self.waits(wanted))
        return found

    def copies(self, number: int) -> list[int]:
        """The topics that a publication goes to."""
        return [self.predicates.index(pair) for pair in enumerate(self.published[number])]

    def waiting(self, user: int, topic: int) -> list[Mapping[int, int]]:
        """The user's subscriptions that wait at a topic."""
        return [wanted for owner, wanted in self.subscriptions if owner == user and self.waits(wanted) == topic]

    def concerns(self, number: int, topic: int, user: int) -> bool:
        """Whether any of these subscriptions matches a publication."""
        row = self.published[number]
        return any(holding(wanted, row) == len(wanted) for wanted in self.waiting(user, topic))

    def increments(self, number: int, topic: int, users: Iterable[int]) -> int:
        """The counters that a broker increments to match it for these users."""
        row = self.published[number]
        return sum(holding(wanted, row) for user in users for wanted in self.waiting(user, topic))


class Network(topics.Network):
    """Runs at once; brokers match at the root, for whom they have when a copy comes, and below it for those to whom it is due.

    `service(copy, broker, stage, copies, users, size, increments)` gives seconds.
    """

    def __init__(
        self,
        setting: topics.Setting,
        world: topics.World,
        content: Content,
        service: Callable[[int, int, int, int, int, int, int], float] | None,
        *more: Any,
    ) -> None:
        self.content, self.fields = content, len(content.published[0]) if content.published else 1
        self.increments: Counter[tuple[int, int, int]] = Counter()
        if service is not None:
            setting = replace(setting, service=lambda *key: service(*key, self.increments[key[:3]]))
        super().__init__(setting, world, *more)

    def users_of_root(self, number: int, broker: int) -> int:
        topic = self.world.publications[number][1]
        users = [user for b, t, user in self.registered if (b, t) == (broker, topic)]
        return sum(self.content.concerns(number // self.fields, topic, user) for user in users)

    def users_below(self, number: int, broker: int) -> int:
        """The users whom the copy concerns, without those to whom an earlier copy makes the publication due elsewhere."""

        def concerns(copy: int, user: int) -> bool:
            return self.content.concerns(copy // self.fields, self.world.publications[copy][1], user)

        copies = [copy for copy in self.became_due if copy // self.fields == number // self.fields]
        here = [user for user, at in self.audience[number].items() if at == broker and concerns(number, user)]
        firsts = [next(copy for copy in copies if concerns(copy, user)) for user in here]
        return sum(self.audience[first][user] == broker for first, user in zip(firsts, here, strict=True))

    def offer(self, broker: int, what: int, stage: int, *more: Any) -> bool:
        number = what % AGAIN
        if what >= 0 and (stage == 1 or (stage == 0 and broker == self.origin[number][-1])):
            topic = self.world.publications[number][1]
            here = (
                [user for user, at in self.audience[number].items() if at == broker]
                if stage
                else [user for b, t, user in self.registered if (b, t) == (broker, topic)]
            )
            self.increments[what, broker, stage] = self.content.increments(number // self.fields, topic, here)
        return super().offer(broker, what, stage, *more)

    def comings(self) -> Iterator[tuple[int, Coming]]:
        for number in sorted({copy // self.fields for copy in self.origin}):
            outcome = self.outcome(number)
            for user, (served, copy) in outcome.came.items():
                published, _, _, size, *_ = self.world.publications[copy]
                about = {"broker": outcome.due[user], "up": self.distance_up(copy)}
                yield user, Coming(number, self.arrived[copy, outcome.due[user]], served, size, published, **about)

    def of_users(self, since: float, until: float) -> dict[str, float | int | None]:
        return {}  # `metrics` below has them

    def outcome(self, number: int) -> Outcome:
        """The outcomes of a publication, by user and broker."""
        copies = range(number * self.fields, (number + 1) * self.fields)
        due: dict[int, int] = {}
        ways: list[tuple[int, int]] = []  # copy, user: what would bring it
        matched = set()  # copy, broker
        for copy in sorted(copies, key=self.became_due.__getitem__):
            for user, broker in self.audience[copy].items():
                if self.content.concerns(number, self.world.publications[copy][1], user):
                    matched.add((copy, broker))
                    if due.setdefault(user, broker) == broker:
                        ways.append((copy, user))
        came: dict[int, tuple[float, int]] = {}
        fates: dict[int, set[str]] = {user: set() for user in due}
        for copy, user in ways:
            pair = copy, due[user]
            if pair in self.delivered:
                came[user] = min(came.get(user, (math.inf, 0)), (self.delivered[pair], copy))
            else:
                fates[user].add(self.lost.get(pair, "in_flight"))
        arrived = [pair for pair in self.delivered if pair[0] in copies]
        first = {
            broker: min(at for user, at in came.items() if due[user] == broker)
            for broker in {due[user] for user in came}
        }
        missing = {user: best(fates[user]) for user in due if user not in came}
        missed = {
            broker: best({fate for user, fate in missing.items() if due[user] == broker})
            for broker in {due[user] for user in missing} - set(first)
        }
        false = sum(pair not in matched for pair in arrived)
        return Outcome(number, due, came, first, missing, missed, len(arrived) - false - len(first), false)


class Kept(Network, Guaranteed):
    """The same with a guarantee for each copy by itself."""


def best(fates: set[str]) -> str:
    """The best of the outcomes of several copies."""
    outcomes = "in_flight", "queue_full", "link", "expired", "joining", "unreachable"
    return next(fate for fate in outcomes if fate in fates)


@dataclass
class Outcome:
    """`due`: user → broker; `came`: user → when, and by which copy, first; `first`: the same by broker; `missing` and `missed`: user or
    broker → why nothing came."""

    number: int
    due: dict[int, int]
    came: dict[int, tuple[float, int]]
    first: dict[int, tuple[float, int]]
    missing: dict[int, str]
    missed: dict[int, str]
    duplicates: int
    false_positives: int


def outcomes(network: Network, since: float, until: float) -> list[Outcome]:
    """The outcomes of what was published in a span of time."""
    numbers = sorted({copy // network.fields for copy in network.origin})
    return [
        network.outcome(number)
        for number in numbers
        if since <= network.world.publications[number * network.fields][0] < until
    ]


def metrics(network: Network, since: float, until: float) -> dict[str, float | int | None]:
    """The scalar metrics, as of topics where copies count one by one."""
    kept, copies = outcomes(network, since, until), topics.metrics(network, since, until)
    publications, messages = network.world.publications, copies["notification_overhead"]
    assert messages is not None

    def mean(values: Iterable[float]) -> float | None:
        listed = list(values)
        return fmean(listed) if listed else None

    firsts = [(broker, *at) for each in kept for broker, at in each.first.items()]
    delays = sorted(time - publications[copy][0] for _, time, copy in firsts)
    until_when = network.setting.clients.until
    came = [(network.came[each.number, user], copy) for each in kept for user, (_, copy) in each.came.items()]
    got = [(coming.moment(until_when), copy) for coming, copy in came if coming.fate == "delivered"]
    user_delays = [
        coming.delay(publications[copy][0], until_when) for coming, copy in came if coming.fate == "delivered"
    ]
    missed = Counter(fate for each in kept for fate in each.missed.values())
    straight = [
        (network.arrived[copy, broker] - publications[copy][0]) / network.setting.delay[network.origin[copy][0]][broker]
        for broker, _, copy in firsts
        if network.setting.delay[network.origin[copy][0]][broker] > 0
    ]
    lasts: dict[int, float] = {}
    for _, time, copy in firsts:
        lasts[copy] = max(time - publications[copy][0], lasts.get(copy, 0.0))
    due_users = sum(len(each.due) for each in kept)

    return copies | {
        "notification_delay": mean(delays),
        **topics.quantiles("notification_delay", delays),
        "notification_delay_max": max(delays, default=None),
        "last_delivery_delay": mean(lasts.values()),
        "arrival_delay": mean(network.arrived[copy, broker] - publications[copy][0] for broker, _, copy in firsts),
        "user_notification_delay": mean(user_delays),
        **topics.quantiles("user_notification_delay", user_delays),
        "tree_delay": mean(time - network.rooted[copy] for _, time, copy in firsts),
        "user_tree_delay": mean(time - network.rooted[copy] for time, copy in got),
        "tree_hops": mean(network.depth[copy, broker] for broker, _, copy in firsts),
        "messages_per_publication": messages / len(kept) if kept else None,
        "publications": len(kept),
        "due": sum(len(set(each.due.values())) for each in kept),
        "delivered": len(firsts),
        "lost": missed.total() - missed["in_flight"],
        "lost_joining": missed["joining"],
        "lost_unreachable": missed["unreachable"],
        "lost_queue_full": missed["queue_full"],
        "lost_link": missed["link"],
        "lost_expired": missed["expired"],
        "in_flight": missed["in_flight"],
        "duplicates": copies["duplicates"] + sum(each.duplicates for each in kept),
        "false_positive_messages": sum(each.false_positives for each in kept),
        "delivery_ratio": len(got) / due_users if due_users else None,
        **topics.clients(network, [coming for coming, _ in came], since, until),
        "path_stretch": mean(straight),
    }
