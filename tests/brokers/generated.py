"""Small random networks by number, with all features in combination, and the results in which two engines may differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import tiny
from oracles.draws import uniform
from oracles.faults import CRASH, CUT, LOSS, MEND, RESTART, SLOW
from test_against_oracle import (
    GRAIN,
    MEASURED,
    MESHES,
    RENDEZVOUS,
    Case,
    built,
    matrix,
    random_clients,
    random_delivery,
    random_faults,
    random_healing,
    random_links,
    random_members,
    random_quality,
    random_sessions,
    schedule,
)
from test_offloading import KEY, Drawn
from test_reconfiguration import PAYS, Shuffle

from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.control.offloading import OffloadingSetting
from sim.brokers.data.kept import Attempt
from sim.brokers.fabric.stations import Server
from sim.brokers.network import Network
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.reconfiguration.process import ProcessParameters
from sim.workloads.faults.schedule import MANAGER_DEAD
from sim.workloads.format.workload import Workload

KINDS = ("tree", "flood", "content")
SHARES = (5, 7, 7)  # of the kinds: all that floods and all that carries content is to be a third each
LARGEST = 2**31 - 1  # bytes that a publication may have
FIELDS, VALUES = 3, 3  # of content: so few that copies meet at brokers


@dataclass
class Generated:
    """A case and the optional parts of its network; `kind` is what its brokers do with copies. Its `repr` can be read back."""

    kind: str
    case: Case  # of content, a publication's topic is the number by which its values are drawn
    capacity: list[float] | None
    subscriptions: list[tuple[int, dict[int, int]]]  # to content: owner, field → value
    matching: float
    offloading: dict[str, Any] | None  # parameters of the service
    keeps: bool  # whether the service has a policy, else satisfaction is measured and nothing offloaded
    process: dict[str, Any] | None  # parameters of reconfiguration
    subscribers: bool


def generated(seed: int, kind: str | None = None) -> Generated:
    """The network and workload of this number, of any kind or a given one."""
    rng = random.Random(seed)
    kind = kind or np.repeat(KINDS, SHARES)[seed % sum(SHARES)].item()
    case = _loaded(random.Random(f"load {seed}"), kind, _case(rng, kind, seed))
    case = _limited(random.Random(f"links {seed}"), case)
    case = _flooded(random.Random(f"flood {seed}"), kind, case)
    timed = case.service[0] != "none"
    users = range(len(case.wants))
    return Generated(
        kind,
        case,
        [rng.choice((0.5, 1.0, 2.0, 3.0)) for _ in range(case.brokers)] if timed and rng.random() < 0.4 else None,
        [
            (user, {field: rng.randrange(VALUES) for field in rng.sample(range(FIELDS), rng.randint(1, FIELDS))})
            for user in users
            for _ in range(rng.randrange(1, 4))
        ]
        if kind == "content"
        else [],
        rng.choice((0.0, GRAIN / 4)) if kind == "content" and timed else 0.0,
        _offloading(rng) if kind != "content" and rng.random() < 0.85 else None,
        rng.random() < 0.9,
        _process(rng) if case.geometry == "chord" and rng.random() < 0.95 else None,
        rng.random() < 0.5,
    )


def faulty(seed: int, kind: str | None = None) -> Generated:
    """A network of this number without content, of any kind or a given one, in which brokers crash and links are cut.

    In three quarters of them much waits, in two thirds hops take longer, and half of those that could have no reconfiguration.
    Overlays mostly heal, and in half of those that may, brokers leave and join as planned.
    """
    rng = random.Random(f"faults {seed}")
    drawn = rng.choice(("tree", "tree", "tree", "flood"))
    made = generated(seed, kind or drawn)
    case = made.case
    if rng.random() < 3 / 4:
        case = replace(
            case, service=("exponential", rng.choice((1, 2)) * GRAIN), load={}, queue=rng.choice((None, 2, 5))
        )
    if rng.random() < 2 / 3:
        case = replace(case, delay=[[4 * time for time in row] for row in case.delay])
    timed, loss = case.service[0] != "none", case.lines.get("loss", 0.0)
    case = replace(case, faults=random_faults(rng, case.brokers, case.horizon, timed, loss))
    process = made.process if rng.random() < 0.5 else None
    if process is None or rng.random() < 0.7:
        case = replace(case, healing=random_healing(random.Random(f"healing {seed}")))
        if (members := random.Random(f"members {seed}")).random() < 0.5:
            case = replace(case, faults=random_members(members, case.faults, case.brokers, case.horizon))
    return replace(made, case=case, process=process)


def guaranteed(seed: int, guarantee: str | None = None, kind: str = "tree") -> Generated:
    """The same with a guarantee, any or a given one; of content, which has no faults, all cases have links with losses."""
    made = generated(seed, kind) if kind == "content" else faulty(seed, kind)
    rng = random.Random(f"delivery {seed}")
    case = replace(made.case, delivery=random_delivery(rng, guarantee))
    if case.service[0] != "none":
        case = replace(case, load={**case.load, "acknowledgement": rng.choice((0.0, 0.01, GRAIN / 2))})
    if kind == "content":
        case = _limited(rng, replace(case, lines={}), share=1.0)
        case = replace(case, lines={**case.lines, "loss": rng.choice((0.1, 0.5))})
    return replace(made, case=case)


def _case(rng: random.Random, kind: str, seed: int) -> Case:
    brokers = rng.choices((rng.randint(1, 3), rng.randint(4, 7), rng.randint(8, 12)), (1, 6, 5))[0]
    topics, users = rng.randint(1, 6), rng.randint(1 if rng.random() < 0.1 else 5, 12)
    horizon = rng.randint(16, 48) * GRAIN + rng.choice((0.0, 0.0, 0.1))
    geometry = _geometry(rng, kind)
    wants = [{topic for topic in range(topics) if rng.random() < 2.0 / topics} for _ in range(users)]
    times = _times(rng, horizon)
    changes = [] if kind == "content" else _changes(rng, wants, topics, times(rng.choice((0, 10, 30, 40))))
    delay, node_of = np.array(_delay(rng, brokers, seed)), rng.sample(range(brokers), brokers)
    if geometry not in ("chord", "star", *MESHES):  # whose nodes are the brokers, as far apart to and fro
        delay, node_of = np.triu(delay) + np.triu(delay).T, list(range(brokers))
    service = rng.choices(("none", "deterministic", "exponential"), (10, 45, 45))[0]
    join = "message" if geometry in (*RENDEZVOUS, "geographic") and rng.random() < 0.9 else "instant"
    bounded = service != "none" and rng.random() < 0.75
    made = Case(
        brokers=brokers,
        topics=topics,
        geometry=geometry,
        ids=rng.choice(("hashed", "even")),
        bits=rng.choice((4, 5, 8, 32)),
        seed=seed,
        node_of=node_of,
        links=random_links(rng, brokers),
        design=(
            rng.choice(("gm", "low-oda", "minmax-oda", "cd-oda-ii")),
            rng.choice(("1", "3/2", "2")),
            rng.random() < 0.5,
            rng.choice(("repair", "repair", "rebuild", "break", "periodic")),
            rng.choice((1.0, 1.3)),
        ),
        dissemination="flood" if kind == "flood" else "tree",
        delay=delay.tolist(),
        jitter=rng.choice((0.0, 0.0, 0.0, 0.1, 0.5)),
        wants=wants,
        changes=changes,
        movements=[(time, rng.randrange(users), 0.0, 0.0) for time in times(rng.choice((0, 10, 20, 30, 40)))],
        publications=[
            (
                time,
                rng.randrange(10**6 if kind == "content" else topics),
                rng.randrange(-1, users),
                rng.choice((0, 1, 1, rng.randrange(2000), LARGEST)),
            )
            for time in times(rng.choice((10, 30, 50, 60))) or [0.0]
        ],
        policy=_policy(rng, brokers),
        horizon=horizon,
        warm_up=rng.choice((0.0, 0.0, 0.0, GRAIN, 1.1, horizon / 2)),
        window=rng.choice((1.0, 1.3, horizon, 100.0)),
        join=join,
        control_count=rng.choice(("hops", "requests")),
        service=(service, rng.choice((0.01, GRAIN / 4, GRAIN / 2, GRAIN, GRAIN)) if service != "none" else 0.0),
        queue=rng.choice((0, 1, 1, 2, 3)) if bounded else None,
        regions=[rng.randrange(3) for _ in range(brokers)] if rng.random() < 0.5 else None,
        looks=[],
        clients=random_clients(seed, (20.0, 2000.0)),
    )
    sessions = random_sessions(seed, users, topics, len(made.publications), horizon)
    if kind == "content" and sessions:
        sessions |= {"retain": [0] * len(made.publications), "asked": []}
    quality = {} if kind == "content" else random_quality(seed, users, topics, len(made.publications))
    return replace(made, sessions=sessions, quality=quality)


def _loaded(rng: random.Random, kind: str, case: Case) -> Case:
    """Half of the cases whose brokers take time, with more that services cost, more servers, and another order."""
    if case.service[0] == "none" or rng.random() < 0.5:
        return case
    costs = ("send", "send_client", "per_byte")
    load = {name: rng.choice((0.0, GRAIN / 16, 0.01)) / (500 if name == "per_byte" else 1) for name in costs}
    load |= {
        "wake_up": (wake_up := rng.choice((0.0, 0.0, GRAIN / 8, 0.01))),
        "wake_up_half": GRAIN if wake_up == 0.01 else 0.0,
        "wake_up_least": 0.003 if wake_up == 0.01 else 0.0,
        "wake_up_slowdown": 0.3 if wake_up else 0.0,
        "variation": rng.choice((0.5, 2.0)),
        "servers": rng.choice((1, 1, 2, 3)),
        "order": rng.choice(("control-first", "fifo")),
        "overflow": rng.choice(("drop-newest", "drop-oldest")),
        "queue_bytes": rng.choice((None, None, 0, 100, 2500)),
        "histogram": MEASURED,
    }
    draws = rng.choice((case.service[0], "gamma", "lognormal", "histogram"))
    return replace(case, service=(draws, case.service[1]), load=load)


def _limited(rng: random.Random, case: Case, share: float = 1 / 3) -> Case:
    """A share of the cases with rates, buffers and losses of links; publications have 2000 bytes at most then."""
    if rng.random() < 1 - share:
        return case
    lines = {
        "bandwidth": rng.choice((None, 2000 / GRAIN, 10000.0)),
        "interface": rng.choice((None, 2000 / GRAIN, 10000.0)),
        "loss": rng.choice((0.0, 0.0, 0.05, 0.3)),
        "buffer": rng.choice((None, 0, 1, 2)),
        "buffer_bytes": rng.choice((None, None, 0, 1000, 5000)),
    }
    rows = [(*row, min(size, 2000)) for *row, size in case.publications]
    return replace(case, lines=lines, publications=rows)


def _flooded(rng: random.Random, kind: str, case: Case) -> Case:
    """What is flooded, half of it over other links than those that follow interests, half of it with a hop limit."""
    if kind != "flood":
        return case
    geometry = rng.choice(("topic-connected", "topic-connected", "graph", "full-mesh"))
    return replace(case, geometry=geometry, hops=rng.choice((None, None, 1, 1, 2, 3)))


def _geometry(rng: random.Random, kind: str) -> str:
    if kind == "flood":
        return "topic-connected"
    others = ("tapestry", "star", "geographic", *MESHES, "graph", "topic-connected")
    return "chord" if rng.random() < 0.75 else rng.choice(others)


def _delay(rng: random.Random, brokers: int, seed: int) -> list[list[float]]:
    """Hop times: none, all equal, on the grid, or anything; mostly so short that reconfigurations come to an end."""
    factor = rng.choice((0.0, 0.125, 0.25, 0.25, 0.5))
    return [[time * factor for time in row] for row in matrix(rng.choice(("equal", "grid", "any")), brokers, seed)]


def _times(rng: random.Random, horizon: float) -> Callable[[int], list[float]]:
    """Draws so many times up to a second past the horizon: mostly on the grid, so that several things happen at once."""
    free = rng.choice((0.0, 0.1, 0.5))

    def draw() -> float:
        if rng.random() < 0.04:
            return rng.choice((0.0, horizon))
        if rng.random() < free:
            return rng.uniform(0.0, horizon)
        return GRAIN * rng.randrange(int(horizon / GRAIN) + 4)

    return lambda count: sorted(draw() for _ in range(count))


def _changes(
    rng: random.Random, wants: list[set[int]], topics: int, times: Sequence[float]
) -> list[tuple[float, int, int, int]]:
    held, changes = [set(topics_of) for topics_of in wants], []
    for time in times:
        who, what = rng.randrange(len(wants)), rng.randrange(topics)
        changes.append((time, who, what, -1 if what in held[who] else +1))
        held[who] ^= {what}
    return changes


def _policy(rng: random.Random, brokers: int) -> tuple[Any, ...]:
    reactions = rng.choice(
        (("subscription", "movement"), ("subscription", "movement"), ("subscription",), ("movement",))
    )
    scripted = "scripted", [rng.randrange(brokers) for _ in range(rng.randint(3, 9))], reactions
    sizes = brokers, max(brokers // 2, 2), 3
    balance = rng.choice((0.5, 0.0, 1.0, 8.0)), rng.choice(("share", "relative")), rng.choice((0.0, 0.25))
    similarity = "similarity", rng.choice(sizes), *balance, rng.randint(1, 8) * GRAIN
    return rng.choices((scripted, similarity, ("static",)), (75, 20, 5))[0]


def _offloading(rng: random.Random) -> dict[str, Any]:
    return {
        "capacity": rng.choice(("30%", "50%", "90%", 3, 0)),
        "scope": rng.choice(("network", "network", "broker")),
        "tau": rng.choice((1, 2, 2.5, 5)),
        "period": rng.choice((1.0, 1.3, 2.0)),
        "smoothing": rng.choice((0.3, 1.0)),
        "delivery_probability": rng.choice((0.0, 0.5, 0.9, 1.0)),
        "extra_delay": rng.choice((0.0, GRAIN, 0.3)),
    }


def _process(rng: random.Random) -> dict[str, Any]:
    starts = [rng.randint(1, 80) * GRAIN / 2 for _ in range(rng.choice((0, 0, 1, 3)))]
    return {
        "period": rng.choice((0.5, 1.0, 1.3)),
        "timeout": rng.choice((0.1, GRAIN, 1.0)),
        "manager_dead": tuple((start, start + rng.randint(1, 4) * GRAIN) for start in starts),
    }


def network(made: Generated, plane: str, world: Workload | None = None, **setting: Any) -> Network:
    """The network before its run, on its own workload or another one."""
    case = made.case
    setting = {"plane": plane, "subscribers": made.subscribers, "matching_time": made.matching, **setting}
    if made.capacity is not None:
        setting["capacity"] = np.array(made.capacity)
    if made.offloading is not None:
        policy = Drawn() if made.keeps else None
        setting["offloading"] = OffloadingSetting(policy, OffloadingParameters(**made.offloading), KEY)
    if made.process is not None:
        process = {"threshold": 1.0, "constants": PAYS, **made.process}
        dead = tiny.dead(process.pop("manager_dead"), case.brokers, schedule(case) if case.faults else None)
        parameters, setting["faults"] = ProcessParameters().model_copy(update=process), dead
        setting["reconfiguration"] = ReconfigurationSetting(Shuffle(2 + case.seed % 4), parameters, case.seed)
    if made.kind == "content":
        world = tiny.content(
            made.subscriptions,
            [(time, who, size, _values(case.seed, row)) for time, row, who, size in case.publications],
            case.movements,
            users=len(case.wants),
            fields=FIELDS,
            values=VALUES,
            horizon=case.horizon + 4 * GRAIN,
        )
        case = replace(case, topics=len(world.topics))
    return built(case, world, **setting)


def _values(seed: int, row: int) -> list[int]:
    return [int(uniform(seed, row, field) * VALUES) for field in range(FIELDS)]


# -- what happened in a run of the plane that makes every hop an event


def watched(network: Network) -> Counter[str]:
    """Run a network of the plane `events`, and count how often what is hard for engines happened."""
    seen: Counter[str] = Counter()
    control, engine = network.control, network.engine
    enact, when_idle, when_rooted = control.enact, engine.when_idle, engine.when_rooted

    def enacted(topic: int, node: int, change: int) -> None:
        seen["tree changes in flight"] += bool(engine._in_transit.flights) and not control.bootstrapping
        enact(topic, node, change)

    def idle(then: Callable[[], None]) -> None:
        seen["barriers"] += 1
        seen["barriers that waited"] += bool(engine._in_transit.flights)
        when_idle(then)

    def rooted(then: Callable[[], None]) -> None:
        seen["barriers that waited"] += bool(engine._in_transit.released)
        when_rooted(then)

    control.enact, engine.when_idle, engine.when_rooted = enacted, idle, rooted
    for server in network.servers:
        _watch_control(server, seen)
    if network._fabric.outages is not None:
        _watch_faults(network, seen)
    network.run()
    metrics = network.metrics()
    offloads, carries_content = network.offloading is not None, network.workload.content is not None
    return seen + Counter(
        {
            "queues that fill": metrics["lost_queue_full"],
            "lost by links": metrics["lost_link"],
            "in flight at the end": metrics["in_flight"],
            "reconfigurations": metrics["reconfigurations"],
            "offloading": offloads and (metrics["offload_churn"] or 0) + (metrics["best_effort_deliveries"] or 0),
            "satisfaction": offloads,
            "hop limits": metrics["lost_hop_limit"],
            "floods": network.setting.overlay.floods and metrics["due"],
            "content": carries_content and metrics["due"],
            "handovers": metrics["handovers"],
            "lost while joining": metrics["lost_joining"],
            "lost to users": (metrics["lost_slow_client"] or 0) + (metrics["lost_disconnected"] or 0),
            "delivered": metrics["delivered"],
            "reconnections": metrics["reconnections"],
            "reconnections at a limited rate": network.setting.reconnect.connection_rate is not None
            and metrics["reconnections"],
            "drains": metrics["drained_users"],
            "brokers that leave": metrics["broker_departures"],
            "brokers that join": metrics["broker_arrivals"],
            "users that move there": metrics["moved_users"],
            "lost in crashes": metrics["lost_crashed"],
            "lost by cuts": metrics["lost_partitioned"],
            "healing": metrics["healing_messages"],
            "retransmissions": metrics["retransmissions"],
            "duplicates of what is sent again": metrics["duplicate_deliveries"] + metrics["remembered_identities"],
            "given up": metrics["lost_expired"],
        }
    )


def _watch_control(server: Server, seen: Counter[str]) -> None:
    accept, removed = server.accept, server._waiting_at

    def accepted(message: Any, service: float, control: bool = False) -> bool:
        seen["control messages that waited"] += control and len(server._serving) == server._servers
        seen["acknowledgements served"] += control and isinstance(message.carries, Attempt)
        return accept(message, service, control)

    def dropped(before: int) -> Any:
        seen["publications that made room"] += 1
        return removed(before)

    server.accept, server._waiting_at = accepted, dropped


def _watch_faults(network: Network, seen: Counter[str]) -> None:
    engine, outages, users = network.engine, network._fabric.outages, network.users
    fail, stops, enact, schedule = engine.fail, outages.stops, users.enact, network.setting.faults

    def failed(broker: int) -> Any:
        if network.servers:
            server = network.servers[broker]
            seen["crashes with publications waiting"] += any(not message.control for message in server._queue)
            seen["crashes with publications in service"] += any(not message.control for message in server._serving)
            held = *server._serving, *server._control, *server._queue
            seen["crashes with acknowledgements"] += any(m.control and isinstance(m.carries, Attempt) for m in held)
        seen["crashes with joins under way"] += network.control._pending > 0
        seen["crashes while brokers change places"] += network._protocol is not None and network._protocol.running
        return fail(broker)

    def stopped(here: int, there: int) -> str | None:
        cause = stops(here, there)
        seen["cuts with copies on the link"] += cause == "partitioned"
        return cause

    def enacted(changing: list[int], moving: list[int]) -> None:
        events, movements = network.workload.subscription_events, network.workload.movements
        seen["changes of absent users"] += bool((users.host[events.user[changing]] < 0).any())
        seen["movements of absent users"] += bool((users.host[movements.user[moving]] < 0).any())
        enact(changing, moving)

    engine.fail, outages.stops, users.enact = failed, stopped, enacted
    rows = list(zip(schedule.action.tolist(), schedule.other.tolist(), strict=True))
    seen["partitions"] = (CUT, -1) in rows
    seen["dead managers"] = network.manager is not None and schedule.has(MANAGER_DEAD)
    seen["loss"], seen["slow"] = schedule.has(LOSS), schedule.has(SLOW)


# -- what tells two runs apart


def difference(one: Network, other: Network) -> str | None:
    """The first difference between the results of two runs, bit for bit; None where there is none."""
    found, others = one.metrics(), other.metrics()
    for name in found:
        if repr(found[name]) != repr(others[name]):
            return f"metric {name}: {found[name]!r} and {others[name]!r}"
    tables, other_tables = one.tables(), other.tables()
    if list(tables) != list(other_tables):
        return f"tables {list(tables)} and {list(other_tables)}"
    for name, table in tables.items():
        if list(table) != list(other_tables[name]):
            return f"table {name}: columns {list(table)} and {list(other_tables[name])}"
        for column, values in table.items():
            told = _differing(values, other_tables[name][column])
            if told is not None:
                return f"table {name}, column {column}, {told}"
    return None


def _differing(one: Any, other: Any) -> str | None:
    """The first row in which two columns differ, or how their types or lengths do."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype != other.dtype:
        return f"types {one.dtype} and {other.dtype}"
    for row, (mine, others) in enumerate(zip(one, other, strict=False)):
        if _bits(mine) != _bits(others):
            return f"row {row}: {mine!r} and {others!r}"
    return None if len(one) == len(other) else f"{len(one)} rows and {len(other)}"


def _bits(value: Any) -> Any:
    """A value as it is compared: numbers by their bits, so that −0 is not 0, and NaN equals itself."""
    return np.float64(value).tobytes() if isinstance(value, float) else value


# -- the smallest case that still differs


def shrunk(made: Generated, fails: Callable[[Generated], bool]) -> Generated:
    """A case that still fails, made smaller by leaving out rows and optional parts of its network."""
    while True:
        smaller = next((each for each in _smaller(made) if _fails(each, fails)), None)
        if smaller is None:
            return made
        made = smaller


def _fails(made: Generated, fails: Callable[[Generated], bool]) -> bool:
    try:
        return fails(made)
    except Exception:  # what is left cannot be built: an unsubscription without its subscription, say
        return False


PLAIN = {
    "jitter": 0.0,
    "policy": ("static",),
    "warm_up": 0.0,
    "window": 100.0,
    "join": "instant",
    "control_count": "hops",
    "service": ("none", 0.0),
    "queue": None,
    "regions": None,
    "load": {},
    "hops": None,
    "lines": {},
    "clients": {},
    "faults": {},
    "healing": {},
    "delivery": {},
    "sessions": {},
    "quality": {},
}
"""What a case may do without."""


def _smaller(made: Generated) -> Iterator[Generated]:
    case = made.case
    for name in ("process", "offloading", "capacity"):
        if getattr(made, name) is not None:
            yield replace(made, **{name: None})
    for name in ("matching", "subscribers"):
        if getattr(made, name):
            yield replace(made, **{name: type(getattr(made, name))()})
    for name, value in PLAIN.items():
        if getattr(case, name) != value:
            yield replace(made, case=replace(case, **{name: value}))
    for rows in _fewer(made.subscriptions):
        yield replace(made, subscriptions=rows)
    for name in ("changes", "movements") if case.sessions or case.quality else ("publications", "changes", "movements"):
        for rows in _fewer(getattr(case, name)):
            yield replace(made, case=replace(case, **{name: rows}))
    for rows in _fewer_faults(case.faults.get("rows", [])):
        yield replace(made, case=replace(case, faults={**case.faults, "rows": rows}))
    for user, topics in enumerate(case.wants):
        for topic in topics:
            fewer = [topics_of - {topic} if who == user else topics_of for who, topics_of in enumerate(case.wants)]
            yield replace(made, case=replace(case, wants=fewer))


def _fewer(rows: list[Any]) -> Iterator[list[Any]]:
    """The rows without some, many at first."""
    length = len(rows)
    while length:
        for start in range(0, len(rows), length):
            yield rows[:start] + rows[start + length :]
        length //= 2


def _fewer_faults(rows: list[Any]) -> Iterator[list[Any]]:
    """Without some faults; what begins and what ends goes together."""
    lasting: dict[Any, list[Any]] = {}
    for row in rows:
        _, what, target, other, _ = row
        lasting.setdefault(
            ("down" if what in (RESTART, CRASH) else "cut" if what in (MEND, CUT) else what, target, other), []
        ).append(row)
    pairs = [own[first : first + 2] for own in lasting.values() for first in range(0, len(own), 2)]
    for fewer in _fewer(pairs):
        yield sorted(row for pair in fewer for row in pair)


def written(made: Generated) -> str:
    """The case in lines, a field in each."""
    lines = [f"case.{field.name} = {getattr(made.case, field.name)!r}" for field in fields(Case)]
    return "\n".join(lines + [f"{f.name} = {getattr(made, f.name)!r}" for f in fields(Generated) if f.name != "case"])
