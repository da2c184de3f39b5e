"""Tiny broker networks, simulated slowly and obviously from the definitions.

Node ids, roots of topics, the mapping of brokers, hop and service times, and the selection rule come in as plain values and functions.
Nothing is kept that can be worked out anew: routes of the overlay, trees as unions of routes, counts as sums over users.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import count, pairwise
from statistics import fmean, pstdev

# Any: what a message to a user has beside its times.
from typing import Any

from oracles.clients import Clients, Coming, User
from oracles.overlays import Flooding, Overlay, TopicConnected
from oracles.topic_connected import topic_diameters

TICKS, CHANGES, PUBLICATIONS, CONTROL_ARRIVALS, ARRIVALS = range(
    5
)  # what happens first at equal times; among equals, what was scheduled first
DECISIONS = -1  # what is offloaded is decided first
FAULTS = -2  # what fails, and what works again, before that
LOOKS = -3  # snapshots come before everything of their time
ASKED = 1.9  # retained messages are asked for after changes and reconnections, before publications
WAITING = 1.95  # what clients have kept comes before other publications
AGAIN = 2**40  # publications that are sent again are known by another number
ANSWERS = 2**80  # acknowledgements are control messages with numbers from there on
FAULTS_COUNTED = (
    "crashes",
    "connection_attempts",
    "reconnections",
    "resubscriptions",
    "fault_messages",
    "drained_users",
    "drained_brokers",
    "broker_departures",
    "broker_arrivals",
    "moved_users",
    "moved_topics",
    "moved_trees",
    "membership_messages",
)
HEALING_COUNTED = "stabilisation_messages", "healing_messages", "unhealed_crashes"


# -- selection


@dataclass
class Case:
    """One user's case: `states` are the brokers' topic counts as last exchanged, `own` the current broker's now, without the user."""

    time: float
    user: int
    current: int | None
    topics: set[int]
    states: list[Counter[int]]
    own: Counter[int]
    total: int


def similarity(
    candidates: Callable[[int], Iterable[int]], load_weight: Fraction, hysteresis: Fraction = Fraction(0)
) -> Callable[[Case], int]:
    """DYNATOPS algorithm 1: the highest Sim - w · L; ties: the current broker, the lower load, the lower id."""

    def select(case: Case) -> int:
        if case.current is not None and not case.topics:
            return case.current
        load, utility = {}, {}
        for broker in candidates(case.user):
            state = case.own if broker == case.current else case.states[broker]
            common = sum(1 for topic in case.topics if state[topic] > 0)
            load[broker] = Fraction(state.total(), max(case.total, 1))
            utility[broker] = Fraction(common, max(len(case.topics), 1)) - load_weight * load[broker]
        best = min(utility, key=lambda b: (-utility[b], b != case.current, load[b], b))
        if case.current in utility and utility[best] - utility[case.current] <= hysteresis:
            return case.current
        return best

    return select


# -- offloading

Pair = tuple[int, int]  # topic, broker; or publication, broker


@dataclass
class Offloading:
    """At the start of each period `choose(number, rates, wants, hosts)` gives the pairs (topic, broker) that the back end keeps.

    `arrives(publication, broker)` tells whether the best-effort channel delivers, `extra_delay` how much later than a hop; `by_broker`
    whether each broker decides alone. Without `choose` all is kept.
    """

    period: float
    tau: float
    smoothing: float
    choose: Callable[[int, list[float], list[set[int]], list[int]], set[Pair]] | None = None
    arrives: Callable[[int, int], bool] = lambda publication, broker: True
    extra_delay: float = 0.0
    by_broker: bool = False


# -- the network


@dataclass
class Setting:
    """A network: `roots` gives the node at which each topic's trees start, None where that is the publisher's; `node_of` each broker's
    node id, `delay[a][b]` the seconds of a hop, `factor(what, a, b)` multiplies them.

    What travels is known by a number: publications by their row, the n-th join or leave by -n. `exchange` is a period and the cluster
    of each broker.

    `service(what, broker, stage, copies, users, size)` gives seconds, by how many copies the broker sends to brokers and to its users,
    and by bytes; one of its `servers` that is idle takes `wake_up` longer, and `wake_up_slowdown` times the service; of
    that, and of what is above `wake_up_least`, it is t / (t + `wake_up_half`) if the broker has neither begun nor ended a service for
    t. `queue` publications may wait, of `queue_bytes` together;
    where they would be more, the oldest are dropped if `drops_oldest`, else what comes. Control messages go first unless `fifo`.
    """

    overlay: Overlay
    roots: list[int | None]
    node_of: list[int]
    delay: list[list[float]]
    horizon: float
    select: Callable[[Case], int]
    reacts_to: frozenset[str] = frozenset()
    exchange: tuple[float, list[int]] | None = None
    join_by_message: bool = False
    two_requests: bool = False
    service: Callable[[int, int, int, int, int, int], float] | None = None
    wake_up: float = 0.0
    wake_up_half: float = 0.0
    wake_up_least: float = 0.0
    wake_up_slowdown: float = 0.0
    servers: int = 1
    queue: int | None = None
    queue_bytes: int | None = None
    drops_oldest: bool = False
    fifo: bool = False
    floods: bool = False
    hop_limit: int | None = None
    keeps_members: bool = False
    regions: list[int] | None = None
    offloading: Offloading | None = None
    factor: Callable[[int, int, int], float] = lambda what, source, destination: 1.0
    lines: Lines | None = None
    clients: Clients = field(default_factory=Clients)


@dataclass
class Lines:
    """What limits messages with publications: bytes per second of each link and of each broker's interface, in each direction; how many
    messages and bytes may wait for a link; and `loses(what, source, destination)`."""

    bandwidth: float | None
    interface: float | None
    buffer: int | None
    buffer_bytes: int | None
    loses: Callable[[int, int, int], bool]
    jitter: bool = False
    loss: float = 0.0  # the probability of it


@dataclass
class World:
    """What happens from outside: wants at time 0, changes (time, user, topic, ±1), movements (time, user), publications (time, topic,
    publisher or None, size), and the brokers at which publications from outside arrive; the quality of service of publications, those
    that are retained, and when users ask for the retained message of a topic."""

    wants: list[set[int]]
    changes: list[tuple[float, int, int, int]]
    movements: list[tuple[float, int]]
    publications: list[tuple[float, int, int | None, int]]
    outside: dict[int, int] = field(default_factory=dict)
    qos: dict[int, int] = field(default_factory=dict)
    retains: list[int] = field(default_factory=list)
    asked: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass
class Job:
    """A message that a broker has to serve."""

    what: int
    seconds: float
    size: int
    handled: Callable[[], None]
    dropped: Callable[[str], None]  # by this cause
    arrived: float
    woke: bool  # found a server idle
    beside: list[Job]  # in service when it came
    taken: float | None = None
    done: float = math.inf
    refused_for: Job | None = None  # what there was no room for: itself, or what came later
    cut_short: float | None = None  # when a crash ended its wait or service


class Broker:
    """Its servers and its queue; control messages may wait in front of publications."""

    def __init__(self) -> None:
        self.front: deque[Job] = deque()
        self.queue: deque[Job] = deque()
        self.serving: list[Job] = []
        self.jobs: list[Job] = []  # all that have come, refused or not
        self.changed = 0.0  # when a service last began or ended, or all of them by a crash
        self.anew = 0  # the first of them since the last crash
        self.lengths: list[tuple[float, int]] = []  # when the queue grew, and to how many


@dataclass
class Copy:
    """One of the messages by which a publication is flooded; `around` are the neighbours of each node when it left the root."""

    number: int
    around: dict[int, list[int]]
    sender: int | None
    node: int
    first: bool | None = None  # not known before it arrives


@dataclass
class Hop:
    """A message of a publication; `subscribes` tells whether the destination was due, `received` is None where it never was."""

    publication: int
    source: int
    destination: int
    kind: str
    sent: float
    subscribes: bool
    received: float | None = None
    again: bool = False  # it had been sent before
    passes_on: bool | None = None  # whether the destination does nothing else with it, where that is known


@dataclass
class Sending:
    """A message with a publication: when it is handed to a link, and sent from and until, all alike where it is refused."""

    link: tuple[int, int]
    size: int
    handed: float
    start: float
    end: float
    refused: bool = False
    lost: bool = False


class Network:
    """Simulates a network when it is made; its attributes are the results."""

    def __init__(self, setting: Setting, world: World, moments: Iterable[float] = ()) -> None:
        self.setting, self.world = setting, world
        self.now = 0.0
        self.heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self.order = count()
        self.broker_at = {node: broker for broker, node in enumerate(setting.node_of)}
        self.brokers = [Broker() for _ in setting.node_of]
        self.last_arrival: dict[tuple[int, int], float] = {}
        self.out: dict[int, float] = defaultdict(float)  # when each broker's interface is free
        self.into: dict[int, float] = defaultdict(float)  # likewise
        self.along: dict[tuple[int, int], float] = defaultdict(float)  # likewise, of links
        self.queued: dict[tuple[int, int], list[tuple[float, int]]] = {}  # when they will be sent, and their bytes
        self.crowded = 0  # messages that did not fit a buffer
        self.sendings: list[Sending] = []
        self.works: dict[tuple[str, object], list[tuple[float, float]]] = defaultdict(
            list
        )  # link, interface → when (s), s
        self.held_up = 0  # that waited for a link or an interface

        self.wants = [set(topics) for topics in world.wants]
        self.host: list[int | None] = [None] * len(self.wants)
        self.registered: set[tuple[int, int, int]] = set()  # broker, topic, user
        self.joined: list[set[int]] = [set() for _ in setting.roots]  # nodes whose join has come through
        self.answered: dict[
            tuple[int, int], int
        ] = {}  # by topic and broker: the latest join or leave that was answered
        self.overtaken = 0  # joins and leaves whose answers came after those of the next

        self.bootstrap_messages = 0
        self.transitions: list[tuple[float, int, int, int]] = []  # time, topic, broker, ±1
        self.control: list[float] = []  # when a control message was sent
        self.relinking: list[float] = []  # when a message was sent that sets up a link or takes one down
        self.requests = 0
        self.decisions: list[tuple[float, int, int | None, int]] = []  # time, user, from, to
        self.hosting: list[
            tuple[float, list[int], list[int]]
        ] = []  # time, subscriptions and users per broker from then on
        self.origin: dict[int, list[int]] = {}  # publication → brokers on its way up
        self.first_way: dict[int, list[int]] = {}  # likewise, before it took another one
        self.rooted: dict[int, float] = {}
        self.became_due: dict[int, float] = {}
        self.audience: dict[int, dict[int, int]] = {}  # publication → who wants it when it leaves the root, and where
        self.absent: dict[int, set[int]] = {}  # publication → who wants it then and is at no broker
        self.dropped: set[int] = set()
        self.hops: list[Hop] = []
        self.due: dict[Pair, int] = {}  # → users
        self.depth: dict[Pair, int] = {}
        self.arrived: dict[Pair, float] = {}
        self.delivered: dict[Pair, float] = {}
        self.lost: dict[Pair, str] = {}
        self.looks: list[list[dict[int, int | None]]] = []
        self.answers = 0
        self.retained: list[tuple[int, Coming]] = []
        self.retained_on: dict[int, int] = {}  # of retained messages
        self.offloaded: set[Pair] = set()  # topic, broker
        self.sides: Counter[Pair] = Counter()  # how often each has been offloaded or taken back
        self.rates: list[float] | None = None  # publications per topic and period
        self.choices: list[tuple[float, set[Pair], int, int]] = []  # time, what is kept, topics moved, brokers told
        self.by_channel: set[Pair] = set()  # publications that are due to brokers which the back end does not serve

        self.copies: list[Copy] = []  # on links and at brokers
        self.reached: dict[Pair, int] = {}  # publication, node → hops that the first copy took
        self.duplicates: Counter[int] = Counter()
        self.flooded: set[Pair] = set()  # publication, node that has handled the first copy
        self.fewest: dict[Pair, int] = {}  # publication, node → hops of the copy with fewest that was sent there
        self.short: dict[int, list[tuple[Copy, str]]] = {}  # publication → copies that were lost or not sent, and why
        self.travelling: Counter[int] = Counter()  # publication → messages on links and at brokers
        self.acknowledged: Counter[int] = Counter()  # publication → acknowledgements
        self.repeated: Counter[Pair] = Counter()  # publication, broker → users whom it served again
        self.most_remembered = 0
        self.trees: list[dict[int, int | None]] = []
        self.tree_changes_across = 0  # while a publication of the topic travelled
        self.handovers_across = 0  # while a publication that the user wants travelled

        self.run(moments)

    # -- the clock

    def at(self, time: float, rank: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.heap, (time, rank, next(self.order), action))

    def run(self, moments: Iterable[float]) -> None:
        for user, wants in enumerate(self.wants):
            self.bootstrap_messages += self.exchange()  # tiny networks: before every join
            self.attach(user, self.decide(user, wants), set(), wants)
        self.bootstrap_messages += self.exchange() + self.adjust()
        self.trees = self.all_trees()
        self.note_hosting()
        for moment in moments:
            self.at(moment, LOOKS, lambda: self.looks.append(self.all_trees()))
        offloading = self.setting.offloading
        if offloading is not None:
            for number in range(1, int(self.setting.horizon / offloading.period) + 2):
                self.at(number * offloading.period, DECISIONS, partial(self.watch, number))
        if self.setting.exchange is not None:
            self.at(self.setting.exchange[0], TICKS, self.tick)
        for time in {row[0] for row in (*self.world.changes, *self.world.movements)}:
            self.at(time, CHANGES, self.change)
        for time in {time for time, *_ in self.world.asked}:
            self.at(time, ASKED, self.hand_out_retained)
        for number, (time, *_) in enumerate(self.world.publications):
            self.at(time, PUBLICATIONS, partial(self.publish, number))
        while self.heap and self.heap[0][0] < self.setting.horizon:
            self.now, _, _, action = heapq.heappop(self.heap)
            action()
        for number in self.travelling.keys() & self.rooted.keys() if self.setting.floods else ():
            self.lose_flooded(number)
        for number in self.origin.keys() - self.rooted.keys() - self.dropped:
            self.miss_root(number)
        self.reach_users()

    def reach_users(self) -> None:
        """Pass on what brokers have served to their users; this does not affect brokers."""
        comings: dict[int, list[Coming]] = defaultdict(list)
        for user, coming in self.comings():
            comings[user].append(coming)
        clients, horizon = self.setting.clients, self.setting.horizon
        self.users = {
            user: User(clients, user, each, horizon, self.crashes_on(user), self.reconnects_on(user))
            for user, each in comings.items()
        }
        self.came = {(coming.number, user): coming for user, each in comings.items() for coming in each}

    def hand_out_retained(self) -> None:
        """Those who are connected and subscribe now get the last publication that is retained on their topic."""
        asked = sorted((topic, user) for time, user, topic in self.world.asked if time == self.now)
        asked = [(topic, user) for topic, user in asked if self.is_connected(user)]
        for topic in dict.fromkeys(topic for topic, _ in asked):
            self.hand_out(topic, [user for what, user in asked if what == topic])

    def hand_out(self, topic: int, users: list[int]) -> None:
        """Users get the last publication that is retained on a topic, if it has any bytes."""
        last = [n for n in self.world.retains if self.world.publications[n][1] == topic]
        last = [n for n in last if self.world.publications[n][0] < self.now]
        size = self.world.publications[max(last)][3] if last else 0
        if size:
            number = len(self.world.publications) + self.answers
            self.answers += 1
            self.retained_on[number] = topic
            kept = self.world.qos.get(max(last)) != 0
            more: dict[str, Any] = {"topic": topic, "quality": self.world.qos.get(max(last), -1)}
            for user in users:
                more["broker"] = self.host[user]
                coming = Coming(number, self.now, self.now, size, self.now, kept, "retained", **more)
                self.retained.append((user, coming))

    def is_connected(self, user: int) -> bool:
        return True

    def crashes_on(self, user: int) -> list[float]:
        """When the user's broker crashed."""
        return []

    def reconnects_on(self, user: int) -> list[float]:
        """When the user was connected again after its broker had crashed."""
        return []

    def comings(self) -> Iterator[tuple[int, Coming]]:
        """The publications that arrive for each user."""
        for (number, broker), served in self.delivered.items():
            for user, host in self.audience[number].items():
                if host == broker:
                    published, topic, _, size, *_ = self.world.publications[number]
                    kept = self.world.qos.get(number) != 0
                    more: dict[str, Any] = {"quality": self.world.qos.get(number, -1)}
                    if (number, broker) not in self.by_channel:
                        more |= {"broker": broker, "up": self.distance_up(number)}
                    arrived = self.arrived[number, broker]
                    yield user, Coming(number, arrived, served, size, published, kept, topic=topic, **more)
        yield from self.retained

    def distance_up(self, number: int) -> float:
        """The time over the distance from the publisher of a publication to the broker where it entered."""
        published, _, publisher, *_ = self.world.publications[number]
        if publisher is None:
            return 0.0
        return self.setting.clients.away(publisher, self.origin[number][0], published)

    # -- users

    def state(self, broker: int, without: int | None = None) -> Counter[int]:
        """The number of the broker's users that want each topic."""
        return Counter(topic for b, topic, user in self.registered if b == broker and user != without)

    def exchange(self) -> int:
        """Let brokers exchange their states within clusters; returns the number of messages."""
        self.exchanged = [self.state(broker) for broker in range(len(self.brokers))]
        clusters = self.setting.exchange[1] if self.setting.exchange is not None else []
        return sum(clusters.count(cluster) - 1 for cluster in clusters)

    def tick(self) -> None:
        assert self.setting.exchange is not None
        self.control += [self.now] * self.exchange()
        self.at(self.now + self.setting.exchange[0], TICKS, self.tick)

    def decide(self, user: int, topics: set[int]) -> int:
        current = self.host[user]
        own = Counter() if current is None else self.state(current, without=user)
        return self.setting.select(
            Case(self.now, user, current, topics, self.exchanged, own, len(self.registered)),
        )

    def attach(self, user: int, broker: int, before: set[int], after: set[int]) -> None:
        """The user wants `after` at this broker, and no longer `before` where it was: first added, then removed."""
        former = self.host[user]
        self.decisions.append((self.now, user, former, broker))
        if former is not None and any(self.world.publications[p][1] in before for p in self.travelling):
            self.handovers_across += 1
        for topic in sorted(after):
            self.add(broker, topic, user)
        self.host[user] = broker
        if former is not None:
            for topic in sorted(before):
                self.remove(former, topic, user)

    def add(self, broker: int, topic: int, user: int) -> None:
        first = not self.users_of(broker, topic)
        self.registered.add((broker, topic, user))
        if first:
            self.transition(topic, broker, +1)

    def remove(self, broker: int, topic: int, user: int) -> None:
        self.registered.remove((broker, topic, user))
        if not self.users_of(broker, topic):
            self.transition(topic, broker, -1)

    def users_of(self, broker: int, topic: int) -> int:
        return sum(1 for b, t, _ in self.registered if (b, t) == (broker, topic))

    def change(self) -> None:
        """All changes of this instant: one update and one selection for each user, in the order in which they appear."""
        wants: dict[int, set[int]] = {}
        asked = set()
        for time, user, topic, action in self.world.changes:
            if time == self.now:
                wanted = wants.setdefault(user, set(self.wants[user]))
                wanted.add(topic) if action > 0 else wanted.remove(topic)
                if "subscription" in self.setting.reacts_to:
                    asked.add(user)
        for time, user in self.world.movements:
            if time == self.now and "movement" in self.setting.reacts_to:
                wants.setdefault(user, set(self.wants[user]))
                asked.add(user)
        for user, after in wants.items():
            self.update(user, after, user in asked)
            self.wants[user] = after
        self.relinking += [self.now] * self.adjust()
        self.note_hosting()

    def update(self, user: int, after: set[int], asks: bool) -> None:
        before, current = self.wants[user], self.host[user]
        broker = self.decide(user, after) if asks else current
        assert broker is not None
        assert current is not None
        if broker == current:
            for topic in sorted(after - before):
                self.add(broker, topic, user)
            for topic in sorted(before - after):
                self.remove(broker, topic, user)
        else:
            self.attach(user, broker, before, after)

    def note_hosting(self) -> None:
        brokers = range(len(self.brokers))
        self.hosting.append(
            (self.now, [self.state(b).total() for b in brokers], [self.host.count(b) for b in brokers]),
        )

    # -- offloading

    def watch(self, number: int) -> None:
        """End a period, and update the expected publications of the next."""
        offloading = self.setting.offloading
        assert offloading is not None
        start, end, a = (number - 1) * offloading.period, number * offloading.period, offloading.smoothing
        seen = [0.0] * len(self.setting.roots)
        for time, topic, *_ in self.world.publications:
            seen[topic] += start <= time < end
        old = self.rates
        self.rates = seen if old is None else [o + a * (n - o) for o, n in zip(old, seen, strict=True)]
        self.offload(number)

    def offload(self, number: int) -> None:
        """Decide what the back end keeps; trees hold those that it serves, at once."""
        offloading = self.setting.offloading
        assert offloading is not None
        assert self.rates is not None
        everything = {
            (topic, broker) for topic in range(len(self.setting.roots)) for broker in range(len(self.brokers))
        }
        kept = everything
        if offloading.choose is not None:
            hosts = [host for host in self.host if host is not None]
            kept = offloading.choose(number, self.rates, self.wants, hosts)
        moved = {pair for pair in everything if (pair in kept) == (pair in self.offloaded)}
        self.offloaded = everything - kept
        self.sides.update(moved)
        told = {pair for pair in moved if self.users_of(pair[1], pair[0])}
        topics = len(told) if offloading.by_broker else len({topic for topic, _ in told})
        self.choices.append((self.now, kept, topics, len(told)))
        for topic, broker in moved:
            self.joined[topic].discard(self.setting.node_of[broker])
            if (topic, broker) in told & kept:
                self.joined[topic].add(self.setting.node_of[broker])
        self.trees = self.all_trees()
        self.relinking += [self.now] * self.adjust()

    def carried(self, broker: int) -> set[int]:
        """The topics that the broker wants and the back end keeps for it."""
        return {topic for topic in self.state(broker) if (topic, broker) not in self.offloaded}

    def send_best_effort(self, number: int, broker: int) -> None:
        """To a broker that the back end does not serve, directly from the root."""
        offloading = self.setting.offloading
        assert offloading is not None
        self.by_channel.add((number, broker))
        if not offloading.arrives(number, broker):
            self.lost[number, broker] = "offloaded"
            return
        time = self.now + self.setting.delay[self.origin[number][-1]][broker] + offloading.extra_delay
        self.at(time, ARRIVALS, partial(self.deliver, number, broker))

    def on_tree(self, number: int, broker: int) -> bool:
        """Whether the publication is due to the broker, by the tree."""
        return (number, broker) in self.due.keys() - self.by_channel

    # -- trees

    def adjust(self) -> int:
        """Adjust links to the brokers' present interests; returns the number of messages."""
        return self.setting.overlay.adjust([self.linked(node) for node in sorted(self.setting.node_of)])

    def linked(self, node: int) -> set[int]:
        """The topics for which the node has links, where links follow interests."""
        return self.carried(self.broker_at[node])

    def root(self, topic: int, source: int) -> int:
        root = self.setting.roots[topic]
        return self.setting.overlay.start(source, self.members(topic)) if root is None else root

    def all_trees(self) -> list[dict[int, int | None]]:
        return [self.tree(topic) for topic in range(len(self.setting.roots))]

    def tree(self, topic: int, source: int | None = None) -> dict[int, int | None]:
        """The tree as it is now, from a root, or for publications from the lowest node."""
        root = self.root(topic, min(set(self.setting.node_of) - self.around_nodes())) if source is None else source
        return self.setting.overlay.tree(root, self.members(topic))

    def members(self, topic: int) -> set[int]:
        if self.setting.join_by_message:
            return self.joined[topic]
        return {self.setting.node_of[broker] for broker in range(len(self.brokers)) if topic in self.carried(broker)}

    def around_nodes(self) -> frozenset[int]:
        """The nodes that the overlay routes around: none where nothing fails."""
        return frozenset()

    def transition(self, topic: int, broker: int, change: int) -> None:
        node, messages = self.setting.node_of[broker], self.messages(topic, self.setting.node_of[broker])
        if not self.trees:  # still joining
            self.bootstrap_messages += messages
            self.enact(topic, node, change)
            return
        self.transitions.append((self.now, topic, broker, change))
        if (topic, broker) in self.offloaded:
            return
        if self.setting.join_by_message:
            self.requests += 1
            answer = partial(self.answer, topic, broker, change, self.sides[topic, broker], self.requests)
            there, back = self.ways(topic, node)
            path = [self.broker_at[n] for n in there + back[1:]]
            self.control_message(self.requests, path, 0, len(there) - 1, answer)
        else:
            self.control += [self.now] * messages
            self.enact(topic, node, change)

    def ways(self, topic: int, node: int) -> tuple[list[int], list[int]]:
        """The route from the node to the root and back."""
        root, overlay = self.setting.roots[topic], self.setting.overlay
        assert root is not None
        return overlay.way_up(node, root), overlay.route(root, node)

    def messages(self, topic: int, node: int) -> int:
        """The number of messages of a join or leave."""
        if self.setting.roots[topic] is None:
            return self.setting.overlay.told(len(self.brokers) - len(self.around_nodes()))
        return 2 if self.setting.two_requests else sum(len(way) - 1 for way in self.ways(topic, node))

    def enact(self, topic: int, node: int, change: int) -> None:
        if change > 0:
            assert node not in self.joined[topic]
            self.joined[topic].add(node)
        else:
            self.joined[topic].remove(node)
        if self.trees and self.tree(topic) != self.trees[topic]:
            self.trees[topic] = self.tree(topic)
            self.tree_changes_across += any(self.world.publications[p][1] == topic for p in self.travelling)

    def answer(self, topic: int, broker: int, change: int, sides: int, request: int) -> None:
        """Whether the answer is void: the topic was offloaded or taken back meanwhile, or a later request was answered first."""
        node = self.setting.node_of[broker]
        if self.sides[topic, broker] == sides and request > self.answered.get((topic, broker), 0):
            self.answered[topic, broker] = request
            self.overtaken += (change > 0) == (node in self.joined[topic])
            if (change > 0) != (node in self.joined[topic]):
                self.enact(topic, node, change)

    def control_message(
        self, number: int, path: list[int], position: int, root: int, enact: Callable[[], None]
    ) -> None:
        """The broker at this position has handled a join or leave: on to the next. The request turns into its answer at `root`."""
        if self.setting.two_requests:
            self.control += [self.now] * ((position == 0) + (position == root))
        if position == len(path) - 1:
            enact()
            return
        if not self.setting.two_requests:
            self.control.append(self.now)
        onward = partial(self.control_message, number, path, position + 1, root, enact)
        there = path[position + 1]

        def arrive() -> None:
            self.offer(there, -number, position + 1, (int(position + 1 < len(path) - 1), 0, 0), onward)

        self.send(-number, path[position], there, arrive)

    # -- links and brokers

    def transmit(
        self,
        number: int,
        source: int,
        destination: int,
        arrive: Callable[[], None],
        lost: Callable[[str], None],
        before: int = 0,
    ) -> None:
        """Send a message with a publication: out of one interface, along the link, and into another, as soon as each is free.

        It has been sent so often `before`.
        """
        lines, size, link = self.setting.lines, self.world.publications[number][3], (source, destination)
        what = number + before * AGAIN
        if lines is None:
            self.send(what, source, destination, arrive)
            return
        start = self.now
        if lines.interface:
            start = max(start, self.out[source])
        if lines.bandwidth:
            start = max(start, self.along[link])
        if lines.bandwidth:
            self.works["link", link].append((self.now, size / lines.bandwidth))
        if lines.interface:
            self.works["out", source].append((self.now, size / lines.interface))
        waiting = [held for begins, held in self.queued.setdefault(link, []) if begins > self.now]
        many = lines.buffer is not None and len(waiting) >= lines.buffer
        much = lines.buffer_bytes is not None and sum(waiting) + size > lines.buffer_bytes
        if start > self.now and (many or much):
            self.crowded += 1
            self.sendings.append(Sending(link, size, self.now, self.now, self.now, refused=True))
            lost("queue_full")
            return
        end = self.now
        if lines.interface:
            end = max(self.now, self.out[source]) + size / lines.interface
            self.out[source] = end
        if lines.bandwidth:
            end = max(start + size / lines.bandwidth, end)
            self.along[link] = end
        self.queued[link].append((start, size))
        sending = Sending(link, size, self.now, start, end, lost=self.loses(what, source, destination))
        self.sendings.append(sending)
        self.held_up += start > self.now
        first = start + self.setting.delay[source][destination] * self.setting.factor(what, source, destination)
        first = max(first, self.last_arrival.get(link, 0.0)) if lines.jitter else first
        last = first + (end - start)
        if lines.jitter:
            self.last_arrival[link] = last
        if sending.lost:
            lost("link")
        elif lines.interface:
            self.at(first, ARRIVALS, partial(self.come_in, destination, last, size / lines.interface, arrive))
        else:
            self.at(last, ARRIVALS, arrive)

    def loses(self, number: int, source: int, destination: int) -> bool:
        """Whether the link loses this copy."""
        assert self.setting.lines is not None
        return self.setting.lines.loses(number, source, destination)

    def come_in(self, broker: int, last: float, takes: float, arrive: Callable[[], None]) -> None:
        self.held_up += self.into[broker] > self.now
        self.works["in", broker].append((self.now, takes))
        self.into[broker] = max(max(self.now, self.into[broker]) + takes, last)
        self.at(self.into[broker], ARRIVALS, arrive)

    def send(self, what: int, source: int, destination: int, arrive: Callable[[], None]) -> None:
        """Send a message on a link, where messages keep their order."""
        time = self.now + self.setting.delay[source][destination] * self.setting.factor(what, source, destination)
        time = max(time, self.last_arrival.get((source, destination), 0.0))
        self.last_arrival[source, destination] = time
        self.at(time, CONTROL_ARRIVALS if what < 0 else ARRIVALS, arrive)

    def offer(
        self,
        broker: int,
        what: int,
        stage: int,
        work: tuple[int, int, int],
        handled: Callable[[], None],
        dropped: Callable[[str], None] = lambda cause: None,
    ) -> bool:
        """Something arrives at a broker, which takes it in and calls `handled` when it has been served; or drops it, now or later.

        Returns whether it was taken in. `work`: copies to brokers, copies to users, bytes.
        """
        if self.setting.service is None:
            handled()
            return True
        at, woke = self.brokers[broker], len(self.brokers[broker].serving) < self.setting.servers
        seconds = self.setting.service(what, broker, stage, *work)
        if woke:
            idle, half = self.now - at.changed, self.setting.wake_up_half
            always = self.setting.wake_up_least / self.setting.wake_up if half else 1.0
            share = idle / (idle + half) if half else 1.0
            woken = self.setting.wake_up * (always + (1 - always) * share if half else 1.0)
            seconds += woken + seconds * self.setting.wake_up_slowdown * share
        job = Job(what, seconds, work[2], handled, dropped, self.now, woke, list(at.serving))
        at.jobs.append(job)
        if woke:
            self.serve(broker, job)
        elif what < 0:
            (at.queue if self.setting.fifo else at.front).append(job)
            at.lengths.append((self.now, len(at.front) + len(at.queue)))
        else:
            while not self.has_room(at, job) and job.refused_for is None:
                others = [other for other in at.queue if other.what >= 0]
                ever_fits = self.setting.queue_bytes is None or job.size <= self.setting.queue_bytes
                victim = others[0] if self.setting.drops_oldest and others and ever_fits else job
                victim.refused_for = job
                if victim is not job:
                    at.queue.remove(victim)
                    victim.dropped("queue_full")
            if job.refused_for is None:
                at.queue.append(job)
                at.lengths.append((self.now, len(at.front) + len(at.queue)))
        return job.refused_for is None

    def has_room(self, at: Broker, job: Job) -> bool:
        waiting = [other.size for other in at.queue if other.what >= 0]
        bound, most = self.setting.queue, self.setting.queue_bytes
        return (bound is None or len(waiting) < bound) and (most is None or sum(waiting) + job.size <= most)

    def saturated(self, broker: int, seconds: float) -> bool:
        """Whether more work has come since some moment than the broker could do, by so much that it is no chance: 3 standard errors."""
        backlog, error = self.backlogs[broker]
        return backlog > 1e-9 and (backlog > seconds / 2 or (backlog > seconds / 100 and backlog > error))

    @cached_property
    def backlogs(self) -> list[tuple[float, float]]:
        """The work that each broker has left at the end, in seconds, and three standard errors of it.

        Work that was refused is taken to be done by servers that are idle.
        """
        horizon, servers = self.setting.horizon, self.setting.servers

        def backlog(at: Broker) -> tuple[float, float]:
            jobs = at.jobs[at.anew :]

            def idle(start: float, end: float) -> float:
                busy = sum(
                    max(min(job.done, end) - max(job.taken, start), 0.0) for job in jobs if job.taken is not None
                )
                return servers * (end - start) - busy

            undone = squares = last = 0.0
            for job in jobs:
                undone = max(undone - idle(last, job.arrived), 0.0)
                last = job.arrived
                if job.woke and undone < 1e-9:
                    undone = 0.0
                    squares = sum(other.seconds**2 for other in job.beside)
                squares += job.seconds**2
                undone += sum(other.seconds for other in jobs if other.refused_for is job)
            undone = max(undone - idle(last, horizon), 0.0)
            left = [
                job.seconds if job.taken is None else job.taken + job.seconds - horizon
                for job in jobs
                if job.refused_for is None and job.done == math.inf
            ]
            if len(at.serving) < servers:  # none would have to wait
                left = []
            return (undone + sum(left)) / servers, 3 * math.sqrt(squares) / servers

        return [backlog(at) for at in self.brokers]

    def serve(self, broker: int, job: Job) -> None:
        self.brokers[broker].serving.append(job)
        job.taken = self.brokers[broker].changed = self.now
        self.at(self.now + job.seconds, ARRIVALS, partial(self.served, broker, job))

    def served(self, broker: int, job: Job) -> None:
        """End a service: the next message is taken into service before the finished one continues."""
        at, job.done = self.brokers[broker], self.now
        at.changed = self.now
        at.serving.remove(job)
        if at.front or at.queue:
            self.serve(broker, (at.front or at.queue).popleft())
        job.handled()

    # -- publications

    def publish(self, number: int) -> None:
        _, topic, publisher, _ = self.world.publications[number]
        broker = self.outside(number) if publisher is None else self.host[publisher]
        assert broker is not None
        node = self.setting.node_of[broker]
        route = self.setting.overlay.way_up(node, self.root(topic, node))
        self.origin[number] = [self.broker_at[node] for node in route]
        self.travelling[number] += 1
        self.reach_uplink(number, 0, None)

    def outside(self, number: int) -> int:
        return self.world.outside[number]

    def reach_uplink(self, number: int, position: int, hop: Hop | None) -> None:
        broker = self.origin[number][position]
        size = self.world.publications[number][3]
        at_root = position == len(self.origin[number]) - 1
        work = self.work_of_root(number, broker) if at_root else (1, 0, size)
        dropped = partial(self.drop_short_of_root, number)
        if not self.offer(broker, number, 0, work, partial(self.climb, number, position), dropped):
            dropped("queue_full")
        elif hop is not None:
            hop.received = self.now

    def work_of_root(self, number: int, broker: int) -> tuple[int, int, int]:
        """The copies to brokers and to users, and the bytes, as of now."""
        _, topic, _, size = self.world.publications[number]
        root = self.setting.node_of[broker]
        parents = self.tree(topic, root)
        if not parents:
            return 0, 0, size
        copies = sum(above == root for above in parents.values())
        if self.setting.floods:
            assert isinstance(self.setting.overlay, Flooding)
            copies = len(self.setting.overlay.around(root, self.members(topic))[root])
        return copies, self.users_of_root(number, broker), size

    def users_of_root(self, number: int, broker: int) -> int:
        topic = self.world.publications[number][1]
        return 0 if (topic, broker) in self.offloaded else self.users_of(broker, topic)

    def users_below(self, number: int, broker: int) -> int:
        """The number of the broker's users that get a copy."""
        return self.due[number, broker] if self.on_tree(number, broker) else 0

    def drop_short_of_root(self, number: int, cause: str) -> None:
        self.dropped.add(number)
        self.miss_root(number)
        self.lost.update((pair, cause) for pair in self.due if pair[0] == number)
        self.gone(number)

    def climb(self, number: int, position: int) -> None:
        """A broker on the uplink has served the publication."""
        path = self.origin[number]
        if position == len(path) - 1:
            self.leave_root(number)
            self.gone(number)
            if self.setting.floods and number not in self.travelling:  # the links lost all copies, or there were none
                self.lose_flooded(number)
            return
        here, there = path[position : position + 2]
        hop = Hop(number, here, there, "uplink", self.now, False)
        self.hops.append(hop)
        arrive = partial(self.reach_uplink, number, position + 1, hop)
        self.transmit(number, here, there, arrive, partial(self.drop_short_of_root, number))

    def miss_root(self, number: int) -> None:
        """A publication is lost on its uplink: it becomes due to all who want it now."""
        topic = self.world.publications[number][1]
        self.became_due[number] = self.now
        self.note_audience(number)
        self.due |= {(number, broker): self.users_of(broker, topic) for broker in self.audience[number].values()}

    def leave_root(self, number: int) -> None:
        """It becomes due, to all that want it now, along the tree as it is now."""
        topic = self.world.publications[number][1]
        self.rooted[number] = self.became_due[number] = self.now
        self.note_audience(number)
        root = self.setting.node_of[self.origin[number][-1]]
        parents = self.tree(topic, root)
        on_tree = {self.broker_at[node] for node in parents}
        for broker in range(len(self.brokers)):
            if users := self.users_of(broker, topic):
                self.due[number, broker] = users
                if (topic, broker) in self.offloaded:
                    self.send_best_effort(number, broker)
                elif broker in on_tree:
                    self.depth[number, broker] = self.depth_of(parents, self.setting.node_of[broker])
                else:
                    joined = self.setting.node_of[broker] in self.members(topic)
                    self.lost[number, broker] = "unreachable" if joined else "joining"
        if parents:
            if self.on_tree(number, self.broker_at[root]):
                self.deliver(number, self.broker_at[root])
            if self.setting.floods:
                assert isinstance(self.setting.overlay, Flooding)
                self.reached[number, root] = 0
                self.flooded.add((number, root))
                around = self.setting.overlay.around(root, self.members(topic))
                self.flood(Copy(number, around, None, root, first=True))
            else:
                self.forward(number, parents, root)

    def note_audience(self, number: int) -> None:
        """Make the publication due to all who want it now."""
        topic = self.world.publications[number][1]
        self.audience[number] = {user: broker for broker, t, user in self.registered if t == topic}
        self.absent[number] = {u for u, wants in enumerate(self.wants) if topic in wants and self.host[u] is None}

    def flood(self, copy: Copy) -> None:
        """To all neighbours but the one that it came from, unless it has taken as many hops as it may."""
        here, hops = self.broker_at[copy.node], self.reached[copy.number, copy.node] + 1
        for other in copy.around[copy.node]:
            if other != copy.sender:
                onward = Copy(copy.number, copy.around, copy.node, other)
                if hops > self.limit:
                    self.short.setdefault(copy.number, []).append((onward, "hop_limit"))
                    continue
                self.fewest[copy.number, other] = min(hops, self.fewest.get((copy.number, other), hops))
                self.flood_onward(onward, here, self.broker_at[other])

    def flood_onward(self, copy: Copy, here: int, there: int) -> None:
        hop = Hop(copy.number, here, there, "flood", self.now, self.on_tree(copy.number, there))
        self.hops.append(hop)
        self.travelling[copy.number] += 1
        self.copies.append(copy)
        arrive = partial(self.reach_flood, copy, hop)
        self.transmit(copy.number, here, there, arrive, partial(self.lose_copy, copy))

    def lose_copy(self, copy: Copy, cause: str) -> None:
        self.short.setdefault(copy.number, []).append((copy, cause))
        self.over(copy)

    def reach_flood(self, copy: Copy, hop: Hop) -> None:
        """The first copy is the delivery; all of them have to be handled."""
        broker, number = hop.destination, copy.number
        first = (number, copy.node) not in self.reached
        stage, size = 1 if first else 2 + hop.source, self.world.publications[number][3]
        work = self.work_of_flood(copy) if first else (0, 0, size)
        copy.first = first
        if self.setting.service is None:
            self.note_flooded(copy, hop)
        if not self.offer(broker, number, stage, work, partial(self.spread, copy), partial(self.forget, copy)):
            copy.first = None
            self.lose_copy(copy, "queue_full")
        elif self.setting.service is not None:
            self.note_flooded(copy, hop)

    def work_of_flood(self, copy: Copy) -> tuple[int, int, int]:
        """The work of a broker for the first copy."""
        onward = len(copy.around[copy.node]) - 1 if self.hops_of(copy) < self.limit else 0
        broker, size = self.broker_at[copy.node], self.world.publications[copy.number][3]
        return onward, self.users_below(copy.number, broker), size

    def note_flooded(self, copy: Copy, hop: Hop) -> None:
        """The broker has accepted the copy."""
        broker, number = hop.destination, copy.number
        hop.received = self.now
        if copy.first:
            self.reached[number, copy.node] = self.hops_of(copy)
            self.depth[number, broker] = self.reached[number, copy.node]
            if (number, broker) not in self.by_channel:
                self.arrived[number, broker] = self.now
        else:
            self.duplicates[number] += 1

    def forget(self, copy: Copy, cause: str) -> None:
        """The broker drops a copy that it has taken in: of a first one it knows nothing any more, and another may be the first."""
        if copy.first:
            del self.reached[copy.number, copy.node]
            if (copy.number, self.broker_at[copy.node]) not in self.by_channel:
                del self.arrived[copy.number, self.broker_at[copy.node]]
        self.lose_copy(copy, cause)

    def spread(self, copy: Copy) -> None:
        if copy.first:
            self.flooded.add((copy.number, copy.node))
            if self.on_tree(copy.number, self.broker_at[copy.node]):
                self.deliver(copy.number, self.broker_at[copy.node])
            self.flood(copy)
        self.over(copy)

    def over(self, copy: Copy) -> None:
        """It is no longer on its way; what is due where no copy can arrive any more is lost."""
        self.copies.remove(copy)
        self.gone(copy.number)
        if copy.number not in self.travelling:
            self.lose_flooded(copy.number)

    @property
    def limit(self) -> float:
        return math.inf if self.setting.hop_limit is None else self.setting.hop_limit

    def hops_of(self, copy: Copy) -> int:
        """How many hops below the root a copy has taken once it arrives."""
        assert copy.sender is not None
        return self.reached[copy.number, copy.sender] + 1

    def lose_flooded(self, number: int) -> None:
        """What copies that are left may not get to, or those held at brokers as the first, is lost."""
        copies = [copy for copy in self.copies if copy.number == number]
        first = [
            copy for copy in copies if copy.first or (copy.first is None and (number, copy.node) not in self.reached)
        ]
        ahead = self.within(number, [(copy, self.limit - self.hops_of(copy)) for copy in first])
        short = self.short.get(number, [])
        lost = {
            cause: self.within(
                number, [(c, self.limit - self.fewest[number, c.node]) for c, why in short if why == cause]
            )
            for cause in ("queue_full", "link", "crashed", "partitioned", "expired")
        }
        beyond = self.within(number, [(copy, math.inf) for copy in [*first, *(copy for copy, _ in short)]])
        for pair in self.due:
            node = self.setting.node_of[pair[1]]
            waits = pair not in self.delivered and self.lost.get(pair) not in ("joining", "unreachable")
            if pair[0] == number and self.on_tree(*pair) and waits and node not in ahead:
                assert node in beyond
                self.lost[pair] = next((cause for cause in lost if node in lost[cause]), "hop_limit")

    def within(self, number: int, starts: Iterable[tuple[Copy, float]]) -> set[int]:
        """The nodes without the publication that copies get to which have so many hops left, through others without."""
        found: dict[int, float] = {}
        todo = [(copy.node, left, copy.around) for copy, left in starts]
        while todo:
            node, left, around = todo.pop()
            if left > found.get(node, -1) and (number, node) not in self.flooded:
                found[node] = left
                todo += [(other, left - 1, around) for other in around[node]]
        return set(found)

    def deliver(self, number: int, broker: int) -> None:
        """The broker has served the publication, and its users have it."""
        assert (number, broker) not in self.delivered
        self.arrived.setdefault((number, broker), self.now)
        self.delivered[number, broker] = self.now

    def forward(self, number: int, parents: dict[int, int | None], node: int) -> None:
        for child in sorted(n for n, above in parents.items() if above == node):
            here, there = self.broker_at[node], self.broker_at[child]
            hop = Hop(number, here, there, "tree", self.now, self.on_tree(number, there))
            self.hops.append(hop)
            self.travelling[number] += 1
            arrive = partial(self.reach_tree, number, parents, child, hop)
            self.transmit(number, here, there, arrive, partial(self.drop_below_root, number, parents, child))

    def reach_tree(self, number: int, parents: dict[int, int | None], node: int, hop: Hop) -> None:
        broker = hop.destination
        copies = sum(above == node for above in parents.values())
        work = copies, self.users_below(number, broker), self.world.publications[number][3]
        dropped = partial(self.drop_below_root, number, parents, node)
        hop.received = self.now
        if hop.subscribes:
            self.arrived[number, broker] = self.now
        if not self.offer(broker, number, 1, work, partial(self.descend, number, parents, node), dropped):
            hop.received = None
            dropped("queue_full")

    def drop_below_root(self, number: int, parents: dict[int, int | None], node: int, cause: str) -> None:
        self.arrived.pop((number, self.broker_at[node]), None)
        for below in self.below(parents, node):
            if self.on_tree(number, self.broker_at[below]):
                self.lost[number, self.broker_at[below]] = cause
        self.gone(number)

    def descend(self, number: int, parents: dict[int, int | None], node: int) -> None:
        broker = self.broker_at[node]
        if self.on_tree(number, broker):
            self.deliver(number, broker)
        self.forward(number, parents, node)
        self.gone(number)

    def below(self, parents: dict[int, int | None], node: int) -> list[int]:
        return [node] + [n for child, above in parents.items() if above == node for n in self.below(parents, child)]

    def depth_of(self, parents: dict[int, int | None], node: int) -> int:
        above = parents[node]
        return 0 if above is None else 1 + self.depth_of(parents, above)

    def gone(self, number: int) -> None:
        """A message is no longer in transit."""
        self.travelling[number] -= 1
        self.travelling += Counter()  # drop those at 0

    # -- what came out

    @property
    def handovers(self) -> list[tuple[float, int, int, int]]:
        return [(time, user, former, to) for time, user, former, to in self.decisions if former is not None]

    @property
    def received(self) -> Counter[tuple[int, int]]:
        """The publications that each user received on each topic."""
        return Counter(
            (self.retained_on[number] if number in self.retained_on else self.world.publications[number][1], user)
            for (number, user), coming in self.came.items()
            if coming.fate == "delivered"
        )

    def measured(self, since: float, until: float) -> list[tuple[int, int, float]]:
        """Of each whole period that begins in a span of time: to how many users anything was due, how many got enough by the back end,
        and the mean share that they got of what they need."""
        offloading = self.setting.offloading
        found = []
        for number in range(int(self.setting.horizon / offloading.period)) if offloading is not None else ():
            start, end = number * offloading.period, (number + 1) * offloading.period
            due: Counter[int] = Counter()
            received: Counter[int] = Counter()
            for publication, users in self.audience.items():
                for user, broker in users.items():
                    if start <= self.world.publications[publication][0] < end:
                        due[user] += 1
                        received[user] += (publication, broker) in self.delivered.keys() - self.by_channel
                if start <= self.world.publications[publication][0] < end:
                    due.update(self.absent[publication])
            needs = {user: min(offloading.tau, due[user]) for user in due if offloading.tau > 0}
            if needs and since <= start < until and end <= self.setting.horizon:
                satisfied = sum(received[user] >= need for user, need in needs.items())
                found.append((len(needs), satisfied, fmean(min(1, received[u] / need) for u, need in needs.items())))
        return found

    def of_users(self, since: float, until: float) -> dict[str, float | int | None]:
        """The metrics that are counted by users."""
        publications, count_until = self.world.publications, self.setting.clients.until
        kept = {n for n in self.origin if since <= publications[n][0] < until}
        came = {pair: coming for pair, coming in self.came.items() if since <= coming.since < until}
        everything = {pair: coming for pair, coming in came.items() if coming.fate == "delivered"}
        got = {pair: coming for pair, coming in everything.items() if coming.kind == "live"}
        delays = [coming.delay(publications[number][0], count_until) for (number, _), coming in got.items()]
        below_root = [
            coming.moment(count_until) - self.rooted[number]
            for (number, user), coming in got.items()
            if (number, self.audience[number][user]) not in self.by_channel
        ]
        due = sum(users for (number, _), users in self.due.items() if number in kept)
        due += sum(len(self.absent[number]) for number in kept & self.absent.keys())
        due += sum(since <= coming.since < until for _, coming in self.retained)
        return {
            "user_notification_delay": fmean(delays) if delays else None,
            **quantiles("user_notification_delay", delays),
            "user_tree_delay": fmean(below_root) if below_root else None,
            "delivery_ratio": len(everything) / due if due else None,
            **clients(self, list(came.values()), since, until),
        }

    @property
    def in_flight(self) -> set[Pair]:
        return set(self.due) - set(self.delivered) - set(self.lost)

    def average(self, since: float, until: float, value: Callable[[list[int], list[int]], float]) -> float:
        """The time average of a value of (subscriptions, users) per broker."""
        area = 0.0
        for (start, *hosted), (end, *_) in pairwise([*self.hosting, (self.setting.horizon, [], [])]):
            area += value(*hosted) * max(min(end, until) - max(start, since), 0.0)
        return area / (until - since)


def metrics(network: Network, since: float, until: float) -> dict[str, float | int | None]:
    """The scalar metrics of what was published or sent in a span of time, by their definitions; quantiles are exact here."""
    publications = network.world.publications
    kept = {n for n in network.origin if since <= publications[n][0] < until}

    def those(pairs: Iterable[Pair]) -> list[Pair]:
        return [pair for pair in pairs if pair[0] in kept]

    def mean(values: Iterable[float]) -> float | None:
        listed = list(values)
        return fmean(listed) if listed else None

    due, delivered = those(network.due), those(network.delivered)
    by_tree = [pair for pair in delivered if pair not in network.by_channel]
    choices = [choice for choice in network.choices if since <= choice[0] < until]
    measured = network.measured(since, until)
    delays = [network.delivered[pair] - publications[pair[0]][0] for pair in delivered]
    below_root = [network.delivered[pair] - network.rooted[pair[0]] for pair in by_tree]
    lasts: dict[int, float] = {}
    for number, broker in by_tree:
        delay = network.delivered[number, broker] - publications[number][0]
        lasts[number] = max(delay, lasts.get(number, delay))
    tree = [hop for hop in network.hops if hop.kind != "uplink" and hop.publication in kept and not hop.again]
    uplink = [hop for hop in network.hops if hop.kind == "uplink" and hop.publication in kept and not hop.again]
    regions = network.setting.regions
    again = [hop for hop in network.hops if hop.again and hop.publication in kept]
    crossing = [
        hop for hop in tree + uplink + again if regions is not None and regions[hop.source] != regions[hop.destination]
    ]
    lost = Counter(network.lost[pair] for pair in those(network.lost))
    handovers = [row for row in network.handovers if since <= row[0] < until]
    direct = [network.setting.delay[network.origin[number][0]][broker] for number, broker in by_tree]
    along = [network.arrived[pair] - publications[pair[0]][0] for pair in by_tree]
    jobs = [job for broker in network.brokers for job in broker.jobs if job.taken is not None]

    def stddev(loads: list[int], _: list[int]) -> float:
        return pstdev(loads) / fmean(loads) if sum(loads) else 0.0

    def jain(loads: list[int], _: list[int]) -> float:
        return sum(loads) ** 2 / (len(loads) * sum(x * x for x in loads)) if sum(loads) else 1.0

    return {
        "broker_subscription_changes": sum(since <= time < until for time, *_ in network.transitions),
        "subscription_overhead": sum(since <= time < until for time in network.control),
        "notification_delay": mean(delays),
        **quantiles("notification_delay", delays),
        "notification_delay_max": max(delays, default=None),
        "last_delivery_delay": mean(lasts.values()),
        "arrival_delay": mean(network.arrived[pair] - publications[pair[0]][0] for pair in delivered),
        "tree_delay": mean(below_root),
        **network.of_users(since, until),
        "tree_hops": mean(network.depth[pair] for pair in by_tree),
        "uplink_hops": mean(len(network.first_way.get(n, network.origin[n])) - 1 for n in network.rooted if n in kept),
        "notification_overhead": len(tree),
        "internal_overhead": sum(hop.subscribes for hop in tree),
        "external_overhead": sum(not hop.subscribes for hop in tree),
        "uplink_messages": len(uplink),
        "messages_per_publication": len(tree) / len(kept) if kept else None,
        "notification_bytes": sum(publications[hop.publication][3] for hop in tree),
        "internal_bytes": sum(publications[hop.publication][3] for hop in tree if hop.subscribes),
        "external_bytes": sum(publications[hop.publication][3] for hop in tree if not hop.subscribes),
        "uplink_bytes": sum(publications[hop.publication][3] for hop in uplink),
        "cross_region_bytes": None if regions is None else sum(publications[hop.publication][3] for hop in crossing),
        "handovers": len(handovers),
        "handover_messages": 4 * len(handovers),
        **dict.fromkeys(("reconfigurations", "reconfigured_brokers", "drain_messages"), 0),
        "reconfiguration_overhead": sum(since <= time < until for time in network.relinking),
        "reconfiguration_bound": 0.0,
        **dict.fromkeys((*FAULTS_COUNTED, *HEALING_COUNTED), 0),
        "drain_time": None,
        "broker_availability": 1.0,
        "user_unavailability": 0.0,
        "ssbr_cost": None,
        "satisfied_subscribers": mean(satisfied for _, satisfied, _ in measured),
        "satisfaction": mean(share for *_, share in measured),
        **dict.fromkeys(("backend_load", "backend_capacity", "approximation_ratio")),
        "offload_churn": sum(topics for _, _, topics, _ in choices),
        "offload_messages": sum(told for *_, told in choices),
        "bootstrap_messages": network.bootstrap_messages,
        "load_stddev": network.average(since, until, stddev),
        "load_jain": network.average(since, until, jain),
        "publications": len(kept),
        "publications_dropped": len(network.dropped & kept),
        "due": len(due),
        "delivered": len(delivered),
        "lost": lost.total(),
        "lost_joining": lost["joining"],
        "lost_unreachable": lost["unreachable"],
        "lost_queue_full": lost["queue_full"],
        "lost_link": lost["link"],
        "lost_crashed": lost["crashed"],
        "lost_partitioned": lost["partitioned"],
        "lost_expired": lost["expired"],
        "lost_hop_limit": lost["hop_limit"],
        "lost_offloaded": lost["offloaded"],
        "best_effort_deliveries": len(delivered) - len(by_tree),
        "in_flight": len(those(network.in_flight)),
        "duplicates": sum(network.duplicates[number] for number in kept),
        "retransmissions": len(again),
        "acknowledgements": sum(network.acknowledged[number] for number in kept),
        "duplicate_deliveries": sum(users for (number, _), users in network.repeated.items() if number in kept),
        "remembered_identities": network.most_remembered,
        "false_positive_messages": 0,
        "path_stretch": mean(delay / straight for delay, straight in zip(along, direct, strict=True) if straight > 0),
        "queue_wait": mean(job.taken - job.arrived for job in jobs if since <= job.arrived < until),
        "utilisation": (
            sum(max(min(job.done, until) - max(job.taken, since), 0.0) for job in jobs)
            / ((until - since) * len(network.brokers) * network.setting.servers)
            if network.setting.service
            else None
        ),
        "saturated_brokers": sum(network.saturated(broker, until - since) for broker in range(len(network.brokers))),
        "saturated_links": len(saturated_links(network, until - since)),
        **links(network),
    }


def load(network: Network, broker: int, since: float, until: float, warm_up: float) -> dict[str, float | int | None]:
    """What a broker did in a span of time after the warm-up, and with the publications that were published in it."""
    publications, at, horizon = network.world.publications, network.brokers[broker], network.setting.horizon
    kept = {n for n in network.origin if since <= publications[n][0] < until}
    received = [hop for hop in network.hops if hop.publication in kept and hop.destination == broker]
    sent = [hop for hop in network.hops if hop.publication in kept and hop.source == broker]

    def relays(hop: Hop) -> bool:
        if hop.passes_on is not None:
            return hop.passes_on
        return hop.destination != network.origin[hop.publication][-1] if hop.kind == "uplink" else not hop.subscribes

    def left(job: Job) -> float:
        """The time at which it ceased to wait."""
        if job.refused_for is not None:
            return job.refused_for.arrived
        if job.taken is None and job.cut_short is not None:
            return job.cut_short
        return horizon if job.taken is None else job.taken

    def inside(start: float, end: float) -> float:
        return max(min(end, until) - max(start, since, warm_up), 0.0)

    def mean_wait(jobs: list[Job]) -> float | None:
        return fmean(left(job) - job.arrived for job in jobs) if jobs else None

    own = [number for number in kept if network.origin[number][:1] == [broker]]  # none of what entered nowhere
    copies = {n: network.repeated[n, broker] for n in kept}
    copies |= {n: copies[n] + network.due[n, broker] for n in kept if (n, broker) in network.delivered}
    copied = sum(publications[number][3] * users for number, users in copies.items())
    jobs, seconds = at.jobs, until - since
    taken = [job for job in jobs if job.taken is not None and since <= job.taken < until and job.arrived >= warm_up]
    refused = [job for job in jobs if job.refused_for is not None and since <= left(job) < until]
    waiting = [job for job in jobs if job.arrived < since <= left(job)]
    capacity = seconds * network.setting.servers
    offered = sum(job.seconds for job in jobs if since <= job.arrived < until)
    return {
        "users": network.average(since, until, lambda *hosted: hosted[1][broker]),
        "received": len(received),
        "sent": len(sent),
        "delivered": sum(number in kept and b == broker for number, b in network.delivered),
        "relayed": sum(map(relays, received)),
        "published": len(own),
        "copies": sum(copies.values()),
        "bytes_in": sum(publications[hop.publication][3] for hop in received) + sum(publications[n][3] for n in own),
        "bytes_out": sum(publications[hop.publication][3] for hop in sent) + copied,
        "client_bytes_in": sum(publications[n][3] for n in own),
        "client_bytes_out": copied,
        "served": len(taken),
        "queue_wait": mean_wait(taken),
        "publication_wait": mean_wait([job for job in taken if job.what >= 0]),
        "control_wait": mean_wait([job for job in taken if job.what < 0]),
        "utilisation": sum(inside(job.taken, job.done) for job in jobs if job.taken is not None) / capacity,
        "offered_load": offered / capacity,
        "queue_length": sum(inside(job.arrived, left(job)) for job in jobs) / seconds,
        "queue_max": max([len(waiting), *(length for time, length in at.lengths if since <= time < until)]),
        "queue_full": len(refused),
    }


def link_load(network: Network, link: tuple[int, int], since: float, until: float) -> dict[str, float | int | None]:
    """What a link did in a span of time."""
    sendings, seconds = [sending for sending in network.sendings if sending.link == link], until - since
    handed = [sending for sending in sendings if since <= sending.handed < until]
    sent = [sending for sending in handed if not sending.refused]

    def inside(start: float, end: float) -> float:
        return max(min(end, until) - max(start, since), 0.0)

    def waiting(time: float) -> int:
        return sum(sending.handed <= time < sending.start for sending in sendings)

    before = sum(sending.handed < since < sending.start for sending in sendings)
    return {
        "messages": len(sent),
        "bytes": sum(sending.size for sending in sent),
        "utilisation": sum(inside(sending.start, sending.end) for sending in sendings) / seconds,
        "queue_wait": fmean(sending.start - sending.handed for sending in sent) if sent else None,
        "queue_length": sum(inside(sending.handed, sending.start) for sending in sendings) / seconds,
        "queue_max": max([before, *(_handed_by(sendings, n) for n, one in enumerate(sendings) if one in handed)]),
        "queue_full": len(handed) - len(sent),
        "lost": sum(sending.lost for sending in sent),
    }


def _handed_by(sendings: list[Sending], number: int) -> int:
    """How many wait when a message of a link is handed over, those after it at the same time not yet there."""
    now = sendings[number].handed
    return sum(now < sending.start for sending in sendings[: number + 1])


def saturated_links(network: Network, seconds: float) -> dict[tuple[str, object], list[tuple[float, float]]]:
    """Links and interfaces, in one direction, that cannot keep up at the end: since when, and what share of the work they can do.

    Where work comes at the very moment at which all before is done, rounding decides since when: any of several times is right.
    Had nothing been refused, what is left is what has come since some moment less the time since, whichever moment makes it most.
    """
    horizon, found = network.setting.horizon, {}
    for over, works in network.works.items():
        left = [sum(work for _, work in works[n:]) - (horizon - time) for n, (time, _) in enumerate(works)]
        most = max(left)
        starts = [n for n, amount in enumerate(left) if amount > most - 1e-9]
        first = min(starts)
        times = [works[n][0] for n in starts]
        chance = 3 * math.sqrt(sum(work**2 for _, work in works[first:]))
        if most > min(seconds / 2, max(seconds / 100, chance)):
            found[over] = [(since, (horizon - since) / (horizon - since + most)) for since in times]
    return found


def clients(network: Network, came: list[Coming], since: float, until: float) -> dict[str, float | int | None]:
    """The outcomes of the publications that arrived for users."""
    lost, publications = Counter(coming.fate for coming in came), network.world.publications
    got = [
        coming
        for coming in came
        if coming.fate == "delivered" and coming.sent is not None and coming.reached is not None
    ]
    waits = [coming.sent - coming.served for coming in got if coming.kind == "live"]
    waited, retained = (
        [one.delay(one.since, "client") for one in got if one.kind == kind] for kind in ("waited", "retained")
    )
    users = network.users.values()
    caught_up = [took for user in users for returned, took in user.caught_up if since <= returned < until]
    said = {f"{kind}_messages": kind for kind in ("puback", "pubrec", "pubrel", "pubcomp")}
    said |= {"client_retransmissions": "retransmissions", "client_duplicates": "duplicates"}
    return {
        "lost_leg": lost["leg"],
        "publishing_delay": None,
        "unpublished": 0,
        **{
            name: sum(
                many
                for user in users
                for (kind, time), many in user.said.items()
                if kind == what and since <= time < until
            )
            for name, what in said.items()
        },
        "lost_slow_client": lost["slow_client"],
        "lost_disconnected": lost["disconnected"]
        + sum(len(network.absent[number]) for number in network.rooted if since <= publications[number][0] < until),
        **{f"lost_{cause}": lost[cause] for cause in ("session_expired", "offline_queue_full", "message_expired")},
        "client_wait": fmean(waits) if waits else None,
        "session_deliveries": len(waited),
        "session_delay": fmean(waited) if waited else None,
        "resumed_sessions": len(caught_up),
        "catch_up_time": fmean(caught_up) if caught_up else None,
        "session_queue_max": max((user.longest for user in users), default=0),
        "retained_deliveries": len(retained),
        "retained_delay": fmean(retained) if retained else None,
        "disconnects": sum(since <= time < until for user in network.users.values() for time in user.cut_off),
    }


def quantiles(name: str, delays: list[float]) -> dict[str, float | int | None]:
    """Quantiles of delays: of n, the one of the rank ⌈q n⌉."""
    permilles = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
    ranks = {each: -(-len(delays) * permille // 1000) for each, permille in permilles.items()}
    return {f"{name}_{each}": sorted(delays)[rank - 1] if delays else None for each, rank in ranks.items()}


def links(network: Network) -> dict[str, float | int | None]:
    """The overlay's links at the end; topics' own ones where links follow interests."""
    overlay, nodes = network.setting.overlay, network.setting.node_of
    found = overlay.links([node for node in nodes if node not in network.around_nodes()])
    degrees = [sum(node in link for link in found) for node in nodes]
    diameters: list[int] = []
    if isinstance(overlay, TopicConnected):
        wants = [network.linked(node) for node in nodes]
        measured = topic_diameters(wants, sorted((min(link), max(link)) for link in found)).values()
        assert None not in measured
        diameters = [each for each in measured if each is not None]
    return {
        "edges": len(found),
        "average_degree": fmean(degrees),
        "maximum_degree": max(degrees),
        "diameter": max(diameters, default=None),
        "mean_topic_diameter": fmean(diameters) if diameters else None,
        "tree_state": tree_state(network),
    }


def tree_state(network: Network) -> int | None:
    """The children of all nodes on all trees at the end, or the members strictly below them; trees without a root leave none."""
    if None in network.setting.roots:
        return None
    total = 0
    for topic in range(len(network.setting.roots)):
        tree = network.tree(topic)
        for node in network.members(topic) if network.setting.keeps_members else tree:
            above = tree[node]
            while above is not None:
                total += 1
                above = tree[above] if network.setting.keeps_members else None
    return total
