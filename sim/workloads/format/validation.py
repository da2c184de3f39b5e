"""Whether a workload keeps to the format, row by row."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from sim.base.errors import WorkloadError
from sim.workloads.content import tables as content_tables
from sim.workloads.format.checks import Checks
from sim.workloads.format.workload import Workload


def validate_workload(workload: Workload, folder: Path) -> None:
    """Check that all tables keep to the format; `folder` is named in messages.

    Raises WorkloadError for the first row that is sorted wrongly, names no known topic or user, is not a number where one is
    needed, or changes an interest that cannot change in this way.
    """
    topics, users = len(workload.topics) - 1, len(workload.users) - 1
    interests, events, horizon = workload.interests, workload.subscription_events, workload.horizon
    _check_manifest(workload, folder / "manifest.json")

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
