"""What a broker sends, read as it comes: publications of ours, however their bytes are cut, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item
from sim.base.compiled import kernel
from sim.calibration.mqtt import FROM_BROKERS, PUBLICATION_BYTE, TAG

LONGEST_HEAD = 256
"""The bytes of a packet up to the number of a publication, at most; topics are short."""
NOBODYS = -1
"""Instead of a number: a packet that is no publication of ours."""
READER = np.dtype([("held", np.int64), ("skip", np.int64), ("number", np.int64), ("head", np.uint8, LONGEST_HEAD)])
"""A connection: how many bytes of the next packet's head are held, how many of a known packet are still to come, and its number."""
_TAG = int.from_bytes(TAG)
_KINDS = sum(1 << kind for kind in FROM_BROKERS)
_PUBLISH = PUBLICATION_BYTE >> 4
_LONGEST = 5  # bytes of a packet's kind and length


@kernel
def _wanted(reader: Item) -> int:
    """How many bytes of a head make known what the packet is, at least; the same as held if it is known, 0 if it is not MQTT."""
    head, held = reader.head, reader.held
    if held < 2:
        return 2
    if not _KINDS >> (head[0] >> 4) & 1:
        return 0
    size, shift, at = np.int64(0), 0, 1
    while True:
        if at == held:
            return int(held + 1)
        size |= np.int64(head[at] & 0x7F) << shift
        shift += 7
        at += 1
        if head[at - 1] < 0x80:
            break
        if at == _LONGEST:
            return 0
    reader.number, reader.skip = NOBODYS, at + size - held
    if head[0] >> 4 != _PUBLISH or size < 2:
        return int(held)
    if held < at + 2:
        return int(at + 2)
    body = at + 2 + (np.int64(head[at]) << 8 | head[at + 1])
    last = body + 12
    if last > LONGEST_HEAD or last > at + size:
        return int(held)
    if held < last:
        return int(last)
    tag = number = np.int64(0)
    for place in range(4):
        tag = tag << 8 | head[body + place]
    for place in range(8):
        number = number << 8 | head[body + 4 + place]
    if tag == _TAG:
        reader.number = number
    return int(held)


@kernel
def read_packets(reader: Item, data: NDArray[np.uint8], size: int, numbers: NDArray[np.int64]) -> int:
    """Read the next `size` bytes of a connection; returns how many publications are whole now, -1 where it is not MQTT."""
    place = found = 0
    while place < size:
        if reader.skip:
            step = min(reader.skip, size - place)
            place += step
            reader.skip -= step
        else:
            reader.head[reader.held] = data[place]
            place += 1
            reader.held += 1
            wanted = _wanted(reader)
            if not wanted:
                return -1
            if wanted > reader.held:
                reader.skip = 0
                continue
            reader.held = 0
        if not reader.skip and reader.number != NOBODYS:
            numbers[found] = reader.number
            reader.number = NOBODYS
            found += 1
    return found
