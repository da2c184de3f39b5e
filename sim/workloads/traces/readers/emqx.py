"""Traces and debug logs of EMQX 5 and later: an object of JSON, or text, for each packet that the broker receives or sends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sim.workloads.traces.readers.broker_lines import FOREIGN, LineEvents, LogEvent, Wills, parse_object

_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT\S+|\d{16}) \[(\w+)\] (.*)")
_MICROSECONDS = re.compile(r"^(\d{13})(\d{3})$")  # since 1970, the default of logs in JSON
_WHO = re.compile(r"(?:^|, )clientid: (.*?)(?:, |$)|^(\S.*?)@\S+ msg: ")
_SAID = re.compile(r"(?:^|[ ,])msg: ([\w ]+?)(?:, |$)")
_PACKET_OF_TEXT = re.compile(r"(?:^|, )packet: (.*)$")
_PACKET = re.compile(r"([A-Z]+)\(Q([0-2]), R([01]), D([01])(?:, )?(.*)\)", re.DOTALL)
_CONNECT = re.compile(r"ClientId=(.*), ProtoName=.*?, CleanStart=(true|false)", re.DOTALL)
_WILL = re.compile(r", Will\(Q([0-2]), R([01]), Topic=(.*?),? Payload(?:\((\w+)\))?=(.*)\)", re.DOTALL)
_PUBLISH = re.compile(r"Topic=(.*?), PacketId=(\w+)(?:, Payload(?:\((\w+)\))?=(.*))?", re.DOTALL)
_NUMBER = re.compile(r"PacketId=(\d+)")
_FILTERS = re.compile(r"TopicFilters=\[(.*)\]", re.DOTALL)
_FILTER = re.compile(r"(.*?)\(#\{(.*?)\}\)(?:,|$)", re.DOTALL)
_CODES = re.compile(r"ReasonCodes=\[(.*?)\]")
_CUT = re.compile(r"^(.*?)\.*\(?[Tt]runcated (\d+) bytes?\)?", re.DOTALL)
_CLOSED = {"terminate", "emqx_connection_terminated", "socket_force_closed", "tcp_closed", "websocket_closed"}
_SENT_AND_RECEIVED = ("mqtt_packet_received", "mqtt_packet_sent")
_REFUSED = 128


class EmqxReader:
    """Reads lines whose `msg` is `mqtt_packet_received` or `mqtt_packet_sent`.

    The packet is a text such as `PUBLISH(Q1, R0, D0, Topic=home/hall, PacketId=7, Payload=on)`, beside or within `meta`, as is the
    `clientid`. A client that is lost publishes its will.
    """

    def __init__(self) -> None:
        self._asked = dict[tuple[str, str], list[str]]()  # topic filters that wait for their acknowledgement
        self._wills = Wills()

    def read(self, lines: Iterable[str]) -> Iterator[LineEvents]:
        """Yield what each line of a file says."""
        for line in lines:
            yield self._events(line)

    def _events(self, line: str) -> LineEvents:
        found = _fields(line)
        if found is None:
            return FOREIGN
        time, said, client, packet, payload = found
        if said in _CLOSED and client:
            return [LogEvent(time, "disconnect", client), *self._wills.published(client, time)]
        if said not in _SENT_AND_RECEIVED:
            return "notice"
        parts = _PACKET.fullmatch(packet)
        if parts is None:
            return FOREIGN
        kind, qos, retain, again, rest = parts.groups()
        received = said == _SENT_AND_RECEIVED[0]
        if kind == "CONNECT" and (connect := _CONNECT.match(rest)):
            name = connect[1] or client
            self._wills.keep(name, _will(name, rest))
            return [LogEvent(time, "connect", name, clean=connect[2])]
        if kind == "PUBLISH" and (publish := _PUBLISH.fullmatch(rest)):
            topic, _, encoding, inside = publish.groups()
            if not received and topic.startswith("$SYS/"):
                return "published by the broker itself"
            if not received and again == "1":
                return "sent again"
            size = _size(payload if inside is None else inside, encoding)
            return [LogEvent(time, "publish" if received else "deliver", client, topic, size, qos=qos, retain=retain)]
        return self._control(time, received, kind, client, rest)

    def _control(self, time: str, received: bool, kind: str, client: str, rest: str) -> LineEvents:
        number = _NUMBER.search(rest)
        key = (client, number[1] if number else "")
        if kind in ("SUBSCRIBE", "UNSUBSCRIBE") and (filters := _FILTERS.search(rest)):
            topics = _FILTER.findall(filters[1]) or [(topic, "") for topic in filters[1].split(",")]
            if kind == "SUBSCRIBE":
                self._asked[key] = [topic for topic, _ in topics]
            return [
                LogEvent(time, kind.lower(), client, topic, qos=_option(options, "qos")) for topic, options in topics
            ]
        if kind == "SUBACK" and (codes := _CODES.search(rest)):
            granted = zip(self._asked.pop(key, []), codes[1].split(","), strict=False)
            refused = [topic for topic, code in granted if code.strip().isdigit() and int(code) >= _REFUSED]
            return [LogEvent(time, "unsubscribe", client, topic) for topic in refused] or "acknowledgement"
        if kind == "DISCONNECT":
            if received and not rest.endswith("ReasonCode=4"):  # which asks for the will
                self._wills.keep(client, None)
            return [LogEvent(time, "disconnect", client), *self._wills.published(client, time)]
        if kind == "CONNACK" and (code := re.search(r"ReasonCode=(\d+)", rest)) and code[1] != "0":
            self._wills.keep(client, None)
            return [LogEvent(time, "disconnect", client)]
        return "ping" if kind.startswith("PING") else "acknowledgement"


def _fields(line: str) -> tuple[str, str, str, str, str | None] | None:
    """The time, message, client, packet and payload of a line; None where it is not EMQX's."""
    if line.lstrip().startswith("{"):
        found = parse_object(line)
        if found is None or "msg" not in found:
            return None
        inner = found.get("meta")
        found = {**inner, **found} if isinstance(inner, dict) else found
        payload = found.get("payload")
        text = {name: str(found.get(name) or "") for name in ("time", "msg", "clientid", "packet")}
        return (
            _MICROSECONDS.sub(r"\1.\2", text["time"]),
            text["msg"],
            text["clientid"],
            text["packet"],
            payload if isinstance(payload, str) else None,
        )
    parts = _TEXT.fullmatch(line)
    if parts is None:
        return None
    said, who, packet = _SAID.search(parts[3]), _WHO.search(parts[3]), _PACKET_OF_TEXT.search(parts[3])
    client = (who[1] or who[2] or "") if who else ""
    inside = re.match(r"[A-Z]+\(.*\)(?=, \w+: |$)", packet[1], re.DOTALL) if packet else None
    return _MICROSECONDS.sub(r"\1.\2", parts[1]), said[1] if said else "", client, inside[0] if inside else "", None


def _will(client: str, connect: str) -> LogEvent | None:
    """The will in the text of a CONNECT, if there is one."""
    found = _WILL.search(connect)
    if found is None:
        return None
    qos, retain, topic, encoding, payload = found.groups()
    return LogEvent(None, "publish", client, topic, _size(payload, encoding), qos=qos, retain=retain)


def _option(options: str, name: str) -> str | None:
    found = re.search(rf"\b{name} => (\d)", options)
    return found[1] if found else None


def _size(payload: str | None, encoding: str | None) -> str | None:
    """The size of a payload in bytes, as text; None where it is hidden."""
    if payload is None or encoding == "hidden" or payload == "******":
        return None
    cut = _CUT.match(payload)
    shown, missing = (cut[1], int(cut[2])) if cut else (payload, 0)
    return str((len(shown) // 2 if encoding == "hex" else len(shown.encode())) + missing)
