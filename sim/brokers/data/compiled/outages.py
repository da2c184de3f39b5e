"""Messages stopped by faults in the compiled engine, as in `sim.brokers.fabric.outages.Outages`."""

from __future__ import annotations

from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.records import integer_at, outage_at, sent_at
from sim.brokers.data.compiled.state import CRASHED, ON_ITS_WAY, PARTED


@kernel
def _is_among(links: int, many: int, link: int) -> bool:
    """Whether a link is among these, at an address, which ascend."""
    low, high = 0, many
    while low < high:  # the first one not below it
        middle = (low + high) // 2
        if integer_at(links, middle).value < link:
            low = middle + 1
        else:
            high = middle
    return bool(low < many and integer_at(links, low).value == link)


@kernel
def is_cut(state: Item, here: int, there: int) -> bool:
    """Whether the link between two brokers is cut, if any link is."""
    if outage_at(state.outages, here).side != outage_at(state.outages, there).side:
        return True
    return _is_among(state.cut_links, state.cut_links_many, here * state.brokers + there)


@kernel
def is_avoided(state: Item, here: int, there: int) -> bool:
    """Whether the overlay routes around the link between two brokers, if it does around any."""
    if outage_at(state.outages, here).avoided != outage_at(state.outages, there).avoided:
        return True
    return _is_among(state.avoided_links, state.avoided_links_many, here * state.brokers + there)


@kernel
def _stops(state: Item, here: int, there: int) -> int:
    if state.cuts and is_cut(state, here, there):
        return PARTED
    return CRASHED if outage_at(state.outages, there).down else ON_ITS_WAY


@inlined
def stops(state: Item, number: int, there: int) -> int:
    """The outcome of a message that arrives at a broker now."""
    return int(_stops(state, sent_at(state.sent, number).broker, there)) if state.outage else ON_ITS_WAY
