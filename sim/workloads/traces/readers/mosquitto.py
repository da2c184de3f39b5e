"""Logs of Mosquitto (`log_type all`), versions 1.4 to 2.1: notices, and the packets of its debug messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sim.workloads.traces.readers.broker_lines import FOREIGN, LineEvents, LogEvent, Wills

_PACKET = r"\(d([01]), q([0-2]), r([01]), m\d+, '(.*)', \.\.\. \((\d+) bytes\)\)"
_CONNECTED = re.compile(r"New (?:client|bridge) connected from \S+ as (.*) \((?:p\d+, )?c([01]), k\d+(?:, u'.*')?\)\.")
_RECEIVED = re.compile(rf"Received PUBLISH from (.*) {_PACKET}")
_SENT = re.compile(rf"Sending PUBLISH to (.*) {_PACKET}")
_WILL = re.compile(r"Will message specified \((\d+) bytes\) \(r([01]), q([0-2])\)\.")
_BEGUN = re.compile(r"Received (SUBSCRIBE|UNSUBSCRIBE|DISCONNECT) from (.*)")
_ASKED = re.compile(r"\t(.*) \(QoS ([0-2])\)")
_GRANTED = re.compile(r" ([0-2]) ")
_GONE = re.compile(
    r"(?:Client (?P<client>.*?)(?: \[[^\]]*\])?(?: disconnected\b.*| closed its connection\.| has exceeded timeout, disconnecting\."
    r"| already connected, closing old connection\.| been disconnected by .*)|Socket error on client (?P<lost>.*), disconnecting\.)"
)
_OTHERS = {
    "acknowledgement": re.compile(r"(?:Received|Sending) (?:CONNACK|PUB(?:ACK|REC|REL|COMP)|SUBACK|UNSUBACK|AUTH) "),
    "ping": re.compile(r"(?:Received|Sending) PING(?:REQ|RESP) "),
    "refused": re.compile(r"Denied PUBLISH from |Client .* denied |.*not authori[sz]ed"),
    "dropped": re.compile(r"Outgoing messages are being dropped for client |Dropped "),
}
_NOTICE = "notice"


class MosquittoReader:
    """Reads lines such as `1772352000: Received PUBLISH from lamp (d0, q1, r0, m1, 'home/hall', ... (2 bytes))`.

    Subscriptions count when they are granted, if the log says so (`log_type subscribe`). A will is published when its client is
    lost. Messages that the broker publishes itself (`$SYS`), and those that it sends again, are left out.
    """

    def __init__(self) -> None:
        self._clients = set[str]()
        self._wills = Wills()
        self._heading: str | None = None  # what lines that begin with a tab belong to
        self._client = ""
        self._asked = list[tuple[str, str]]()
        self._will: re.Match[str] | None = None
        self._grants = False

    def read(self, lines: Iterable[str]) -> Iterator[LineEvents]:
        """Yield what each line of a file says."""
        for line in lines:
            time, colon, message = line.partition(": ")
            time = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", time) if "T" in time else time  # as strftime's %z has it
            yield self._events(time, message) if colon else FOREIGN

    def _events(self, time: str, said: str) -> LineEvents:
        if said.startswith("\t"):
            return self._below(time, said)
        if found := _RECEIVED.fullmatch(said):
            client, _, qos, retain, topic, size = found.groups()
            self._clients.add(client)
            return [LogEvent(time, "publish", client, topic, size, qos=qos, retain=retain)]
        if found := _SENT.fullmatch(said):
            client, again, qos, retain, topic, size = found.groups()
            if topic.startswith("$SYS/"):
                return "published by the broker itself"
            sent = LogEvent(time, "deliver", client, topic, size, qos=qos, retain=retain)
            return "sent again" if again == "1" else [sent]
        return self._session(time, said)

    def _session(self, time: str, said: str) -> LineEvents:
        if found := _CONNECTED.fullmatch(said):
            client, clean = found.groups()
            self._clients.add(client)
            self._wills.keep(client, None)
            self._client, self._heading = client, None
            return [LogEvent(time, "connect", client, clean=clean)]
        if found := _WILL.fullmatch(said):
            self._heading, self._will = "will", found
            return "will"
        if found := _BEGUN.fullmatch(said):
            self._heading, self._client = found.groups()
            self._asked = []
            self._clients.add(self._client)
            if self._heading == "DISCONNECT":
                self._wills.keep(self._client, None)
            return "heading"
        if found := _GONE.fullmatch(said):
            client = found["client"] or found["lost"]
            if client == "<unknown>":  # it never connected
                return _NOTICE
            return [LogEvent(time, "disconnect", client), *self._wills.published(client, time)]
        if said == f"Sending SUBACK to {self._client}" and not self._grants:
            return [LogEvent(time, "subscribe", self._client, topic, qos=qos) for topic, qos in self._asked]
        for reason, pattern in _OTHERS.items():
            if pattern.match(said):
                return reason
        return self._granted(time, said) or _NOTICE

    def _below(self, time: str, said: str) -> LineEvents:
        """What a line says that belongs to the heading above."""
        if self._heading == "will" and self._will is not None:
            size, retain, qos = self._will.groups()
            will = LogEvent(None, "publish", self._client, said[1:], size, qos=qos, retain=retain)
            self._wills.keep(self._client, will)
            return "will"
        if self._heading == "SUBSCRIBE" and (found := _ASKED.match(said)):
            self._asked.append((found[1], found[2]))
            return "heading"
        if self._heading == "UNSUBSCRIBE":
            return [LogEvent(time, "unsubscribe", self._client, said[1:])]
        return FOREIGN

    def _granted(self, time: str, said: str) -> LineEvents | None:
        """What `CLIENT QOS FILTER` says, or `CLIENT FILTER` where one is given up, if there is such a client."""
        for found in _GRANTED.finditer(said):
            if said[: found.start()] in self._clients:
                self._grants = True
                return [LogEvent(time, "subscribe", said[: found.start()], said[found.end() :], qos=found[1])]
        for found in re.finditer(" ", said):
            if (client := said[: found.start()]) in self._clients:
                if self._heading == "UNSUBSCRIBE" and client == self._client:
                    return "heading"
                return [LogEvent(time, "unsubscribe", client, said[found.end() :])]
        return None
