"""Compiled links that carry one message at a time, identical to `sim.brokers.fabric.transmission.Transmission`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_normal, keyed_uniform
from sim.brokers.data.compiled.calendar import schedule
from sim.brokers.data.compiled.outages import is_cut
from sim.brokers.data.compiled.records import (
    flight_at,
    line_at,
    message_at,
    port_at,
    position_at,
    real_at,
    wait_at,
)
from sim.brokers.data.compiled.state import COMING, FULL, LOST_ON_LINK, NONE, ON_ITS_WAY, PARTED


@inlined
def _latency(state: Item, publication: int, here: int, there: int, hop: Item) -> float:
    """The time (s) of a hop without waiting, as drawn by `Links.arrival`."""
    if state.jitter == 0.0:
        return float(hop.hop)
    sigma, draw = state.jitter, keyed_normal(state.jitter_key, publication, here * state.brokers + there)
    return float(hop.hop * math.exp(sigma * draw - sigma * sigma / 2))


@inlined
def _arrival(state: Item, start: float, publication: int, here: int, there: int, hop: Item) -> float:
    """When a message that leaves at a time (s) arrives, after all that were sent before."""
    time = start + _latency(state, publication, here, there, hop)
    if state.jitter == 0.0:
        return time
    last = real_at(state.last_arrival, hop.link)
    last.value = max(time, last.value)
    return float(last.value)


@inlined
def _proceed(state: Item, line: Item, now: float) -> None:
    """What was to be sent by now waits no longer."""
    while line.waiting > 0 and wait_at(state.waits, line.first).start <= now:
        number = line.first
        wait = wait_at(state.waits, number)
        line.first = wait.next
        line.waiting -= 1
        line.waiting_bytes -= wait.size
        line.sent_until = wait.end
        wait.next, state.free_wait = state.free_wait, number
        state.free_waits += 1


@inlined
def _fits(state: Item, line: Item, here: int, size: int) -> bool:
    """Whether a message of `size` bytes may wait for its link, as in `Transmission.fits`."""
    now = state.now
    if max(port_at(state.ports, here).out, line.free) <= now:
        return True
    fits = (state.buffer < 0 or line.waiting < state.buffer) and (
        state.buffer_bytes < 0 or line.waiting_bytes + size <= state.buffer_bytes
    )
    line.dropped += int(not fits)
    return bool(fits)


@inlined
def _wait(state: Item, line: Item, start: float, end: float, size: int) -> None:
    """A message waits for the link until it is sent; there is a free record for it."""
    number = state.free_wait
    wait = wait_at(state.waits, number)
    state.free_wait = wait.next
    state.free_waits -= 1
    wait.start, wait.end, wait.size, wait.next = start, end, size, NONE
    if line.waiting == 0:
        line.first, line.sent_until = number, line.free
    else:
        wait_at(state.waits, line.last).next = number
    line.last = number
    line.waiting += 1
    line.waiting_bytes += size
    line.most_waiting = max(line.most_waiting, line.waiting)
    line.waited += start - state.now


@kernel
def _transmit(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> int:
    """Send a message over a link that may be busy, have a full buffer, or lose it; returns what became of it."""
    message, now = message_at(state.messages, number), state.now
    size, line = flight_at(state.flights, message.flight).size, line_at(state.lines, hop.link)
    along = out = 0.0
    if state.bandwidth > 0.0:
        along = size / state.bandwidth
        if line.clear <= now:
            line.clear, line.since, line.squares = now, now, 0.0
        line.clear += along
        line.squares += along * along
    if state.interface > 0.0:
        out = size / state.interface
        port = port_at(state.ports, here)
        if port.out_clear <= now:
            port.out_clear, port.out_since, port.out_squares = now, now, 0.0
        port.out_clear += out
        port.out_squares += out * out
    _proceed(state, line, now)
    if state.buffers and not _fits(state, line, here, size):
        return FULL
    start = last = now
    if state.interface > 0.0:
        port = port_at(state.ports, here)
        start = max(start, port.out)
        last = start + out
        port.out = last
    if state.bandwidth > 0.0:
        start = max(start, line.free)
        last = max(start + along, last)
    if start > now:
        _wait(state, line, start, last, size)
    line.free = last
    line.messages += 1
    line.bytes += size
    line.busy += last - start
    first = _arrival(state, start, publication, here, there, hop)
    message.arrived = first + (last - start)
    if state.jitter > 0.0:
        real_at(state.last_arrival, hop.link).value = message.arrived
    if state.loss > 0.0 and keyed_uniform(state.loss_key, publication, here * state.brokers + there) < state.loss:
        line.lost += 1
        return LOST_ON_LINK
    if state.interface > 0.0:
        message.kind += COMING
        schedule(state, number, first)
    else:
        schedule(state, number, message.arrived)
    return ON_ITS_WAY


@kernel
def come_in(state: Item, number: int) -> None:
    """The beginning of a message has arrived at its destination's interface, as in `Transmission`."""
    message, now = message_at(state.messages, number), state.now
    message.kind -= COMING
    port = port_at(state.ports, position_at(state.positions, message.position).broker)
    takes = flight_at(state.flights, message.flight).size / state.interface
    if port.in_clear <= now:
        port.in_clear, port.in_since, port.in_squares = now, now, 0.0
    port.in_clear += takes
    port.in_squares += takes * takes
    message.arrived = max(max(now, port.come) + takes, message.arrived)
    port.come = message.arrived
    schedule(state, number, message.arrived)


@kernel
def end_window(states: Items, now: float, done: NDArray[np.float64]) -> None:
    """A window ends now (s): what links did in it, as in `Line.look`; `done` (links, LINK_COLUMNS)."""
    state = states[0]
    for i in range(len(done)):
        line = line_at(state.lines, i)
        _proceed(state, line, now)
        until = line.sent_until if line.waiting > 0 else line.free
        busy, waited, number = max(until - now, 0.0), 0.0, line.first
        for _ in range(line.waiting):
            wait = wait_at(state.waits, number)
            busy += wait.end - wait.start
            waited += wait.start - now
            number = wait.next
        done[i, 0], done[i, 1], done[i, 2], done[i, 3] = line.messages, line.bytes, line.dropped, line.lost
        done[i, 4], done[i, 5] = line.most_waiting, line.waited
        done[i, 6] = line.busy_ahead + line.busy - busy
        done[i, 7] = line.waited_ahead + line.waited - waited
        line.busy_ahead, line.waited_ahead = busy, waited
        line.messages = line.bytes = line.dropped = line.lost = 0
        line.busy = line.waited = 0.0
        line.most_waiting = line.waiting


@inlined
def carry(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> int:
    """Send a message from broker to broker; `hop` is the position with the hop's time and link. Returns what became of it."""
    if state.cuts and is_cut(state, here, there):
        return PARTED
    if state.limited:
        return _transmit(state, number, publication, here, there, hop)
    schedule(state, number, _arrival(state, state.now, publication, here, there, hop))
    return ON_ITS_WAY
