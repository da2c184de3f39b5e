"""The workload format: what happens to a broker network from outside, in memory as arrays and on disk as a directory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.content.predicates import Content, carried, occurring
from sim.files.atomic import check_name
from sim.files.parquet import ROW_GROUP, Columns, read_columns, write_columns, write_tables
from sim.workloads.content import tables as content_tables
from sim.workloads.content.json_lines import PUBLICATIONS_FILE, SUBSCRIPTIONS
from sim.workloads.format.checks import Checks
from sim.workloads.format.demand import read_interests
from sim.workloads.format.manifest import read_manifest, verify_files, write_manifest

DAY = 86400.0
MOST_EVENTS = 1e9  # of a synthetic workload: as many fill the memory of most machines
INTERESTS_PER_PART = 5_000_000

_POSITION = {"latitude": pa.float64(), "longitude": pa.float64()}
_NAMED = {"name": pa.string(), "kind": pa.string(), "event_rate": pa.float64()}
_CHANGE = {"time": pa.float64(), "user": pa.int32()}
_TYPES = {
    "topics": {"topic": pa.int32(), **_NAMED, **_POSITION},
    "users": {"user": pa.int32(), "name": pa.string(), **_POSITION},
    "interests": {"user": pa.int32(), "topic": pa.int32()},
    "subscription_events": {**_CHANGE, "topic": pa.int32(), "action": pa.int8()},
    "publications": {"time": pa.float64(), "topic": pa.int32(), "publisher": pa.int32(), "size": pa.int32()},
    "movements": {**_CHANGE, **_POSITION},
    "sessions": {"user": pa.int32(), "start": pa.float64(), "end": pa.float64()},
    "deliveries": {"time": pa.float64(), "topic": pa.int32(), "publisher": pa.int32(), "subscriber": pa.int32()},
    **content_tables.CONTENT_TYPES,
}
_OPTIONAL = ("movements", "sessions", "deliveries")  # tables that are left out where they are empty
_ENTRIES = {"manifest.json", ".manifest.json", "interests", "quarantine", SUBSCRIPTIONS, PUBLICATIONS_FILE} | {
    f"{name}.parquet" for name in _TYPES
}
_PART = re.compile(r"part-\d{5,}\.parquet")  # of those entries that are folders


def _counts(ids: NDArray[np.int32], of: int) -> NDArray[np.int64]:
    """How often each id below `of` occurs, some rows at a time: numpy counts in a copy, twice as wide."""
    counts = np.zeros(of, np.int64)
    for start in range(0, len(ids), ROW_GROUP):
        counts += np.bincount(ids[start : start + ROW_GROUP], minlength=of)
    return counts


@dataclass(frozen=True)
class Topics:
    """All topics; every array has one entry per topic, topic ids are positions.

    `event_rate` is in events per the workload's `period`; positions are degrees, NaN where a topic has no place.
    """

    names: pa.StringArray
    kinds: pa.StringArray
    event_rate: NDArray[np.float64]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.event_rate)


@dataclass(frozen=True)
class Users:
    """All users; positions are homes in degrees, NaN where unknown."""

    names: pa.StringArray
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.latitude)


@dataclass(frozen=True)
class Interests:
    """Who wants what at time 0, as CSR: user u wants `indices[indptr[u]:indptr[u + 1]]`, ascending."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    def per_topic(self, topics: int) -> NDArray[np.int64]:
        """How many users want each of the topics."""
        return _counts(self.indices, topics)


@dataclass(frozen=True)
class SubscriptionEvents:
    """Changes of interest, sorted by time (s): action +1 subscribes, -1 unsubscribes."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    action: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def none(cls) -> SubscriptionEvents:
        return cls(np.empty(0), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8))


@dataclass(frozen=True)
class Publications:
    """Publications, sorted by time (s): publisher is a user, or -1 when it comes from outside; size in bytes.

    Content goes by its values: the topic is -1.
    """

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    size: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def none(cls) -> Publications:
        return cls(np.empty(0), *(np.empty(0, np.int32) for _ in range(3)))

    def per_topic(self, topics: int, rows: slice = slice(None)) -> NDArray[np.int64]:
        """How many there are on each of the topics; not of content, see `Workload.published`."""
        return _counts(self.topic[rows], topics)


@dataclass(frozen=True)
class Movements:
    """Changes of place, sorted by time (s), in degrees; empty where users do not move."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def none(cls) -> Movements:
        return cls(np.empty(0), np.empty(0, np.int32), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Sessions:
    """When users were connected, sorted by `start` (s); a session that is open at the horizon ends there.

    They are a record: a session does nothing to a simulated network but by the subscription events that it brings.
    """

    user: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.user)

    @classmethod
    def none(cls) -> Sessions:
        return cls(np.empty(0, np.int32), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Deliveries:
    """What a trace says was delivered to whom, sorted by time (s); publisher is a user, or -1 where the trace names none.

    No simulation sees them: they are what its own deliveries can be compared with.
    """

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    subscriber: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def none(cls) -> Deliveries:
        return cls(np.empty(0), *(np.empty(0, np.int32) for _ in range(3)))


@dataclass(frozen=True)
class Workload:
    """Everything that drives one run. Times are seconds from `origin` (UTC, ISO 8601); `horizon` and `period` are seconds.

    `cell` is the side of a grid cell in degrees where topics are cells, else None. `rows` tells what became of a trace's rows:
    `{"read": n, "kept": n, "quarantined": {reason: n}}`; `unmatched`, which is not written, how many subscriptions of a log match
    nothing that is published, by what they are to. `hash` identifies the files it was loaded from, "" in memory.
    `content`: what users subscribe to and publish by values; the topics are then all predicates (`sim.workloads.content.routing`).
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
    content: Content | None = None
    period: float = DAY
    origin: str = "1970-01-01T00:00:00Z"
    cell: float | None = None
    generator: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    sources: tuple[Mapping[str, Any], ...] = ()
    rows: Mapping[str, Any] | None = None
    unmatched: Mapping[str, int] = field(default_factory=dict)
    hash: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each table; no sessions and no deliveries are not counted. Of content: subscriptions, fields and values."""
        return {
            "users": len(self.users),
            "topics": len(self.topics),
            "interests": len(self.interests.indices),
            "subscription_events": len(self.subscription_events),
            "publications": len(self.publications),
            "movements": len(self.movements),
            **({"sessions": len(self.sessions)} if len(self.sessions) else {}),
            **({"deliveries": len(self.deliveries)} if len(self.deliveries) else {}),
            **({} if self.content is None else content_tables.counts(self.content)),
        }

    def on_topic(self, topic: int) -> NDArray[np.bool_]:
        """Which publications are on the topic; of content, which carry the predicate."""
        if self.content is not None:
            return occurring(self.content).carriers(topic, self.content.values)
        on_it: NDArray[np.bool_] = self.publications.topic == topic
        return on_it

    def published(self, start: float = 0.0, end: float = np.inf) -> NDArray[np.int64]:
        """How many publications there are on each topic from one time to another; of content, how many carry each predicate."""
        rows = slice(*np.searchsorted(self.publications.time, (start, end)).tolist())
        if self.content is not None:
            return carried(replace(self.content, values=self.content.values[rows]), occurring(self.content))
        return self.publications.per_topic(len(self.topics), rows)


def write_workload(
    workload: Workload,
    folder: Path,
    quarantine: Iterable[pa.Table] | None = None,
    lines: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Write the directory; `manifest.json` last, so that a killed process leaves no workload.

    A workload that stands there already is replaced. `quarantine` holds rows that a pipeline could not use (columns source,
    line, raw, reason), table by table; `lines` are text files for other systems to read, by name. Raises WorkloadError where
    the folder holds something else or the workload breaks the format.
    """
    check_name(folder, WorkloadError)
    validate_workload(workload, folder)
    _clear(folder)
    files = _write_tables(workload, folder)
    if quarantine is not None:
        files.append("quarantine/part-00000.parquet")
        (folder / "quarantine").mkdir()
        write_tables(folder / files[-1], quarantine)
    for name, text in (lines or {}).items():
        files.append(name)
        with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in text)
    values = {
        "kind": workload.kind,
        "origin": workload.origin,
        "horizon": workload.horizon,
        "period": workload.period,
        "cell": workload.cell,
        "counts": workload.counts,
        "sources": [dict(source) for source in workload.sources],
        "generator": dict(workload.generator),
        "seed": workload.seed,
        "rows": None if workload.rows is None else dict(workload.rows),
    }
    write_manifest(folder, values, files)


def _clear(folder: Path) -> None:
    """Make room in `folder`: only what this module writes may stand there; the manifest goes first."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkloadError(f"{folder}: cannot be made a folder ({error.strerror})") from None
    others = sorted(entry.relative_to(folder) for entry in folder.rglob("*") if not _is_ours(entry, folder))
    if others:
        what = "a link" if (folder / others[0]).is_symlink() else "no part of a workload"
        raise WorkloadError(f"{folder}: holds '{others[0]}', which is {what}; give an empty or new folder")
    (folder / "manifest.json").unlink(missing_ok=True)
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _is_ours(entry: Path, folder: Path) -> bool:
    """Whether an entry anywhere in a folder is one that this module writes."""
    top, *below = entry.relative_to(folder).parts
    return not entry.is_symlink() and top in _ENTRIES and (not below or _PART.fullmatch("/".join(below)) is not None)


def _write_tables(workload: Workload, folder: Path) -> list[str]:
    topics, users, interests = workload.topics, workload.users, workload.interests
    tables: dict[str, Columns] = {
        "topics.parquet": {
            "topic": np.arange(len(topics), dtype=np.int32),
            "name": topics.names,
            "kind": topics.kinds,
            "event_rate": topics.event_rate,
            "latitude": topics.latitude,
            "longitude": topics.longitude,
        },
        "users.parquet": {
            "user": np.arange(len(users), dtype=np.int32),
            "name": users.names,
            "latitude": users.latitude,
            "longitude": users.longitude,
        },
        "subscription_events.parquet": vars(workload.subscription_events),
        "publications.parquet": vars(workload.publications),
    }
    for name in _OPTIONAL:
        if workload.counts.get(name):
            tables[f"{name}.parquet"] = vars(getattr(workload, name))
    if workload.content is not None:
        tables |= {f"{name}.parquet": found for name, found in content_tables.columns(workload.content).items()}
    for name, columns in tables.items():
        write_columns(folder / name, columns)
    (folder / "interests").mkdir()
    for part, start in enumerate(range(0, max(len(interests.indices), 1), INTERESTS_PER_PART)):
        stop = min(start + INTERESTS_PER_PART, len(interests.indices))
        bounds = np.clip(interests.indptr, start, stop)
        name = f"interests/part-{part:05}.parquet"
        user = np.repeat(np.arange(len(users), dtype=np.int32), bounds[1:] - bounds[:-1])
        write_columns(folder / name, {"user": user, "topic": interests.indices[start:stop]})
        tables[name] = {}
    return list(tables)


def load_workload(folder: Path) -> Workload:
    """Read a directory and check all of it.

    Raises WorkloadError where it is none, is of another format version, is damaged or breaks the format.
    """
    manifest, hash_ = read_manifest(folder)
    topics = read_columns(folder / "topics.parquet", _TYPES["topics"])
    Checks(f"{folder / 'topics.parquet'}").numbered("topic", topics["topic"])
    users = read_columns(folder / "users.parquet", _TYPES["users"])
    Checks(f"{folder / 'users.parquet'}").numbered("user", users["user"])
    tables = {
        name: read_columns(folder / f"{name}.parquet", _TYPES[name])
        for name in ("subscription_events", "publications", *_OPTIONAL)
        if name not in _OPTIONAL or f"{name}.parquet" in manifest["files"]
    }
    workload = Workload(
        kind=manifest["kind"],
        horizon=manifest["horizon"],
        topics=Topics(topics["name"], topics["kind"], topics["event_rate"], topics["latitude"], topics["longitude"]),
        users=Users(users["name"], users["latitude"], users["longitude"]),
        interests=Interests(*read_interests(folder, manifest["files"], len(users["user"]), len(topics["topic"]))),
        subscription_events=SubscriptionEvents(**tables["subscription_events"]),
        publications=Publications(**tables["publications"]),
        movements=Movements(**tables["movements"]) if "movements" in tables else Movements.none(),
        sessions=Sessions(**tables["sessions"]) if "sessions" in tables else Sessions.none(),
        deliveries=Deliveries(**tables["deliveries"]) if "deliveries" in tables else Deliveries.none(),
        content=content_tables.read_content(folder, manifest["counts"])
        if "predicates.parquet" in manifest["files"]
        else None,
        period=manifest["period"],
        origin=manifest["origin"],
        cell=manifest["cell"],
        generator=manifest["generator"],
        seed=manifest["seed"],
        sources=tuple(manifest["sources"]),
        rows=manifest["rows"],
        hash=hash_,
    )
    validate_workload(workload, folder)
    for name, count in workload.counts.items():
        if manifest["counts"].get(name) != count:
            raise WorkloadError(
                f"{folder / 'manifest.json'}: counts.{name} is {manifest['counts'].get(name)}, found {count}"
            )
    verify_files(folder, manifest["files"])  # last: what is wrong in a changed table was named by row above
    return workload


def validate_workload(workload: Workload, folder: Path) -> None:
    """Check that all tables keep to the format; `folder` is named in messages.

    Raises WorkloadError for the first row that is sorted wrongly, names no known topic or user, is not a number where one is
    needed, or changes an interest that cannot change in this way.
    """
    topics, users = len(workload.topics) - 1, len(workload.users) - 1
    interests, events, horizon = workload.interests, workload.subscription_events, workload.horizon
    for key, value in {
        "horizon": horizon,
        "period": workload.period,
        "cell": 1.0 if workload.cell is None else workload.cell,
    }.items():
        if not 0 < value < np.inf:
            raise WorkloadError(f"{folder / 'manifest.json'}: {key} is {value}, allowed: above 0")
    try:
        utc = datetime.fromisoformat(workload.origin).utcoffset() == timedelta(0)
    except ValueError:
        utc = False
    if not utc:
        raise WorkloadError(
            f"{folder / 'manifest.json'}: origin is {workload.origin!r}, expected a time such as 2010-08-01T00:00:00Z"
        )
    try:
        datetime.fromisoformat(workload.origin) + timedelta(seconds=horizon)
    except OverflowError:
        raise WorkloadError(f"{folder / 'manifest.json'}: the horizon ends after the year 9999") from None

    checks = Checks(f"{folder / 'topics.parquet'}")
    checks.lengths(vars(workload.topics))
    checks.not_negative("event_rate", workload.topics.event_rate)
    checks.positions(workload.topics.latitude, workload.topics.longitude)

    checks = Checks(f"{folder / 'users.parquet'}")
    checks.lengths(vars(workload.users))
    checks.positions(workload.users.latitude, workload.users.longitude)

    checks = Checks(f"{folder / 'interests'}")
    checks.between("topic", interests.indices, 0, topics)
    checks.ascending(interests.indptr, interests.indices)

    checks = Checks(f"{folder / 'subscription_events.parquet'}")
    checks.lengths(vars(events))
    checks.times(events.time, horizon)
    checks.between("user", events.user, 0, users)
    checks.between("topic", events.topic, 0, topics)
    checks.changes(events.user, events.topic, events.action, interests.indptr, interests.indices)

    checks = Checks(f"{folder / 'publications.parquet'}")
    checks.lengths(vars(workload.publications))
    checks.times(workload.publications.time, horizon)
    checks.between("topic", workload.publications.topic, *((0, topics) if workload.content is None else (-1, -1)))
    checks.between("publisher", workload.publications.publisher, -1, users)
    checks.not_negative("size", workload.publications.size)

    checks = Checks(f"{folder / 'movements.parquet'}")
    checks.lengths(vars(workload.movements))
    checks.times(workload.movements.time, horizon)
    checks.between("user", workload.movements.user, 0, users)
    checks.positions(workload.movements.latitude, workload.movements.longitude, required=True)

    checks, sessions = Checks(f"{folder / 'sessions.parquet'}"), workload.sessions
    checks.lengths(vars(sessions))
    checks.between("user", sessions.user, 0, users)
    checks.times(sessions.start, horizon, "start")
    checks.within("end", sessions.end, sessions.start, horizon)

    checks, deliveries = Checks(f"{folder / 'deliveries.parquet'}"), workload.deliveries
    checks.lengths(vars(deliveries))
    checks.times(deliveries.time, horizon)
    checks.between("topic", deliveries.topic, 0, topics)
    checks.between("publisher", deliveries.publisher, -1, users)
    checks.between("subscriber", deliveries.subscriber, 0, users)

    if workload.content is not None:
        checks = Checks(f"{folder / 'subscription_events.parquet'}")
        checks.reject(
            np.ones(len(events), np.bool_), lambda _: "subscriptions to content do not change (expected no rows)"
        )
        content_tables.check_content(
            workload.content,
            folder,
            users=len(workload.users),
            publications=len(workload.publications),
            topics=workload.topics.names,
            indptr=interests.indptr,
            indices=interests.indices,
        )
