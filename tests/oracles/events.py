"""A slow, obvious reader of event logs: it keeps all clients' subscriptions in sets, and compares all of them after each row."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import NamedTuple

from oracles.topic_filters import matches


class Row(NamedTuple):
    """One row of a log; `micros` since 1970."""

    micros: int
    action: str
    client: str | None
    topic: str | None = None
    size: int = 0
    publisher: str | None = None
    clean: int | None = None
    expiry: int | None = None


@dataclass
class Story:
    """The workload of a log. Times are seconds from `origin` (s since 1970)."""

    origin: int = 0
    horizon: int = 0
    users: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    sessions: list[tuple[str, float, float]] = field(default_factory=list)
    changes: list[tuple[float, str, str, int]] = field(default_factory=list)
    publications: list[tuple[float, str, str | None, int]] = field(default_factory=list)
    deliveries: list[tuple[float, str, str | None, str]] = field(default_factory=list)
    no_effect: list[int] = field(default_factory=list)


ACTIONS = ("connect", "subscribe", "unsubscribe", "disconnect", "publish", "deliver")
EPOCH = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]*)?([eE]\+?[0-9]{1,2})?\s*")


@dataclass
class Reading:
    """The usable rows of files with their (source, line) and text, and the others as (source, line, text, reason)."""

    sources: list[str]
    rows: list[Row] = field(default_factory=list)
    places: list[tuple[str, int, str]] = field(default_factory=list)
    quarantine: list[tuple[str, int, str, str]] = field(default_factory=list)

    def told(self, persistent: bool = False, filters: str = "exact") -> Story:
        """The workload of the rows; rows without effect are quarantined."""
        story = tell(self.rows, persistent, filters)
        self.quarantine += [(*self.places[place], "no_effect") for place in story.no_effect]
        self.quarantine.sort(key=lambda row: (self.sources.index(row[0]), row[1]))
        return story


def read(
    paths: list[Path], columns: list[str], delimiter: str = ",", header: bool = False, words: dict | None = None,
    window: tuple[int, int] | None = None, size: int = 100,
) -> Reading:  # fmt: skip
    """Rows of text with times in seconds since 1970; `words` are a log's own for actions, `window` is in µs."""
    reading = Reading([path.name for path in paths])
    for path in paths:
        content = path.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
            if header and number == 1:
                continue
            line = line.removesuffix(b"\r")
            text = line.decode(errors="replace")
            row = judge(line, columns, delimiter, words or dict(zip(ACTIONS, ACTIONS, strict=True)), window, size)
            if isinstance(row, Row):
                reading.rows.append(row)
                reading.places.append((path.name, number, text))
            else:
                reading.quarantine.append((path.name, number, text, row))
    return reading


def judge(line, columns, delimiter, words, window, size) -> Row | str:
    try:
        fields = line.decode().split(delimiter)
    except UnicodeDecodeError:
        return "unparsable"
    if len(fields) != len(columns):
        return "unparsable"
    told = {name: text for name, text in zip(columns, fields, strict=True) if text.strip(" ")}
    action = words.get(told.get("action", "").strip(" ").lower())
    needed = {"connect": ["client"], "disconnect": ["client"], "publish": ["topic"]}.get(action, ["client", "topic"])
    if action is None or not told.keys() >= set(needed):
        return "unparsable"
    amount = re.fullmatch(r"\s*([0-9]+)(\.0*)?\s*", told.get("size", str(size)))
    if action == "publish" and not (amount and int(amount[1]) < 2**31):
        return "unparsable"
    if not EPOCH.fullmatch(told.get("time", "")):
        return "bad_time"
    micros = int((Decimal(told["time"].strip()) * 1_000_000).to_integral_value(ROUND_HALF_UP))
    if window and not window[0] <= micros < window[1]:
        return "outside_window"
    return Row(
        micros,
        action,
        told.get("client"),
        told["topic"] if "topic" in needed else None,
        int(amount[1]) if amount else 0,
        told.get("publisher") if action == "deliver" else None,
    )


def name_key(name: str) -> tuple[bool, int, str]:
    whole = name.isascii() and name.isdecimal()
    return not whole, int(name) if whole else 0, name


def is_filter(name: str, kind: str) -> bool:
    """Whether a name has a wildcard; `kind` is exact, mqtt or nats."""
    if kind == "exact":
        return False
    levels = name.split("/" if kind == "mqtt" else ".")
    return ("+" if kind == "mqtt" else "*") in levels or levels[-1] == ("#" if kind == "mqtt" else ">")


def shared(name: str) -> str | None:
    """The filter of a shared subscription."""
    found = re.fullmatch(r"\$share/[^/]+/(.+)|\$queue/(.+)", name, re.DOTALL)
    return (found[1] or found[2]) if found else None


def tell(rows: list[Row], persistent: bool = False, filters: str = "exact") -> Story:
    """The workload of usable rows, in the order of the files; `no_effect` collects places in `rows`."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].micros)
    effective = [place for place, _, _ in _states(rows, order, persistent)]
    story = Story(no_effect=sorted(set(order) - set(effective)))
    if not effective:
        return story
    kept = [rows[place] for place in effective]
    story.origin = kept[0].micros // 1_000_000
    story.horizon = kept[-1].micros // 1_000_000 - story.origin + 1
    names = {name for row in kept for name in (row.client, row.publisher) if name is not None}
    asked = {row.topic for row in kept if row.action in ("subscribe", "unsubscribe")}
    groups = sorted((name for name in asked if shared(name)), key=name_key)
    occurring = {row.topic for row in kept if row.action in ("publish", "deliver")}
    occurring |= {name for name in (shared(name) or name for name in asked) if not is_filter(name, filters)}
    story.topics = sorted(occurring, key=name_key)

    def wanted(connected, held):
        """The subscriptions in force: those of clients, and of groups with a connected member that holds the shared one."""
        found = set()
        for client in connected:
            for name in held.get(client, ()):
                who = name if shared(name) else client
                found |= {(who, t) for t in story.topics if matches(shared(name) or name, t, filters)}
        return found

    before: set[tuple[str, str]] = set()
    open_: dict[str, list] = {}
    members: set[tuple[str, str]] = set()
    for place, connected, held in _states(rows, order, persistent):
        row = rows[place]
        time = (row.micros - story.origin * 1_000_000) / 1_000_000
        if row.action == "subscribe" and shared(row.topic):
            members.add((row.client, row.topic))
        if row.action == "publish":
            story.publications.append((time, row.topic, row.client, row.size))
        elif row.action == "deliver":
            story.deliveries.append((time, row.topic, row.publisher, row.client))
        else:
            client = row.client
            now = wanted(connected, held)
            story.changes += [(time, who, topic, -1) for who, topic in sorted(before - now)]
            story.changes += [(time, who, topic, 1) for who, topic in sorted(now - before)]
            before = now
            if client in open_ and row.action in ("connect", "disconnect"):
                open_.pop(client)[2] = time
            if client in connected and client not in open_:
                open_[client] = [client, time, float(story.horizon)]
                story.sessions.append(open_[client])
    story.sessions = [tuple(session) for session in story.sessions]
    story.deliveries = _to_groups(story, groups, members, filters)
    received = {who for _, who, _, _ in story.changes} | {who for _, _, _, who in story.deliveries}
    story.users = sorted(names, key=name_key) + [name for name in groups if name in received]
    return story


def _to_groups(story, groups, members, filters):
    """Deliveries, with those to members of a group attributed to the group."""
    found, served = [], {}
    for time, topic, publisher, client in story.deliveries:
        own = [action for at, who, what, action in story.changes if at <= time and (who, what) == (client, topic)]
        options = [client] if own and own[-1] == 1 else []
        options += [g for g in groups if (client, g) in members and matches(shared(g), topic, filters)]
        published = sum(at <= time and what == topic for at, what, _, _ in story.publications)
        first = [who for who in options if served.get((who, topic)) != published]
        who = (first or options[-1:] or [client])[0]
        served[who, topic] = published
        found.append((time, topic, publisher, who))
    return found


def _states(rows, order, persistent):
    """Each row that has an effect, with who is connected and who holds which filters after it."""
    forever = float("inf")
    connected: set[str] = set()
    held: dict[str, set[str]] = {}
    keeps: dict[str, float] = {}  # s
    left: dict[str, int] = {}
    for place in order:
        row = rows[place]
        mine = held.setdefault(row.client, set())
        keep = keeps.setdefault(row.client, forever if persistent else 0)
        away = row.micros - left.get(row.client, 0)
        if row.action in ("connect", "subscribe") and row.client not in connected and away > keep * 1_000_000:
            mine.clear()
        if row.action == "connect":
            if row.clean == 1 or (row.client in connected and keep == 0):
                mine.clear()
            connected.add(row.client)
            keeps[row.client] = {None: forever if persistent else 0, 0: forever, 1: 0}[row.clean]
            if row.expiry is not None:
                keeps[row.client] = forever if row.expiry == 2**32 - 1 else row.expiry
        elif row.action == "disconnect":
            if row.client not in connected:
                continue
            if keep == 0:
                mine.clear()
            connected.discard(row.client)
            left[row.client] = row.micros
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
