"""Tiny workloads and networks, written in a line or two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim import plugins
from sim.base.randomness import Streams
from sim.brokers.fabric.stations import StationSetting
from sim.brokers.network import Network, NetworkSetting
from sim.content.conjunctions import Conjunctions
from sim.content.predicates import Content
from sim.overlay.source_trees import PublisherTrees
from sim.overlay.trees import RendezvousTrees
from sim.policies.views import Selection, SelectionView
from sim.workloads.content.routing import route
from sim.workloads.faults.fault import DeadManager
from sim.workloads.faults.schedule import FaultSchedule, resolve_faults
from sim.workloads.format.workload import (
    Interests,
    Movements,
    Publications,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)


def workload(
    wants: Sequence[Iterable[int]],
    publications: Iterable[tuple[float, int, int, int]] = (),
    events: Iterable[tuple[float, int, int, int]] = (),
    movements: Iterable[tuple[float, int, float, float]] = (),
    topics: int = 1,
    horizon: float = 10.0,
    places: Sequence[tuple[float, float]] | None = None,
    cell: float | None = None,
) -> Workload:
    """`wants`: topics of each user at time 0; publications (time, topic, publisher or -1, size); events (time, user, topic, ±1);
    movements (time, user, latitude, longitude); `places`: latitude and longitude of each topic."""
    where = np.full((topics, 2), np.nan) if places is None else np.array(places, float)
    nowhere = np.full(len(wants), np.nan)
    held = [sorted(topics_of) for topics_of in wants]

    def columns(rows: Iterable[tuple[float, ...]], types: str) -> list[np.ndarray]:
        listed = list(rows)
        return [np.array([row[i] for row in listed], kind) for i, kind in enumerate(types.split())]

    return Workload(
        "tiny",
        horizon,
        Topics(
            pa.array([f"t{i}" for i in range(len(where))]),
            pa.array(["topic"] * len(where)),
            np.ones(len(where)),
            where[:, 0],
            where[:, 1],
        ),
        Users(pa.array([f"u{i}" for i in range(len(wants))]), nowhere, nowhere),
        Interests(
            np.cumsum([0, *map(len, held)]),
            np.array([topic for topics_of in held for topic in topics_of], np.int32),
        ),
        SubscriptionEvents(*columns(events, "f8 i4 i4 i1")),
        Publications(*columns(publications, "f8 i4 i4 i4")),
        Movements(*columns(movements, "f8 i4 f8 f8")),
        cell=cell,
    )


def conjunctions(subscriptions: Sequence[tuple[int, Mapping[int, int]]], fields: int, values: int) -> Conjunctions:
    """Subscriptions (owner, field → value)."""
    rows = [(field, value) for _, wanted in subscriptions for field, value in sorted(wanted.items())]
    return Conjunctions(  # type: ignore[call-arg]
        np.cumsum([0, *(len(wanted) for _, wanted in subscriptions)]),
        *np.array(rows, np.int32).reshape(-1, 2).T.copy(),
        np.array([owner for owner, _ in subscriptions], np.int32),
        fields,
        values,
    )


def content(
    subscriptions: Sequence[tuple[int, Mapping[int, int]]],
    publications: Sequence[tuple[float, int, int, Sequence[int]]] = (),
    movements: Iterable[tuple[float, int, float, float]] = (),
    users: int = 1,
    fields: int = 1,
    values: int = 9,
    horizon: float = 10.0,
) -> Workload:
    """`subscriptions` (owner, field → value); publications (time, publisher or -1, size, a value for each field)."""
    rows = np.array([row for *_, row in publications], np.int32).reshape(-1, fields)
    made = Content(conjunctions(subscriptions, fields, values), rows)
    topics, interests = route(made, users, horizon)
    world = workload([()] * users, [(time, -1, who, size) for time, who, size, _ in publications], (), movements)
    return replace(world, kind="content", horizon=horizon, topics=topics, interests=interests, content=made)


class Tabled(RendezvousTrees):
    """Rendezvous trees over routes in tables (n, n): the next hop of u towards v, and the node before v on the route from u."""

    def __init__(self, roots: NDArray[np.int32], next_hop: NDArray[np.int32], parent: NDArray[np.int32]) -> None:
        super().__init__(roots, len(next_hop))
        self._next_hop, self._parent = next_hop, parent

    def next_hops(self, target: int) -> NDArray[np.int32]:
        return self._next_hop[:, target].copy()

    def last_hops(self, source: int) -> NDArray[np.int32]:
        return self._parent[source].copy()

    def edges(self) -> NDArray[np.int32]:
        return np.argwhere(self.hops == 1).astype(np.int32)


def graph(edges: Iterable[tuple[int, int]], roots: Sequence[int]) -> RendezvousTrees:
    """Rendezvous trees over a graph without circles, nodes numbered from 0; `roots` are the topics' rendezvous nodes."""
    neighbours: dict[int, list[int]] = {}
    for a, b in edges:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    n = max(len(neighbours), 1)
    next_hop, parent = np.empty((n, n), np.int32), np.full((n, n), -1, np.int32)
    for root in range(n):
        next_hop[root, root] = root
        reached = [root]
        for node in reached:
            for other in neighbours.get(node, ()):
                if other not in reached:
                    reached.append(other)
                    parent[root, other] = node
                    next_hop[other, root] = node
    return Tabled(np.array(roots, np.int32), next_hop, parent)


class Scripted:
    """Selection by a script: `first` (one broker per user), then the brokers that `moves` has for (time, user)."""

    class Parameters(plugins.Parameters):
        pass

    exchange = None

    def __init__(
        self,
        first: Sequence[int],
        moves: Mapping[tuple[float, int], int] | Callable[[float, int, int], int] = {},  # noqa: B006
        reacts_to: Iterable[str] = ("subscription", "movement"),
    ) -> None:
        self.first, self.moves, self.reacts_to = first, moves, frozenset(reacts_to)

    def select(self, view: SelectionView) -> Selection:
        if view.current < 0:
            return Selection(self.first[view.user])
        if callable(self.moves):
            return Selection(self.moves(view.time, view.user, view.current))
        return Selection(self.moves.get((view.time, view.user), view.current))


def network(
    world: Workload,
    overlay: RendezvousTrees | PublisherTrees,
    hosts: Sequence[int] | Any,
    hop: float | Sequence[Sequence[float]] = 1.0,
    node_of: Sequence[int] | None = None,
    **setting: Any,
) -> Network:
    """A network that has not run: `hosts` is a fixed broker per user, or a policy; broker i is on node i."""
    n = overlay.nodes
    unused = deepcopy((overlay, hosts, setting))  # a run changes what it is given

    def anew(**changes: Any) -> Network:
        overlay, hosts, setting = deepcopy(unused)
        return network(world, overlay, hosts, hop, node_of, **{**setting, **changes})

    setting = {"jitter": 0.0, "horizon": world.horizon, "trace": True, "topic_delays": True, **with_stations(setting)}
    made = Network(
        NetworkSetting(
            overlay=overlay,
            node_of=np.array(range(n) if node_of is None else node_of, np.int32),
            hop_delay=np.where(np.eye(n, dtype=bool), 0.0, hop),
            policy=hosts if hasattr(hosts, "select") else Scripted(hosts),
            **setting,
        ),
        world,
        Streams(1),
    )
    made.anew = anew
    return made


def with_stations(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A network's setting in which all that says how brokers take time is put together as its stations."""
    names = {field.name: field.name for field in fields(StationSetting) if field.name != "time"}
    names |= {"service_time": "time", "matching_time": "matching"}
    given = {names[key]: value for key, value in setting.items() if key in names}
    rest = {key: value for key, value in setting.items() if key not in names}
    return {**rest, "stations": StationSetting(**given)} if given else rest


def tables(network: Network) -> dict[str, bytes]:
    """All results of a run, as bytes."""
    columns = {f"{part}/{name}": values for part, table in network.tables().items() for name, values in table.items()}
    metrics = {f"metric {name}": repr(value).encode() for name, value in network.metrics().items()}
    return metrics | {
        name: repr(list(values)).encode() if isinstance(values, (list, pa.Array)) else np.asarray(values).tobytes()
        for name, values in columns.items()
    }


def dead(spans: Sequence[tuple[float, float]], brokers: int, other: FaultSchedule | None = None) -> FaultSchedule:
    """A schedule in which the manager is dead in these spans, which may overlap, beside what else fails."""
    one = resolve_faults([DeadManager(*span) for span in spans], brokers, math.inf)
    if other is None:
        return one
    order = np.lexsort((np.concatenate([one.action, other.action]), np.concatenate([one.time, other.time])))
    names = "time", "action", "target", "other", "value"
    columns = {name: np.concatenate([getattr(one, name), getattr(other, name)])[order] for name in names}
    return FaultSchedule(**columns, sides=other.sides, drains=other.drains, joins=other.joins)


HORIZONS = (0.3, 0.6, 1.0, 100.0)
"""Of a story, as shares of the one it is given: shorter and longer than what lies between two changes."""


def run(network: Network) -> dict[str, Any]:
    """Run a story and return its metrics. Where nothing contends, both planes must give the same bytes, whenever it ends."""
    network.run()
    setting = network.setting
    if setting.stations.service == "none" and not setting.jitter and not setting.overlay.floods:
        for horizon in (setting.horizon * share for share in HORIZONS):
            one, other = (
                network.anew(plane=plane, trace=False, subscribers=True, horizon=horizon)
                for plane in ("events", "folded")
            )
            one.run()
            other.run()
            hop_by_hop, folded = tables(one), tables(other)
            assert [name for name in folded if folded[name] != hop_by_hop[name]] == [], f"by {horizon} s"
    return network.metrics()
