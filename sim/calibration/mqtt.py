"""The part of MQTT 3.1.1 that measuring needs: connections that never wait for long, and packets in batches."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import NamedTuple

from sim.base.errors import InputError, cut

ANSWERS_WITHIN = 5.0
"""How long a broker may take to answer, s."""
TAG = b"bsim"
"""The first bytes of each payload; the number of the publication follows, in 8 bytes."""
SMALLEST = len(TAG) + 8
"""The smallest payload, bytes."""
PUBLICATION_BYTE = 0x30
"""How a publication at QoS 0 begins."""
_CONNECT, _SUBSCRIBE, _UNSUBSCRIBE, _DISCONNECT = 0x10, 0x82, 0xA2, 0xE0
_CONNACK, _SUBACK = 0x20, 0x90
FROM_BROKERS = frozenset({0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x9, 0xB, 0xD})
"""The kinds of packets that brokers send."""
_REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it does not accept the client's name",
    3: "it says that it is not available",
    4: "it wants a user name and a password, and brokersim sends none (with Mosquitto: allow_anonymous true)",
    5: "it does not let clients in without a user name and a password (with Mosquitto: allow_anonymous true)",
}
_STAMPS = 35  # SO_TIMESTAMPNS of Linux: the kernel notes when data arrived, whenever it is read


class BrokerError(InputError):
    """A broker cannot be measured: it is not there, does not answer, or is something else."""


class BrokerAddress(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"mqtt://{host}:{self.port}"


def broker_address(url: str, remote: bool) -> BrokerAddress:
    """The address in a URL such as mqtt://127.0.0.1:1883.

    Raises BrokerError where it is not one, and for other hosts than this one unless `remote`.
    """
    match = re.fullmatch(r"mqtt://(?:\[([^\]/@]+)\]|([^:/@\[\]]+))(?::(\d{1,5}))?/?", url)
    port = int(match[3] or 1883) if match else 0
    if match is None or not 0 < port < 65536:
        raise BrokerError(f"{url}: not the address of an MQTT broker (allowed: mqtt://HOST:PORT)")
    host = match[1] or match[2]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BrokerError(f"{url}: unknown host '{host}' ({error.strerror})") from None
    if not remote and not all(ipaddress.ip_address(each[4][0]).is_loopback for each in found):
        raise BrokerError(f"{url}: '{host}' is another host, on which load is put only with --remote")
    return BrokerAddress(host, port)


def _hint() -> str:
    """What to do where nobody listens."""
    places = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    if shutil.which("mosquitto", path=places):
        return "is the broker running?"
    return "is a broker installed, and running? (on Debian: apt-get install mosquitto)"


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def _length(size: int) -> bytes:
    found = bytearray()
    while True:
        size, seven = divmod(size, 128)
        found.append(seven | (0x80 if size else 0))
        if not size:
            return bytes(found)


def _packet(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _length(len(body)) + body


def publish_head(topic: str, size: int) -> bytes:
    """How a publication at QoS 0 with a payload of `size` bytes begins, up to and including the tag."""
    name = _text(topic)
    return bytes([PUBLICATION_BYTE]) + _length(len(name) + size) + name + TAG


class MqttConnection:
    """A connection to a broker. Raises BrokerError where that refuses, does not answer in time, or does not speak MQTT."""

    def __init__(self, address: BrokerAddress, name: str) -> None:
        self.address = address
        until = time.monotonic() + ANSWERS_WITHIN
        try:
            self.socket = socket.create_connection(address, ANSWERS_WITHIN)
        except TimeoutError:
            raise self.wrong(f"no answer within {ANSWERS_WITHIN:g} s") from None
        except OSError as error:
            raise self.wrong(f"no connection ({error.strerror or error}); {_hint()}") from None
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if sys.platform == "linux":
                self.socket.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
                self.acknowledge()
            self.send(_packet(_CONNECT, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name)))
            body = self._answer(until, _CONNACK)
            if len(body) != 2:
                raise self._other(bytes([_CONNACK, len(body)]) + body)
            if body[1]:
                reason = _REFUSALS.get(body[1], f"reason {body[1]}")
                raise self.wrong(f"the broker refuses the connection: {reason}")
        except BaseException:
            self.socket.close()
            raise

    def acknowledge(self) -> None:
        """Acknowledge what has arrived at once (Linux): else a broker with Nagle's algorithm waits 40 ms with the next small packet."""
        if sys.platform == "linux":
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def wrong(self, text: str) -> BrokerError:
        """The error to raise about this broker."""
        return BrokerError(f"{self.address}: {text}")

    def subscribe(self, filters: list[str]) -> None:
        """Subscribe at QoS 0, and wait until the broker has confirmed it."""
        until = time.monotonic() + ANSWERS_WITHIN
        self.send(_packet(_SUBSCRIBE, b"\x00\x01" + b"".join(_text(each) + b"\x00" for each in filters)))
        body = self._answer(until, _SUBACK)
        if 0x80 in body[2:]:
            raise self.wrong(f"the broker refuses the subscription to '{filters[body[2:].index(0x80)]}'")

    def change(self, topic: str, joins: bool) -> bytes:
        """The packet that subscribes to a topic, or unsubscribes from it."""
        if joins:
            return _packet(_SUBSCRIBE, b"\x00\x01" + _text(topic) + b"\x00")
        return _packet(_UNSUBSCRIBE, b"\x00\x01" + _text(topic))

    def retained(self, topic: str, seconds: float) -> str | None:
        """The retained message of a topic, None where it does not come in time."""
        self.send(self.change(topic, True))
        until = time.monotonic() + seconds
        try:
            body = self._answer(until, PUBLICATION_BYTE)
        except BrokerError:
            return None
        return body[2 + int.from_bytes(body[:2]) :].decode(errors="replace")

    def close(self) -> None:
        """Disconnect; the broker may have closed the connection already."""
        with suppress(OSError):
            self.socket.settimeout(0.2)
            self.socket.sendall(bytes([_DISCONNECT, 0]))
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send it all."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise self.wrong(f"the broker has closed the connection ({error.strerror or error})") from None

    def _answer(self, until: float, wanted: int) -> bytes:
        """The body of the next packet of this kind; once connected, confirmations and publications are skipped."""
        while True:
            kind, *_ = self._exactly(1, until)
            if kind >> 4 not in ({_CONNACK >> 4} if wanted == _CONNACK else FROM_BROKERS):
                raise self._other(bytes([kind]) + self._more())
            size = shift = 0
            while True:
                seven, *_ = self._exactly(1, until)
                size |= (seven & 0x7F) << shift
                shift += 7
                if not seven & 0x80:
                    break
                if shift > 21:
                    raise self._other(bytes([kind, seven]))
            body = self._exactly(size, until)
            if kind >> 4 == wanted >> 4:
                return body

    def _exactly(self, size: int, until: float) -> bytes:
        found = b""
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0:
                raise self.wrong(f"no answer of an MQTT broker within {ANSWERS_WITHIN:g} s")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(size - len(found))
            except TimeoutError:
                continue
            except OSError as error:
                raise self.wrong(f"the broker has closed the connection ({error.strerror or error})") from None
            if not data:
                raise self.wrong("the connection was closed without an answer of an MQTT broker")
            found += data
        return found

    def _more(self) -> bytes:
        self.socket.settimeout(0.1)
        try:
            return self.socket.recv(40)
        except OSError:
            return b""

    def _other(self, data: bytes) -> BrokerError:
        shown = cut(repr(data.partition(b"\r\n")[0])[1:])
        return self.wrong(f"what listens there does not speak MQTT (it answered {shown})")
