"""Packets of MQTT are read however they arrive."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.calibration.mqtt import broker_address, publish_head
from sim.calibration.packets import NOBODYS, READER, read_packets

OTHERS = [b"\x30\x00", b"\xd0\x00", b"\x90\x03\x00\x01\x00", b"\x30\x05\x00\x01tno", b"\x32\x07\x00\x01t\x00\x01no"]


def publications(topic: str, size: int, first: int, count: int) -> bytes:
    return b"".join(publish_head(topic, size) + n.to_bytes(8) + bytes(size - 12) for n in range(first, first + count))


class Reading:
    """A connection whose bytes come in pieces."""

    def __init__(self) -> None:
        self.readers, self.numbers = np.zeros(1, READER), np.zeros(1000, np.int64)
        self.readers["number"] = NOBODYS

    def read(self, data: bytes) -> list[int] | None:
        found = read_packets(self.readers[0], np.frombuffer(data, np.uint8), len(data), self.numbers)
        return None if found < 0 else self.numbers[:found].tolist()


@given(
    st.lists(st.one_of(st.sampled_from(OTHERS), st.tuples(st.integers(12, 40_000), st.integers(1, 20)))),
    st.lists(st.integers(0, 4000)),
)
def test_numbers_come_out_whatever_the_pieces(parts: list[bytes | tuple[int, int]], cuts: list[int]) -> None:
    stream, expected = b"", []
    for part in parts:
        if isinstance(part, bytes):
            stream += part
        else:
            size, count = part
            first = len(expected)
            expected += range(first, first + count)
            stream += publications("a/topic", size, first, count)
    found: list[int] = []
    reading = Reading()
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    for one, other in pairwise(places):
        found += reading.read(stream[one:other]) or []
    assert found == expected
    assert reading.readers[["held", "skip"]].tolist() == [(0, 0)]  # nothing is left over


@pytest.mark.parametrize("data", [b"\x00\x00", b"\xf0\x00", b"\x30\xff\xff\xff\xff\x01"])
def test_what_is_not_mqtt_is_refused(data: bytes) -> None:
    """However it is cut."""
    assert Reading().read(data) is None
    reading = Reading()
    assert None in [reading.read(data[at : at + 1]) for at in range(len(data))]


def test_addresses_of_this_host() -> None:
    assert str(broker_address("mqtt://127.0.0.1", remote=False)) == "mqtt://127.0.0.1:1883"
    assert str(broker_address("mqtt://localhost:18830/", remote=False)) == "mqtt://localhost:18830"
    assert str(broker_address("mqtt://192.0.2.1:1", remote=True)) == "mqtt://192.0.2.1:1"
