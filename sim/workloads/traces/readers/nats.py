"""What a NATS server says: its trace (`-DV`), answers of its monitoring (`/connz?subs=detail`), and advisories on connections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sim.base.naming import Raw, RawValue
from sim.workloads.traces.readers.broker_lines import FOREIGN, LineEvents, LogEvent, parse_object

_LINE = re.compile(r"(?:\[\d+\] )?(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+) \[(\w{3})\] (.*)", re.DOTALL)
_CONNECTION = re.compile(r'\S+ - [cw]id:(\d+) - (?:"[^"]*" - )?(.*)', re.DOTALL)
_OPERATION = re.compile(r"(<<-|->>|<->) \[(\w+) ?(.*)\]", re.DOTALL)
_ADVISORY = "io.nats.server.advisory.v1.client_"


class NatsReader:
    """Reads lines such as `[1] 2026/03/01 08:00:00.000001 [TRC] 127.0.0.1:5000 - cid:4 - <<- [PUB orders.new  5]`, or JSON.

    A client is called by the name it gives, or `cid:N`; if another connection of that name is open, by both.
    """

    def __init__(self) -> None:
        self._names = dict[str, str]()  # of open connections
        self._held = dict[tuple[str, str], tuple[str, str | None]]()  # subject and queue group, by connection and sid
        self._served = dict[
            str, set[str]
        ]()  # connections that have the last message of a subject by subscriptions of their own
        self._waiting = list[str]()  # the lines of a document of JSON that is not complete

    def read(self, lines: Iterable[str]) -> Iterator[LineEvents]:
        """Yield what each line of a file says."""
        self._waiting = []
        for line in lines:
            if self._waiting and self._waiting[0].strip() != "{" and line.startswith("{"):
                self._waiting = []  # of a line that broke off
            if self._waiting or line.lstrip().startswith("{"):
                yield self._json(line)
            else:
                yield self._trace(line)
        if self._waiting:
            yield FOREIGN

    def _trace(self, line: str) -> LineEvents:
        found = _LINE.fullmatch(line)
        if found is None:
            return FOREIGN
        time, _, said = found.groups()
        time = time.replace("/", "-")
        connection = _CONNECTION.fullmatch(said)
        if connection is None:
            return "notice"
        cid, said = connection.groups()
        if said.startswith("Client connection closed"):
            return self._close(time, cid)
        operation = _OPERATION.fullmatch(said)
        if operation is None:
            return "payload" if said.startswith("<<- MSG_PAYLOAD") else "notice"
        way, verb, rest = operation.groups()
        if way == "<<-" and verb == "CONNECT":
            about = parse_object(rest) or {}
            return [LogEvent(time, "connect", self._open(cid, str(about.get("name") or "")), clean="1")]
        if cid not in self._names and verb not in ("PING", "PONG", "DELSUB"):
            self._open(cid, "")  # it was there before the log
        words = rest.split()
        if way == "<<-" and verb in ("PUB", "HPUB") and len(words) >= 2:
            self._served[words[0]] = set()
            return [LogEvent(time, "publish", self._names[cid], words[0], words[-1])]
        if way == "->>" and verb in ("MSG", "HMSG") and len(words) >= 3:
            return self._deliver(time, cid, words)
        if way == "<<-" and verb == "SUB" and len(words) in (2, 3):
            subject, group = words[0], words[1] if len(words) == 3 else None
            repeated = (subject, group) in self._of(cid)
            self._held[cid, words[-1]] = subject, group
            event = LogEvent(time, "subscribe", self._names[cid], subject, group=group)
            return "a second subscription of a client to the same subject" if repeated else [event]
        if way == "<->" and verb == "DELSUB" and words:
            return self._give_up(time, cid, words[0])
        return "ping" if verb in ("PING", "PONG") else "request"

    def _of(self, cid: str) -> list[tuple[str, str | None]]:
        return [held for (owner, _), held in self._held.items() if owner == cid]

    def _open(self, cid: str, name: str) -> str:
        name = name or f"cid:{cid}"
        self._names[cid] = f"{name} cid:{cid}" if name in self._names.values() else name
        return self._names[cid]

    def _close(self, time: str, cid: str) -> LineEvents:
        for key in [key for key in self._held if key[0] == cid]:
            del self._held[key]
        name = self._names.pop(cid, None)
        return "notice" if name is None else [LogEvent(time, "disconnect", name)]

    def _deliver(self, time: str, cid: str, words: list[str]) -> LineEvents:
        group = self._held.get((cid, words[1]), (None, None))[1]
        served = self._served.setdefault(words[0], set())
        if group is None and cid in served:
            return "delivered to a second subscription of a client"
        if group is None:
            served.add(cid)
        return [LogEvent(time, "deliver", self._names[cid], words[0], words[-1])]

    def _give_up(self, time: str, cid: str, sid: str) -> LineEvents:
        held = self._held.pop((cid, sid), None)
        if held is None or cid not in self._names or held in self._of(cid):
            return "request"
        return [LogEvent(time, "unsubscribe", self._names[cid], held[0], group=held[1])]

    def _json(self, line: str) -> LineEvents:
        """Documents stand on one line each, or on several that end with a brace of its own."""
        self._waiting.append(line)
        whole = len(self._waiting) == 1 or line.rstrip() == "}"
        found = parse_object("\n".join(self._waiting)) if whole else None
        if found is None:
            return "part of a document"
        self._waiting = []
        if "connections" in found:
            return [event for one in _objects(found["connections"]) for event in _snapshot(one)] or "notice"
        kind = str(found.get("type", ""))
        if kind.startswith(_ADVISORY) and isinstance(client := found.get("client"), dict):
            cid, time = str(client.get("id")), str(found.get("timestamp"))
            if kind == f"{_ADVISORY}connect":
                return [LogEvent(time, "connect", self._open(cid, str(client.get("name") or "")), clean="1")]
            return self._close(time, cid)
        return "notice" if kind else FOREIGN


def _objects(found: RawValue) -> list[Raw]:
    """The objects in a list; none where it is none."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _snapshot(connection: Raw) -> Iterator[LogEvent]:
    """The session of a connection of `/connz`, and its subscriptions, which count as made when it began."""
    name = str(connection.get("name") or f"cid:{connection.get('cid')}")
    start, stop = str(connection.get("start")), connection.get("stop")
    yield LogEvent(start, "connect", name, clean="1")
    for held in _objects(connection.get("subscriptions_list_detail")):
        yield LogEvent(start, "subscribe", name, str(held.get("subject") or ""), group=str(held.get("qgroup") or ""))
    subjects = connection.get("subscriptions_list")
    for subject in subjects if isinstance(subjects, list) else ():
        yield LogEvent(start, "subscribe", name, str(subject or ""))
    if stop:
        yield LogEvent(str(stop), "disconnect", name)
