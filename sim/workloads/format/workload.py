"""The workload: what happens to a broker network from outside, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Self, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.naming import Raw
from sim.content.predicates import Content, carried, occurring
from sim.files.parquet import ROW_GROUP, repeated
from sim.workloads.content import tables as content_tables

DAY = 86400.0


def _counts(ids: NDArray[np.int32], of: int) -> NDArray[np.int64]:
    """How often each id below `of` occurs, in batches of rows, as numpy counts in a copy of twice the width."""
    counts = np.zeros(of, np.int64)
    for start in range(0, len(ids), ROW_GROUP):
        counts += np.bincount(ids[start : start + ROW_GROUP], minlength=of)
    return counts


def _unsaid() -> NDArray[np.int8]:
    return np.empty(0, np.int8)


def _dtypes_of(table: type) -> dict[str, np.dtype[np.generic]]:
    types = {}
    for name, hint in get_type_hints(table).items():
        kind, given = get_origin(hint), get_args(hint)
        if hasattr(kind, "__value__"):  # from numpy 2.5 on, NDArray is an alias that has to be looked into
            hint = kind.__value__[given]
            kind, given = get_origin(hint), get_args(hint)
        if kind is np.ndarray:
            types[name] = np.dtype(get_args(given[1])[0])
    return types


class ColumnTable:
    """Base of frozen dataclasses whose fields are the columns of a table: arrays of one length."""

    _dtypes = dict[str, np.dtype[np.generic]]()  # noqa: RUF012 - a hint would be that of a column

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    @property
    def columns(self) -> Columns:
        """All columns by name."""
        return dict(vars(self))

    def __init_subclass__(cls) -> None:
        # now, as a process that is sent a class by value, with this, does not know the names in its hints
        with suppress(NameError):
            cls._dtypes = _dtypes_of(cls)

    @classmethod
    def dtypes(cls) -> dict[str, np.dtype[np.generic]]:
        """The type of each column that is a numpy array."""
        return cls._dtypes

    @classmethod
    def none(cls) -> Self:
        """An empty table."""
        return cls(*(np.empty(0, dtype) for dtype in cls.dtypes().values()))

    def rows(self, which: Integers | NDArray[np.bool_] | slice) -> Self:
        """The table of these rows, in this order."""
        return type(self)(*(column[which] for column in self.columns.values()))


@dataclass(frozen=True)
class Topics(ColumnTable):
    """All topics; every array has one entry per topic, topic ids are positions.

    `event_rate` is in events per the workload's `period`; positions are in degrees, NaN where a topic has none.
    """

    names: pa.StringArray
    kinds: pa.StringArray
    event_rate: NDArray[np.float64]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    @classmethod
    def without_places(
        cls, names: pa.StringArray, kinds: pa.StringArray | str, event_rate: NDArray[np.float64]
    ) -> Topics:
        """Topics without positions, all of one kind or each with its own."""
        kinds = repeated(kinds, len(names)) if isinstance(kinds, str) else kinds
        nowhere = np.full(len(names), np.nan)
        return cls(names, kinds, event_rate, nowhere, nowhere)


FILTER_KINDS = ("mqtt-filter", "nats-filter")
"""The kinds of topics that are filters, behind all others; who subscribes to one does to the topics that it matches."""


def first_filter(topics: Topics) -> int:
    """The number of topics that are not filters, which come first."""
    for place, kind in enumerate(topics.kinds.dictionary_encode().dictionary.to_pylist()):
        if kind in FILTER_KINDS:
            codes = topics.kinds.dictionary_encode().indices.to_numpy()
            return int(np.flatnonzero(codes == place)[0])
    return len(topics)


@dataclass(frozen=True)
class Users(ColumnTable):
    """All users; positions are homes in degrees, NaN where unknown."""

    names: pa.StringArray
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    @classmethod
    def without_places(cls, names: pa.StringArray) -> Users:
        """Users without known homes."""
        nowhere = np.full(len(names), np.nan)
        return cls(names, nowhere, nowhere)


@dataclass(frozen=True)
class Interests:
    """The interests at time 0, as CSR: user u wants `indices[indptr[u]:indptr[u + 1]]`, ascending."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indices)

    def per_topic(self, topics: int) -> NDArray[np.int64]:
        """The number of users that want each topic (topics)."""
        return _counts(self.indices, topics)


@dataclass(frozen=True)
class SubscriptionEvents(ColumnTable):
    """Changes of interest, sorted by time (s): action +1 subscribes, -1 unsubscribes."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    action: NDArray[np.int8]


@dataclass(frozen=True)
class Publications(ColumnTable):
    """Publications, sorted by time (s): publisher is a user, or -1 when it comes from outside; size in bytes.

    The topic is -1 for content, which has values instead. `retain` is 1 where the network retains the publication, or forgets the
    one that it retains if this has no bytes; `qos` is its quality of service, -1 where that is not known. Both may be left out.
    """

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    size: NDArray[np.int32]
    retain: NDArray[np.int8] = field(default_factory=_unsaid)
    qos: NDArray[np.int8] = field(default_factory=_unsaid)

    def __post_init__(self) -> None:
        for name, value in OPTIONAL_COLUMNS["publications"].items():
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, np.broadcast_to(np.int8(value), len(self.time)))

    def per_topic(self, topics: int, rows: slice = slice(None)) -> NDArray[np.int64]:
        """The number of publications on each topic (topics); not for content, see `Workload.published`."""
        return _counts(self.topic[rows], topics)


@dataclass(frozen=True)
class Movements(ColumnTable):
    """Movements of users, sorted by time (s), positions in degrees; empty where users do not move."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


@dataclass(frozen=True)
class Sessions(ColumnTable):
    """When users were connected, sorted by `start` (s); a session that is open at the horizon ends there.

    They are for the record: sessions affect a simulated network only through the subscription events that they cause.
    """

    user: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


NO_SESSION, SESSION_RESUMED, SESSION_OVER = range(3)
"""What becomes of a session: there is none; the user resumes it; it is over before the user returns."""


@dataclass(frozen=True)
class Absences(ColumnTable):
    """When users were not connected while subscribed, sorted by `start` (s); one that lasts until the horizon ends there.

    Messages for the user wait in its session, if it has any, which `session` tells (NO_SESSION, SESSION_RESUMED, or SESSION_OVER at
    `end`). An absence of no duration is a takeover: the user connects again while connected. Those of one user do not overlap.
    """

    user: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    session: NDArray[np.int8]


@dataclass(frozen=True)
class RetainedRequests(ColumnTable):
    """When users asked for the retained message of a topic, by subscribing, sorted by time (s)."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]


@dataclass(frozen=True)
class Deliveries(ColumnTable):
    """The deliveries recorded in a trace, sorted by time (s); publisher is a user, or -1 where the trace has none.

    They do not affect simulations, whose own deliveries can be compared with them.
    """

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    subscriber: NDArray[np.int32]


@dataclass(frozen=True)
class Shares(ColumnTable):
    """Which subscriptions are shared, sorted by topic, then by user: a user subscribes to such a topic only as one of a group.

    Of those of a group who subscribe, one gets each publication (`sim.policies.sharing`).
    """

    topic: NDArray[np.int32]
    user: NDArray[np.int32]
    group: NDArray[np.int32]


@dataclass(frozen=True)
class Qualities(ColumnTable):
    """From when (s) on users' subscriptions to topics have a quality of service (0, 1 or 2), sorted by time; where it is known."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    qos: NDArray[np.int8]


EVENT_TABLES: dict[str, type[ColumnTable]] = {
    "subscription_events": SubscriptionEvents,
    "publications": Publications,
    "movements": Movements,
    "sessions": Sessions,
    "deliveries": Deliveries,
    "absences": Absences,
    "retained_requests": RetainedRequests,
    "shares": Shares,
    "qualities": Qualities,
}
"""The tables of a workload's events and of what is shared, in the order in which they are written and checked."""
LARGE_TABLES = ("interests", *EVENT_TABLES)
"""The tables that may have been written in parts before the others."""
OPTIONAL_TABLES = ("movements", "sessions", "deliveries", "absences", "retained_requests", "shares", "qualities")
"""Tables that are left out where they are empty."""
OPTIONAL_COLUMNS: dict[str, dict[str, int]] = {"publications": {"retain": 0, "qos": -1}}
"""Columns of tables that are left out where they have these values everywhere."""


@dataclass(frozen=True)
class Workload:
    """Everything that drives one run. Times are seconds from `origin` (UTC, ISO 8601); `horizon` and `period` are seconds.

    `cell` is the side of a grid cell in degrees where topics are cells, else None. `rows` counts what became of a trace's rows:
    `{"read": n, "kept": n, "quarantined": {reason: n}}`; `lineage` says what tables were made of, and how. `unmatched`, which is not
    written, counts a log's subscriptions that match nothing published, by filter, or publications that nobody follows, by topic. `hash`
    identifies the files it was loaded from, "" in memory. `content`: the users' subscriptions and publications by values; the topics
    are then all predicates (`sim.workloads.content.routing`).
    """

    kind: str
    horizon: float
    topics: Topics
    users: Users
    interests: Interests
    subscription_events: SubscriptionEvents
    publications: Publications
    movements: Movements = field(default_factory=Movements.none)
    sessions: Sessions = field(default_factory=Sessions.none)
    deliveries: Deliveries = field(default_factory=Deliveries.none)
    absences: Absences = field(default_factory=Absences.none)
    retained_requests: RetainedRequests = field(default_factory=RetainedRequests.none)
    shares: Shares = field(default_factory=Shares.none)
    qualities: Qualities = field(default_factory=Qualities.none)
    content: Content | None = None
    period: float = DAY
    origin: str = "1970-01-01T00:00:00Z"
    cell: float | None = None
    generator: Raw = field(default_factory=dict)
    seed: int | None = None
    sources: tuple[Raw, ...] = ()
    rows: Raw | None = None
    lineage: Raw = field(default_factory=dict)
    unmatched: Mapping[str, int] = field(default_factory=dict)
    hash: str = ""

    @property
    def about(self) -> Raw:
        """The description in manifests."""
        return {
            "kind": self.kind,
            "origin": self.origin,
            "horizon": self.horizon,
            "period": self.period,
            "cell": self.cell,
            "counts": self.counts,
            "sources": [dict(source) for source in self.sources],
            "generator": dict(self.generator),
            "seed": self.seed,
            "rows": None if self.rows is None else dict(self.rows),
            **({"lineage": dict(self.lineage)} if self.lineage else {}),
        }

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of each table; of the newer ones only if any. For content: subscriptions, fields, values."""
        return {
            "users": len(self.users),
            "topics": len(self.topics),
            **({"filters": filters} if (filters := len(self.topics) - first_filter(self.topics)) else {}),
            "interests": len(self.interests),
            "subscription_events": len(self.subscription_events),
            "publications": len(self.publications),
            "movements": len(self.movements),
            **{name: len(table) for name in OPTIONAL_TABLES[1:] if len(table := getattr(self, name))},
            **({} if self.content is None else content_tables.counts(self.content)),
        }

    def on_topic(self, topic: int) -> NDArray[np.bool_]:
        """The mask of publications on the topic; for content, of those that carry the predicate."""
        if self.content is not None:
            return occurring(self.content).carriers(topic, self.content.values)
        on_it: NDArray[np.bool_] = self.publications.topic == topic
        return on_it

    def published(self, start: float = 0.0, end: float = np.inf) -> NDArray[np.int64]:
        """The number of publications on each topic from one time to another; for content, of those that carry each predicate."""
        rows = slice(*np.searchsorted(self.publications.time, (start, end)).tolist())
        if self.content is not None:
            return carried(replace(self.content, values=self.content.values[rows]), occurring(self.content))
        return self.publications.per_topic(len(self.topics), rows)
