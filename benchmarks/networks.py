"""Networks and workloads that the benchmarks run."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim import plugins
from sim.base.randomness import Streams
from sim.brokers.fabric.stations import NO_TIME, StationSetting
from sim.brokers.network import Network, NetworkSetting
from sim.overlay.chord import Chord
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.policies.views import Exchange, Selection, SelectionView
from sim.workloads.faults.schedule import FaultSchedule
from sim.workloads.format.workload import Interests, Publications, SubscriptionEvents, Topics, Users, Workload


class Assigned:
    """A selection policy with given brokers of users."""

    class Parameters(plugins.Parameters):
        pass

    reacts_to: frozenset[str] = frozenset()
    exchange: Exchange | None = None

    def __init__(self, brokers: NDArray[np.int64]) -> None:
        self._brokers = brokers.tolist()

    def select(self, view: SelectionView) -> Selection:
        return Selection(self._brokers[view.user])


def still_workload(
    interests: Interests, topics: int, horizon: float, times: NDArray[Any], of: NDArray[Any], by: NDArray[Any]
) -> Workload:
    """A workload without changes; publications at `times` (s) on topics `of` by users `by`."""
    users = len(interests.indptr) - 1
    nowhere = np.full(topics, np.nan)
    return Workload(
        kind="benchmark",
        horizon=horizon,
        topics=Topics(
            pa.array(map(str, range(topics)), pa.string()),
            pa.array(["topic"] * topics),
            np.ones(topics),
            nowhere,
            nowhere,
        ),
        users=Users(pa.array(map(str, range(users)), pa.string()), np.full(users, np.nan), np.full(users, np.nan)),
        interests=interests,
        subscription_events=SubscriptionEvents.none(),
        publications=Publications(
            times.astype(float), of.astype(np.int32), by.astype(np.int32), np.full(len(times), 100, np.int32)
        ),
    )


def network_of(
    overlay: Chord | FullMesh,
    workload: Workload,
    host: NDArray[np.int64],
    hop_delay: NDArray[np.float64],
    **setting: Any,
) -> Network:
    """A network in which node i is broker i, `host` has each user's broker, and `setting` the values that are not defaults."""
    made = NetworkSetting(
        overlay=overlay,
        node_of=np.arange(overlay.nodes, dtype=np.int32),
        hop_delay=hop_delay,
        jitter=0.0,
        policy=Assigned(host),
        horizon=workload.horizon,
        **setting,
    )
    return Network(made, workload, Streams(1))


Plane = Literal["events", "compiled", "folded"]


def relay(
    brokers: int,
    hops: int,
    publications: int,
    plane: Plane = "events",
    service: float = 0.0,
    faults: FaultSchedule | None = None,
) -> Network:
    """Every publication travels `hops` hops from its root, where it is published, to the topic's one subscriber.

    Brokers take a mean of `service` seconds for a message, exponential, or no time; and may fail.
    """
    topics = 50
    overlay = Chord(Chord.Parameters(), GeometrySetting(brokers, topics, 1))
    roots = np.array(overlay.roots)
    far = np.array([int(np.flatnonzero(overlay.hops[root] == hops)[0]) for root in roots])
    number = np.arange(publications)
    workload = still_workload(
        Interests(np.minimum(np.arange(2 * topics + 1), topics), np.arange(topics, dtype=np.int32)),
        topics,
        publications + 10.0 * hops,
        number,
        number % topics,
        topics + number % topics,
    )
    return network_of(
        overlay,
        workload,
        np.concatenate([far, roots]),
        np.full((brokers, brokers), 0.5),
        stations=StationSetting("exponential", service) if service else NO_TIME,
        plane=plane,
        faults=faults,
    )


def loaded(brokers: int, topics: int, wanting: int, publications: int, faults: FaultSchedule | None = None) -> Network:
    """Brokers that take time, on a Chord ring; a number of them want each topic, and publications come from any broker.

    There is one publication per second; brokers may fail.
    """
    random = np.random.default_rng(1)
    drawn = [random.choice(brokers, wanting, replace=False) for _ in range(topics)]
    who, what = np.concatenate(drawn), np.repeat(np.arange(topics, dtype=np.int32), wanting)
    order = np.lexsort((what, who))
    overlay = Chord(Chord.Parameters(), GeometrySetting(brokers, topics, 1))
    busiest = float(np.bincount(overlay.roots, minlength=brokers).max()) / topics  # share of publications of a root
    horizon = float(publications)
    workload = still_workload(
        Interests(np.searchsorted(who[order], np.arange(brokers + 1)), what[order]),
        topics,
        horizon,
        np.sort(random.uniform(0, 0.95 * publications, publications)),
        random.integers(0, topics, publications),
        random.integers(0, brokers, publications),
    )
    return network_of(
        overlay,
        workload,
        np.arange(brokers),
        np.full((brokers, brokers), 0.05),
        stations=StationSetting("exponential", 0.25 / max(busiest, wanting / brokers)),
        plane="compiled",
        faults=faults,
    )


def broadcast(brokers: int, publications: int, plane: Plane) -> Network:
    """Every publication goes to all brokers, each of which has one subscriber, down Chord trees with hops of any length."""
    topics = 50
    random = np.random.default_rng(1)
    workload = still_workload(
        Interests(np.arange(brokers + 1) * topics, np.tile(np.arange(topics, dtype=np.int32), brokers)),
        topics,
        publications + 60.0,
        np.sort(random.uniform(0, publications, publications)),
        random.integers(0, topics, publications),
        random.integers(0, brokers, publications),
    )
    return network_of(
        Chord(Chord.Parameters(), GeometrySetting(brokers, topics, 1)),
        workload,
        np.arange(brokers),
        random.uniform(0.001, 0.2, (brokers, brokers)),
        plane=plane,
    )


def single_server(backlog: int, publications: int, plane: Plane = "events") -> Network:
    """One broker that takes 1 s for a message, gets one every second, and has `backlog` more before it from the start."""
    times = np.concatenate([np.zeros(backlog), np.arange(publications)])
    horizon = float(publications)
    workload = still_workload(
        Interests(np.array([0, 1]), np.zeros(1, np.int32)), 1, horizon, times, times * 0, times * 0
    )
    return network_of(
        Chord(Chord.Parameters(), GeometrySetting(1, 1, 1)),
        workload,
        np.zeros(1, np.int64),
        np.zeros((1, 1)),
        window=horizon,
        stations=StationSetting("deterministic", 1.0),
        plane=plane,
    )


def crowd(users: int, per_user: int, topics: int, publications: int = 1000, horizon: float = 3600.0) -> Workload:
    """Users with `per_user` interests each, spread evenly, who publish at any time up to the horizon (s)."""
    random = np.random.default_rng(1)
    width = topics // per_user
    drawn = random.integers(0, width, (users, per_user), dtype=np.int32) + np.arange(per_user, dtype=np.int32) * width
    return still_workload(
        Interests(np.arange(users + 1, dtype=np.int64) * per_user, drawn.ravel()),
        topics,
        horizon,
        np.sort(random.uniform(0, horizon, publications)),
        random.integers(0, topics, publications),
        random.integers(0, users, publications),
    )
