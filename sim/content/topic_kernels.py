"""The compiled trie of topic filters: built from, and walked by, the bytes of names. Slow twin: tests/oracles/topic_filters.py.

A trie is built once for all filters that may ever be in force; then filters come and go in time that depends on their levels alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

ABSENT, OUT = -1, -2
_FACTOR, _MIX = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD
_NODE, _LEVEL, _CHILD = 0, 1, 2  # columns of `Trie.edges`
_ONE, _ENDS, _BELOW = 0, 1, 3  # columns of `Trie.nodes`; _ENDS + 1 is that of filters for the rest


class NameBytes(NamedTuple):
    """Names as bytes: name i is `data[start[i]:start[i + 1]]`."""

    data: NDArray[np.uint8]
    start: NDArray[np.int64]


class Grammar(NamedTuple):
    """What the bytes of names mean; -1 where there is no such byte.

    `separator` divides levels, `one` stands for any level, `rest` at the end for all further levels, also none if
    `rest_may_be_none`. No wildcard at the beginning matches a name that begins with `hides`. If `strict`, a name with an empty level
    matches nothing.
    """

    separator: int
    one: int
    rest: int
    hides: int
    rest_may_be_none: bool
    strict: bool


class Trie(NamedTuple):
    """Levels are numbered by their text, nodes from the root, 0; -1 stands for none in all arrays.

    `level_at` (slots) is a hash table with linear probing of levels, of which `level_hash` and `level_text` (levels, 2) have the hash,
    and where the bytes are in the filters' data. `edges` (slots, 4) is another one of (node, level, child). `nodes` (nodes, 4) are the
    child by the wildcard of a level, the last filter that ends at the node, or there with the wildcard for the rest, and the number
    of filters in force at the node and below. Rows have four columns so that each is within one line of the processor's cache.
    A child c without any in force is recorded as -2 - c, so that no walk gets there.

    `before` and `after` (filters) chain those that end alike; `before` is -2 for those out of force. `parent` (nodes) is the node
    above, and `slot` that of the edge from there; `home` (filters) is twice the node where a filter ends, plus 1 for the wildcard for
    the rest.
    """

    level_at: NDArray[np.int32]
    level_hash: NDArray[np.uint64]
    level_text: NDArray[np.int64]
    edges: NDArray[np.int32]
    nodes: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    parent: NDArray[np.int32]
    slot: NDArray[np.int32]
    home: NDArray[np.int32]


@kernel
def cut_level(data: NDArray[np.uint8], at: int, stop: int, separator: int) -> tuple[int, np.uint64]:
    """Where the level that begins at `at` ends, and its hash."""
    value = np.uint64(0)
    while at < stop and data[at] != separator:
        value = value * np.uint64(_FACTOR) + np.uint64(data[at])
        at += 1
    value = (value ^ (value >> np.uint64(32))) * np.uint64(_MIX)
    return at, value ^ (value >> np.uint64(32))


@kernel
def level_slot(
    trie: Trie, filters: NDArray[np.uint8], level: np.uint64, data: NDArray[np.uint8], start: int, stop: int
) -> int:
    """The slot of a level, or the free one where it would be."""
    last = trie.level_at.size - 1
    slot = np.int64(level & np.uint64(last))
    while trie.level_at[slot] != ABSENT:
        known = trie.level_at[slot]
        if trie.level_hash[known] == level:
            first, size = trie.level_text[known, 0], stop - start
            same = trie.level_text[known, 1] - first == size
            k = 0
            while same and k < size:
                same = filters[first + k] == data[start + k]
                k += 1
            if same:
                return int(slot)
        slot = (slot + 1) & last
    return int(slot)


@kernel
def edge_slot(edges: NDArray[np.int32], node: int, level: int) -> int:
    """The slot of the edge from a node by a level, or the free one where it would be."""
    last = edges.shape[0] - 1
    mixed = (np.uint64(node) << np.uint64(32) | np.uint64(level)) * np.uint64(_FACTOR)
    slot = np.int64(((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(32)) & np.uint64(last))
    while edges[slot, _CHILD] != ABSENT and (edges[slot, _NODE] != node or edges[slot, _LEVEL] != level):
        slot = (slot + 1) & last
    return int(slot)


@kernel
def build_trie(filters: NameBytes, grammar: Grammar, trie: Trie) -> tuple[int, int]:
    """Add the filters to an empty trie, out of force; returns the numbers of nodes and of levels.

    It has room for a node, a level and an edge for each level of each filter.
    """
    data, starts = filters
    nodes, levels = 1, 0
    for f in range(starts.size - 1):
        at, stop, node = starts[f], starts[f + 1], 0
        rest = 0
        while True:
            end, hashed = cut_level(data, at, stop, grammar.separator)
            single = end - at == 1
            if single and data[at] == grammar.rest and end == stop:
                rest = 1
                break
            if single and data[at] == grammar.one:
                child = trie.nodes[node, _ONE]
                if child == ABSENT:
                    child = trie.nodes[node, _ONE] = nodes
            else:
                slot = level_slot(trie, data, hashed, data, at, end)
                level = trie.level_at[slot]
                if level == ABSENT:
                    level = trie.level_at[slot] = levels
                    trie.level_hash[level], trie.level_text[level, 0], trie.level_text[level, 1] = hashed, at, end
                    levels += 1
                slot = edge_slot(trie.edges, node, level)
                child = trie.edges[slot, _CHILD]
                if child == ABSENT:
                    child = trie.edges[slot, _CHILD] = nodes
                    trie.edges[slot, _NODE], trie.edges[slot, _LEVEL] = node, level
            if child == nodes:
                trie.parent[child] = node
                nodes += 1
            node = child
            if end == stop:
                break
            at = end + 1
        trie.home[f] = 2 * node + rest
    return nodes, levels


@kernel
def finish_trie(trie: Trie, edges: NDArray[np.int32]) -> None:
    """Move the `edges` of a built trie to its own table, which is empty, as is that of levels; no node can be reached then."""
    last = trie.level_at.size - 1
    for level in range(trie.level_hash.size):
        place = np.int64(trie.level_hash[level] & np.uint64(last))
        while trie.level_at[place] != ABSENT:
            place = (place + 1) & last
        trie.level_at[place] = level
    for old in range(edges.shape[0]):
        child = edges[old, _CHILD]
        if child != ABSENT:
            slot = edge_slot(trie.edges, edges[old, _NODE], edges[old, _LEVEL])
            trie.edges[slot], trie.slot[child] = edges[old], slot
    for node in range(1, trie.nodes.shape[0]):
        _turn(trie, node)


@kernel
def _turn(trie: Trie, node: int) -> None:
    """Let a node be reached from the one above it, or no longer."""
    parent, slot = trie.parent[node], trie.slot[node]
    if slot == ABSENT:
        trie.nodes[parent, _ONE] = -2 - trie.nodes[parent, _ONE]
    else:
        trie.edges[slot, _CHILD] = -2 - trie.edges[slot, _CHILD]


@kernel
def put_in_force(trie: Trie, f: int) -> bool:
    """Let a filter be in force; returns False where it is already."""
    if trie.before[f] != OUT:
        return False
    node, rest = trie.home[f] >> 1, trie.home[f] & 1
    last = trie.nodes[node, _ENDS + rest]
    trie.before[f], trie.after[f], trie.nodes[node, _ENDS + rest] = last, ABSENT, f
    if last != ABSENT:
        trie.after[last] = f
    _count_up(trie, node, 1)
    return True


@kernel
def put_out_of_force(trie: Trie, f: int) -> bool:
    """Let a filter cease to be in force; returns False where it is not."""
    before, after = trie.before[f], trie.after[f]
    if before == OUT:
        return False
    node, rest = trie.home[f] >> 1, trie.home[f] & 1
    if before != ABSENT:
        trie.after[before] = after
    if after != ABSENT:
        trie.before[after] = before
    else:
        trie.nodes[node, _ENDS + rest] = before
    trie.before[f] = OUT
    _count_up(trie, node, -1)
    return True


@kernel
def _count_up(trie: Trie, node: int, change: int) -> None:
    """Count a filter at a node and at all above it."""
    while node != ABSENT:
        before = trie.nodes[node, _BELOW]
        trie.nodes[node, _BELOW] = before + change
        if node and (before == 0 or before + change == 0):
            _turn(trie, node)
        node = trie.parent[node]


@kernel
def put_all(trie: Trie, filters: NDArray[np.int64], in_force: bool) -> int:
    """Let filters be in force or not; returns the place of the first of which that is so already, -1 if there is none."""
    for place in range(filters.size):
        changed = put_in_force(trie, filters[place]) if in_force else put_out_of_force(trie, filters[place])
        if not changed:
            return place
    return ABSENT


@kernel
def take_chain(last: int, before: NDArray[np.int32], out: NDArray[np.int32], count: int) -> int:
    """Add the filters of a chain, as long as there is room; returns how many there are by then."""
    while last != ABSENT:
        if count < out.size:
            out[count] = last
        count += 1
        last = before[last]
    return count


@kernel
def has_empty_level(data: NDArray[np.uint8], at: int, stop: int, separator: int) -> bool:
    """Whether a name has an empty level."""
    empty = True
    for k in range(at, stop):
        if data[k] == separator and empty:
            return True
        empty = data[k] == separator
    return empty


@kernel
def match_name(
    data: NDArray[np.uint8],
    bounds: tuple[int, int],
    filters: NDArray[np.uint8],
    grammar: Grammar,
    trie: Trie,
    reached: NDArray[np.int32],
    out: NDArray[np.int32],
    count: int,
) -> int:
    """Add the filters that match a name, as long as there is room; returns how many there are by then.

    The walk is breadth-first, so that a level is looked up once for all the nodes that are `reached` by then.
    """
    at, stop = bounds
    if grammar.strict and has_empty_level(data, at, stop, grammar.separator):
        return count
    visible = not (stop > at and data[at] == grammar.hides)
    reached[0, 0], width, now = 0, int(trie.nodes[0, _BELOW] > 0), 0
    while width:
        end, hashed = cut_level(data, at, stop, grammar.separator)
        level = trie.level_at[level_slot(trie, filters, hashed, data, at, end)]
        below = 0
        for i in range(width):
            node = reached[now, i]
            if visible:
                count = take_chain(trie.nodes[node, _ENDS + 1], trie.before, out, count)
                child = trie.nodes[node, _ONE]
                if child >= 0:
                    reached[1 - now, below] = child
                    below += 1
            if level != ABSENT:
                child = trie.edges[edge_slot(trie.edges, node, level), _CHILD]
                if child >= 0:
                    reached[1 - now, below] = child
                    below += 1
        now, width, visible = 1 - now, below, True
        if end == stop:
            break
        at = end + 1
    for i in range(width):
        count = take_chain(trie.nodes[reached[now, i], _ENDS], trie.before, out, count)
        if grammar.rest_may_be_none:
            count = take_chain(trie.nodes[reached[now, i], _ENDS + 1], trie.before, out, count)
    return count


@kernel
def match_names(
    names: NameBytes, filters: NDArray[np.uint8], grammar: Grammar, trie: Trie, indptr: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The filters that match each name, ascending, name by name; fills in where those of each begin and end."""
    data, starts = names
    out = np.empty(max(1024, 4 * starts.size), np.int32)
    reached = np.empty((2, trie.nodes.shape[0]), np.int32)
    count = 0
    for n in range(starts.size - 1):
        first, bounds = count, (starts[n], starts[n + 1])
        count = match_name(data, bounds, filters, grammar, trie, reached, out, first)
        if count > out.size:  # there was no room for all
            larger = np.empty(2 * count, np.int32)
            larger[:first] = out[:first]
            out = larger
            count = match_name(data, bounds, filters, grammar, trie, reached, out, first)
        if count - first > 1:
            out[first:count].sort()
        indptr[n + 1] = count
    return out[:count].copy()
