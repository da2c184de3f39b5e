"""A slow, obvious reader of follows: it determines who follows what at every moment of a change."""

from __future__ import annotations

import calendar
import datetime as dt
import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

DAY = 86_400_000_000  # µs


class Follow(NamedTuple):
    """A user follows a topic in [since, until) (µs since 1970, None: always, for ever); a row that may be left out has an id."""

    user: str
    topic: str
    since: int | None = None
    until: int | None = None
    row: int | None = None


class Event(NamedTuple):
    micros: int
    topic: str
    publisher: str | None = None


@dataclass
class Story:
    """The workload of follows and events, by names; times are seconds from `origin` (µs since 1970)."""

    origin: int = 0
    days: int = 0
    users: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    interests: set[tuple[str, str]] = field(default_factory=set)
    changes: list[tuple[float, str, str, int]] = field(default_factory=list)
    publications: list[tuple[float, str, str | None]] = field(default_factory=list)
    dropped: dict[str, set[int]] = field(default_factory=dict)


def tell(follows: list[Follow], events: list[Event], chosen: set[str] | None = None) -> Story:
    story = Story(dropped={"outside_window": set(), "duplicate": set(), "not_sampled": set()})
    story.origin = min(event.micros for event in events) // DAY * DAY
    story.days = (max(event.micros for event in events) - story.origin) // DAY + 1
    end = story.origin + story.days * DAY
    pairs: dict[tuple[str, str], list[Follow]] = {}
    for follow in follows:
        since = -(10**18) if follow.since is None else follow.since
        until = 10**18 if follow.until is None else follow.until
        if until <= story.origin or since >= end:
            story.dropped["outside_window"].add(follow.row)
        else:
            pairs.setdefault((follow.user, follow.topic), []).append(follow._replace(since=since, until=until))
    for (user, topic), rows in sorted(pairs.items()):
        moments = sorted({time for row in rows for time in (row.since, row.until)} | {story.origin})
        covered: set[int] = set()  # the moments from which to the next one the user follows the topic
        for row in sorted(rows, key=lambda row: (row.since, -row.until, -1 if row.row is None else row.row)):
            span = {moment for moment in moments if row.since <= moment < row.until}
            if span <= covered:
                story.dropped["duplicate"].add(row.row)
            elif chosen is not None and user not in chosen:
                story.dropped["not_sampled"].add(row.row)
            covered |= span
        if chosen is not None and user not in chosen:
            continue
        story.users.add(user)
        story.topics.add(topic)
        if story.origin in covered:
            story.interests.add((user, topic))
        for before, moment in zip([None, *moments], moments, strict=False):
            if story.origin < moment < end and (moment in covered) != (before in covered):
                story.changes.append((_seconds(moment, story), user, topic, 1 if moment in covered else -1))
    for event in events:
        story.topics.add(event.topic)
        story.users |= {event.publisher} - {None}
        story.publications.append((_seconds(event.micros, story), event.topic, event.publisher))
    for rows in story.dropped.values():
        rows.discard(None)
    return story


def _seconds(micros: int, story: Story) -> float:
    return (micros - story.origin) / 1_000_000


def moment(key: int, row: str, first: dt.date, days: int) -> int:
    """The time (µs since 1970) that a row is given, by the number of days after the first."""
    share = int(hashlib.sha256(f"{key}:{row}".encode()).hexdigest()[:12], 16) / 16**12
    return calendar.timegm(first.timetuple()) * 1_000_000 + int(share * (days * DAY))
