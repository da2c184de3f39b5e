"""The client's loop, compiled: it sends publications when they are due, and notes when copies arrived.

It calls the C library. While copies are under way it does not sleep: a broker on the same machine would pay for waking it with every
copy. It returns when Python has something to do.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

# Any: Numba's types of functions of the C library.
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.calibration.packets import LONGEST_HEAD, NOBODYS, READER, read_packets

ALL_ARRIVED, LOOK_NOW, SLEEP, CHANGE, NO_ROOM, CLOSED, NO_MQTT = range(7)
"""Why the loop returned: all that was due has arrived, it is time for a look at the accounts, nothing is to be done for a while, a
subscription is due to change, there is no more room for arrivals, a connection was closed, or what came is not MQTT."""
ROOM = 1 << 18
"""How many arrivals are noted between two returns."""
READ_AT_ONCE = 1 << 18
"""Bytes read at once."""
SPIN = 150_000
"""The time (ns) before a publication is due in which the client does not sleep, as sleep ends late."""
PROGRESS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "start",  # time 0 of the plan, ns
            "end",  # when the last publication is sent at the latest, ns
            "next",  # publication to be sent
            "due",  # copies of those sent
            "arrived",  # copies, and when the last one did, or the kernel last took something, ns
            "last_news",
            "noted",  # of these since the last return
            "look",  # when to return for the accounts, ns
            "change",  # when to return for a change of a subscription, ns
            "window",  # publications under way, 0: each has its time
            "batch",  # how many of them are sent at once
            "sender",  # the connection whose publications the kernel has not taken wholly, from `begin` to `ready`
            "begin",
            "ready",
            "worked",  # for how long there was something to send or to read, ns
            "failed",  # the connection that failed, and the error's number, 0 at its end
            "error",
        )
    ]
)
PUBLICATION = np.dtype([("time", np.int64), ("kind", np.int32), ("file", np.int32), ("copies", np.int64)])
"""A publication: when it is due (ns after the start), what it is, over which connection it goes, and to how many subscribers."""
KIND = np.dtype([("size", np.int64), ("length", np.int64), ("head", np.uint8, LONGEST_HEAD)])
"""Publications that are alike: their bytes in all, and how they begin."""
NOT_DUE = 1 << 62
"""A time (ns) that does not come."""
_EVENT = np.dtype(
    {
        "names": ["file"],
        "formats": [np.int32],
        "offsets": [4 if platform.machine() == "x86_64" else 8],
        "itemsize": 12 if platform.machine() == "x86_64" else 16,
    }
)
"""The part of `struct epoll_event` that matters."""
_EVENTS = 64  # connections read in turn
_MESSAGE, _VECTOR, _CONTROL, _CLOCK, _ONE, _WORDS = 0, 7, 9, 17, 19, 20
"""Where `struct msghdr` and what it refers to, a time, and a number 1 are in `words`."""
_SMALLEST_PACKET = 16  # bytes of a publication of ours
_STAMPED = 32  # bytes of a control message with a time
_DONTWAIT, _NOSIGNAL, _TCP, _QUICKACK = 0x40, 0x4000, 6, 12
_TRY_AGAIN = (4, 11)  # EINTR, EAGAIN
_NS = 1_000_000_000


def _library(name: str, result: Any, *taken: Any) -> Callable[..., Any]:
    """A function of the C library, for kernels."""
    function: Callable[..., Any] = types.ExternalFunction(name, result(*taken))
    return function


_int, _address = types.int32, types.uintp
_pointer: Any = types.CPointer
_carray: Any = numba.carray  # type: ignore[attr-defined]
_clock_gettime = _library("clock_gettime", _int, _int, _address)
_epoll_wait = _library("epoll_wait", _int, _int, _address, _int, _int)
_recvmsg = _library("recvmsg", types.intp, _int, _address, _int)
_send = _library("send", types.intp, _int, _address, types.uintp, _int)
_setsockopt = _library("setsockopt", _int, _int, _int, _int, _address, types.uint32)
_errno_location = _library("__errno_location", _pointer(_int))


class Subscribers(NamedTuple):
    """Connections that are read: how far each is, and which has a file."""

    readers: Items
    by_file: NDArray[np.int64]

    @classmethod
    def of(cls, files: list[int]) -> Subscribers:
        """Connections from which nothing has been read."""
        by_file, readers = np.zeros(max(files, default=0) + 1, np.int64), np.zeros(len(files), READER)
        by_file[files], readers["number"] = np.arange(len(files)), NOBODYS
        return cls(readers, by_file)


class ClientState(NamedTuple):
    """What the loop works on: arrays, as it calls the C library with their addresses.

    `sent` (ns) has a row per publication; `numbers`, `receivers` and `stamps` (ns) have one per arrival, `readers` per subscriber,
    whose files are keys of `by_file`.
    """

    progress: Items
    publications: Items
    kinds: Items
    sent: NDArray[np.int64]
    readers: Items
    by_file: NDArray[np.int64]
    numbers: NDArray[np.int64]
    receivers: NDArray[np.int64]
    stamps: NDArray[np.int64]
    output: NDArray[np.uint8]
    input: NDArray[np.uint8]
    events: Items
    words: NDArray[np.int64]

    @classmethod
    def of(cls, publications: Items, kinds: Items, subscribers: Subscribers, window: int, batch: int) -> ClientState:
        """The state before the first publication."""
        progress = np.zeros(1, PROGRESS)
        progress["window"], progress["batch"], progress["change"] = window, batch, NOT_DUE
        output = np.zeros(batch * int(kinds["size"].max(initial=0)), np.uint8)
        numbers, receivers, stamps = (np.zeros(ROOM, np.int64) for _ in range(3))
        taken, events, words = np.zeros(READ_AT_ONCE, np.uint8), np.zeros(_EVENTS, _EVENT), np.zeros(_WORDS, np.int64)
        sent = np.zeros(len(publications), np.int64)
        return cls(
            progress, publications, kinds, sent, *subscribers, numbers, receivers, stamps, output, taken, events, words
        )


@kernel
def _now(state: ClientState) -> int:
    _clock_gettime(0, state.words[_CLOCK:].ctypes.data)
    return int(state.words[_CLOCK] * _NS + state.words[_CLOCK + 1])


@kernel
def _errno() -> int:
    return int(_carray(_errno_location(), 1)[0])


@kernel
def _hand_over(state: ClientState) -> int:
    """Offer the kernel what it has not taken yet; returns 0, or CLOSED."""
    doing = state.progress[0]
    while doing.begin < doing.ready:
        left = doing.ready - doing.begin
        taken = _send(doing.sender, state.output[doing.begin :].ctypes.data, left, _DONTWAIT | _NOSIGNAL)
        if taken < 0:
            error = _errno()
            if error in _TRY_AGAIN:
                return 0
            doing.failed, doing.error = doing.sender, error
            return CLOSED
        doing.begin += taken
        doing.last_news = _now(state)
    return 0


@kernel
def _publish(state: ClientState, count: int) -> int:
    """Send the next publications, which are alike but for their numbers."""
    doing = state.progress[0]
    one = state.publications[doing.next]
    kind = state.kinds[one.kind]
    doing.begin, doing.ready, doing.sender = 0, count * kind.size, one.file
    for place in range(count):
        at, number = place * kind.size, doing.next + place
        for byte in range(kind.length):
            state.output[at + byte] = kind.head[byte]
        for byte in range(8):
            state.output[at + kind.length + byte] = number >> 8 * (7 - byte) & 0xFF
    doing.due += count * one.copies
    now = _now(state)
    for place in range(count):
        state.sent[doing.next + place] = now
    doing.next += count
    return _hand_over(state)


@kernel
def _read(state: ClientState, file: int) -> int:
    """Read what has arrived at a connection; returns 0, CLOSED or NO_MQTT."""
    doing, words = state.progress[0], state.words
    words[_MESSAGE + 2] = words[_VECTOR:].ctypes.data
    words[_MESSAGE + 3] = 1
    words[_MESSAGE + 4] = words[_CONTROL:].ctypes.data
    words[_MESSAGE + 5] = 64
    words[_VECTOR], words[_VECTOR + 1] = state.input.ctypes.data, READ_AT_ONCE
    size = _recvmsg(file, words[_MESSAGE:].ctypes.data, _DONTWAIT)
    error = _errno() if size < 0 else 0
    if size < 0 and error in _TRY_AGAIN:
        return 0
    if size <= 0:
        doing.failed, doing.error = file, error
        return CLOSED
    stamped = words[_MESSAGE + 5] >= _STAMPED
    stamp = words[_CONTROL + 2] * _NS + words[_CONTROL + 3] if stamped else _now(state)
    receiver = state.by_file[file]
    found = read_packets(state.readers[receiver], state.input, size, state.numbers[doing.noted :])
    if found < 0:
        doing.failed = file
        return NO_MQTT
    words[_ONE] = 1
    _setsockopt(file, _TCP, _QUICKACK, words[_ONE:].ctypes.data, 4)
    for place in range(doing.noted, doing.noted + found):
        state.receivers[place], state.stamps[place] = receiver, stamp
    doing.noted += found
    doing.arrived += found
    if found:
        doing.last_news = _now(state)
    return 0


@kernel
def _may_send(doing: Item, publications: Items, now: int) -> int:
    """How many publications may be sent now."""
    if doing.begin < doing.ready or doing.next == len(publications):
        return 0
    one = publications[doing.next]
    if not doing.window:
        return int(doing.start + one.time <= now)
    if doing.due - doing.arrived > (doing.window - doing.batch) * one.copies:
        return 0
    return int(min(doing.batch, len(publications) - doing.next))


@kernel
def run_client(state: ClientState, waiting: int) -> int:
    """Send and receive, until there is something to do for the caller; `waiting` is the epoll file of the subscribers."""
    doing, publications = state.progress[0], state.publications
    doing.noted = 0
    begun, done = _now(state), doing.next + doing.arrived
    while True:
        now = _now(state)
        if doing.next + doing.arrived > done:
            doing.worked += now - begun
        begun, done = now, doing.next + doing.arrived
        if doing.window and now >= doing.end:
            publications = publications[: doing.next]
        if now >= doing.look:
            return LOOK_NOW
        if now >= doing.change:
            return CHANGE
        wrong = _hand_over(state)
        count = _may_send(doing, publications, now)
        if count and not wrong:
            wrong = _publish(state, count)
        before = doing.arrived
        for place in range(_epoll_wait(waiting, state.events.ctypes.data, _EVENTS, 0)):
            if wrong:
                return wrong
            wrong = _read(state, state.events[place].file)
            if doing.noted > ROOM - READ_AT_ONCE // _SMALLEST_PACKET:
                return wrong or NO_ROOM
        if wrong:
            return wrong
        if doing.arrived == before and doing.arrived >= doing.due and doing.begin == doing.ready:
            last = doing.next == len(publications)
            if last and doing.change == NOT_DUE:
                return ALL_ARRIVED
            soonest = doing.change if last else min(doing.change, doing.start + publications[doing.next].time)
            if not doing.window and soonest - now > SPIN:
                return SLEEP
