"""Synthetic raw traces of any size, a few of whose rows are dirty: what the pipelines are measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CHUNK = 1_000_000
"""Rows that are made at once."""
SUBSCRIBERS = 4
"""The subscribers of every topic."""


def write_checkins(path: Path, rows: int, users: int = 0) -> None:
    """Check-ins in Gowalla's layout, by sixty per user or by `users`, 1.5 % of no use, each reason being as frequent."""
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            dirt = random.integers(0, 1000, n)
            latitude, longitude = (
                np.round(random.normal(40, 8, n).clip(-89, 89), 6),
                np.round(random.normal(-90, 20, n), 6),
            )
            latitude[dirt // 3 == 0], longitude[dirt // 3 == 0] = 0.0, 0.0
            latitude[dirt // 3 == 1] = 91.5
            seconds = 1_250_000_000 + random.integers(0, 600 * 86400, n)
            time = pa.array(seconds, pa.timestamp("s"))
            time = _join(
                time.cast(pa.date32()).cast(pa.string()), _join(_text(time.cast(pa.time32("s"))), "Z", ""), "T"
            )
            time = pc.if_else(dirt // 3 == 2, "2010-02-30T12:00:00Z", time)
            user = pc.if_else(dirt // 3 == 3, "", _text(random.integers(0, users or max(rows // 60, 1), n)))
            place = _text(random.integers(0, 1_000_000, n))
            lines = _join(user, time, _text(latitude), _text(longitude), _join(place, "", "\n"), "\t")
            _write(file, lines.take(np.maximum(np.arange(n) - (dirt // 3 == 4), 0)))


def write_events(path: Path, rows: int) -> None:
    """A log in the layout `mqtt`: connects, subscribes, then publications, each delivered to the topic's four subscribers.

    A row in a hundred is of no use. Control rows all have an effect: to find those that have none is not a matter of validating rows.
    """
    random = np.random.default_rng(1)
    topics, clients = 1000, max(rows // 5000, 10)
    control = clients + SUBSCRIBERS * topics
    with path.open("wb") as file:
        file.write(b"time_s\tevent\tclient\ttopic\tpayload_bytes\tqos\tretain\n")
        for start in range(0, rows, CHUNK):
            number = np.arange(start, min(start + CHUNK, rows))
            passed = number - control
            dirt = np.where(passed >= 0, random.integers(0, 400, len(number)), 400)
            turn, publication = passed % (1 + SUBSCRIBERS), passed // (1 + SUBSCRIBERS)
            topic = np.where(passed >= 0, publication * 7919 % topics, (number - clients) % topics)
            subscriber = np.where(passed >= 0, turn - 1, (number - clients) // topics)
            client = np.where(
                (turn == 0) & (passed >= 0),
                publication * 104_729 % clients,
                (SUBSCRIBERS * topic + subscriber) % clients,
            )
            event = np.where(turn == 0, "PUBLISH", "DELIVER")
            event = np.where(passed < 0, np.where(number < clients, "CONNECT", "SUBSCRIBE"), event)
            micros = number * 500
            time = _join(_text(1_500_000_000 + micros // 10**6), pc.utf8_lpad(_text(micros % 10**6), 6, "0"), ".")
            connects = number < clients
            lines = _join(
                pc.if_else(dirt == 0, "yesterday", time),
                pc.if_else(dirt == 1, "PINGREQ", _text(event)),
                pc.if_else(dirt == 2, "", _join("c", _text(np.where(connects, number, client)), "")),
                pc.if_else(connects, "", _join("sensors/", _text(topic), "/temperature", "")),
                _join(
                    _text(np.where(passed >= 0, 10 + publication % 90, 0)),
                    pc.if_else(dirt == 3, "\t0", "\t0\t0"),
                    "\n",
                    "",
                ),
                "\t",
            )
            _write(file, lines)


def write_follows(path: Path, rows: int) -> None:
    """Follows: a user, a topic, and since when, where it is known; fifteen or so of each user."""
    random = np.random.default_rng(2)
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            since = pa.array(1_250_000_000 + random.integers(0, 600 * 86400, n), pa.timestamp("s")).cast(pa.date32())
            since = pc.if_else(random.random(n) < 0.5, "", since.cast(pa.string()))
            who, what = random.integers(0, max(rows // 15, 1), n), random.integers(0, max(rows // 30, 1), n)
            _write(file, _join(_text(who), _text(what), _join(since, "", "\n"), "\t"))


def write_posts(path: Path, rows: int) -> None:
    """What is published when, on which topic, and by whom: of as many users and topics as five times as many follows."""
    random = np.random.default_rng(3)
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            time = pa.array(1_250_000_000 + random.integers(0, 600 * 86400, n), pa.timestamp("s"))
            who, what = random.integers(0, max(rows // 3, 1), n), random.integers(0, max(rows // 6, 1), n)
            _write(file, _join(time.cast(pa.string()), _text(what), _join(_text(who), "", "\n"), "\t"))


def _text(values: Any) -> Any:
    return pc.cast(pa.array(values) if isinstance(values, np.ndarray) else values, pa.string())


def _join(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts)


def _write(file: Any, lines: Any) -> None:
    _, offsets, text = lines.buffers()
    stop = int(np.frombuffer(offsets, np.int32)[len(lines)])
    file.write(memoryview(text)[:stop])
