"""The cases that plug-ins are checked on: small networks, problems and seeds, drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

# Any: fields of problems, which vary from case to case.
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import frozen
from sim.base.naming import Raw
from sim.base.randomness import Streams
from sim.metrics import OURS
from sim.overlay.chord import chord_routes
from sim.overlay.cuts import Cuts, no_cuts
from sim.overlay.geometry import GeometrySetting
from sim.overlay.healing import Healing
from sim.overlay.latency import LatencySetting
from sim.overlay.sites import Sites
from sim.own_metrics import Tables
from sim.plugins import Found
from sim.policies.offloading import problem as offloading
from sim.policies.reconfiguration.problem import ReconfigurationProblem
from sim.policies.sharing.view import SharingSetting, SharingView
from sim.policies.views import BrokerStates, SelectionSetting, SelectionView, SelectionViews
from sim.workloads.faults.fault import FaultSetting

_USERS, _TOPICS = 60, 30
_CHANGES = 40
_EACH = (
    "time",
    "user",
    "current",
    "latitude",
    "longitude",
    "own_topics",
    "own_load",
    "own_users",
    "total_load",
)
"""The fields of which each view has one number."""


class Call(NamedTuple):
    """A call of a plug-in's method; `name` identifies it in messages."""

    member: str
    arguments: tuple[Found, ...] = ()
    name: str = ""

    def at(self, place: str) -> str:
        """Append the call's name to a case's, which is in parentheses."""
        return f"{place[:-1]}: {self.name})" if self.name else place


Calls = Sequence[Call] | Callable[[Found], Generator[Call, Found, None]]
"""Calls whose results do not depend on their order, or a generator of calls for a plug-in, which is sent each result (or None)."""


class Case(NamedTuple):
    """A plug-in's constructor arguments besides its parameters, and the calls to make."""

    arguments: tuple[Found, ...] = ()
    calls: Calls = ()


def latency_cases(seed: int) -> dict[str, Case]:
    """Brokers with and without places and regions, which are all that a latency model sees."""
    rng = np.random.default_rng(seed)
    return {name: Case((LatencySetting(sites, _key(rng)),)) for name, sites in _sites(rng).items()}


def _sites(rng: np.random.Generator) -> dict[str, Sites]:
    def sites(brokers: int, placed: bool, **more: Any) -> Sites:
        nowhere = np.full(brokers, np.nan)
        latitude, longitude = (rng.uniform(-most, most, brokers) if placed else nowhere for most in (60, 180))
        return Sites(tuple(map(str, range(brokers))), frozen(latitude), frozen(longitude), **more)

    capacity = frozen(rng.choice([1.0, 2.0], 8))
    return {
        "brokers with places": sites(9, True),
        "brokers without places": sites(7, False),
        "brokers with places and regions": sites(8, True, regions=("eu", "us") * 4, capacity=capacity),
        "two brokers": sites(2, True),
        "a single broker": sites(1, False),
    }


def geometry_cases(seed: int) -> dict[str, Case]:
    """Nodes that join and leave, and publish in between, on brokers with and without places."""
    rng = np.random.default_rng(seed)
    cases = {}
    for name, sites in _sites(rng).items():
        topics, nodes = 4, len(sites)
        places = rng.uniform(-60, 60, (topics, 2)) if sites.have_places else np.full((topics, 2), np.nan)
        times = rng.uniform(0.01, 0.3, (nodes, nodes))
        np.fill_diagonal(times := times + times.T, 0.0)
        setting = GeometrySetting(nodes, topics, _key(rng), sites, frozen(times), frozen(places))
        cases[name] = Case((setting,), partial(_joining, setting, _key(rng)))
    return cases


def _joining(setting: GeometrySetting, seed: int, geometry: Found) -> Generator[Call, Found, None]:
    """Nodes that join and leave at random, and crash where the geometry heals; after each change links follow, and a node publishes."""
    rng = np.random.default_rng(seed)
    joined = np.zeros((setting.topics, setting.nodes), np.bool_)
    live = np.arange(setting.nodes)
    for change in range(_CHANGES):
        if change % 10 == 5:
            down = rng.random(setting.nodes) < 0.3
            yield Call("maintenance", (frozen(down),))
            cuts = Cuts(frozen((rng.random(setting.nodes) < 0.2).astype(np.int64)), np.empty(0, np.int64))
            cuts = cuts if rng.random() < 0.3 else no_cuts(setting.nodes)
            repair = yield Call("heal", (frozen(down), frozen(down & (rng.random(setting.nodes) < 0.5)), cuts))
            if repair is None and isinstance(geometry, Healing):
                return  # it broke a promise, and nobody knows who is on which tree
            if repair is not None and not repair.around.all():
                joined[:, repair.around] = False
                live = np.flatnonzero(~repair.around)
        topic, node, source = int(rng.integers(setting.topics)), int(rng.choice(live)), int(rng.choice(live))
        yield Call("control_hops", (topic, node))
        yield Call("control_requests", (topic, node))
        if geometry.single_root:
            yield Call("control_path", (topic, node))
        yield Call("leave" if joined[topic, node] else "join", (topic, node))
        joined[topic, node] ^= True
        yield Call("adjust")
        yield Call("edges")
        path = yield Call("uplink", (topic, source))
        if path is not None:
            yield Call("tree", (topic, int(path[-1])))
        yield Call("topic_diameters")
        yield Call("tree_state")


def workload_cases(seed: int) -> dict[str, Case]:
    """Two seeds."""
    seeds = {str(seed): Streams(seed), f"{seed + 1}, replication 1": Streams(seed + 1, 1)}
    return {"seed": Case((), [Call("generate", (streams,), name) for name, streams in seeds.items()])}


def fault_cases(seed: int) -> dict[str, Case]:
    """Networks with and without regions, two streams each."""
    rng = np.random.default_rng(seed)
    settings = [
        FaultSetting(sites.names, sites.regions, 3600.0, _key(rng)) for sites in _sites(rng).values() for _ in range(2)
    ]
    names = [f"{name}, stream {stream}" for name in _sites(rng) for stream in (1, 2)]
    return {"networks": Case((), [Call("faults", (one,), name) for one, name in zip(settings, names, strict=True)])}


def selection_cases(seed: int) -> dict[str, Case]:
    """Users who join, stay and have moved, on brokers that are cells, have places, or have none."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(rng.choice(100, 12, replace=False), 10)
    nowhere = np.full(7, np.nan)

    def case(latitude: NDArray[np.float64], longitude: NDArray[np.float64], cell: float | None) -> Case:
        key, capacity = _key(rng), frozen(rng.choice([1.0, 2.0], len(latitude)))
        setting = SelectionSetting(_USERS, frozen(latitude), frozen(longitude), cell, key, capacity)
        views = _views(setting, seed)
        calls = [Call("select", (view,), f"user {view.user} at broker {view.current}") for view in views]
        together = [[view for view in views if (view.current < 0) == joins] for joins in (True, False)]
        return Case((setting,), [*calls, *(Call("select_all", (_all(some),), "many users") for some in together)])

    return {
        "brokers that are cells": case(40 + rows + 0.5, -80 + columns + 0.5, 1.0),
        "brokers with places": case(rng.uniform(-60, 60, 9), rng.uniform(-180, 180, 9), None),
        "brokers without places": case(nowhere, nowhere, None),
        "a single broker": case(np.array([48.5]), np.array([2.5]), None),
    }


def _views(setting: SelectionSetting, seed: int) -> list[SelectionView]:
    """Each user once as it joins and once at a broker; the states exchanged are from before every third user moved."""
    rng = np.random.default_rng(seed)
    wants = rng.random((_USERS, _TOPICS)) < 0.15
    wants[0] = False  # a user who wants nothing
    before = rng.integers(0, setting.brokers, _USERS)
    now = np.where(np.arange(_USERS) % 3 == 0, rng.integers(0, setting.brokers, _USERS), before)
    hosted = [wants[before == broker].sum(axis=0) for broker in range(setting.brokers)]
    states = BrokerStates(
        frozen(np.stack(hosted, axis=1).astype(np.int32)),
        frozen(np.array([np.count_nonzero(counts) for counts in hosted])),
        frozen(np.array([counts.sum() for counts in hosted])),
        frozen(np.bincount(before, minlength=setting.brokers)),
    )
    views = []
    for user in range(_USERS):
        topics = np.flatnonzero(wants[user]).astype(np.int32)
        near = int(rng.integers(setting.brokers))
        place = setting.latitude[near] + rng.normal(), setting.longitude[near] + rng.normal()
        for current in (-1, int(now[user])):
            others = (now == current) & (np.arange(_USERS) != user)
            counts = wants[others].sum(axis=0)
            views.append(
                SelectionView(
                    time=float(user),
                    user=user,
                    current=current,
                    topics=frozen(topics),
                    latitude=float(place[0]),
                    longitude=float(place[1]),
                    exchanged=states,
                    own_wanted=frozen(counts[topics].astype(np.int32)),
                    own_topics=int(np.count_nonzero(counts)),
                    own_load=int(counts.sum()),
                    own_users=int(others.sum()),
                    total_load=int(wants.sum()),
                )
            )
    return views


def _all(views: Sequence[SelectionView]) -> SelectionViews:
    """The same views as arrays."""
    each: Raw = {name: np.array([getattr(view, name) for view in views]) for name in _EACH}
    each |= {name: each[name].astype(np.int32) for name in ("user", "current")}
    each |= {name: np.concatenate([getattr(view, name) for view in views]) for name in ("topics", "own_wanted")}
    each["indptr"] = np.cumsum([0, *(len(view.topics) for view in views)])
    return SelectionViews(**{name: frozen(array) for name, array in each.items()}, exchanged=views[0].exchanged)


def sharing_cases(seed: int) -> dict[str, Case]:
    """Groups of one and of several members, at a few brokers, before and after one has left."""
    rng = np.random.default_rng(seed)
    setting, calls = SharingSetting(_USERS, 5, _key(rng)), []
    for turn in range(_CHANGES):
        members = np.sort(rng.choice(_USERS, int(rng.choice([1, 2, 5, 12])), replace=False))
        view = SharingView(
            time=float(turn),
            publication=int(rng.integers(1000)),
            topic=int(rng.integers(_TOPICS)),
            publisher=int(rng.integers(-1, _USERS)),
            origin=int(rng.integers(5)),
            group=int(rng.integers(3)),
            members=frozen(members),
            hosts=frozen(rng.integers(0, 5, len(members)).astype(np.int32)),
            load=frozen(rng.integers(0, 4, len(members))),
            turn=turn,
            last=int(rng.choice([-1, members[0], members[-1], rng.integers(_USERS)])),
        )
        calls.append(Call("choose", (view,), f"{len(members)} members"))
    return {"groups": Case((setting,), calls)}


def reconfiguration_cases(seed: int) -> dict[str, Case]:
    """Problems with delay in hops and in round-trip times."""
    rng = np.random.default_rng(seed)

    def problem(n: int, topics: int, **more: Any) -> ReconfigurationProblem:
        ids, hashes = np.sort(rng.choice(1 << 16, n, replace=False)), rng.integers(0, 1 << 16, topics)
        routes = chord_routes(ids, hashes, bits=16)
        given: Raw = {
            "parent": routes.parent,
            "hops": routes.hops,
            "roots": routes.roots,
            "wanted": rng.random((topics, n)) < 0.3,
            "publications": rng.integers(0, 40, topics),
            "node_of": rng.permutation(n).astype(np.int32),
            "key": _key(rng),
            **more,
        }
        for value in given.values():
            if isinstance(value, np.ndarray):
                frozen(value)
        return ReconfigurationProblem(**given)

    times = rng.uniform(0.01, 0.3, (9, 9))
    problems = {
        "delay in hops": problem(10, 8),
        "delay by round-trip times": problem(9, 7, round_trips=times + times.T, publications=rng.uniform(0, 9, 7)),
        "overhead alone": problem(8, 6, delay_weight=0.0, count_rendezvous=True, constants=None),
        "nothing published": problem(7, 5, publications=np.zeros(5, np.int64)),
        "no topics": problem(5, 0),
        "a single broker": problem(1, 3),
    }
    return {"problem": Case((), [Call("reconfigure", (problem,), name) for name, problem in problems.items()])}


def offloading_cases(seed: int) -> dict[str, Case]:
    """Problems of all kinds, with and without a previous decision."""
    rng = np.random.default_rng(seed)

    def problem(n: int, topics: int, share: float, rates: Found = None, **more: Any) -> offloading.OffloadingProblem:
        wants = rng.random((n, topics)) < 0.3
        indptr = np.append(0, wants.sum(axis=1).cumsum())
        rates = rng.integers(0, 20, topics) if rates is None else rates
        cost = more.get("cost", rates * wants.sum(axis=0))
        given: Raw = {
            "tau": 15,
            "key": _key(rng),
            "cost": frozen(cost.astype(np.float64)),
            **more,
        }
        indices = np.nonzero(wants)[1].astype(np.int32)
        return offloading.OffloadingProblem.of(
            frozen(indptr), frozen(indices), frozen(rates), share * float(cost.sum()), **given
        )

    once = problem(20, 12, 0.3)
    before = frozen(np.arange(12, dtype=np.int32)[::-1])
    problems = {
        "one threshold": (once, None),
        "a threshold for each": (problem(15, 10, 0.2, tau=rng.integers(0, 40, 15)), None),
        "rates that are not whole numbers": (problem(15, 10, 0.4, rng.lognormal(1, 1, 10)), None),
        "costs of any kind": (problem(12, 9, 0.5, cost=rng.uniform(0, 5, 9)), None),
        "no capacity": (problem(6, 5, 0.0), None),
        "room for all": (problem(6, 5, 1.0), None),
        "no subscribers": (problem(0, 4, 0.5), None),
        "no topics": (problem(3, 0, 0.5), None),
        "less capacity than the previous decision had": (
            once.with_capacity(once.capacity / 2),
            offloading.Decision(frozen(np.arange(6, dtype=np.int32))),
        ),
        "all is new": (problem(20, 12, 0.3), offloading.Decision(before)),
    }
    return {"problem": Case((), [Call("decide", given, name) for name, given in problems.items()])}


def metric_cases(seed: int) -> dict[str, Case]:
    """Tables of a run, and of a run without publications."""
    rng = np.random.default_rng(seed)
    runs = {"a run": Tables(_tables(rng, 40)), "a run without publications": Tables(_tables(rng, 0))}
    return {"tables": Case((), [Call("compute", (tables,), name) for name, tables in runs.items()])}


def _tables(rng: np.random.Generator, publications: int) -> dict[str, Raw]:
    """The tables that every run has, for 6 windows and 5 brokers, with random counts up to `publications`."""
    windows, brokers, rows = np.arange(6), np.arange(5), 20 if publications else 0
    counted = dict.fromkeys(part for metric in OURS.values() for part in metric.parts)

    def counts(size: int) -> NDArray[np.int64]:
        return rng.integers(0, publications + 1, size)

    window = np.sort(rng.integers(0, 6, rows))
    lower = np.round(rng.exponential(1.0, rows), 3)
    series = {"window": windows, "start": 60.0 * windows, "end": 60.0 * windows + 60, "warm_up": windows < 2}
    at = {"latitude": np.full(5, np.nan), "longitude": np.full(5, np.nan)}
    received = {name: counts(5) for name in ("received", "sent", "delivered", "relayed")}
    return {
        "timeseries": series | {name: counts(6) for name in counted},
        "brokers": {"broker": brokers, "node": brokers[::-1], "subscriptions": counts(5) / 2, **received, **at},
        "links": {"source": brokers, "destination": np.roll(brokers, 1), "messages": counts(5), "bytes": counts(5)},
        "delays": {
            "window": window,
            "lower": lower,
            "upper": 1.01 * lower,
            "brokers": counts(rows),
            "users": counts(rows),
        },
        "decisions/selection": {"time": np.zeros(5), "user": brokers, "from": np.full(5, -1), "broker": brokers},
        "decisions/configuration": {
            "time": np.zeros(5),
            "broker": brokers,
            "from": np.full(5, -1),
            "node": brokers[::-1],
        },
    }


def _key(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


CASES: dict[str, Callable[[int], dict[str, Case]]] = {
    "geometry": geometry_cases,
    "latency": latency_cases,
    "selection": selection_cases,
    "sharing": sharing_cases,
    "reconfiguration": reconfiguration_cases,
    "offloading": offloading_cases,
    "workload": workload_cases,
    "faults": fault_cases,
    "metric": metric_cases,
}
"""The functions from a seed to the cases of each group of plug-ins."""
