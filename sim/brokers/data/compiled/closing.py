"""The counts that the compiled engine makes once, at the end of a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.cells import cell_of, overtake_flood
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
from sim.brokers.statistics.ledger import DELIVERED, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.records import Statistics

_PAIRS = {
    DUE: "due",
    DELIVERED: "delivered",
    LOST["joining"]: "joining",
    LOST["queue_full"]: "refused",
    LOST["link"]: "strayed",
    LOST["crashed"]: "crashed",
    LOST["partitioned"]: "parted",
    LOST["disconnected"]: "absent",
    LOST["hop_limit"]: "limited",
}
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
}


def count_windows(windows: Items, statistics: Statistics, duplicates: list[int]) -> None:
    """Add what was counted in each window to the statistics, and to the recorder's counts by name."""
    for window, more in enumerate(windows["duplicates"].tolist()):
        duplicates[window] += more
    for row, name in _PAIRS.items():
        for whom, whose in enumerate(("brokers", "users")):
            statistics.pairs[:, row, whom] += windows[f"{name}_{whose}"]
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
def in_transit(
    states: Items, messages: Items, flights: Items, positions: Items, pairs: NDArray[np.int64], found: NDArray[np.int64]
) -> None:
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
            pairs[flight.window, IN_FLIGHT, 0] += place.below_brokers
            pairs[flight.window, IN_FLIGHT, 1] += place.below_users
        elif message.kind % SERVED == FLOODED:
            _travels(state, flight, positions[message.position])
    if state.floods:
        for number in np.flatnonzero(over):
            flight = flights[number]
            if flight.version != NONE:
                brokers, users = overtake_flood(state, flight)
                pairs[flight.window, IN_FLIGHT, 0] += brokers
                pairs[flight.window, IN_FLIGHT, 1] += users


def count_links(positions: Items, tallies: Items, part: slice, flooded: bool, recorder: Recorder) -> None:
    """Count what was sent over each link: on the hops of trees, floods or uplinks, for a range of positions."""
    here = positions[part]
    numbers = np.arange(part.start, part.stop)
    links, uplinks = here["below_brokers"] == LINKED, here["below_brokers"] == UPLINKED
    up = uplinks & (here["first"] != NONE)
    hops = [(here["children"][links], numbers[links], numbers[links]), (numbers[up], here["first"][up], numbers[up])]
    if not flooded:
        parents = np.flatnonzero(~links & ~uplinks & (here["children"] > 0))
        counts = here["children"][parents]
        behind = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        below = np.repeat(here["first"][parents], counts) + behind
        hops.append((np.repeat(numbers[parents], counts), below, below))
    above, below, tally = (np.concatenate(columns) for columns in zip(*hops, strict=True))
    sent = tallies["messages"][tally] > 0
    above, below, tally = above[sent], below[sent], tallies[tally[sent]]
    source, destination, messages = positions["broker"][above], positions["broker"][below], tally["messages"]
    brokers = recorder.statistics.brokers
    recorder.links.add(np.stack([source * brokers + destination, messages, tally["bytes"]]))


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
