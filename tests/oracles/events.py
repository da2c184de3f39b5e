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
    retain: int | None = None
    qos: int | None = None


@dataclass
class Story:
    """The workload of a log. Times are seconds from `origin` (s since 1970)."""

    origin: int = 0
    horizon: int = 0
    users: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    sessions: list[tuple[str, float, float]] = field(default_factory=list)
    changes: list[tuple[float, str, str, int]] = field(default_factory=list)
    publications: list[tuple[float, str, str | None, int, int, int]] = field(default_factory=list)
    deliveries: list[tuple[float, str, str | None, str]] = field(default_factory=list)
    no_effect: list[int] = field(default_factory=list)
    retained: list[int] = field(default_factory=list)
    absences: list[tuple[str, float, float, str]] = field(default_factory=list)
    requests: list[tuple[float, str, str]] = field(default_factory=list)
    shares: set[tuple[str, str, str]] = field(default_factory=set)
    rank: dict[str, int] = field(default_factory=dict, compare=False)
    qualities: list[tuple[float, str, str, int]] = field(default_factory=list)


ACTIONS = ("connect", "subscribe", "unsubscribe", "disconnect", "publish", "deliver")
FOREVER = float("inf")
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


def tell(rows: list[Row], persistent: bool = False, filters: str = "exact", queues_qos_0: bool = False) -> Story:
    """The workload of usable rows, in the order of the files; `no_effect` and `retained` collect places in `rows`."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].micros)
    retaining = [row for row in rows if row.action == "publish" and row.retain == 1 and row.size > 0]
    story = Story(
        retained=[
            place
            for place, row in enumerate(rows)
            if row.action == "deliver"
            and row.retain == 1
            and not any(one.topic == row.topic and one.micros <= row.micros for one in retaining)
        ]
    )
    order = [place for place in order if place not in story.retained]

    def asks(row: Row) -> list[str]:
        """The topics with a retained message at some time that a row subscribes to."""
        if row.action != "subscribe" or shared(row.topic):
            return []
        return [t for t in sorted({one.topic for one in retaining}) if matches(row.topic, t, filters)]

    granted = _granted(rows, order, filters)
    states = list(_states(rows, order, persistent, queues_qos_0, lambda row, place: asks(row) or granted[place]))
    effective = [place for _, place, _, _, _ in states if place is not None]
    story.no_effect = sorted(set(order) - set(effective))
    if not effective:
        return story
    kept = [rows[place] for place in effective]
    story.origin = kept[0].micros // 1_000_000
    story.horizon = kept[-1].micros // 1_000_000 - story.origin + 1
    names = {name for row in kept for name in (row.client, row.publisher) if name is not None}
    asked = {row.topic for row in kept if row.action in ("subscribe", "unsubscribe")}
    occurring = {row.topic for row in kept if row.action in ("publish", "deliver")}
    occurring |= {name for name in (shared(name) or name for name in asked) if not is_filter(name, filters)}
    story.topics = sorted(occurring, key=name_key)

    def seconds(micros):
        return (micros - story.origin * 1_000_000) / 1_000_000

    ways = _ways(states, story, filters)
    shares = sorted((name for name in asked if shared(name)), key=name_key)
    groups = list(dict.fromkeys(group_of(name, filters) for name in shares))
    story.rank = rank = {group: place for place, group in enumerate(["", *groups])}
    apart = _apart(ways, rank)

    def user(client, name):
        """Who has the subscription of a client by a name."""
        return f"{client} in {group_of(name, filters)}" if (client, group_of(name, filters)) in apart else client

    def wanted(in_force):
        """The subscriptions in force."""
        return {
            (user(client, name), t)
            for client, held in in_force.items()
            for name in held
            for t in story.topics
            if matches(shared(name) or name, t, filters)
        }

    before: set[tuple[str, str]] = set()
    open_: dict[str, list] = {}
    for micros, place, connected, in_force, absences in states:
        time = seconds(micros)
        story.absences += [
            (who, seconds(start), min(seconds(end), story.horizon), what)
            for client, start, end, what in absences
            for who in [client, *(f"{one} in {group}" for one, group in apart if one == client)]
            if seconds(start) < story.horizon
        ]
        if time >= story.horizon:  # as the last rows may be, if they have no effect
            continue
        row = rows[place] if place is not None else Row(micros, "expiry", None)
        if row.action == "publish":
            qos = -1 if row.qos is None else row.qos
            story.publications.append((time, row.topic, row.client, row.size, row.retain or 0, qos))
            continue
        if row.action == "deliver":
            story.deliveries.append((time, row.topic, row.publisher, row.client))
            continue
        story.requests += [(time, row.client, topic) for topic in asks(row)]
        story.qualities += [(time, user(row.client, row.topic), t, qos) for t, qos in granted.get(place, [])]
        now = wanted(in_force)
        story.changes += [(time, who, topic, -1) for who, topic in sorted(before - now)]
        story.changes += [(time, who, topic, 1) for who, topic in sorted(now - before)]
        before = now
        if row.client in open_ and row.action in ("connect", "disconnect"):
            open_.pop(row.client)[2] = time
        if row.client in connected and row.client not in open_:
            open_[row.client] = [row.client, time, float(story.horizon)]
            story.sessions.append(open_[row.client])
    story.sessions = [tuple(session) for session in story.sessions]
    story.deliveries = _to_members(story, ways, apart)
    twins = sorted(apart, key=lambda pair: (name_key(pair[0]), rank[pair[1]]))
    story.users = sorted(names, key=name_key) + [f"{client} in {group}" for client, group in twins]
    story.shares = {
        (topic, f"{client} in {group}" if (client, group) in apart else client, group)
        for client, topic, group in ways
        if group
    }
    return story


def _granted(rows, order, filters):
    """For each row that (un)subscribes, the topics with publications for which the client's highest quality of service changes."""
    published = sorted({row.topic for row in rows if row.action == "publish"})
    held, found = {}, {}
    for place in order:
        row = rows[place]
        if row.action not in ("subscribe", "unsubscribe"):
            continue
        found[place] = []
        for topic in published:
            if matches(shared(row.topic) or row.topic, topic, filters):
                mine = held.setdefault((row.client, group_of(row.topic, filters), topic), {})
                before = max(mine.values(), default=None)
                mine.pop(row.topic, None)
                if row.action == "subscribe" and row.qos is not None:
                    mine[row.topic] = row.qos
                now = max(mine.values(), default=None)
                if now not in (before, None):
                    found[place].append((topic, now))
    return found


def group_of(name, filters):
    """The group that shares by a name: of a queue group in NATS, all subscriptions together."""
    if not shared(name):
        return ""
    return name.removesuffix("/" + shared(name)) if filters == "nats" else name


def _ways(states, story, filters):
    """By which groups, or by itself (""), each client subscribes to each topic, at some time before the end."""
    end = (story.origin + story.horizon) * 1_000_000
    return {
        (client, t, group_of(name, filters))
        for micros, _, _, in_force, _ in states
        if micros < end
        for client, held in in_force.items()
        for name in held
        for t in story.topics
        if matches(shared(name) or name, t, filters)
    }


def _apart(ways, rank):
    """The members who get to a topic in another way, too: all but the first."""
    return {
        (client, group)
        for client, topic, group in ways
        if group and any((c, t) == (client, topic) and rank[g] < rank[group] for c, t, g in ways)
    }


def _to_members(story, ways, apart):
    """Deliveries, with those to members who are apart attributed to them."""
    found, served = [], {}
    if not apart:
        return story.deliveries
    for time, topic, publisher, client in story.deliveries:
        mine = sorted((group for c, t, group in ways if (c, t) == (client, topic)), key=lambda group: story.rank[group])
        own = [action for at, who, what, action in story.changes if at <= time and (who, what) == (client, topic)]
        options = [group for group in mine if group or own[-1:] == [1]]
        published = sum(at <= time and what == topic for at, what, *_ in story.publications)
        keys = {group: (group or client, topic) for group in options}
        first = [group for group in options if served.get(keys[group]) != published]
        group = (first or options[-1:] or [""])[0]
        if options:
            served[keys[group]] = published
        found.append((time, topic, publisher, f"{client} in {group}" if (client, group) in apart else client))
    return found


class _Clients:
    """Who is connected, who holds which filters, and who is away since when."""

    def __init__(self, persistent, queues_qos_0):
        self.default, self.queues_qos_0 = (FOREVER if persistent else 0), queues_qos_0
        self.connected: set[str] = set()
        self.held: dict[str, dict[str, int | None]] = {}
        self.keeps: dict[str, float] = {}  # µs
        self.left: dict[str, float] = {}  # of those who are away and whose session is not over
        self.missing: dict[str, tuple[float, float]] = {}  # from when, and until when there is a session

    def in_force(self):
        return {
            client: {name for name, qos in mine.items() if client in self.connected or qos != 0 or self.queues_qos_0}
            for client, mine in self.held.items()
        }

    def after(self, time, place, absences=()):
        return time, place, set(self.connected), self.in_force(), list(absences)

    def expire(self, until):
        while over := [(self.left[who] + self.keeps[who], who) for who in self.left]:
            time, who = min(over)
            if time >= until:
                return
            del self.left[who]
            if self.in_force()[who]:
                self.held[who].clear()
                yield self.after(time, None)
            self.held[who].clear()

    def returns(self, who, now, fresh=False):
        """The absences that are over now."""
        self.left.pop(who, None)
        if who not in self.missing:
            return []
        start, over = self.missing.pop(who)
        if now > over:
            return [(who, start, over, "over"), (who, over, now, "none")]
        return [(who, start, now, "over" if fresh else "resumed")]

    def leave(self, who, now):
        self.connected.discard(who)
        if self.keeps[who] == 0:
            self.held[who].clear()
        self.left[who] = now
        if self.in_force()[who]:
            self.missing[who] = now, now + self.keeps[who]

    def connect(self, who, row):
        if who in self.connected:
            self.leave(who, row.micros)
        absences = self.returns(who, row.micros, row.clean == 1)
        if row.clean == 1:
            self.held[who].clear()
        self.connected.add(who)
        self.keeps[who] = {None: self.default, 0: FOREVER, 1: 0}[row.clean]
        if row.expiry is not None:
            self.keeps[who] = FOREVER if row.expiry == 2**32 - 1 else row.expiry * 1_000_000
        return absences


def _states(rows, order, persistent, queues_qos_0, asks):
    """Yields each row that has an effect, and each expiry of a session (None): when, who is connected and whose subscriptions are in
    force afterwards, and the absences that are known then: who, from when to when, and what becomes of the session.
    """
    clients = _Clients(persistent, queues_qos_0)
    for place in order:
        row, who = rows[place], rows[place].client
        yield from clients.expire(row.micros)
        if row.action in ("publish", "deliver"):
            yield clients.after(row.micros, place)
            continue
        mine, absences = clients.held.setdefault(who, {}), []
        clients.keeps.setdefault(who, clients.default)
        if row.action == "connect":
            absences = clients.connect(who, row)
        elif row.action == "disconnect":
            if who not in clients.connected:
                continue
            clients.leave(who, row.micros)
        elif row.action == "subscribe":
            known = who in clients.connected and row.topic in mine
            if who not in clients.connected:
                absences = clients.returns(who, row.micros)
                clients.connected.add(who)
            mine[row.topic] = row.qos
            if known and not asks(row, place):
                continue
        elif mine.pop(row.topic, "no such") == "no such":
            continue
        yield clients.after(row.micros, place, absences)
    if order:
        still = [one for who in list(clients.missing) for one in _lasting(clients, who)]
        yield clients.after(rows[order[-1]].micros, None, still)
    yield from clients.expire(FOREVER)


def _lasting(clients, who):
    """The absences of a client who does not return."""
    start, over = clients.missing[who]
    return [(who, start, over, "resumed" if over == FOREVER else "over"), (who, over, FOREVER, "none")][
        : 1 + (over < FOREVER)
    ]
