"""Tiny networks under random changes: the simulator against the slow, obvious one in `oracles.network`."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least, tried
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import clients as clients_oracle
from oracles import faults as faults_oracle
from oracles import guarantees as guarantees_oracle
from oracles import network as oracle
from oracles import overlays
from oracles.draws import exponential, gamma, normal, uniform
from oracles.faults import CRASH, CUT, DRAIN, JOIN, LOSS, MEND, RESTART, SLOW

from sim.base.randomness import Streams
from sim.brokers.control.healing import HealingSetting
from sim.brokers.fabric.delivery import DeliverySetting
from sim.brokers.fabric.transmission import LinkSetting
from sim.brokers.network import Network, NetworkSetting
from sim.brokers.users.leg_distances import DistanceSetting
from sim.brokers.users.legs import ClientSetting, QualitySetting, SessionSetting, Speed
from sim.brokers.users.reconnect import ReconnectSetting
from sim.files.inputs import File
from sim.overlay.broadcast import Broadcast
from sim.overlay.chord import SUCCESSORS, Chord, hashed
from sim.overlay.edges import Edge
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geographic import Geographic
from sim.overlay.geometry import Dissemination, GeometrySetting
from sim.overlay.graph import Graph
from sim.overlay.owner_shard import OwnerShard
from sim.overlay.sites import Sites
from sim.overlay.star import Star
from sim.overlay.tapestry import Tapestry
from sim.overlay.topic_connected.geometry import TopicConnected
from sim.policies.selection.fixed import StaticSelection
from sim.policies.selection.similarity import SimilaritySelection
from sim.policies.views import SelectionSetting
from sim.workloads.faults.fault import Drain, Join
from sim.workloads.faults.schedule import FaultSchedule
from sim.workloads.format.workload import Absences, Qualities, RetainedRequests, Workload

GRAIN = 0.25  # s: changes, publications, hops and services share a coarse grid, so that ties are frequent
RENDEZVOUS = ("chord", "star", "tapestry", "owner-shard")
FLOODED = ("topic-connected", "graph", "full-mesh")
MESHES = ("full-mesh", "owner-shard", "broadcast")


@dataclass
class Case:
    brokers: int
    topics: int
    geometry: str
    ids: str
    bits: int
    seed: int
    node_of: list[int]
    links: list[tuple[int, int, float | None]]  # of a graph, some with times of their own
    design: tuple[
        Any, ...
    ]  # of a topic-connected overlay: algorithm, k, strict, on change, and the period of what is periodic
    dissemination: str  # likewise, and of graphs and meshes
    delay: list[list[float]]
    jitter: float
    wants: list[set[int]]
    changes: list[tuple[float, int, int, int]]
    movements: list[tuple[float, int, float, float]]
    publications: list[tuple[float, int, int, int]]
    policy: tuple[Any, ...]
    horizon: float
    warm_up: float
    window: float
    join: str
    control_count: str
    service: tuple[str, float]
    queue: int | None
    regions: list[int] | None
    looks: list[int]  # hundredths of the horizon
    load: dict[str, Any] = field(default_factory=dict)  # what else stations have
    lines: dict[str, Any] = field(default_factory=dict)  # what limits links beside their latency
    clients: dict[str, Any] = field(default_factory=dict)  # the way to users
    faults: dict[str, Any] = field(default_factory=dict)  # what fails, and how users reconnect, as the oracle has it
    delivery: dict[str, Any] = field(default_factory=dict)  # what is sent again, by the names of DeliverySetting
    hops: int | None = None  # that copies go at most where they are flooded
    healing: dict[str, Any] = field(default_factory=dict)  # period, convergence, and successors of a ring
    sessions: dict[str, Any] = field(default_factory=dict)  # absences, what waits meanwhile, and what is retained
    quality: dict[str, Any] = field(default_factory=dict)  # of service, on the way to users

    @property
    def floods(self) -> bool:
        return self.dissemination == "flood" and self.geometry in FLOODED

    @property
    def flooding(self) -> dict[str, Any]:
        """The parameters of geometries that can flood."""
        return {"dissemination": self.dissemination, "hops": self.hops if self.floods else None}


def matrix(kind: str, brokers: int, seed: int) -> list[list[float]]:
    """Hop times between brokers: equal, on the grid, or anything."""
    rng = np.random.default_rng(seed)
    if kind == "equal":
        times = np.full((brokers, brokers), GRAIN * rng.integers(2, 7))
    elif kind == "grid":
        times = GRAIN * rng.integers(0, 9, (brokers, brokers))
    else:
        times = rng.uniform(0.0, 2.5, (brokers, brokers))
    np.fill_diagonal(times, 0.0)
    return times.tolist()


def random_clients(seed: int, rates: tuple[float, float]) -> dict[str, Any]:
    """Ways to users, in most cases, at a low rate or a high one in bytes per second, or any."""
    rng = random.Random(f"clients {seed}")
    if rng.random() < 0.3:
        return {}

    def speed() -> Speed:
        return Speed(rng.choice((0.0, GRAIN, 0.1)), rng.choice((None, *rates)), rng.choice((None, 1, 1, 2, 3)))

    return {
        "speed": speed(),
        "slow_share": rng.choice((0.0, 0.3, 1.0)),
        "slow": speed(),
        "jitter": rng.choice((0.0, 0.5)),
        "buffer": rng.choice((None, 0, 1, 1, 2)),
        "buffer_bytes": rng.choice((None, None, 3, 12)),
        "overflow": rng.choice(("drop-newest", "drop-oldest", "disconnect")),
        "reconnect_after": rng.choice((0.0, GRAIN, 1.0)),
        "until": rng.choice(("broker", "served", "client", "client")),
        "per_km": rng.choice((0.0, 0.01)),
    }


def random_sessions(seed: int, users: int, topics: int, publications: int, horizon: float) -> dict[str, Any]:
    """Absences of users, mostly on the grid, what waits for them, and publications that are retained and asked for, in most cases."""
    rng = random.Random(f"sessions {seed}")
    if rng.random() < 0.4:
        return {}
    grain = rng.choice((GRAIN, GRAIN, 0.1))
    ends, absences = [0.0] * users, []
    for _ in range(rng.choice((0, users, 4 * users))):
        user = rng.randrange(users)
        start = ends[user] + grain * rng.choice((0, 1, 2, 6))
        ends[user] = min(start + grain * rng.choice((0, 1, 2, 5, 20)), horizon + 1.0)
        if start < ends[user] or start < horizon:
            session = rng.choice(("resumed", "resumed", "resumed", "over", "none"))
            absences.append((user, start, ends[user], session))
    asked = {
        (grain * rng.randrange(int(horizon / grain)), rng.randrange(users), rng.randrange(topics))
        for _ in range(rng.choice((0, 5, 20)))
    }
    return {
        "absences": sorted(absences, key=lambda row: row[1]),
        "queue": rng.choice((None, 0, 1, 2, 2, 5)),
        "queue_bytes": rng.choice((None, None, 6, 20)),
        "max_age": rng.choice((None, None, GRAIN, 1.0)),
        "overflow": rng.choice(("drop-newest", "drop-oldest")),
        "rate": rng.choice((None, None, 2.0, 1 / GRAIN, 10.0)),
        "survive": rng.random() < 0.5,
        "qos": [rng.choice((-1, 0, 1)) for _ in range(publications)],
        "retain": [rng.choice((0, 0, 1)) for _ in range(publications)] if rng.random() < 0.7 else [0] * publications,
        "asked": sorted(asked),
    }


def random_quality(seed: int, users: int, topics: int, publications: int) -> dict[str, Any]:
    """Quality of service of publications and of subscriptions, in some cases, on ways that may lose messages and answers."""
    rng = random.Random(f"quality {seed}")
    if rng.random() < 0.6:
        return {}
    subscribed = [
        (GRAIN * rng.randrange(40), rng.randrange(users), rng.randrange(topics), rng.randrange(3))
        for _ in range(rng.choice((0, 0, 2 * users)))
    ]
    return {
        "shares": rng.choice(((0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.2, 0.4, 0.4))),
        "loss": rng.choice((0.0, 0.1, 0.4)),
        "timeout": rng.choice((math.inf, GRAIN, 4 * GRAIN, 0.7)),
        "qos": [rng.choice((0, 1, 1, 2, 2)) for _ in range(publications)],
        "subscribed": sorted({row[:3]: row for row in subscribed}.values()),
    }


def random_faults(rng: random.Random, brokers: int, horizon: float, slows: bool, loss: float) -> dict[str, Any]:
    """Whatever may fail, at times that are mostly on the grid, and how users reconnect; `slows`: services may take longer."""
    grain = rng.choice((GRAIN, GRAIN, 0.1))

    def spans(most: int, least: int = 0) -> list[tuple[float, float]]:
        """When something lasts, mostly not for long."""
        starts = [grain * rng.randrange(int(horizon / grain)) for _ in range(rng.randint(least, most))]
        return [(start, start + grain * rng.choice((1, 1, 2, 4, 8, 30))) for start in starts]

    def levels(spans: list[tuple[float, float]], values: list[float], together: Any, level: float) -> Any:
        """When the value of what lasts changes, and to what."""
        for time in sorted({moment for span in spans for moment in span}):
            now = together([value for (start, end), value in zip(spans, values, strict=True) if start <= time < end])
            if now != level:
                level = now
                yield time, now

    rows: list[tuple[float, int, int, int, float]] = []
    for broker in range(brokers):
        for time, down in levels(lasting := spans(rng.choice((0, 2, 5))), [1.0] * len(lasting), bool, 0.0):
            rows.append((time, CRASH if down else RESTART, broker, -1, 0.0))
        for time, factor in levels(lasting := spans(rng.choice((0, 1)) * slows), [3.0] * len(lasting), math.prod, 1.0):
            rows.append((time, SLOW, broker, -1, factor))
    pairs = [sorted(rng.sample(range(brokers), 2)) for _ in range(rng.randrange(9))] if brokers > 1 else []
    sides = [[rng.random() < 0.5 for _ in range(brokers)] for _ in range(rng.choice((0, 1, 2, 3)))]
    cuts = [(one, other) for one, other in dict.fromkeys(map(tuple, pairs))] + [
        (side, -1) for side in range(len(sides))
    ]
    for target, other in cuts:
        for time, cut in levels(lasting := spans(5, 2), [1.0] * len(lasting), bool, 0.0):
            rows.append((time, CUT if cut else MEND, target, other, 0.0))
    if rng.random() < 0.5:
        lasting = spans(3)
        probabilities = [rng.choice((0.1, 0.5, 1.0)) for _ in lasting]
        for time, most in levels(lasting, probabilities, lambda found: max([loss, *found]), loss):
            rows.append((time, LOSS, -1, -1, most))
    reconnect = {
        "detection": rng.choice((0.0, 0.0, GRAIN, 0.6)),
        "same": rng.random() < 0.5,
        "exponential": rng.random() < 0.5,
        "wait": rng.choice((GRAIN, 0.3, 1.0)),
        "longest": rng.choice((GRAIN, 2.0, 60.0)),
        "jitter": rng.choice((0.0, 0.5, 1.0)),
        "rate": rng.choice((None, 1.0, 4.0, 10.0, 20.0)),
    }
    drains = [
        (
            tuple(rng.sample(range(brokers), rng.randint(1, min(brokers, 3)))),
            rng.choice((None, 1 / GRAIN, 3.0)),
            rng.choice((0.0, GRAIN, 1.0)),
            rng.choice((GRAIN, 1.0, math.inf)),
        )
        for _ in range(rng.choice((0, 0, 1, 2)))
    ]
    rows += [(grain * rng.randrange(int(horizon / grain)), DRAIN, number, -1, 0.0) for number in range(len(drains))]
    return {"rows": sorted(row for row in rows if row[0] < horizon), "sides": sides, "drains": drains, **reconnect}


def random_members(rng: random.Random, faults: dict[str, Any], brokers: int, horizon: float) -> dict[str, Any]:
    """The same faults where brokers also leave and join as planned; one does neither."""
    changing = rng.sample(range(brokers), min(brokers - 1, rng.randint(1, 4)))
    joining, grain = [broker for broker in changing if rng.random() < 0.5], rng.choice((GRAIN, GRAIN, 0.1))
    rows, drains, joins = [*faults["rows"]], [*faults["drains"]], []
    steps = range(1, int(horizon / grain))
    for broker in joining:
        time, everybody = grain * rng.choice(steps), frozenset(range(brokers))
        among = everybody if rng.random() < 0.5 else frozenset(rng.sample(range(brokers), (brokers + 1) // 2))
        rows.append((time, JOIN, len(joins), -1, 0.0))
        joins.append(
            (broker, rng.choice((None, 1 / GRAIN, 3.0)), rng.choice(("none", "policy", "share", "share")), among)
        )
    leaving = [broker for broker in changing if broker not in joining]
    if joining and rng.random() < 0.3:
        leaving = [*leaving, joining[0]]
    for broker in leaving:
        after = next((time for time, what, number, *_ in rows if what == JOIN and joins[number][0] == broker), 0.0)
        if times := [grain * step for step in steps if grain * step > after]:
            rows.append((rng.choice(times[: 1 + len(times) // 2]), DRAIN, len(drains), -1, 0.0))
            drains.append(
                ((broker,), rng.choice((None, 1 / GRAIN, 3.0)), rng.choice((0.0, GRAIN, 3.0, 3.0)), math.inf, True)
            )
    return {**faults, "rows": sorted(rows), "drains": drains, "joins": joins}


def random_healing(rng: random.Random) -> dict[str, Any]:
    """How the overlay heals, if it does, as it mostly does."""
    if rng.random() < 0.2:
        return {}
    return {
        "period": rng.choice((GRAIN, GRAIN, 2 * GRAIN, 0.6)),
        "convergence": rng.choice((0.0, 0.0, GRAIN, 0.3)),
        "successors": rng.choice((1, 2, 3, 20)),
    }


def random_links(rng: random.Random, nodes: int) -> list[tuple[int, int, float | None]]:
    """A tree of links over all nodes, and a few more, so that there are circles."""
    tree = {(rng.randrange(node), node) for node in range(1, nodes)}
    more = {tuple(sorted(rng.sample(range(nodes), 2))) for _ in range(rng.randrange(1 + nodes // 2))}
    return [(*link, rng.choice((None, None, GRAIN * rng.randrange(8)))) for link in sorted(tree | more)]


@st.composite
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    """Small networks with a lot going on: more changes and publications than a network has time for.

    Hypothesis draws sizes and settings, one seed draws the rows: so cases stay lively, and still shrink to few rows.
    """
    seed = draw(st.integers(0, 10**6))
    rng = random.Random(seed)
    lively = rng.random() < 0.85

    def size(least: int, most: int) -> int:
        return draw(st.integers((least + 2 * most) // 3 if lively else least, most))

    brokers, topics, users = size(2, 12), draw(st.integers(1, 8)), size(1, 15)
    horizon = size(12, 40) * GRAIN

    def times(most: int) -> list[float]:
        """Up to a second past the horizon, on the grid, so that several things often happen at once."""
        return sorted(GRAIN * rng.randrange(int(horizon / GRAIN) + 4) for _ in range(size(0, most)))

    wants = [{topic for topic in range(topics) if rng.random() < 1.5 / topics} for _ in range(users)]
    held, changes = [set(topics_of) for topics_of in wants], []
    for time in times(48):
        who, what = rng.randrange(users), rng.randrange(topics)
        changes.append((time, who, what, -1 if what in held[who] else +1))
        held[who] ^= {what}
    geometry = fixed.get("geometry") or draw(
        st.sampled_from(("chord", "chord", "tapestry", "star", "full-mesh", "graph", "topic-connected"))
    )
    ways = random.Random(f"ways {seed}")
    if geometry == "full-mesh" and "geometry" not in fixed:
        geometry = ways.choice(MESHES)
    kind = draw(st.sampled_from(("none", "none", "deterministic", "exponential")))
    delay = matrix(draw(st.sampled_from(("equal", "grid", "any"))), brokers, seed)
    node_of = rng.sample(range(brokers), brokers)
    if geometry in ("graph", "tapestry", "topic-connected"):  # whose nodes are the brokers, as far apart to and fro
        node_of = list(range(brokers))
        delay = (np.triu(delay) + np.triu(delay).T).tolist()
    made = Case(
        **{
            "brokers": brokers,
            "topics": topics,
            "geometry": geometry,
            "ids": draw(st.sampled_from(("hashed", "even"))),
            "bits": draw(st.sampled_from((4, 5, 8, 32))),
            "seed": seed,
            "node_of": node_of,
            "links": random_links(rng, brokers),
            "design": (
                draw(st.sampled_from(("gm", "low-oda", "low-oda", "minmax-oda", "cd-oda-ii"))),
                draw(st.sampled_from(("1", "3/2", "2"))),
                draw(st.booleans()),
                draw(st.sampled_from(("repair", "repair", "rebuild", "break"))),
            ),
            "dissemination": draw(st.sampled_from(("tree", "flood"))),
            "delay": delay,
            "jitter": draw(st.sampled_from((0.0, 0.0, 0.5))),
            "wants": wants,
            "changes": changes,
            "movements": [(time, rng.randrange(users), 0.0, 0.0) for time in times(15)],
            "publications": [
                (time, rng.randrange(topics), rng.randrange(-1, users), rng.randrange(10)) for time in times(48)
            ],
            "policy": draw(policies(brokers)[rng.choices((0, 1, 2), (50, 42, 8))[0]]),
            "horizon": horizon,
            "warm_up": draw(st.sampled_from((0.0, 0.0, GRAIN, 1.1, horizon / 2))),
            "window": draw(st.sampled_from((1.0, 1.3, 100.0))),
            "join": draw(st.sampled_from(("instant", "message") if geometry in RENDEZVOUS else ("instant",))),
            "control_count": draw(st.sampled_from(("hops", "requests"))),
            "service": (kind, draw(st.integers(1, 3)) * GRAIN if kind != "none" else 0.0),
            "queue": draw(st.sampled_from((None, None, 0, 1, 2, 3))) if kind != "none" else None,
            "regions": None if seed % 2 else [seed // (broker + 1) % 3 for broker in range(brokers)],
            "looks": draw(st.sets(st.integers(1, 99), max_size=4).map(sorted)),
            "hops": ways.choice((None, 1, 2, 3)),
            "clients": random_clients(seed, (4 / GRAIN, 32 / GRAIN)),
            **fixed,
        }
    )
    many = users, topics, len(made.publications)
    return replace(made, sessions=random_sessions(seed, *many, horizon), quality=random_quality(seed, *many))


@st.composite
def loaded(draw: st.DrawFn, **fixed: Any) -> Case:
    """The same where services cost what is done, brokers have several servers, and queues other bounds and orders."""
    kind = draw(st.sampled_from(("deterministic", "exponential", "gamma", "lognormal", "histogram")))
    case: Case = draw(cases(service=(kind, draw(st.sampled_from((0.0, GRAIN / 4, GRAIN / 2)))), **fixed))
    cost = st.sampled_from((0.0, GRAIN / 8, GRAIN / 4))
    case.load = {
        "send": draw(cost),
        "send_client": draw(cost),
        "per_byte": draw(cost) / 8,
        "wake_up": (wake_up := draw(st.sampled_from((0.0, GRAIN, GRAIN / 3)))),
        "wake_up_half": GRAIN if wake_up == GRAIN / 3 else 0.0,
        "wake_up_least": GRAIN / 8 if wake_up == GRAIN / 3 else 0.0,
        "wake_up_slowdown": 0.5 if wake_up == GRAIN else 0.0,
        "variation": draw(st.sampled_from((0.5, 2.0))),
        "servers": draw(st.sampled_from((1, 1, 2, 3))),
        "queue_bytes": draw(st.sampled_from((None, 0, 5, 12))),
        "order": draw(st.sampled_from(("control-first", "fifo"))),
        "overflow": draw(st.sampled_from(("drop-newest", "drop-oldest", "drop-oldest"))),
        "histogram": MEASURED,
    }
    return case


MEASURED = (0.5, 1.0, 4.0), (2, 1, 1)  # with a mean of 1.5


@st.composite
def limited(draw: st.DrawFn, **fixed: Any) -> Case:
    """The same where links and interfaces have rates, buffers and losses; bytes are up to 9, seconds a quarter."""
    case: Case = draw(cases(**fixed))
    rates = st.sampled_from((None, 4 / GRAIN, 32 / GRAIN))
    case.lines = {
        "bandwidth": draw(rates),
        "interface": draw(rates),
        "loss": draw(st.sampled_from((0.0, 0.05, 0.3))),
        "buffer": draw(st.sampled_from((None, 0, 1, 2))),
        "buffer_bytes": draw(st.sampled_from((None, None, 3, 12))),
    }
    return case


def policies(brokers: int) -> list[st.SearchStrategy[tuple[Any, ...]]]:
    reactions = st.sampled_from((("subscription", "movement"), ("subscription",), ("movement",)))
    scripted = st.tuples(st.just("scripted"), st.lists(st.integers(0, brokers - 1), min_size=3, max_size=9), reactions)
    similarity = st.tuples(
        st.just("similarity"),
        st.sampled_from((brokers, max(brokers // 2, 2), 3)),
        st.sampled_from((0.5, 0.0, 1.0, 8.0)),
        st.sampled_from(("share", "relative")),
        st.sampled_from((0.0, 0.25)),
        st.integers(1, 8).map(lambda step: step * GRAIN),
    )
    return [scripted, similarity, st.tuples(st.just("static"))]


def overlay(case: Case) -> Dissemination:
    nowhere = np.full(case.brokers, np.nan)
    sites = Sites(tuple(map(str, range(case.brokers))), nowhere, nowhere)
    setting = GeometrySetting(case.brokers, case.topics, case.seed, sites, np.array(case.delay))
    match case.geometry:
        case "geographic":  # never drawn by `cases`: the oracle does not know it
            places = np.random.default_rng(case.seed).uniform(0.0, 60.0, (case.brokers + case.topics, 2))
            sites = replace(sites, latitude=places[: case.brokers, 0], longitude=places[: case.brokers, 1])
            setting = replace(setting, sites=sites, topic_places=places[case.brokers :])
            return Geographic(Geographic.Parameters(representative="closest"), setting)
        case "chord":
            successors = case.healing.get("successors", SUCCESSORS)
            return Chord(Chord.Parameters(ids=case.ids, bits=case.bits, successors=successors), setting)
        case "star":
            return Star(Star.Parameters(hub=str(hub(case))), setting)
        case "tapestry":
            return Tapestry(Tapestry.Parameters(digits=case.bits, base=2, pns=True), setting)
        case "full-mesh":
            return FullMesh(FullMesh.Parameters(**case.flooding), setting)
        case "owner-shard":
            return OwnerShard(OwnerShard.Parameters(), setting)
        case "broadcast":
            return Broadcast(Broadcast.Parameters(), setting)
        case "topic-connected":
            named = dict(zip(("design", "k", "strict", "on_change", "period"), case.design, strict=False))
            parameters = TopicConnected.Parameters(**named, **case.flooding, check=10**9)
            return TopicConnected(parameters, setting)
        case _:
            edges = tuple(Edge(str(a), str(b), time, "") for a, b, time in case.links)
            return Graph(Graph.Parameters(file=File("links", "", edges), **case.flooding), setting)


def hub(case: Case) -> int:
    return case.seed % case.brokers


def names(case: Case) -> list[int]:
    """What the oracle calls the overlay's nodes: ids on a ring, elsewhere their numbers."""
    geometry = overlay(case)
    return geometry.ids.tolist() if isinstance(geometry, Chord) else list(range(case.brokers))


def script(case: Case, time: float, user: int) -> int:
    return case.policy[1][(user + int(time / GRAIN)) % len(case.policy[1])]


def built(case: Case, world: Workload | None = None, **setting: Any) -> Network:
    """The network of a case before its run, on its own topics or with another workload."""
    nowhere = np.full(case.brokers, np.nan)
    selection = SelectionSetting(len(case.wants), nowhere, nowhere, None, case.seed, np.ones(case.brokers))
    if case.policy[0] == "scripted":
        first = [script(case, 0.0, user) for user in range(len(case.wants))]
        policy = tiny.Scripted(first, lambda time, user, _: script(case, time, user), case.policy[2])
    elif case.policy[0] == "similarity":
        _, size, weight, load, hysteresis, period = case.policy
        policy = SimilaritySelection(
            SimilaritySelection.Parameters(
                cluster_size=size, load_weight=weight, load=load, hysteresis=hysteresis, update_period=period
            ),
            selection,
        )
    else:
        policy = StaticSelection(StaticSelection.Parameters(), selection)
    world = world or tiny.workload(
        case.wants,
        case.publications,
        case.changes,
        case.movements,
        topics=case.topics,
        horizon=case.horizon + 4 * GRAIN,
    )
    world = with_places(case, with_quality(case, with_sessions(case, world)))
    geometry = overlay(case)
    return Network(
        NetworkSetting(
            overlay=geometry,
            node_of=np.array(case.node_of, np.int32),
            hop_delay=np.array(case.delay) if geometry.round_trips is None else geometry.round_trips,
            jitter=case.jitter,
            policy=policy,
            horizon=case.horizon,
            warm_up=case.warm_up,
            window=case.window,
            join=case.join,
            control_count=case.control_count,
            regions=None if case.regions is None else np.array(case.regions),
            links=LinkSetting(**case.lines),
            clients=client_setting(case),
            sessions=SessionSetting(**session_setting(case)),
            quality=quality_setting(case),
            reconnect=reconnect(case),
            delivery=DeliverySetting(**case.delivery),
            healing=healing(case),
            **tiny.with_stations(
                {
                    "faults": schedule(case) if case.faults else None,
                    "service": case.service[0],
                    "service_time": case.service[1],
                    "queue": case.queue,
                    "topic_delays": True,
                    **case.load,
                    **setting,
                }
            ),
        ),
        world,
        Streams(case.seed),
    )


def places(case: Case, what: str, many: int) -> NDArray[np.float64]:
    """Latitudes and longitudes (2, many), within some 100 km."""
    drawn = np.random.default_rng([case.seed, *what.encode()]).random((2, many))
    return drawn + np.array([[40.0], [9.0]])


def with_places(case: Case, world: Workload) -> Workload:
    """The workload with places of users, where distances take time."""
    if not case.clients.get("per_km"):
        return world
    homes, ways = places(case, "users", len(world.users)), places(case, "movements", len(world.movements))
    users = replace(world.users, latitude=homes[0], longitude=homes[1])
    return replace(world, users=users, movements=replace(world.movements, latitude=ways[0], longitude=ways[1]))


def client_setting(case: Case) -> ClientSetting:
    """The way to users."""
    given = dict(case.clients)
    per_km = given.pop("per_km", 0.0)
    distance = DistanceSetting(per_km, *places(case, "brokers", case.brokers)) if per_km else None
    return ClientSetting(**given, distance=distance)


def expected_distance(case: Case, per_km: float) -> Callable[[int, int, float], float]:
    """The time over the distance of a user to a broker at a time, by the spherical law of cosines."""
    homes, ways = places(case, "users", len(case.wants)), places(case, "movements", len(case.movements))
    sites = places(case, "brokers", case.brokers)

    def away(user: int, broker: int, time: float) -> float:
        here = homes[:, user]
        for (moved, who, *_), there in zip(case.movements, ways.T, strict=True):
            if who == user and moved <= time:
                here = there
        (phi, theta), (to_phi, to_theta) = np.radians(here), np.radians(sites[:, broker])
        cosine = math.sin(phi) * math.sin(to_phi) + math.cos(phi) * math.cos(to_phi) * math.cos(theta - to_theta)
        return per_km * 6371.0088 * math.acos(min(cosine, 1.0))

    return away


def session_setting(case: Case) -> dict[str, Any]:
    """What may wait in sessions."""
    return {
        name: case.sessions[name]
        for name in ("queue", "queue_bytes", "max_age", "overflow", "rate", "survive")
        if case.sessions
    }


def quality_setting(case: Case) -> QualitySetting | None:
    """How messages go to users by quality of service."""
    if not case.quality:
        return None
    return QualitySetting(**{name: case.quality[name] for name in ("shares", "loss", "timeout")})


def qualities(case: Case) -> list[int]:
    """The quality of service of each publication; -1 is not known, as is none at all."""
    if case.quality or case.sessions or case.delivery.get("guarantee") != "qos":
        found: list[int] = case.quality.get("qos") or case.sessions.get("qos", [])
        return found
    rng = random.Random(f"qualities {case.seed}")
    return [rng.choice((-1, 0, 0, 1, 2)) for _ in case.publications]


def with_quality(case: Case, world: Workload) -> Workload:
    """The workload with qualities of service."""
    if qos := qualities(case):
        world = replace(world, publications=replace(world.publications, qos=np.array(qos, np.int8)))
    if not case.quality:
        return world
    rows = case.quality["subscribed"]
    time, user, topic, qos = zip(*rows, strict=True) if rows else ((),) * 4
    subscribed = Qualities(np.array(time, "f8"), np.array(user, "i4"), np.array(topic, "i4"), np.array(qos, "i1"))
    return replace(world, qualities=subscribed)


def with_sessions(case: Case, world: Workload) -> Workload:
    """The workload with absences, and what is retained and asked for."""
    if not case.sessions:
        return world
    sessions, end = ("none", "resumed", "over"), world.horizon
    user, start, stop, session = (
        zip(*case.sessions["absences"], strict=True) if case.sessions["absences"] else ((),) * 4
    )
    time, who, topic = zip(*case.sessions["asked"], strict=True) if case.sessions["asked"] else ((),) * 3
    return replace(
        world,
        publications=replace(
            world.publications,
            retain=np.array(case.sessions["retain"], np.int8),
        ),
        absences=Absences(
            np.array(user, np.int32),
            np.array(start, np.float64),
            np.minimum(np.array(stop, np.float64), end),
            np.array([sessions.index(each) for each in session], np.int8),
        ),
        retained_requests=RetainedRequests(
            np.array(time, np.float64), np.array(who, np.int32), np.array(topic, np.int32)
        ),
    )


def schedule(case: Case) -> FaultSchedule:
    """What fails, in columns."""
    rows = case.faults.get("rows", ())
    time, action, target, other, value = zip(*rows, strict=True) if rows else ((),) * 5
    return FaultSchedule(
        np.array(time, np.float64),
        np.array(action, np.int8),
        np.array(target, np.int32),
        np.array(other, np.int32),
        np.array(value, np.float64),
        np.array(case.faults.get("sides", []), np.bool_).reshape(-1, case.brokers),
        tuple(Drain(0.0, math.inf, *drain) for drain in case.faults.get("drains", ())),
        tuple(Join(0.0, math.inf, *join) for join in case.faults.get("joins", ())),
    )


def healing(case: Case) -> HealingSetting | None:
    """How the overlay heals; only as planned, where it has no period."""
    if not (case.healing or schedule(case).changes_members):
        return None
    return HealingSetting(case.healing.get("period", math.inf), case.healing.get("convergence", 0.0))


def reconnect(case: Case) -> ReconnectSetting:
    """How users reconnect."""
    given = {name: value for name, value in case.faults.items() if name in ("detection", "wait", "longest", "jitter")}
    return ReconnectSetting(
        to="same" if case.faults.get("same", True) else "policy",
        backoff="exponential" if case.faults.get("exponential", True) else "fixed",
        connection_rate=case.faults.get("rate"),
        **given,
    )


def simulated(case: Case) -> tuple[Network, list[Any], list[list[dict[int, int | None]]]]:
    """The network after its run, all flights, and the trees at the times of `looks` and at the end."""
    network = built(case, plane="events", trace=True, subscribers=True)
    finished: list[Any] = []
    finish = network.engine.rule.finished.add
    network.engine.rule.finished.add = lambda flight, *sent, **named: (
        finished.append(flight),
        finish(flight, *sent, **named),
    )
    trees = []

    def look(share: float) -> None:
        if round(share * 100) in (*case.looks, 100):
            trees.append([tree_of(network, case, topic) for topic in range(case.topics)])

    network.run(look)
    return network, finished, trees


def tree_of(network: Network, case: Case, topic: int) -> dict[int, int | None]:
    """A tree as parents by node id; where joins are instant, it must also be the tree of an overlay that has never changed."""
    overlaid = network.setting.overlay
    outages = network._fabric.outages
    live = 0 if outages is None else int(np.argmin(outages.bypassed[network.broker_of]))
    tree = overlaid.tree(topic, int(overlaid.uplink(topic, live)[-1]))
    if case.join == "instant" and case.geometry != "topic-connected" and not case.faults:
        fresh = overlay(case)
        for broker in np.flatnonzero(network.subscriptions.wanted.row(topic)).tolist():
            fresh.join(topic, case.node_of[broker])
        for name in ("nodes", "parents", "first_child", "depth"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(fresh.tree(topic, 0), name))
    named = names(case)
    ids = [named[node] for node in tree.nodes.tolist()]
    return {node: None if above < 0 else ids[above] for node, above in zip(ids, tree.parents.tolist(), strict=True)}


def expected(case: Case) -> oracle.Network:
    moments = [case.horizon * look / 100 for look in case.looks]
    run = expected_setting(case), expected_world(case)
    if case.delivery:
        failing = expected_faults(case) if case.faults else faults_oracle.Faults([])
        return guarantees_oracle.Network(*run, failing, expected_delivery(case), moments, expected_healing(case))
    if case.faults:
        return faults_oracle.Network(*run, expected_faults(case), moments, expected_healing(case))
    return oracle.Network(*run, moments)


def expected_world(case: Case, copies: int = 1) -> oracle.World:
    """Every so many publications in a row are copies of one."""
    outside_key = Streams(case.seed).key("outside publishers")
    return oracle.World(
        case.wants,
        case.changes,
        [(time, user) for time, user, *_ in case.movements],
        [(time, topic, None if who < 0 else who, size) for time, topic, who, size in case.publications],
        {row: int(uniform(outside_key, row // copies) * case.brokers) for row in range(len(case.publications))},
        dict(enumerate(qualities(case))),
        [number for number, retains in enumerate(case.sessions.get("retain", ())) if retains],
        case.sessions.get("asked", []),
    )


def expected_setting(case: Case) -> oracle.Setting:
    streams = Streams(case.seed)
    jitter_key = streams.key("jitter")
    sigma, n = case.jitter, case.brokers

    def factor(what: int, source: int, destination: int) -> float:
        return (
            math.exp(sigma * normal(jitter_key, what, source * n + destination) - sigma * sigma / 2) if sigma else 1.0
        )

    reacts_to, exchange = frozenset(), None
    if case.policy[0] == "scripted":
        reacts_to = frozenset(case.policy[2])

        def select(view: oracle.Case) -> int:
            return script(case, 0.0 if view.current is None else view.time, view.user)

    elif case.policy[0] == "similarity":
        _, size, weight, load, hysteresis, period = case.policy
        reacts_to = frozenset({"subscription", "movement"})
        blocks = [range(first, min(first + size, n)) for first in range(0, n, size)]
        exchange = (period, [broker // size for broker in range(n)])
        select = oracle.similarity(
            lambda user: blocks[int(uniform(case.seed, user) * len(blocks))],
            Fraction(weight) * (n if load == "relative" else 1),
            Fraction(hysteresis),
        )
    else:

        def select(view: oracle.Case) -> int:
            return int(uniform(case.seed, view.user) * n) if view.current is None else view.current

    ids = names(case)
    routes, roots = expected_routes(case, ids)
    return oracle.Setting(
        overlay=routes,
        roots=roots,
        node_of=[ids[node] for node in case.node_of],
        delay=expected_delay(case),
        factor=factor,
        horizon=case.horizon,
        select=select,
        reacts_to=reacts_to,
        exchange=exchange,
        join_by_message=case.join == "message",
        two_requests=case.control_count == "requests",
        service=None if case.service[0] == "none" else expected_service(case),
        queue=case.queue,
        **expected_queueing(case.load),
        lines=expected_lines(case),
        clients=expected_clients(case),
        floods=case.floods,
        hop_limit=case.hops,
        keeps_members=case.geometry == "tapestry",
        regions=case.regions,
    )


def expected_service(case: Case) -> Callable[..., float]:
    """The service time, by what is served, where, the stage, copies to brokers and users, bytes, and counters moved."""
    key, kind, load = Streams(case.seed).key("service"), case.service[0], case.load
    square = load.get("variation", 1.0) ** 2

    def factor(what: int, place: int) -> float:
        if kind == "exponential":
            return exponential(key, what, place)
        if kind == "gamma":
            return gamma(key, what, place, 1 / square) / (1 / square)
        if kind == "lognormal":
            variance = math.log1p(square)
            return math.exp(math.sqrt(variance) * normal(key, what, place) - variance / 2)
        if kind == "histogram":
            drawn = uniform(key, what, place)
            return (0.5 if drawn < 0.5 else 1.0 if drawn < 0.75 else 4.0) / 1.5
        return 1.0

    def service(what: int, broker: int, stage: int, copies: int, users: int, size: int, matching: float = 0.0) -> float:
        costs = copies * load.get("send", 0.0), users * load.get("send_client", 0.0), size * load.get("per_byte", 0.0)
        if what <= -oracle.ANSWERS:
            return float(load["acknowledgement"] * factor(-what - oracle.ANSWERS, broker << 16 | stage))
        return (case.service[1] + matching + sum(costs)) * factor(what, broker << 16 | stage)

    return service


def expected_faults(case: Case) -> faults_oracle.Faults:
    """What fails, and how users reconnect."""
    reconnect, loss = Streams(case.seed).key("reconnect"), Streams(case.seed).key("loss")
    return faults_oracle.Faults(
        **case.faults,
        draw=lambda user, attempts: uniform(reconnect, user, attempts),
        chance=lambda what, here, there: uniform(loss, what, here * case.brokers + there),
    )


def expected_delivery(case: Case) -> guarantees_oracle.Delivery:
    """What is sent again; acknowledgements are drawn for links beyond all others."""
    setting, loss, n = DeliverySetting(**case.delivery), Streams(case.seed).key("loss"), case.brokers
    return guarantees_oracle.Delivery(
        setting.timeout,
        setting.backoff,
        setting.longest,
        setting.attempts,
        [setting.quality_of(qos) for qos in qualities(case) or [-1] * len(case.publications)],
        setting.store == "persistent",
        setting.expire_after,
        chance=lambda what, here, there: uniform(loss, what, n * n + here * n + there),
        serves=bool(case.load.get("acknowledgement")),
    )


def random_delivery(rng: random.Random, guarantee: str | None = None) -> dict[str, Any]:
    """A guarantee, by which copies are mostly sent again before long."""
    grain = rng.choice((GRAIN, GRAIN, 0.1))
    timeout = grain * rng.choice((1, 1, 2, 4))
    return {
        "guarantee": guarantee or rng.choice(("at-least-once", "exactly-once", "qos")),
        "timeout": timeout,
        "backoff": rng.choice((1.0, 1.5, 2.0)),
        "longest": max(timeout, grain * rng.choice((2, 4, 16))),
        "attempts": rng.choice((None, None, 1, 2, 4)),
        "store": rng.choice(("persistent", "persistent", "memory")),
        "expire_after": rng.choice((None, None, None, 4 * GRAIN, 1.7)),
    }


def expected_healing(case: Case) -> faults_oracle.Healing | None:
    """How the overlay heals."""
    setting = healing(case)
    if setting is None:
        return None
    ids, kind = names(case), case.geometry
    meshed = kind in MESHES

    def checks(routes: overlays.Overlay, nodes: set[int], up: set[int]) -> int:
        if kind == "chord":
            return len(up) * (6 + math.ceil(math.log2(len(up)) / 2)) if len(up) > 1 else 0
        if meshed:
            return len(up) * (len(nodes) - 1)
        if kind == "tapestry":
            return 2 * sum(len(routes.plain(one, other)) == 2 for one, other in permutations(nodes, 2) if one in up)
        return sum(node in up for link in routes.links(nodes) for node in link)

    def costs(routes: overlays.Overlay, nodes: set[int], failed: int, back: int, apart: int) -> int:
        if kind in ("chord", "tapestry"):
            return back * math.ceil(math.log2(len(nodes)) ** 2)
        if meshed:
            told = 0 if kind == "owner-shard" else apart
            return (back * 2 + told) * (len(nodes) - 1)
        if kind == "graph":
            assert isinstance(routes, overlays.Links)
            left = [link for link in routes.links(nodes) if link <= nodes and link not in routes.apart]
            return (failed + back + apart) * 2 * len(left)
        return back * 2 if kind == "star" else 0

    return faults_oracle.Healing(
        setting.period,
        setting.convergence,
        None if kind == "topic-connected" else partial(expected_routes, case, ids),
        checks,
        costs,
        case.healing.get("successors", SUCCESSORS) if kind == "chord" else None,
    )


def expected_lines(case: Case) -> oracle.Lines | None:
    """What limits links."""
    if not case.lines and not any(what == LOSS for _, what, *_ in case.faults.get("rows", ())):
        return None
    key, loss = Streams(case.seed).key("loss"), case.lines.get("loss", 0.0)
    limits = {name: case.lines.get(name) for name in ("bandwidth", "interface", "buffer", "buffer_bytes")}
    return oracle.Lines(
        **limits,
        loses=lambda what, here, there: uniform(key, what, here * case.brokers + there) < loss,
        jitter=case.jitter > 0,
        loss=loss,
    )


def expected_clients(case: Case) -> clients_oracle.Clients:
    """The way to users."""
    given = {name: value for name, value in session_setting(case).items() if value is not None}
    sessions = clients_oracle.Sessions(case.sessions.get("absences", []), **given)
    streams, given = Streams(case.seed), dict(case.clients)
    still = {"slow": Speed(), "slow_share": 0.0, "speed": Speed(), "jitter": 0.0}
    slow, share, fast, sigma = (given.pop(name, default) for name, default in still.items())
    per_km = given.pop("per_km", 0.0)
    jitter_key, slow_key = streams.key("client jitter"), streams.key("slow clients")

    def way(user: int) -> clients_oracle.Way:
        chosen = slow if uniform(slow_key, user) < share else fast
        return clients_oracle.Way(chosen.latency, chosen.rate, chosen.window)

    def again(number: int, user: int, attempt: int) -> float:
        drawn = number + (attempt << 40)
        return math.exp(sigma * normal(jitter_key, drawn, user) - sigma * sigma / 2) if sigma else 1.0

    return clients_oracle.Clients(
        way,
        lambda number, user: again(number, user, 0),
        **given,
        sessions=sessions,
        quality=expected_quality(case),
        again=again,
        **({"away": expected_distance(case, per_km)} if per_km else {}),
    )


def expected_quality(case: Case) -> clients_oracle.Quality | None:
    """How messages go to users by quality of service."""
    if not case.quality:
        return None
    loss_key, quality_key = map(Streams(case.seed).key, ("client loss", "qos of subscriptions"))
    none, one, _ = case.quality["shares"]

    def of(user: int, coming: clients_oracle.Coming) -> int:
        rows = [
            row for row in case.quality["subscribed"] if row[1:3] == (user, coming.topic) and row[0] <= coming.served
        ]
        if rows:
            return min(coming.quality, max(rows)[3])
        drawn = uniform(quality_key, user, coming.topic)
        return min(coming.quality, 0 if drawn < none else 1 if drawn < none + one else 2)

    def lost(number: int, user: int, attempt: int, part: int) -> bool:
        return uniform(loss_key, number + (attempt << 40), user * 4 + part) < case.quality["loss"]

    return clients_oracle.Quality(of, lost, case.quality["timeout"])


def expected_queueing(load: dict[str, Any]) -> dict[str, Any]:
    """The other keys of a load (servers, queue, wake-up), by the names of the oracle."""
    return {
        **{name: load[name] for name in ("servers", "queue_bytes") if name in load},
        **{name: cost for name, cost in load.items() if name.startswith("wake_up")},
        "fifo": load.get("order") == "fifo",
        "drops_oldest": load.get("overflow") == "drop-oldest",
    }


def expected_routes(
    case: Case,
    ids: list[int],
    around: frozenset[int] = frozenset(),
    cut: frozenset[frozenset[int]] = frozenset(),
) -> tuple[overlays.Overlay, list[int | None]]:
    """The overlay, and where each topic's trees start, where some nodes and cut links are routed around."""
    live = [node for node in ids if node not in around]
    routes, roots = routes_among(case, live, around, cut)
    if case.geometry != "graph" and not case.floods:
        routes.cut, routes.live = cut, live
    return routes, roots


def routes_among(
    case: Case, live: list[int], around: frozenset[int], cut: frozenset[frozenset[int]]
) -> tuple[overlays.Overlay, list[int | None]]:
    match case.geometry:
        case "chord":
            ring = overlays.Ring(live, case.bits)
            hashes = (hashed(f"{case.seed}/topic/{topic}", case.bits) for topic in range(case.topics))
            return ring, [ring.successor(point) for point in hashes]
        case "star":
            middle = hub(case)
            if middle in around:
                middle = min(live, key=lambda one: (math.fsum(case.delay[one][other] for other in live), one))
            links = {(a, b): 1.0 for node in live if node != middle for a, b in ((node, middle), (middle, node))}
            return overlays.Links(links), [middle] * case.topics
        case "tapestry":
            names = [format(name, f"0{case.bits}b") for name in overlay(case).prefixes.ids.tolist()]

            def nearest(node: int, having: list[int]) -> int:
                return min(having, key=lambda other: (case.delay[node][other], other))

            prefix = overlays.Prefix(names, "01", nearest, around)
            hashes = [hashed(f"{case.seed}/topic/{topic}", case.bits) for topic in range(case.topics)]
            return prefix, [prefix.surrogate(live[0], format(point, f"0{case.bits}b"))[-1] for point in hashes]
        case "full-mesh":
            pairs = dict.fromkeys(permutations(live, 2), 1.0)
            return overlays.FloodedLinks(pairs) if case.floods else overlays.Mesh(), [None] * case.topics
        case "owner-shard":
            hashes = (hashed(f"{case.seed}/topic/{topic}", 32) for topic in range(case.topics))
            owners = [int(point / 2**32 * case.brokers) for point in hashes]
            return overlays.Mesh(), [min(live, key=lambda node: (node - owner) % case.brokers) for owner in owners]
        case "broadcast":
            return overlays.Broadcast(live), [None] * case.topics
        case "topic-connected":
            rule, k, strict, on_change = case.design
            if on_change == "repair" and rule.startswith("cd"):
                on_change = "rebuild"
            return overlays.TopicConnected(case.delay, rule, Fraction(k), strict, on_change), [None] * case.topics
        case _:
            delay = expected_delay(case)
            links = {(a, b): delay[a][b] for one, other, _ in case.links for a, b in ((one, other), (other, one))}
            return (overlays.FloodedLinks if case.floods else overlays.Links)(links, around, cut), [None] * case.topics


def expected_delay(case: Case) -> list[list[float]]:
    """Hop times, those of a graph's links laid over the others."""
    delay = [list(row) for row in case.delay]
    for one, other, time in case.links if case.geometry == "graph" else ():
        if time is not None:
            delay[one][other] = delay[other][one] = time
    return delay


def compare(case: Case) -> oracle.Network:
    """Run both and compare everything that can be seen."""
    network, flights, trees = simulated(case)
    truth = expected(case)
    compare_messages(network, flights, truth)
    assert trees == [*truth.looks, [truth.tree(topic) for topic in range(case.topics)]]
    metrics = faults_oracle.metrics if isinstance(truth, faults_oracle.Network) else oracle.metrics
    compare_metrics(network.metrics(), metrics(truth, case.warm_up, case.horizon))
    compare_windows(network.recorder.timeseries(), truth, metrics)
    compare_delays(network, truth)
    compare_brokers(network, case, truth)
    compare_load(network, case, truth)
    if "link_load" in network.tables():
        compare_link_load(network, case, truth)
    compare_topics(network, case, truth)
    received = network.tables()["subscribers"]
    pairs = zip(received["topic"].tolist(), received["user"].tolist(), strict=True)
    assert dict(zip(pairs, received["delivered"].tolist(), strict=True)) == truth.received
    return truth


def compare_messages(network: Network, flights: list[Any], truth: oracle.Network) -> None:
    decisions = zip(
        *(np.asarray(column).tolist() for column in network.tables()["decisions/selection"].values()), strict=True
    )
    assert list(decisions) == [(t, user, -1 if f is None else f, to) for t, user, f, to in truth.decisions]
    delivered, due = {}, {}
    for flight in flights:
        for broker, users, served in zip(flight.brokers, flight.due_users.tolist(), flight.served, strict=True):
            if users:
                due[flight.number, broker] = users
                if not math.isnan(served):
                    delivered[flight.number, broker] = served
    by_tree = truth.due.keys() - truth.by_channel
    assert delivered == {pair: time for pair, time in truth.delivered.items() if pair in by_tree}
    rooted = {pair for pair in by_tree if pair[0] in truth.rooted}
    assert due == {pair: truth.due[pair] for pair in rooted if truth.lost.get(pair) not in ("joining", "unreachable")}
    rows = list(zip(*network.tables()["trace"].values(), strict=True))
    assert sorted(rows) == sorted(
        (hop.sent, hop.received, hop.publication, hop.source, hop.destination, hop.kind, hop.subscribes)
        for hop in truth.hops
        if hop.received is not None
    )


def compare_metrics(found: dict[str, Any], truth: dict[str, Any]) -> None:
    assert found.keys() == truth.keys()
    for name, value in truth.items():
        if "_delay_p" in name and value is not None:
            assert found[name] == pytest.approx(value, rel=0.004, abs=1e-6), name
        elif isinstance(value, float):
            assert_close(found[name], value, name)
        else:
            assert found[name] == value, name


def assert_close(found: float, value: float | None, *what: object) -> None:
    """Within a billionth; NaN where there is no value."""
    if found != value:  # `approx` takes long
        assert found == pytest.approx(math.nan if value is None else value, rel=1e-9, abs=1e-9, nan_ok=True), what


def compare_windows(
    series: dict[str, Any], truth: Any, metrics: Callable[[Any, float, float], dict[str, Any]] = oracle.metrics
) -> None:
    for window, (start, end) in enumerate(zip(series["start"], series["end"], strict=True)):
        values = metrics(truth, start, end)
        shared = values.keys() & series.keys()
        assert len(shared) >= 20
        compare_metrics({name: series[name][window] for name in shared}, {name: values[name] for name in shared})


def compare_delays(network: Network, truth: oracle.Network) -> None:
    """Each delay, in order, lies in the bin that has its rank; one on an edge may be in either bin, as it was rounded."""
    table, edges = network.recorder.delays(), [*network.recorder.edges[1:-1]]
    delays: dict[str, list[tuple[int, float]]] = {"brokers": [], "users": []}  # window, seconds

    def count(number: int, time: float, whose: str) -> None:
        published = truth.world.publications[number][0]
        window = sum(edge <= published for edge in edges)
        delays[whose].append((window, time - published))

    for (number, _), time in truth.delivered.items():
        count(number, time, "brokers")
    for (number, _), coming in truth.came.items():
        if coming.fate == "delivered" and coming.kind == "live":
            published = truth.world.publications[number][0]
            count(number, published + coming.delay(published, truth.setting.clients.until), "users")
    for column, expected in delays.items():
        bins = [np.repeat(table[name], table[column]) for name in ("window", "lower", "upper")]
        assert len(bins[0]) == len(expected)
        for (window, delay), where, lower, upper in zip(sorted(expected), *bins, strict=True):
            assert window == where
            assert lower * (1 - 1e-9) <= delay < upper * (1 + 1e-9)


def compare_brokers(network: Network, case: Case, truth: oracle.Network) -> None:
    table, links = network.tables()["brokers"], network.tables()["links"]
    kept = [hop for hop in truth.hops if truth.world.publications[hop.publication][0] >= case.warm_up]
    used = Counter((hop.source, hop.destination) for hop in kept)
    assert dict(zip(zip(links["source"], links["destination"], strict=True), links["messages"], strict=True)) == used
    for broker in range(case.brokers):

        def average(column: int) -> float:
            return truth.average(case.warm_up, case.horizon, lambda *hosted: hosted[column][broker])  # noqa: B023

        assert table["subscriptions"][broker] == pytest.approx(average(0))
        assert table["users"][broker] == pytest.approx(average(1))
        assert table["topics"][broker] == len(truth.state(broker))
        assert table["sent"][broker] == sum(hop.source == broker for hop in kept)
        assert table["received"][broker] == sum(hop.destination == broker for hop in kept)
        assert table["delivered"][broker] == sum(
            b == broker and truth.world.publications[number][0] >= case.warm_up for number, b in truth.delivered
        )


def compare_topics(network: Network, case: Case, truth: oracle.Network) -> None:
    """What was published after the warm-up, who wants it at the end, and when it came to brokers and to users."""
    table = network.tables()["topics"]
    counts = Counter(topic for time, topic, *_ in case.publications if case.warm_up <= time < case.horizon)
    wanting = [{broker for broker, which, _ in truth.registered if which == topic} for topic in range(case.topics)]
    users = Counter(topic for wants in truth.wants for topic in wants)
    rows = zip(*(table[name].tolist() for name in ("topic", "publications", "brokers", "users", "copies")), strict=True)
    assert list(rows) == [
        (topic, count, len(wanting[topic]), users[topic], count * users[topic])
        for topic, count in sorted(counts.items())
    ]
    came = [
        (number, coming.delay(0.0, truth.setting.clients.until))
        for (number, _), coming in truth.came.items()
        if coming.fate == "delivered" and coming.kind == "live"
    ]
    for prefix, arrivals in (("", [(number, time) for (number, _), time in truth.delivered.items()]), ("user_", came)):
        delays: dict[int, list[float]] = {topic: [] for topic in counts}
        for number, time in arrivals:
            published, topic = truth.world.publications[number][:2]
            if published >= case.warm_up:
                delays[topic].append(time - published)
        for row, topic in enumerate(sorted(counts)):
            found = [
                table[f"{prefix}{name}"][row] for name in ("deliveries", "notification_delay", "notification_delay_max")
            ]
            those = delays[topic]
            expected = [len(those), *((sum(those) / len(those), max(those)) if those else (math.nan, math.nan))]
            assert found == pytest.approx(expected, nan_ok=True)


def compare_load(network: Network, case: Case, truth: oracle.Network) -> None:
    """A row for each window and broker where the broker did anything, with what it did; waits of nobody are NaN."""
    table, edges = network.tables()["load"], network.recorder.edges
    rows = {pair: row for row, pair in enumerate(zip(table["window"].tolist(), table["broker"].tolist(), strict=True))}
    assert list(rows) == sorted(rows)
    for window, (start, end) in enumerate(pairwise(edges)):
        for broker in range(case.brokers if start >= case.warm_up else 0):
            values = oracle.load(truth, broker, start, end, case.warm_up)
            idle = not any(value for name, value in values.items() if name != "users")
            assert ((window, broker) not in rows) == idle
            if idle:
                continue
            row = rows.pop((window, broker))
            found = {name: table[name][row] for name in values}
            if case.service[0] == "none":
                values |= dict.fromkeys(list(values)[list(values).index("served") :])
            for name, value in values.items():
                assert_close(found[name], value, name, window, broker)
    assert rows == {}


def compare_link_load(network: Network, case: Case, truth: oracle.Network) -> None:
    """A row for each window and link where the link did anything; since when links and interfaces are saturated."""
    table, edges, tables = network.tables()["link_load"], network.recorder.edges, network.tables()
    columns = zip(*(table[name].tolist() for name in ("window", "source", "destination")), strict=True)
    rows = {key: row for row, key in enumerate(columns)}
    assert list(rows) == sorted(rows)
    for window, (start, end) in enumerate(pairwise(edges)):
        for link in {sending.link for sending in truth.sendings} if start >= case.warm_up else ():
            values = oracle.link_load(truth, link, start, end)
            idle = not any(value for value in values.values() if value is not None)
            assert ((window, *link) not in rows) == idle
            if not idle:
                row = rows.pop((window, *link))
                for name, value in values.items():
                    assert_close(table[name][row], value, name, window, link)
    assert rows == {}
    saturated = oracle.saturated_links(truth, case.horizon - case.warm_up)
    links, brokers = tables["links"], tables["brokers"]
    pairs = zip(links["source"].tolist(), links["destination"].tolist(), strict=True)
    places = [(links, "", row, ("link", pair)) for row, pair in enumerate(pairs)]
    for way in ("in", "out"):
        places += [(brokers, f"interface_{way}_", broker, (way, broker)) for broker in range(case.brokers)]
    for where, prefix, row, over in places:
        since = where[f"{prefix}saturated_since"][row]
        share = dict(saturated.get(over, [(None, None)]))[since]
        assert where[f"{prefix}capacity_share"][row] == (None if share is None else pytest.approx(share))


def reproducible(examples: int) -> settings:
    return settings(
        max_examples=tried(examples), derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def test_simulator_and_oracle_agree_on_everything() -> None:
    tally: Counter[str] = Counter()

    @reproducible(200)
    @given(cases())
    def run(case: Case) -> None:
        truth = compare(case)
        busy = bool(truth.handovers and truth.tree_changes_across and truth.handovers_across)
        event(f"handover, tree change and publication across both: {busy}")
        tally.update({"cases": 1, "busy": busy, **dict.fromkeys(truth.lost.values(), 1)})
        tally.update({"in flight": bool(truth.in_flight), "dropped": bool(truth.dropped)})

    run()
    assert tally["busy"] >= tally["cases"] / 2, tally
    assert min(tally[what] for what in ("joining", "queue_full", "in flight", "dropped")) >= least(10), tally


FLOOD = {"design": ("gm", "1", False, "repair"), "dissemination": "flood"}


@pytest.mark.parametrize(
    ("geometry", "duplicates", "beyond"), [("topic-connected", 25, 10), ("graph", 10, 25), ("full-mesh", 25, 0)]
)
def test_floods_and_their_losses_agree_too(geometry: str, duplicates: int, beyond: int) -> None:
    tally: Counter[str] = Counter()

    @reproducible(100)
    @given(cases(**FLOOD, geometry=geometry, service=("exponential", GRAIN), queue=2))
    def run(case: Case) -> None:
        truth = compare(case)
        tally.update(truth.lost.values())
        tally.update({"duplicates": truth.duplicates.total(), "copies": len(truth.copies)})

    run()
    assert min(tally["queue_full"], tally["copies"]) >= least(25), tally
    assert tally["duplicates"] >= least(duplicates), tally
    assert tally["hop_limit"] >= least(beyond), tally


def test_limited_links_agree_too() -> None:
    tally: Counter[str] = Counter()

    @reproducible(150)
    @given(limited())
    def run(case: Case) -> None:
        truth = compare(case)
        tally.update(dict.fromkeys(truth.lost.values(), 1))
        tally.update({"crowded": truth.crowded > 0, "held up": truth.held_up > 0})
        tally["both"] += truth.crowded > 0 and "link" in truth.lost.values()

    run()
    assert min(tally[what] for what in ("link", "crowded", "held up", "both")) >= least(10), tally


@pytest.mark.parametrize("geometry", FLOODED)
def test_floods_over_limited_links_agree_too(geometry: str) -> None:
    tally: Counter[str] = Counter()

    @reproducible(60)
    @given(limited(**FLOOD, geometry=geometry))
    def run(case: Case) -> None:
        tally.update(dict.fromkeys(compare(case).lost.values(), 1))

    run()
    assert min(tally["link"], tally["queue_full"]) >= least(5), tally


def test_loads_agree_too() -> None:
    tally: Counter[str] = Counter()

    @reproducible(150)
    @given(loaded())
    def run(case: Case) -> None:
        truth = compare(case)
        jobs = [job for broker in truth.brokers for job in broker.jobs]
        tally.update(dict.fromkeys(truth.lost.values(), 1))
        tally["drop-oldest"] += any(job.refused_for not in (None, job) for job in jobs)
        tally["too many bytes"] += bool(case.load["queue_bytes"] and truth.lost)
        tally["waits for one of many"] += case.load["servers"] > 1 and any(job.taken != job.arrived for job in jobs)
        tally["woken"] += case.load["wake_up"] > 0 and any(job.woke for job in jobs)
        tally["overtaken"] += truth.overtaken > 0

    run()
    seen = ("queue_full", "drop-oldest", "too many bytes", "waits for one of many", "woken")
    assert min(tally[what] for what in seen) >= least(10), tally
    assert tally["overtaken"] >= least(2), tally


@reproducible(60)
@given(cases(join="instant", queue=None, dissemination="tree"))
def test_every_due_pair_is_delivered_exactly_once(case: Case) -> None:
    last = max([case.horizon, *(row[0] for row in case.publications)])
    case.horizon = last + 1000.0  # long enough for everything to arrive
    network, flights, _ = simulated(case)
    assert network.metrics()["duplicates"] == 0
    assert len(flights) == len(case.publications)
    for flight in flights:
        assert not np.isnan(np.array(flight.served)[flight.due_users > 0]).any()
