"""The MQTT fields of a capture, as `tshark -T fields` writes them: a row for each segment, which may hold several packets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import repeat

from sim.workloads.traces.fields import field_pattern, unquoted
from sim.workloads.traces.layouts import CSV, TSV
from sim.workloads.traces.readers.broker_lines import FOREIGN, LineEvents, LogEvent, Wills

TSHARK_FIELDS = ("frame.time_epoch", "tcp.stream", "tcp.srcport", "mqtt.msgtype", "mqtt.clientid", "mqtt.topic")
_CONNECT, _PUBLISH, _SUBSCRIBE, _UNSUBSCRIBE, _PINGREQ, _PINGRESP, _DISCONNECT, _AUTH = 1, 3, 8, 10, 12, 13, 14, 15
_TRUE = ("1", "true")
_ASKED = ("mqtt.sub.qos", "mqtt.subscription_options_qos")  # the latter in MQTT 5.0
_TEXTS = ("mqtt.clientid", "mqtt.willtopic")  # of the one CONNECT of a row, which may have commas
_EXPIRY, _NUMBERS = "0x11", ("0x21", "0x27", "0x22", "0x19", "0x17")  # properties of a CONNECT with a number
_WITH_WILL = "4"  # the reason of a DISCONNECT that asks for the will
_NO_MESSAGE = "<MISSING>"
_QUOTED = {layout.delimiter: field_pattern(layout) for layout in (CSV, TSV)}


class TsharkReader:
    """Reads rows with a header that names at least `TSHARK_FIELDS`, separated by commas or tabs; cells hold lists, by commas.

    Who sent the CONNECT of a TCP stream is its client; streams without one are left out. A stream that ends disconnects it, and
    unless it has said so before, its will is published.
    """

    def __init__(self) -> None:
        self._clients = dict[str, tuple[str, str]]()  # name and port, by stream
        self._wills = Wills()

    def read(self, lines: Iterable[str]) -> Iterator[LineEvents]:
        """Yield what each line of a file says."""
        names: list[str] | None = None
        delimiter = ","
        self._clients, self._wills = {}, Wills()  # streams are numbered in each capture
        for line in lines:
            if names is None:
                delimiter = "\t" if "\t" in line else ","
                names = _split(line, delimiter)
                yield "header" if set(TSHARK_FIELDS) <= set(names) else FOREIGN
                continue
            cells = _split(line, delimiter)
            row = dict(zip(names, cells, strict=True)) if len(cells) == len(names) else {}
            yield self._events(row) if set(TSHARK_FIELDS) <= row.keys() else FOREIGN

    def _events(self, row: dict[str, str]) -> LineEvents:
        kinds = [kind for kind in row["mqtt.msgtype"].split(",") if kind]
        stream, time = row["tcp.stream"].split(",")[0], row["frame.time_epoch"]
        if not all(kind.isdecimal() and _CONNECT <= int(kind) <= _AUTH for kind in kinds):
            return FOREIGN
        packets = _Packets(row)
        events, reasons = list[LogEvent](), list[str]()
        for kind in map(int, kinds):
            made = self._packet(time, stream, row["tcp.srcport"], kind, packets)
            if isinstance(made, str):
                reasons.append(made)
            else:
                events += made
        if packets.broken:
            return FOREIGN
        if any(row.get(f"tcp.flags.{flag}", "").lower() in _TRUE for flag in ("fin", "reset")):
            client = self._clients.pop(stream, None)
            events += [LogEvent(time, "disconnect", client[0]), *self._wills.published(stream, time)] if client else []
        return events or (reasons[0] if reasons else "no packet")

    def _packet(self, time: str, stream: str, port: str, kind: int, packets: _Packets) -> LineEvents:
        length = packets.next("mqtt.len")
        if kind == _CONNECT:
            name = packets.next("mqtt.clientid") or f"stream {stream}"
            # a client that connects again takes over from its other stream, which ends later
            others = [other for other, client in self._clients.items() if client[0] == name]
            lost = [will for other in others for will in self._wills.published(other, time)]
            for other in others:
                del self._clients[other]
            self._clients[stream] = name, port
            self._wills.keep(stream, packets.will(name))
            expiry = packets.expiry()
            connect = LogEvent(time, "connect", name, clean=packets.next("mqtt.conflag.cleansess"), expiry=expiry)
            return [*lost, connect]
        topics = packets.topics(kind, length)
        flags = (
            {name: packets.next(f"mqtt.{name}") for name in ("qos", "retain", "dupflag")} if kind == _PUBLISH else {}
        )
        size = packets.payload(topics, length, flags) if kind == _PUBLISH else None
        client, own = self._clients.get(stream, (None, ""))
        if client is None:
            return "no CONNECT in the capture"
        if kind == _PUBLISH:
            again = flags.pop("dupflag")
            action = "publish" if port == own else "deliver"
            if action == "deliver" and topics and topics[0].startswith("$SYS/"):
                return "published by the broker itself"
            if action == "deliver" and (again or "").lower() in _TRUE:
                return "sent again"
            return [LogEvent(time, action, client, topic, size, **flags) for topic in topics]
        if kind == _SUBSCRIBE:
            return [
                LogEvent(time, "subscribe", client, topic, qos=packets.next(_ASKED[packets.newer])) for topic in topics
            ]
        if kind == _UNSUBSCRIBE:
            return [LogEvent(time, "unsubscribe", client, topic) for topic in topics]
        if kind == _DISCONNECT:
            self._clients.pop(stream)
            if port == own and packets.next("mqtt.disconnect.reason_code") != _WITH_WILL:
                self._wills.keep(stream, None)
            return [LogEvent(time, "disconnect", client), *self._wills.published(stream, time)]
        return "ping" if kind in (_PINGREQ, _PINGRESP) else "acknowledgement"


class _Packets:
    """The lists in the cells of a row, from which packets take their values in order."""

    def __init__(self, row: dict[str, str]) -> None:
        self.broken = False
        self._row = row
        self._lists = {
            name: iter(cell.split(",")) for name, cell in row.items() if cell and name not in ("mqtt.topic", *_TEXTS)
        }
        for name in _TEXTS:
            self._lists[name] = iter([row.get(name, "")])
        lengths = row.get("mqtt.topic_len", "")
        self._sizes = [int(size) for size in lengths.split(",") if size.isdecimal()]
        self._topics = _cut(row["mqtt.topic"], self._sizes) if self._sizes else row["mqtt.topic"].split(",")
        kinds = row["mqtt.msgtype"].split(",")
        self._taking = sum(kind in ("3", "8", "10") for kind in kinds)
        self._published = kinds.count("3")
        self.newer = bool(row.get(_ASKED[True]))
        self.broken = self._topics is None

    def next(self, name: str) -> str | None:
        """The next value of a list; None where there is none."""
        return next(self._lists.get(name, iter(())), None) or None

    def expiry(self) -> str | None:
        """How long the session of a CONNECT of MQTT 5.0 outlives its connection, in seconds; None where it does not say."""
        properties = self._row.get("mqtt.property_id", "").split(",")
        if _EXPIRY not in properties:
            return None
        before = sum(one in _NUMBERS for one in properties[: properties.index(_EXPIRY)])
        numbers = self._row.get("mqtt.prop_number", "").split(",")
        return numbers[before] if before < len(numbers) else None

    def will(self, client: str) -> LogEvent | None:
        """The will of a CONNECT, if it has one and the row says its topic."""
        flags = {name: self.next(f"mqtt.conflag.{name}") for name in ("qos", "retain")}
        topic, size = self.next("mqtt.willtopic"), self.next("mqtt.willmsg_len")
        return LogEvent(None, "publish", client, topic, size, **flags) if topic else None

    def topics(self, kind: int, length: str | None) -> list[str]:
        """The topics of the next packet, which has this length: as many as fit into it."""
        if kind not in (_PUBLISH, _SUBSCRIBE, _UNSUBSCRIBE) or self._topics is None:
            return []
        if kind == _PUBLISH or self._taking == 1:
            count = 1 if kind == _PUBLISH else len(self._topics)
        elif not self._sizes or length is None or not length.isdecimal():
            self.broken = True  # any of them may be of either packet
            return []
        else:
            left, count = int(length) - 2, 0  # without the packet's number
            for size in self._sizes:
                left -= size + (3 if kind == _SUBSCRIBE else 2)
                count += left >= 0
                if left < 0:
                    break
        self._taking -= 1
        found, self._topics = self._topics[:count], self._topics[count:]
        self._taken, self._sizes = self._sizes[:count], self._sizes[count:]
        self.broken |= len(found) < count or not all(found)
        return found

    def payload(self, topics: list[str], length: str | None, flags: dict[str, str | None]) -> str | None:
        """The size of a publication in bytes: of its message, in hexadecimal, or what its length leaves."""
        messages = self._row.get("mqtt.msg")
        if messages == "":
            return "0"
        if messages and messages.count(",") + 1 == self._published:
            message = self.next("mqtt.msg") or ""
            return "0" if message == _NO_MESSAGE else str(len(message.replace(":", "")) // 2)
        if length is None or not length.isdecimal() or not topics:
            return None
        return str(max(0, int(length) - 2 - len(topics[0].encode()) - 2 * (flags["qos"] not in (None, "0"))))


def _cut(cell: str, sizes: list[int]) -> list[str] | None:
    """Topics of these sizes in bytes, which stand in a cell, separated by commas; None where they do not."""
    data, at, found = cell.encode(), 0, list[str]()
    for size, end in zip(sizes, [*repeat(b",", len(sizes) - 1), b""], strict=True):
        if data[at + size : at + size + 1] != end:
            return None
        found.append(data[at : at + size].decode(errors="replace"))
        at += size + 1
    return found


def _split(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        return line.split(delimiter)
    return [unquoted(field) for field in re.findall(_QUOTED[delimiter], delimiter + line)]
