"""Networks of brokers that run, and the same networks simulated: messages per link and deliveries of generated workloads."""

from __future__ import annotations

import json
import re
import select
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import servers
import tiny

from sim.calibration.mqtt import BrokerAddress, MqttConnection, publish_head
from sim.calibration.packets import NOBODYS, READER, read_packets
from sim.scenario.reader import load_scenario
from sim.simulation import build
from sim.workloads.format.workload import Workload

USERS, TOPICS, PUBLICATIONS = 6, 4, 25
Links = Mapping[tuple[int, int], int]
"""Messages by (from, to) broker."""


@dataclass(frozen=True)
class Case:
    """A generated workload, where its users are, and the simulated messages per link and deliveries by (topic, user)."""

    number: int
    world: Workload
    host: list[int]
    links: Links
    delivered: Mapping[tuple[int, int], int]

    def topic(self, topic: int) -> str:
        return f"w{self.number}/t{topic}"

    def wanted(self, user: int) -> list[int]:
        interests = self.world.interests
        return interests.indices[interests.indptr[user] : interests.indptr[user + 1]].tolist()

    def wanted_at(self, broker: int) -> set[int]:
        return {topic for user in range(USERS) if self.host[user] == broker for topic in self.wanted(user)}


def generated(number: int, geometry: Mapping[str, Any]) -> Case:
    """The workload and the simulation of a number."""
    random = np.random.default_rng(number)
    wants = [set(random.choice(TOPICS, random.integers(0, TOPICS + 1), replace=False).tolist()) for _ in range(USERS)]
    rows = [
        (0.01 * n, int(random.integers(TOPICS)), int(random.integers(USERS)), int(random.integers(12, 400)))
        for n in range(PUBLICATIONS)
    ]
    world = tiny.workload(wants, rows, topics=TOPICS)
    network = {
        "brokers": 3,
        "geometry": dict(geometry),
        "latency": {"kind": "unit", "rtt": "1ms"},
        "data_plane": "events",
    }
    simulated = build(load_scenario({"network": network, "seed": number, "subscribers": True}).base, world, 0)
    simulated.run()
    tables = simulated.tables()
    links, received = (zip(*(map(int, tables[t][c]) for c in cs), strict=True) for t, cs in _COLUMNS.items())
    return Case(
        number,
        world,
        simulated.users.host.tolist(),
        {(a, b): messages for a, b, messages in links},
        {(topic, user): count for topic, user, count in received},
    )


_COLUMNS = {"links": ("source", "destination", "messages"), "subscribers": ("topic", "user", "delivered")}


@dataclass
class MqttClients:
    """The users of all cases, at their brokers."""

    ports: Sequence[int]
    cases: Sequence[Case]
    users: dict[tuple[int, int], MqttConnection] = field(default_factory=dict)
    received: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._sent: list[tuple[int, int]] = []
        self._numbers, readers = np.zeros(1 << 12, np.int64), np.zeros(len(self.cases) * USERS, READER)
        readers["number"] = NOBODYS
        self._readers: dict[MqttConnection, np.void] = {}
        for case in self.cases:
            for user, host in enumerate(case.host):
                address = BrokerAddress("127.0.0.1", self.ports[host])
                one = self.users[case.number, user] = MqttConnection(address, f"c{case.number}-{user}")
                self._readers[one] = readers[len(self._readers)]
                if topics := [case.topic(topic) for topic in case.wanted(user)]:
                    one.subscribe(topics)

    def publish(self, case: Case) -> None:
        rows = case.world.publications
        for topic, user, size in zip(rows.topic.tolist(), rows.publisher.tolist(), rows.size.tolist(), strict=True):
            packet = publish_head(case.topic(topic), size) + len(self._sent).to_bytes(8) + bytes(size - 12)
            self._sent.append((case.number, topic))
            self.users[case.number, user].socket.sendall(packet)

    def receive(self, seconds: float) -> bool:
        """Count what arrives next; whether anything did in this time."""
        by_socket = {one.socket: (user, one) for (_, user), one in self.users.items()}
        ready, _, _ = select.select(list(by_socket), [], [], seconds)
        for each in ready:
            user, one = by_socket[each]
            data = np.frombuffer(each.recv(1 << 16), np.uint8)
            found = read_packets(self._readers[one], data, len(data), self._numbers)
            self.received.update((*self._sent[number], user) for number in self._numbers[:found].tolist())
        return bool(ready)

    def close(self) -> None:
        for one in self.users.values():
            one.close()


class NatsClients:
    """The users of all cases, at their brokers, in the protocol of NATS."""

    def __init__(self, ports: Sequence[int], cases: Sequence[Case]) -> None:
        self.users: dict[tuple[int, int], socket.socket] = {}
        self.received: Counter[tuple[int, int, int]] = Counter()
        self._rest: dict[tuple[int, int], bytes] = {}
        for case in cases:
            for user, host in enumerate(case.host):
                one = self.users[case.number, user] = socket.create_connection(("127.0.0.1", ports[host]), 5)
                wants = "".join(f"SUB {self._subject(case, topic)} {topic}\r\n" for topic in case.wanted(user))
                one.sendall(f'CONNECT {{"verbose":false,"pedantic":false}}\r\n{wants}PING\r\n'.encode())
                answer = b""
                while b"PONG\r\n" not in answer:
                    answer += one.recv(1 << 16)
                self._rest[case.number, user] = b""

    @staticmethod
    def _subject(case: Case, topic: int) -> str:
        return case.topic(topic).replace("/", ".")

    def publish(self, case: Case) -> None:
        rows = case.world.publications
        for topic, user, size in zip(rows.topic.tolist(), rows.publisher.tolist(), rows.size.tolist(), strict=True):
            head = f"PUB {self._subject(case, topic)} {size}\r\n".encode()
            self.users[case.number, user].sendall(head + b"x" * size + b"\r\n")

    def receive(self, seconds: float) -> bool:
        ready, _, _ = select.select(list(self.users.values()), [], [], seconds)
        for place, one in self.users.items():
            if one in ready:
                data = self._rest[place] + one.recv(1 << 16)
                while match := re.match(rb"MSG w(\d+)\.t(\d+) \d+ (\d+)\r\n|(?:PING|PONG|INFO [^\r]*)\r\n", data):
                    size = len(match[0]) + (int(match[3]) + 2 if match[3] else 0)
                    if len(data) < size:
                        break
                    if match[3]:
                        self.received[int(match[1]), int(match[2]), place[1]] += 1
                    data = data[size:]
                self._rest[place] = data
        return bool(ready)

    def close(self) -> None:
        for one in self.users.values():
            one.close()


def settle(clients: MqttClients | NatsClients, expected: int, quiet: float) -> None:
    """Receive until as many deliveries as expected are there, and none more comes for some seconds."""
    until = time.monotonic() + 20
    while clients.received.total() < expected and time.monotonic() < until:
        clients.receive(0.1)
    while clients.receive(quiet):
        pass


@contextmanager
def mosquitto_tree(
    folder: Path, cases: Sequence[Case], floods: bool
) -> Iterator[tuple[list[int], Callable[[], dict[int, Links]]]]:
    """Three Mosquittos, 0 – 1 – 2, whose bridges carry what is wanted beyond them, or everything.

    Gives their ports, and a function to count messages per link and case, from the brokers' logs.
    """
    ports = [servers.free_port() for _ in range(3)]
    with ExitStack() as running:
        for broker in (1, 0, 2):
            lines = [f"listener {ports[broker]} 127.0.0.1", "allow_anonymous true", "log_type all", "user root"]
            lines += [f"log_dest file {folder}/{broker}.log", "max_queued_messages 0"]
            if broker != 1:
                lines += [f"connection b{broker}", f"address 127.0.0.1:{ports[1]}", "restart_timeout 1"]
                lines += ["topic # both 0"] if floods else _bridged(broker, cases)
            (folder / f"{broker}.conf").write_text("\n".join(lines) + "\n")
            running.enter_context(
                servers.running("mosquitto", "-c", str(folder / f"{broker}.conf"), port=ports[broker])
            )
        _until(lambda: (folder / "1.log").read_text().count("SUBACK") >= 2)
        yield ports, lambda: _mosquitto_links(folder)


def _bridged(broker: int, cases: Sequence[Case]) -> list[str]:
    """The bridge's topics: outwards those that are wanted at any other broker, inwards those wanted here."""
    lines = []
    for case in cases:
        outwards = set().union(*(case.wanted_at(other) for other in range(3) if other != broker))
        for direction, topics in (("out", outwards), ("in", case.wanted_at(broker))):
            lines += [f"topic {case.topic(topic)} {direction} 0" for topic in sorted(topics)]
    return lines


def _mosquitto_links(folder: Path) -> dict[int, Links]:
    found: dict[int, Counter[tuple[int, int]]] = {}
    for broker in (0, 2):
        text = (folder / f"{broker}.log").read_text()
        for what, case in re.findall(rf"(Sending|Received) PUBLISH (?:to|from) \S*b{broker} \(d0.*?'w(\d+)/t", text):
            link = (broker, 1) if what == "Sending" else (1, broker)
            found.setdefault(int(case), Counter())[link] += 1
    return dict(found)


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("the network of brokers does not come up")


def _asked(port: int, what: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=5) as answer:
        return json.load(answer)


@contextmanager
def nats_mesh(folder: Path) -> Iterator[tuple[list[int], Callable[[], Links]]]:
    """Three servers of a NATS cluster, each linked to each other; gives ports, and a function to count messages per link so far."""
    ports, monitors, routes = ([servers.free_port() for _ in range(3)] for _ in range(3))
    everyone = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
    with ExitStack() as running:
        for broker in range(3):
            arguments = ("-a", "127.0.0.1", "-p", str(ports[broker]), "-m", str(monitors[broker]), "-n", f"n{broker}")
            cluster = ("--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{routes[broker]}", "--routes", everyone)
            log = ("-V", "-l", str(folder / f"{broker}.log"))
            running.enter_context(servers.running("nats-server", *arguments, *cluster, *log, port=ports[broker]))

        def routes_of(broker: int) -> dict[int, int]:
            """The other server of each route, by the number that it has in the log."""
            names = [_asked(monitor, "varz")["server_id"] for monitor in monitors]
            rows = _asked(monitors[broker], "routez")["routes"]
            return {row["rid"]: names.index(row["remote_id"]) for row in rows if row["remote_id"] in names}

        def links() -> Links:
            """What has arrived, by the servers' logs: they also send each other messages of their own."""
            found: Counter[tuple[int, int]] = Counter()
            for broker in range(3):
                others, text = routes_of(broker), (folder / f"{broker}.log").read_text()
                found.update(
                    (others[int(route)], broker) for route in re.findall(r"rid:(\d+) - <<- \[RMSG \$G w", text)
                )
            return found

        _until(lambda: all(len(routes_of(broker)) == 2 for broker in range(3)))
        yield ports, links


@contextmanager
def nats_leaves(folder: Path) -> Iterator[tuple[list[int], Callable[[], Links]]]:
    """A NATS server (1) with two leaf nodes (0 and 2)."""
    ports, monitors = ([servers.free_port() for _ in range(3)] for _ in range(2))
    leaf_port = servers.free_port()
    with ExitStack() as running:
        for broker in (1, 0, 2):
            listens = f"listen: 127.0.0.1:{leaf_port}"
            leaf = listens if broker == 1 else f'remotes: [{{url: "nats://127.0.0.1:{leaf_port}"}}]'
            (folder / f"{broker}.conf").write_text(
                f"listen: 127.0.0.1:{ports[broker]}\nhttp: 127.0.0.1:{monitors[broker]}\nserver_name: n{broker}\n"
                f"leafnodes {{ {leaf} }}\nlog_file: {folder}/{broker}.log\n"
            )
            running.enter_context(
                servers.running("nats-server", "-c", str(folder / f"{broker}.conf"), port=ports[broker])
            )

        def leaf_of(broker: int) -> Any:
            return _asked(monitors[broker], "leafz")["leafs"] or []  # null while there is none

        def links() -> Links:
            found = {}
            for broker in (0, 2):
                (row,) = leaf_of(broker)
                found[broker, 1], found[1, broker] = row["out_msgs"], row["in_msgs"]
            return found

        _until(lambda: all(len(leaf_of(broker)) == n for broker, n in ((0, 1), (1, 2), (2, 1))))
        yield ports, links
