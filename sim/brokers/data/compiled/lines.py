"""Compiled links that carry one message at a time, identical to `sim.brokers.fabric.transmission.Transmission`."""

from __future__ import annotations

import math

from sim.base.arrays import Item
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
def _fits(state: Item, line: Item, here: int, size: int) -> bool:
    """Whether a message of `size` bytes may wait for its link, as in `Transmission.fits`."""
    if not state.buffers:
        return True
    now = state.now
    while line.waiting > 0 and wait_at(state.waits, line.first).start <= now:
        number = line.first
        wait = wait_at(state.waits, number)
        line.first = wait.next
        line.waiting -= 1
        line.waiting_bytes -= wait.size
        wait.next, state.free_wait = state.free_wait, number
        state.free_waits += 1
    if max(port_at(state.ports, here).out, line.free) <= now:
        return True
    fits = (state.buffer < 0 or line.waiting < state.buffer) and (
        state.buffer_bytes < 0 or line.waiting_bytes + size <= state.buffer_bytes
    )
    if not fits and now >= state.warm_up:
        line.dropped += 1
    return bool(fits)


@kernel
def _wait(state: Item, line: Item, start: float, size: int) -> None:
    """Record a message that waits for the link until `until`; there is a free record."""
    number = state.free_wait
    wait = wait_at(state.waits, number)
    state.free_wait = wait.next
    state.free_waits -= 1
    wait.start, wait.size, wait.next = start, size, NONE
    if line.waiting == 0:
        line.first = number
    else:
        wait_at(state.waits, line.last).next = number
    line.last = number
    line.waiting += 1
    line.waiting_bytes += size


@kernel
def _measured(state: Item, time: float) -> float:
    """The time that is measured which is nearest to a time (s)."""
    return max(min(time, float(state.horizon)), float(state.warm_up))


@kernel
def _transmit(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> int:
    """Send a message over a link that may be busy, have a full buffer, or lose it; returns what became of it."""
    message, now = message_at(state.messages, number), state.now
    size, line = flight_at(state.flights, message.flight).size, line_at(state.lines, hop.link)
    if not _fits(state, line, here, size):
        return FULL
    start = last = now
    if state.interface > 0.0:
        port = port_at(state.ports, here)
        start = max(start, port.out)
        last = start + size / state.interface
        port.out = last
    if state.bandwidth > 0.0:
        start = max(start, line.free)
        last = max(start + size / state.bandwidth, last)
        line.free = last
    if start > now and state.buffers:
        _wait(state, line, start, size)
    if now >= state.warm_up:
        line.sent += 1
        line.waited += start - now
    line.busy += _measured(state, last) - _measured(state, start)
    first = _arrival(state, start, publication, here, there, hop)
    message.arrived = first + (last - start)
    if state.jitter > 0.0:
        real_at(state.last_arrival, hop.link).value = message.arrived
    if state.loss > 0.0 and keyed_uniform(state.loss_key, publication, here * state.brokers + there) < state.loss:
        line.lost += int(now >= state.warm_up)
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
    message = message_at(state.messages, number)
    message.kind -= COMING
    port = port_at(state.ports, position_at(state.positions, message.position).broker)
    size = flight_at(state.flights, message.flight).size
    message.arrived = max(max(state.now, port.come) + size / state.interface, message.arrived)
    port.come = message.arrived
    schedule(state, number, message.arrived)


@inlined
def carry(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> int:
    """Send a message from broker to broker; `hop` is the position with the hop's time and link. Returns what became of it."""
    if state.cuts and is_cut(state, here, there):
        return PARTED
    if state.limited:
        return _transmit(state, number, publication, here, there, hop)
    schedule(state, number, _arrival(state, state.now, publication, here, there, hop))
    return ON_ITS_WAY
