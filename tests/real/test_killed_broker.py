"""The middle of three bridged Mosquittos is killed, and starts again: what is lost at QoS 0 and 1, and when deliveries are back."""

from __future__ import annotations

import select
import struct
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import servers
import tiny

from sim.scenario.reader import load_scenario
from sim.simulation import build

RATE, KILLED, STARTED, ENDED = 100, 1.0, 2.0, 9.0
"""Publications per second; when the broker is killed, when it starts again, and when publishing ends, s."""


class QosClient:
    """A client of MQTT 3.1.1 that publishes and acknowledges at one QoS."""

    def __init__(self, port: int, qos: int) -> None:
        import socket

        self.socket, self.qos, self.rest = socket.create_connection(("127.0.0.1", port), 5), qos, b""
        self.send(0x10, self.text("MQTT") + b"\x04\x02\x00\x00" + self.text(f"c{port}"))
        assert self.socket.recv(4) == b"\x20\x02\x00\x00"

    @staticmethod
    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    def send(self, kind: int, body: bytes) -> None:
        assert len(body) < 128
        self.socket.sendall(bytes([kind, len(body)]) + body)

    def subscribe(self, topic: str) -> None:
        self.send(0x82, b"\x00\x01" + self.text(topic) + bytes([self.qos]))

    def publish(self, topic: str, number: int) -> None:
        identity = struct.pack(">H", number + 1) if self.qos else b""
        self.send(0x30 | self.qos << 1, self.text(topic) + identity + struct.pack(">I", number))

    def arrived(self) -> list[int]:
        """The numbers that have arrived; all are acknowledged."""
        found = []
        while select.select([self.socket], [], [], 0)[0]:
            data = self.socket.recv(1 << 16)
            assert data, "the broker has closed the connection"
            self.rest += data
        while len(self.rest) > 1 and len(self.rest) >= 2 + self.rest[1]:
            kind, size = self.rest[:2]
            body, self.rest = self.rest[2 : 2 + size], self.rest[2 + size :]
            if kind >> 4 == 3:
                place = 2 + int.from_bytes(body[:2])
                if kind >> 1 & 3:
                    self.send(0x40, body[place : place + 2])
                found.append(int.from_bytes(body[-4:]))
        return found

    def close(self) -> None:
        self.socket.close()


@dataclass(frozen=True)
class Outcome:
    """Publications lost, deliveries beyond the first, and seconds from the kill to the first delivery of a later publication."""

    lost: list[int]
    again: int
    recovered: float


def killed(folder: Path, qos: int, persistent: bool) -> Outcome:
    """A publisher at the first broker, a subscriber at the last."""
    ports = [servers.free_port() for _ in range(3)]
    for broker in range(3):
        lines = [f"listener {ports[broker]} 127.0.0.1", "allow_anonymous true", "user root", "max_queued_messages 0"]
        if persistent:
            lines += [
                "persistence true",
                f"persistence_location {folder}/{broker}/",
                "autosave_interval 1",
                "autosave_on_changes true",
            ]
        if broker != 1:
            lines += [
                f"connection b{broker}",
                f"address 127.0.0.1:{ports[1]}",
                "restart_timeout 1",
                f"cleansession {str(not qos).lower()}",
                f"topic # both {qos}",
            ]
        (folder / str(broker)).mkdir()
        (folder / f"{broker}.conf").write_text("\n".join(lines) + "\n")

    def start(broker: int) -> object:
        return servers.started("mosquitto", "-c", str(folder / f"{broker}.conf"), port=ports[broker])

    with ExitStack() as opened:
        running = {}
        for broker in (1, 0, 2):
            running[broker] = start(broker)
            opened.callback(lambda broker=broker: servers.end(running[broker]))
        publisher, subscriber = (opened.enter_context(closing(QosClient(ports[broker], qos))) for broker in (0, 2))
        subscriber.subscribe("t")
        time.sleep(1.0)  # until the bridges are there
        begin, number = time.monotonic(), 0
        arrived: dict[int, list[float]] = {}
        done = {"killed": False, "started": False}
        while (now := time.monotonic() - begin) < ENDED + 2:
            if now >= KILLED and not done["killed"]:
                servers.end(running[1], kill=True)
                done["killed"] = True
            if now >= STARTED and not done["started"]:
                running[1] = start(1)
                done["started"] = True
            if now >= number / RATE and number / RATE < ENDED:
                publisher.publish("t", number)
                number += 1
            publisher.arrived()
            for one in subscriber.arrived():
                arrived.setdefault(one, []).append(time.monotonic() - begin)
            time.sleep(0.001)
    late = [times[0] for one, times in arrived.items() if one / RATE >= KILLED]
    again = sum(len(times) - 1 for times in arrived.values())
    return Outcome(
        [one for one in range(number) if one not in arrived], again, min(late, default=float("inf")) - KILLED
    )


def simulated(guarantee: str, down: float) -> int:
    """How many publications the simulated network loses while its hub is down for some seconds."""
    rows = [(n / RATE, 0, 0, 20) for n in range(int(RATE * ENDED))]
    world = tiny.workload([set(), {0}], rows, horizon=60.0)
    faults = [{"kind": "crash", "brokers": ["1"], "at": KILLED, "for": down}]
    star = {"brokers": 3, "geometry": {"kind": "star", "hub": "1"}, "delivery": {"guarantee": guarantee}}
    network = {**star, "latency": {"kind": "unit", "rtt": "1ms"}, "data_plane": "events"}
    for seed in range(100):  # until both users are at ends
        built = build(load_scenario({"network": network, "faults": faults, "seed": seed}).base, world, 0)
        built.run()
        if sorted(built.users.host.tolist()) == [0, 2]:
            metrics = built.metrics()
            return int(metrics["due"] - metrics["delivered"])
    raise AssertionError


@pytest.mark.long
@pytest.mark.parametrize(("qos", "persistent"), [(0, False), (1, False), (1, True)])
def test_what_is_lost_when_the_middle_is_killed(
    tmp_path: Path, qos: int, persistent: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = killed(tmp_path, qos, persistent)
    expected = simulated("at-least-once" if qos else "best-effort", found.recovered)
    with capsys.disabled():
        span = f" from {found.lost[0] / RATE:.2f} s to {found.lost[-1] / RATE:.2f} s" if found.lost else ""
        print(
            f"\nQoS {qos}, {'persistent' if persistent else 'in memory'}: {len(found.lost)} of {RATE * ENDED:.0f} lost{span}, "
            f"{found.again} delivered again, back {found.recovered:.2f} s after the kill; simulated, down for as long: {expected} lost"
        )
    if qos == 0:
        assert len(found.lost) == pytest.approx(expected, abs=0.2 * RATE)
        assert found.again == 0
    elif persistent:
        assert (found.lost, expected) == ([], 0)
    assert STARTED - KILLED - 0.05 <= found.recovered < 8
