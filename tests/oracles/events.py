"""A slow, obvious judge of event logs: it keeps what everybody holds in sets and looks at all of it after each row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """One row of a log; `micros` since 1970."""

    micros: int
    action: str
    client: str | None
    topic: str | None = None
    size: int = 0
    publisher: str | None = None


@dataclass
class Story:
    """What a log comes to. Times are seconds from `origin` (s since 1970)."""

    origin: int = 0
    horizon: int = 0
    users: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    sessions: list[tuple[str, float, float]] = field(default_factory=list)
    changes: list[tuple[float, str, str, int]] = field(default_factory=list)
    publications: list[tuple[float, str, str | None, int]] = field(default_factory=list)
    deliveries: list[tuple[float, str, str | None, str]] = field(default_factory=list)
    no_effect: list[int] = field(default_factory=list)


def name_key(name: str) -> tuple[bool, int, str]:
    whole = name.isascii() and name.isdecimal()
    return not whole, int(name) if whole else 0, name


def matches(filter_: str, topic: str) -> bool:
    """By MQTT 5.0, section 4.7, as a regular expression over the topic's name."""
    if filter_[0] in "+#" and topic[0] == "$" and is_filter(filter_):
        return False
    levels = filter_.split("/")
    if filter_ == "#":
        return True
    tail = levels.pop() if levels[-1] == "#" else None
    pattern = "/".join("[^/]*" if level == "+" else re.escape(level) for level in levels)
    return re.fullmatch(pattern + ("(/.*)?" if tail else ""), topic, re.DOTALL) is not None


def is_filter(name: str) -> bool:
    return any(level == "+" for level in name.split("/")) or name.split("/")[-1] == "#"


def tell(rows: list[Row], persistent: bool = False, filters: bool = False) -> Story:
    """The story of usable rows, which are in the order of the files; `no_effect` holds places in `rows`."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].micros)
    effective = [place for place, _, _ in _states(rows, order, persistent)]
    story = Story(no_effect=sorted(set(order) - set(effective)))
    if not effective:
        return story
    kept = [rows[place] for place in effective]
    story.origin = kept[0].micros // 1_000_000
    story.horizon = kept[-1].micros // 1_000_000 - story.origin + 1
    names = {name for row in kept for name in (row.client, row.publisher) if name is not None}
    story.users = sorted(names, key=name_key)
    occurring = {
        row.topic
        for row in kept
        if row.topic is not None
        and not (filters and row.action in ("subscribe", "unsubscribe") and is_filter(row.topic))
    }
    story.topics = sorted(occurring, key=name_key)

    def wanted(connected, held, client):
        if client not in connected:
            return set()
        if not filters:
            return set(held.get(client, ()))
        return {t for t in story.topics if any(matches(f, t) if is_filter(f) else f == t for f in held.get(client, ()))}

    before: dict[str, set[str]] = {}
    open_: dict[str, list] = {}
    for place, connected, held in _states(rows, order, persistent):
        row = rows[place]
        time = (row.micros - story.origin * 1_000_000) / 1_000_000
        if row.action == "publish":
            story.publications.append((time, row.topic, row.client, row.size))
        elif row.action == "deliver":
            story.deliveries.append((time, row.topic, row.publisher, row.client))
        else:
            client = row.client
            now = wanted(connected, held, client)
            old = before.get(client, set())
            story.changes += [(time, client, topic, -1) for topic in sorted(old - now)]
            story.changes += [(time, client, topic, 1) for topic in sorted(now - old)]
            before[client] = now
            if client in open_ and row.action in ("connect", "disconnect"):
                open_.pop(client)[2] = time
            if client in connected and client not in open_:
                open_[client] = [client, time, float(story.horizon)]
                story.sessions.append(open_[client])
    story.sessions = [tuple(session) for session in story.sessions]
    return story


def _states(rows, order, persistent):
    """Each row that has an effect, with who is connected and who holds which filters after it."""
    connected: set[str] = set()
    held: dict[str, set[str]] = {}
    for place in order:
        row = rows[place]
        mine = held.setdefault(row.client, set())
        if row.action == "connect":
            if not persistent:
                mine.clear()
            connected.add(row.client)
        elif row.action == "disconnect":
            if row.client not in connected:
                continue
            if not persistent:
                mine.clear()
            connected.discard(row.client)
        elif row.action == "subscribe":
            if row.client in connected and row.topic in mine:
                continue
            connected.add(row.client)
            mine.add(row.topic)
        elif row.action == "unsubscribe":
            if row.topic not in mine:
                continue
            mine.remove(row.topic)
        yield place, connected, held
