"""The counts that the compiled engine makes once, at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.cells import cell_of, overtake_flood
from sim.brokers.data.compiled.hops import count_last
from sim.brokers.data.compiled.records import count_pairs
from sim.brokers.data.compiled.servers import catch_up, integrate
from sim.brokers.data.compiled.state import (
    ARRIVED,
    DEPTH,
    DOWN,
    FLOODED,
    GONE,
    LINKED,
    NONE,
    REQUEST,
    SERVED,
    TRAVELLING,
    UPLINKED,
)
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.ledger import DROPPED, IN_FLIGHT, PUBLISHED, ROOTED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.records import Statistics

_PUBLICATIONS = {PUBLISHED: "published", ROOTED: "rooted", DROPPED: "dropped"}
_COUNTERS = {
    rk.UPLINKS: "uplinks",
    rk.UPLINK_BYTES: "uplink_bytes",
    rk.UPLINK_HOPS: "uplink_hops",
    rk.INTERNAL: "internal",
    rk.INTERNAL_BYTES: "internal_bytes",
    rk.EXTERNAL: "external",
    rk.EXTERNAL_BYTES: "external_bytes",
    rk.TREE_HOPS: "tree_hops",
    rk.STRETCHED: "stretched",
    rk.REACHED: "reached",
}


_COUNTED = "duplicates", "retransmissions", "acknowledgements", "duplicate_deliveries"


def count_windows(windows: Items, statistics: Statistics, counted: Mapping[str, list[int]]) -> None:
    """Add what was counted in each window to the statistics, and to the recorder's counts by name."""
    for name in _COUNTED:
        for window, more in enumerate(windows[name].tolist()):
            counted[name][window] += more
    for column, name in _PUBLICATIONS.items():
        statistics.publications[:, column] += windows[name]
    for column, name in _COUNTERS.items():
        statistics.counters[:, column] += windows[name]


@kernel
def _travels(state: Item, flight: Item, link: Item) -> None:
    """Note the fewest hops of a copy that is on a link, or not yet served as the first at its broker, if none has arrived."""
    cell, hops = cell_of(state, flight, link.first), cell_of(state, flight, link.children).state // DEPTH + 1
    if not cell.state & ARRIVED:
        fewest = min(hops, cell.state // DEPTH) if cell.state & TRAVELLING else hops
        cell.state = cell.state % DEPTH + fewest * DEPTH
    cell.state |= TRAVELLING


@kernel
def in_transit(states: Items, messages: Items, flights: Items, positions: Items, found: NDArray[np.int64]) -> None:
    """Count what messages below their roots would still deliver and, in `found`, the flights in transit of each period."""
    state, over = states[0], np.zeros(flights.size, np.bool_)
    for message in messages:
        if message.kind == NONE or message.kind % SERVED in (REQUEST, GONE):
            continue
        flight = flights[message.flight]
        if not over[message.flight]:
            over[message.flight] = True
            found[flight.period] += 1
        if message.kind % SERVED == DOWN:
            place = positions[message.position]
            count_pairs(state, flight.window, IN_FLIGHT, place.below_brokers, place.below_users)
        elif message.kind % SERVED == FLOODED:
            _travels(state, flight, positions[message.position])
    if state.floods:
        for number in np.flatnonzero(over):
            flight = flights[number]
            if flight.version != NONE:
                brokers, users = overtake_flood(state, flight)
                count_pairs(state, flight.window, IN_FLIGHT, brokers, users)


@kernel
def count_last_deliveries(states: Items, flights: Items) -> None:
    """Count the last deliveries up to the end of flights that are in transit; others have none any more."""
    for flight in flights:
        count_last(states[0], flight)


def count_links(positions: Items, tallies: Items, part: slice, flooded: bool, recorder: Recorder) -> None:
    """Count what was sent over each link: on the hops of the trees or floods, or of uplinks, at a part of the positions."""
    brokers = recorder.statistics.brokers
    recorder.links.add(_sent_over(positions, tallies, part.start, part.stop, flooded, brokers))


@kernel
def _sent_over(
    positions: Items, tallies: Items, first: int, end: int, flooded: bool, brokers: int
) -> NDArray[np.int64]:
    """What was sent over links, as `Tallies.add` takes it, at the positions from the first to before the end."""
    found, many = np.empty((3, max(end - first, 0)), np.int64), 0
    for number in range(first, end):
        place = positions[number]
        here, there, least, most = number, number, number, number + 1
        if place.below_brokers == LINKED:
            here = int(place.children)
        elif place.below_brokers == UPLINKED:
            there = int(place.first) if place.first != NONE else number
        else:  # a place on a tree, or one that is flooded, whose links are counted by themselves
            least = int(place.first)
            most = least if flooded else least + int(place.children)
        for tally in range(least, most):
            if tallies[tally].messages > 0:
                to = there if least == number else tally
                found[0, many] = np.int64(positions[here].broker) * brokers + positions[to].broker
                found[1, many], found[2, many] = tallies[tally].messages, tallies[tally].bytes
                many += 1
    return found[:, :many].copy()


@kernel
def close_servers(states: Items, servers: Items, messages: Items, in_service: Items, horizon: float) -> None:
    """Account for the time up to the end, and for what waits or is in service then."""
    state = states[0]
    many = state.servers_each
    for broker in range(servers.size):
        server, waiting = servers[broker], 0.0
        integrate(server, horizon)
        server.held = server.controls + server.waiting + server.serving
        for first in (server.first_control, server.first):
            message = first
            while message != NONE:
                waiting += messages[message].time
                message = messages[message].next
        if server.serving < many:
            catch_up(state, broker, horizon)
            server.backlog = server.refused
        else:
            server.backlog = server.refused + waiting
            for place in range(many):
                server.backlog = server.backlog + messages[in_service[broker * many + place].message].time - horizon
        server.busy /= many
        server.offered /= many
        server.backlog /= many
        server.squares /= many * many
