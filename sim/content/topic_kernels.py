"""The compiled trie of topic filters: built from, and walked by, the bytes of names. Slow twin: tests/oracles/topic_filters.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import inlined, kernel

ABSENT = -1
_FACTOR, _MIX = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD
_NODE, _LEVEL, _CHILD = 0, 1, 2  # columns of `Trie.edges`
_ONE, _ENDS, _ENDS_REST = 0, 1, 2  # columns of `Trie.nodes`


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
    child by the wildcard of a level, and the last filter that ends at the node, or there with the wildcard for the rest; `before`
    (filters) is the one before it that does so too. Rows have four columns so that each is within one line of the processor's cache.
    """

    level_at: NDArray[np.int32]
    level_hash: NDArray[np.uint64]
    level_text: NDArray[np.int64]
    edges: NDArray[np.int32]
    nodes: NDArray[np.int32]
    before: NDArray[np.int32]


@kernel
def _cut_level(data: NDArray[np.uint8], at: int, stop: int, separator: int) -> tuple[int, np.uint64]:
    """Where the level that begins at `at` ends, and its hash."""
    value = np.uint64(0)
    while at < stop and data[at] != separator:
        value = value * np.uint64(_FACTOR) + np.uint64(data[at])
        at += 1
    value = (value ^ (value >> np.uint64(32))) * np.uint64(_MIX)
    return at, value ^ (value >> np.uint64(32))


@kernel
def _level_slot(
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
def _edge_slot(edges: NDArray[np.int32], node: int, level: int) -> int:
    """The slot of the edge from a node by a level, or the free one where it would be."""
    last = edges.shape[0] - 1
    mixed = (np.uint64(node) << np.uint64(32) | np.uint64(level)) * np.uint64(_FACTOR)
    slot = np.int64(((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(32)) & np.uint64(last))
    while edges[slot, _CHILD] != ABSENT and (edges[slot, _NODE] != node or edges[slot, _LEVEL] != level):
        slot = (slot + 1) & last
    return int(slot)


@kernel
def build_trie(filters: NameBytes, grammar: Grammar, trie: Trie) -> int:
    """Add the filters to an empty trie; returns the number of nodes.

    It has room for a node, a level and an edge for each level of each filter.
    """
    data, starts = filters
    nodes, levels = 1, 0
    for f in range(starts.size - 1):
        at, stop, node = starts[f], starts[f + 1], 0
        ends = _ENDS
        while True:
            end, hashed = _cut_level(data, at, stop, grammar.separator)
            single = end - at == 1
            if single and data[at] == grammar.rest and end == stop:
                ends = _ENDS_REST
                break
            if single and data[at] == grammar.one:
                child = trie.nodes[node, _ONE]
                if child == ABSENT:
                    child = trie.nodes[node, _ONE] = nodes
            else:
                slot = _level_slot(trie, data, hashed, data, at, end)
                level = trie.level_at[slot]
                if level == ABSENT:
                    level = trie.level_at[slot] = levels
                    trie.level_hash[level], trie.level_text[level, 0], trie.level_text[level, 1] = hashed, at, end
                    levels += 1
                slot = _edge_slot(trie.edges, node, level)
                child = trie.edges[slot, _CHILD]
                if child == ABSENT:
                    child = trie.edges[slot, _CHILD] = nodes
                    trie.edges[slot, _NODE], trie.edges[slot, _LEVEL] = node, level
            nodes += child == nodes
            node = child
            if end == stop:
                break
            at = end + 1
        trie.before[f], trie.nodes[node, ends] = trie.nodes[node, ends], f
    return nodes


@kernel
def pack_edges(edges: NDArray[np.int32], packed: NDArray[np.int32]) -> None:
    """Put edges into an empty table of another size."""
    for slot in range(edges.shape[0]):
        if edges[slot, _CHILD] != ABSENT:
            packed[_edge_slot(packed, edges[slot, _NODE], edges[slot, _LEVEL])] = edges[slot]


@kernel
def _take(last: int, before: NDArray[np.int32], out: NDArray[np.int32], count: int) -> int:
    """Add the filters of a chain, as long as there is room; returns how many there are by then."""
    while last != ABSENT:
        if count < out.size:
            out[count] = last
        count += 1
        last = before[last]
    return count


@kernel
def _has_empty_level(data: NDArray[np.uint8], at: int, stop: int, separator: int) -> bool:
    empty = True
    for k in range(at, stop):
        if data[k] == separator and empty:
            return True
        empty = data[k] == separator
    return empty


@inlined
def _match_name(
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
    if grammar.strict and _has_empty_level(data, at, stop, grammar.separator):
        return count
    visible = not (stop > at and data[at] == grammar.hides)
    reached[0, 0], width, now = 0, 1, 0
    while width:
        end, hashed = _cut_level(data, at, stop, grammar.separator)
        level = trie.level_at[_level_slot(trie, filters, hashed, data, at, end)]
        below = 0
        for i in range(width):
            node = reached[now, i]
            if visible:
                count = _take(trie.nodes[node, _ENDS_REST], trie.before, out, count)
                if trie.nodes[node, _ONE] != ABSENT:
                    reached[1 - now, below] = trie.nodes[node, _ONE]
                    below += 1
            if level != ABSENT:
                child = trie.edges[_edge_slot(trie.edges, node, level), _CHILD]
                if child != ABSENT:
                    reached[1 - now, below] = child
                    below += 1
        now, width, visible = 1 - now, below, True
        if end == stop:
            break
        at = end + 1
    for i in range(width):
        count = _take(trie.nodes[reached[now, i], _ENDS], trie.before, out, count)
        if grammar.rest_may_be_none:
            count = _take(trie.nodes[reached[now, i], _ENDS_REST], trie.before, out, count)
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
        count = _match_name(data, bounds, filters, grammar, trie, reached, out, first)
        if count > out.size:  # there was no room for all
            larger = np.empty(2 * count, np.int32)
            larger[:first] = out[:first]
            out = larger
            count = _match_name(data, bounds, filters, grammar, trie, reached, out, first)
        if count - first > 1:
            out[first:count].sort()
        indptr[n + 1] = count
    return out[:count].copy()
