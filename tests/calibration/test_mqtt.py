"""Packets of MQTT are read however they arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.calibration.mqtt import arrivals, broker_address, numbered, publish_head

OTHERS = [b"\xd0\x00", b"\x90\x03\x00\x01\x00", b"\x30\x05\x00\x01tno", b"\x32\x07\x00\x01t\x00\x01no"]


def publications(topic: str, size: int, first: int, count: int) -> bytes:
    return numbered(publish_head(topic, size), bytes(size - 12), first, count)


@given(
    st.lists(st.one_of(st.sampled_from(OTHERS), st.tuples(st.integers(12, 300), st.integers(1, 20)))),
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
    found, rest = [], b""
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    for one, other in pairwise(places):
        numbers, rest = arrivals(rest + stream[one:other])
        found += numbers
    assert (found, rest) == (expected, b"")


@pytest.mark.parametrize("data", [b"\x00\x00", b"\xf0\x00", b"\x30\xff\xff\xff\xff\x01"])
def test_what_is_not_mqtt_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the load says what it means
        arrivals(data)


def test_addresses_of_this_host() -> None:
    assert str(broker_address("mqtt://127.0.0.1", remote=False)) == "mqtt://127.0.0.1:1883"
    assert str(broker_address("mqtt://localhost:18830/", remote=False)) == "mqtt://localhost:18830"
    assert str(broker_address("mqtt://192.0.2.1:1", remote=True)) == "mqtt://192.0.2.1:1"
