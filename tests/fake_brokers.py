"""Servers on loopback that are brokers, but bad ones, or something else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CONNACK = b"\x20\x02\x00\x00"

Behaviour = Callable[[socket.socket], None]


@contextmanager
def listening(behaviour: Behaviour) -> Iterator[str]:
    """The URL of a server that treats each connection so."""
    server = socket.create_server(("127.0.0.1", 0))
    opened = []

    def treat(one: socket.socket) -> None:
        with suppress(OSError):
            behaviour(one)

    def accept() -> None:
        while True:
            try:
                one, _ = server.accept()
            except OSError:
                return
            opened.append(one)
            threading.Thread(target=treat, args=[one], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"mqtt://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for one in opened:
            one.close()


def packets(one: socket.socket) -> Iterator[tuple[int, bytes]]:
    """What a client sends: the first byte of each packet, and its body."""
    stream = one.makefile("rb")
    while kind := stream.read(1):
        size = shift = 0
        while True:
            (seven,) = stream.read(1)
            size |= (seven & 0x7F) << shift
            shift += 7
            if seven < 0x80:
                break
        yield kind[0], stream.read(size)


class FakeBroker:
    """Delivers like a broker; `keeps` decides by the number of a publication, over all topics, whether it is delivered."""

    def __init__(self, keeps: Callable[[int], bool] = lambda number: True) -> None:
        self.keeps, self.wanting, self.number = keeps, dict[bytes, list[socket.socket]](), 0

    def __call__(self, one: socket.socket) -> None:
        for kind, body in packets(one):
            if kind == 0x10:
                one.sendall(CONNACK)
            elif kind == 0x82:
                topics, place = [], 2
                while place < len(body):
                    size = int.from_bytes(body[place : place + 2])
                    topics.append(body[place + 2 : place + 2 + size])
                    place += size + 3
                for topic in topics:
                    self.wanting.setdefault(topic, []).append(one)
                one.sendall(b"\x90" + bytes([2 + len(topics)]) + body[:2] + bytes(len(topics)))
            elif kind == 0x30:
                self.publish(body)

    def publish(self, body: bytes) -> None:
        self.number += 1
        if self.keeps(self.number):
            size = len(body)
            length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7]) if size < 1 << 14 else b""
            for other in self.wanting.get(body[2 : 2 + int.from_bytes(body[:2])], []):
                other.sendall(b"\x30" + length + body)


def silent(one: socket.socket) -> None:
    time.sleep(5)


def http(one: socket.socket) -> None:
    one.recv(100)
    one.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def hangs_up(one: socket.socket) -> None:
    one.recv(100)
    one.close()


def wants_a_password(one: socket.socket) -> None:
    one.recv(100)
    one.sendall(b"\x20\x02\x00\x05")


def answers_byte_by_byte(one: socket.socket) -> None:
    one.recv(100)
    for byte in CONNACK:
        time.sleep(0.3)
        one.sendall(bytes([byte]))


def refuses_subscriptions(one: socket.socket) -> None:
    for kind, body in packets(one):
        one.sendall(CONNACK if kind == 0x10 else b"\x90\x03" + body[:2] + b"\x80")


def confirms_nothing(one: socket.socket) -> None:
    for kind, _ in packets(one):
        if kind == 0x10:
            one.sendall(CONNACK)
