"""Check that a workload conforms to the format, row by row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from sim.base.errors import WorkloadError
from sim.workloads.content import tables as content_tables
from sim.workloads.format.checks import Checks
from sim.workloads.format.workload import EVENT_TABLES, LARGE_TABLES, Workload, first_filter


def validate_workload(workload: Workload, folder: Path, tables: Collection[str] = LARGE_TABLES) -> None:
    """Check that the tables, of large ones only these, conform to the format; `folder` is named in messages.

    Raises WorkloadError for the first row that is out of order, has an unknown topic or user, lacks a number, or changes an
    interest in an impossible way.
    """
    topics, users = len(workload.topics) - 1, len(workload.users) - 1
    interests, events, horizon = workload.interests, workload.subscription_events, workload.horizon
    _check_manifest(workload, folder / "manifest.json")

    checks = Checks(f"{folder / 'topics.parquet'}")
    checks.lengths(vars(workload.topics))
    checks.not_negative("event_rate", workload.topics.event_rate)
    checks.positions(workload.topics.latitude, workload.topics.longitude)

    there = first_filter(workload.topics)
    kinds = workload.topics.kinds[there:].dictionary_encode().dictionary.to_pylist()
    if len(kinds) > 1:
        raise WorkloadError(
            f"{checks.file}: kinds {', '.join(kinds)}, allowed: filters of one kind, behind all other topics"
        )

    checks = Checks(f"{folder / 'users.parquet'}")
    checks.lengths(vars(workload.users))
    checks.positions(workload.users.latitude, workload.users.longitude)

    if "interests" in tables:
        checks = Checks(f"{folder / 'interests'}")
        checks.between("topic", interests.indices, 0, topics)
        checks.ascending(interests.indptr, interests.indices)

    for name in (name for name in EVENT_TABLES if name in tables):
        table, checks = getattr(workload, name), Checks(f"{folder / name}.parquet")
        allowed = {"user": (0, users), "topic": (0, topics), "publisher": (-1, users), "subscriber": (0, users)}
        allowed |= {"retain": (0, 1), "qos": (-1, 2), "session": (0, 2)}
        if name == "publications" and workload.content is not None:
            allowed["topic"] = -1, -1
        elif name in ("publications", "deliveries", "retained_requests"):  # which are of topics, not of filters
            allowed["topic"] = 0, there - 1
        checks.lengths(table.columns)
        for column, values in table.columns.items():
            if column in ("time", "start"):
                checks.times(values, horizon, column)
            elif column in allowed:
                checks.between(column, values, *allowed[column])
        if name == "subscription_events":
            checks.changes(events.user, events.topic, events.action, interests.indptr, interests.indices, topics + 1)
        elif name == "publications":
            checks.not_negative("size", table.size)
        elif name == "movements":
            checks.positions(table.latitude, table.longitude, required=True)
        elif name in ("sessions", "absences"):
            checks.within("end", table.end, table.start, horizon)
        elif name == "shares":
            checks.rising("topic", table.topic, "user", table.user)
            checks.between("group", table.group, 0, 2**31 - 1)
        elif name == "qualities":
            checks.between("qos", table.qos, 0, 2)
        if name == "absences":
            checks.apart(table.user, table.start, table.end)

    if workload.content is not None:
        checks = Checks(f"{folder / 'shares.parquet'}")
        checks.reject(
            np.ones(len(workload.shares), np.bool_),
            lambda _: "subscriptions to content are not shared (expected no rows)",
        )
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


def _check_manifest(workload: Workload, manifest: Path) -> None:
    for key, value in {
        "horizon": workload.horizon,
        "period": workload.period,
        "cell": 1.0 if workload.cell is None else workload.cell,
    }.items():
        if not 0 < value < np.inf:
            raise WorkloadError(f"{manifest}: {key} is {value}, allowed: above 0")
    try:
        utc = datetime.fromisoformat(workload.origin).utcoffset() == timedelta(0)
    except ValueError:
        utc = False
    if not utc:
        raise WorkloadError(f"{manifest}: origin is {workload.origin!r}, expected a time such as 2010-08-01T00:00:00Z")
    try:
        datetime.fromisoformat(workload.origin) + timedelta(seconds=workload.horizon)
    except OverflowError:
        raise WorkloadError(f"{manifest}: the horizon ends after the year 9999") from None
