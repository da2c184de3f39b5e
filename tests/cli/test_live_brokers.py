"""Logs of brokers that run here, on loopback, replayed: a network delivers what they delivered, shared subscriptions included."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sim.workloads.format.folder import load_workload

Brokersim = Callable[..., tuple[int, str, str]]

SCENARIO = """\
title = "Live"
workload = { kind = "prepared", path = "w" }
network = { brokers = 3, latency = { kind = "unit", rtt = "1us" } }
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(program: str, *arguments: str, port: int) -> Iterator[None]:
    """Run a server during the body, which begins once it accepts connections."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed")
    server = subprocess.Popen([path, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(10)


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


class Mqtt:
    """A client of MQTT 5.0, or of 3.1.1 with a session of its own, with just what is needed here."""

    def __init__(self, port: int, name: str, *, version: int = 5, clean: bool = True, will: str | None = None) -> None:
        self.properties = b"\x00" if version == 5 else b""
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        flags = 2 * clean + (0 if will is None else 0x0C)  # of quality of service 1
        last = b"" if will is None else self.properties + text(will) + text("gone")
        start = text("MQTT") + bytes([version, flags]) + b"\x00\x3c" + self.properties
        self.send(0x10, start + text(name) + last)

    def send(self, kind: int, body: bytes, *, answered: bool = True) -> None:
        assert len(body) < 128
        self.socket.sendall(bytes([kind, len(body)]) + body)
        if answered:
            self.socket.recv(4096)

    def subscribe(self, *filters: str, qos: int = 0) -> None:
        self.send(0x82, b"\x00\x01" + self.properties + b"".join(text(one) + bytes([qos]) for one in filters))

    def publish(self, topic: str, *, retain: bool = False, qos: int = 0, content: bytes = b"x") -> None:
        identity = b"\x00\x09" if qos else b""
        self.send(0x30 | 2 * qos | retain, text(topic) + identity + self.properties + content, answered=qos > 0)
        time.sleep(0.02)  # so that the order is the same at all clients

    def close(self) -> None:
        self.send(0xE0, b"", answered=False)
        self.socket.close()


def replay(brokersim: Brokersim, tmp_path: Path, log: Path, name: str) -> tuple[list[str], str]:
    """The users of the log's workload, and what the check of its deliveries says."""
    status, _, err = brokersim("prepare", "events", str(log), "--format", name, "--out", "w", "--quiet")
    assert (status, err) == (0, "")
    (tmp_path / "live.toml").write_text(SCENARIO)
    status, out, _ = brokersim("run", "live.toml", "--check-deliveries", "--jobs", "1", "--quiet")
    assert status == 0, out
    for kind in ("round-robin", "local-first"):
        more = ("--set", f"network.sharing.kind={kind}", "--out", kind)
        status, again, _ = brokersim("run", "live.toml", "--check-deliveries", "--jobs", "1", "--quiet", *more)
        assert status == 0, again
    return load_workload(tmp_path / "w").users.names.to_pylist(), out


@contextmanager
def mosquitto(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Run Mosquitto; yields its port and the path of its log."""
    port, log = free_port(), tmp_path / "mosquitto.log"
    settings = f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type all\nlog_dest file {log}\nuser root\n"
    (tmp_path / "m.conf").write_text(settings)
    with running("mosquitto", "-c", str(tmp_path / "m.conf"), port=port):
        yield port, log


def test_mosquitto_with_shared_subscriptions_and_retained_messages(brokersim: Brokersim, tmp_path: Path) -> None:
    with mosquitto(tmp_path) as (port, log):
        sensor = Mqtt(port, "sensor")
        sensor.publish("config/rate", retain=True)
        workers = [Mqtt(port, f"worker {n}") for n in range(3)]
        for worker in workers:
            worker.subscribe("$share/crew/jobs/+")
        workers[0].subscribe("jobs/urgent", "config/#")
        for n in range(9):
            sensor.publish(f"jobs/{n % 3}")
        sensor.publish("jobs/urgent")
        workers[2].close()
        time.sleep(0.1)
        sensor.publish("jobs/0")
        sensor.publish("config/rate", retain=True)
        time.sleep(0.3)
        for client in (sensor, *workers[:2]):
            client.close()
    users, out = replay(brokersim, tmp_path, log, "mosquitto")
    assert users == ["sensor", "worker 0", "worker 1", "worker 2", "worker 0 in $share/crew/jobs/+"]
    assert "│ jobs/urgent │ worker 1, worker 2 or worker 0 in" in out
    assert "14 deliveries in the trace, 14 simulated: equal for each of 6 pairs of topic and subscriber" in out


def test_mosquitto_with_sessions_that_it_keeps(brokersim: Brokersim, tmp_path: Path) -> None:
    """A phone is away twice and takes its session over once; what waits for it is what was sent with quality of service 1."""
    with mosquitto(tmp_path) as (port, log):
        sensor = Mqtt(port, "sensor")
        sensor.publish("config/rate", retain=True, qos=1)
        sensor.publish("config/old", retain=True)
        phone = Mqtt(port, "phone", version=4, clean=False)
        phone.subscribe("home/#", "config/+", qos=1)
        phone.subscribe("news", qos=0)
        worker = Mqtt(port, "worker", version=4, clean=False)
        worker.subscribe("$share/crew/jobs", qos=1)
        lamp = Mqtt(port, "lamp", will="home/lamp")
        sensor.publish("home/hall", qos=1)
        phone.close()
        worker.close()
        time.sleep(0.1)
        for topic, qos in (("home/hall", 1), ("home/hall", 0), ("news", 1), ("config/rate", 1), ("jobs", 1)):
            sensor.publish(topic, qos=qos, retain=topic == "config/rate")
        lamp.socket.close()  # its will is published
        sensor.publish("config/old", retain=True, content=b"")
        time.sleep(0.1)
        phone = Mqtt(port, "phone", version=4, clean=False)
        worker = Mqtt(port, "worker", version=4, clean=False)
        sensor.publish("home/hall", qos=1)
        again = Mqtt(port, "phone", version=4, clean=False)
        phone.socket.close()
        again.subscribe("config/+", qos=1)  # brings what is retained once more
        sensor.publish("news")
        again.close()
        sensor.publish("home/hall", qos=1)
        time.sleep(0.1)
        fresh = Mqtt(port, "phone", version=4)  # forgets what waits
        fresh.subscribe("config/#")
        time.sleep(0.3)
        for client in (fresh, worker, sensor):
            client.close()
    users, out = replay(brokersim, tmp_path, log, "mosquitto")
    assert users == ["lamp", "phone", "sensor", "worker"]
    assert "11 deliveries in the trace, 11 simulated: equal for each of 6 pairs of topic and subscriber" in out


def test_a_nats_server_with_queue_groups(brokersim: Brokersim, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "nats.log"
    with running("nats-server", "-a", "127.0.0.1", "-p", str(port), "-DV", "-l", str(log), port=port):
        clients = []
        for name in ("shop", "worker", "worker", "audit"):
            clients.append(socket.create_connection(("127.0.0.1", port), 5))
            clients[-1].sendall(f'CONNECT {{"verbose":false,"name":"{name}"}}\r\nPING\r\n'.encode())
            time.sleep(0.05)
        shop, *workers, audit = clients
        for worker in workers:
            worker.sendall(b"SUB orders.* crew 1\r\n")
        audit.sendall(b"SUB orders.> 1\r\nSUB orders.new 2\r\n")
        time.sleep(0.2)
        for n in range(12):
            shop.sendall(f"PUB orders.{('new', 'old', 'eu.new')[n % 3]} 2\r\nhi\r\n".encode())
            time.sleep(0.02)
        time.sleep(0.2)
        for client in clients:
            client.close()
        time.sleep(0.2)
    users, out = replay(brokersim, tmp_path, log, "nats")
    assert users[:4] == ["audit", "shop", "worker", users[3]]
    assert users[3].startswith("worker cid:")
    assert not users[4:]
    assert "20 deliveries in the trace, 20 simulated: equal for each of 5 pairs of topic and subscriber" in out
