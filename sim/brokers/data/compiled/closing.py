"""What the compiled engine counts once, at the end of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.brokers.data.compiled.cells import cell_of, overtake_flood
from sim.brokers.data.compiled.servers import catch_up, integrate
from sim.brokers.data.compiled.state import DOWN, LINKED, NONE, REQUEST, SERVED, TRAVELLING, UPLINKED, Item, Items
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.ledger import DELIVERED, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED
from sim.brokers.statistics.records import Statistics

_PAIRS = {
    DUE: "due",
    DELIVERED: "delivered",
    LOST["joining"]: "joining",
    LOST["queue_full"]: "refused",
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


def count_windows(windows: Items, statistics: Statistics, counted: dict[str, list[Any]]) -> None:
    """Add what was counted in each window to the statistics, and to the recorder's counts by name."""
    for window, duplicates in enumerate(windows["duplicates"].tolist()):
        counted["duplicates"][window] += duplicates
    for row, name in _PAIRS.items():
        for whom, whose in enumerate(("brokers", "users")):
            statistics.pairs[:, row, whom] += windows[f"{name}_{whose}"]
    for column, name in _PUBLICATIONS.items():
        statistics.publications[:, column] += windows[name]
    for column, name in _COUNTERS.items():
        statistics.counters[:, column] += windows[name]


@kernel
def in_transit(
    states: Items, messages: Items, flights: Items, positions: Items, pairs: NDArray[np.int64], found: NDArray[np.int64]
) -> None:
    """Count what messages below their roots would still deliver, and in `found` the flights of each period in transit."""
    state, over = states[0], np.zeros(flights.size, np.bool_)
    for message in messages:
        if message.kind == NONE or message.kind % SERVED == REQUEST:
            continue
        flight = flights[message.flight]
        if not over[message.flight]:
            over[message.flight] = True
            found[flight.period] += 1
        if message.kind % SERVED == DOWN:
            place = positions[message.position]
            pairs[flight.window, IN_FLIGHT, 0] += place.below_brokers
            pairs[flight.window, IN_FLIGHT, 1] += place.below_users
        elif message.kind % SERVED > REQUEST:
            cell_of(state, flight, positions[message.position].first).state |= TRAVELLING
    if state.floods:
        for number in np.flatnonzero(over):
            flight = flights[number]
            if flight.version != NONE:
                brokers, users = overtake_flood(state, flight)
                pairs[flight.window, IN_FLIGHT, 0] += brokers
                pairs[flight.window, IN_FLIGHT, 1] += users


@kernel
def _count_link(here: Item, there: Item, tally: Item, statistics: Statistics) -> None:
    statistics.links[here.broker, there.broker, 0] += tally.messages
    statistics.links[here.broker, there.broker, 1] += tally.bytes
    statistics.per_broker[here.broker, rk.SENT] += tally.messages
    statistics.per_broker[there.broker, rk.RECEIVED] += tally.messages
    if there.users == 0:
        statistics.per_broker[there.broker, rk.RELAYED] += tally.messages


@kernel
def count_links(positions: Items, tallies: Items, first: int, end: int, flooded: bool, statistics: Statistics) -> None:
    """Count what was sent over each link: on the hops of the trees or floods, or of uplinks, at positions from first to before end."""
    for number in range(first, end):
        here = positions[number]
        if here.below_brokers == LINKED:
            _count_link(positions[here.children], here, tallies[number], statistics)
        elif here.below_brokers == UPLINKED:
            if here.first != NONE:
                _count_link(here, positions[here.first], tallies[number], statistics)
        elif not flooded:
            for child in range(here.first, here.first + here.children):
                _count_link(here, positions[child], tallies[child], statistics)


@kernel
def close_servers(servers: Items, messages: Items, horizon: float) -> None:
    """Account for the time up to the end, and for what waits or is in service then."""
    for server in servers:
        integrate(server, horizon)
        server.held = server.controls + server.waiting
        waiting = 0.0
        for first, many in ((server.first_control, server.controls), (server.first, server.waiting)):
            message = first
            for _ in range(many):
                waiting += messages[message].time
                message = messages[message].next
        if server.serving == NONE:
            catch_up(server, horizon)
            server.backlog = server.refused
        else:
            server.held += 1
            server.backlog = server.refused + waiting + server.done_at - horizon
