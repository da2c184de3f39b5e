"""Resample users with replacement, with all their actions, as another sample of a workload's population."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.csr import row_starts
from sim.content.conjunctions import Conjunctions
from sim.content.predicates import Content
from sim.files.parquet import strings
from sim.workloads.content.routing import route
from sim.workloads.format.workload import Deliveries, Interests, Shares, Users, Workload


def resample(workload: Workload, generator: np.random.Generator) -> Workload:
    """A workload with as many users, drawn with replacement; a second copy of user `17` is called `17#2`.

    A user's actions are copied with it; publications from outside and topics with their rates are kept. At equal times rows are in
    the order of users. Recorded `deliveries` do not apply to other users and are left out. For content, the predicates that occur
    become the topics, and each subscription waits at its now most selective one.
    """
    users = len(workload.users)
    picked = np.sort(generator.integers(0, users, size=users)) if users else np.empty(0, np.int64)
    copy = np.arange(users) - np.searchsorted(picked, picked) + 1
    known = workload.users.names.to_pylist()
    names = [known[u] if n == 1 else f"{known[u]}#{n}" for u, n in zip(picked.tolist(), copy.tolist(), strict=True)]
    interests, events = workload.interests, workload.subscription_events
    moves, published, sessions = workload.movements, workload.publications, workload.sessions
    wanted, indptr = _segments(interests.indptr, picked)
    event, event_user = _rows_of(events.time, events.user, picked)
    move, move_user = _rows_of(moves.time, moves.user, picked)
    session, session_user = _rows_of(sessions.start, sessions.user, picked)
    absence, absent_user = _rows_of(workload.absences.start, workload.absences.user, picked)
    request, asking_user = _rows_of(workload.retained_requests.time, workload.retained_requests.user, picked)
    quality, subscribed_user = _rows_of(workload.qualities.time, workload.qualities.user, picked)
    # actions from outside belong to one additional user, who is always picked once
    publisher = np.where(published.publisher < 0, users, published.publisher)
    publication, publisher = _rows_of(published.time, publisher, np.append(picked, users))
    publisher[publisher == users] = -1
    drawn = replace(
        workload,
        users=Users(strings(names), workload.users.latitude[picked], workload.users.longitude[picked]),
        interests=Interests(indptr, interests.indices[wanted]),
        subscription_events=replace(events.rows(event), user=event_user),
        publications=replace(published.rows(publication), publisher=publisher),
        movements=replace(moves.rows(move), user=move_user),
        sessions=replace(sessions.rows(session), user=session_user),
        deliveries=Deliveries.none(),
        absences=replace(workload.absences.rows(absence), user=absent_user),
        retained_requests=replace(workload.retained_requests.rows(request), user=asking_user),
        shares=_shares_of(workload.shares, picked),
        qualities=replace(workload.qualities.rows(quality), user=subscribed_user),
    )
    if workload.content is None:
        return drawn
    content = Content(_subscriptions_of(workload.content.conjunctions, picked), workload.content.values[publication])
    topics, interests = route(content, users, workload.horizon, workload.period)
    return replace(drawn, content=content, topics=topics, interests=interests)


def _shares_of(shares: Shares, picked: NDArray[np.int64]) -> Shares:
    """What the picked users share."""
    order = np.argsort(shares.user, kind="stable")
    within, indptr = _segments(np.searchsorted(shares.user[order], np.arange(picked.max(initial=-1) + 2)), picked)
    user = np.repeat(np.arange(len(picked), dtype=np.int32), np.diff(indptr))
    found = shares.rows(order[within])
    by_topic = np.lexsort((user, found.topic))
    return replace(found.rows(by_topic), user=user[by_topic])


def _subscriptions_of(wanted: Conjunctions, picked: NDArray[np.int64]) -> Conjunctions:
    """The subscriptions of the picked users, in their order."""
    by_owner = np.argsort(wanted.owner, kind="stable")
    within, bounds = _segments(np.searchsorted(wanted.owner[by_owner], np.arange(picked.max(initial=-1) + 2)), picked)
    subscription = by_owner[within]
    rows, indptr = _segments(wanted.indptr, subscription)
    owner = np.repeat(np.arange(len(picked), dtype=np.int32), np.diff(bounds))
    return replace(wanted, indptr=indptr, field=wanted.field[rows], value=wanted.value[rows], owner=owner)


def _rows_of(
    time: NDArray[np.float64], user: Integers, picked: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The rows of the picked users, sorted by (time, new user), and each row's new user."""
    order = np.argsort(user, kind="stable")
    starts = np.searchsorted(user[order], np.arange(picked.max(initial=-1) + 2))
    within, indptr = _segments(starts, picked)
    rows = order[within]
    new = np.repeat(np.arange(len(picked), dtype=np.int32), np.diff(indptr))
    by_time = np.lexsort((new, time[rows]))
    return rows[by_time], new[by_time]


def _segments(indptr: NDArray[np.int64], picked: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The positions of the elements in the picked rows of a CSR, and the `indptr` of the CSR made of these rows."""
    lengths = indptr[picked + 1] - indptr[picked]
    out = row_starts(lengths)
    return np.arange(out[-1]) + np.repeat(indptr[picked] - out[:-1], lengths), out
