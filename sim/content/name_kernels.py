"""Compiled search for the topics that a filter matches, in a trie of their names: the reverse of `topic_kernels.match_name`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.content.topic_kernels import ABSENT, Grammar, Trie, cut_level, edge_slot, level_slot, take_chain

_NODE, _LEVEL, _CHILD = 0, 1, 2  # columns of `Trie.edges`
_ENDS, _BELOW = 1, 3  # columns of `Trie.nodes`


class Children(NamedTuple):
    """The nodes below each node of a trie, in a list: its `first` child, and of each node the `next` sibling and whether it is hidden.

    -1 stands for none. Hidden are children of the root whose names begin with the grammar's `hides`.
    """

    first: NDArray[np.int32]
    next: NDArray[np.int32]
    hidden: NDArray[np.bool_]


@kernel
def children_of(trie: Trie, data: NDArray[np.uint8], grammar: Grammar) -> Children:
    """The children of all nodes of a trie of names without wildcards; `data` are the names' bytes."""
    nodes = trie.nodes.shape[0]
    first, following, hidden = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.zeros(nodes, np.bool_)
    first[:] = ABSENT
    for node in range(1, nodes):
        parent, level = trie.parent[node], trie.edges[trie.slot[node], _LEVEL]
        following[node], first[parent] = first[parent], node
        start = trie.level_text[level, 0]
        hidden[node] = parent == 0 and trie.level_text[level, 1] > start and data[start] == grammar.hides
    return Children(first, following, hidden)


@kernel
def find_names(
    pattern: NDArray[np.uint8],
    data: NDArray[np.uint8],
    grammar: Grammar,
    trie: Trie,
    children: Children,
    reached: NDArray[np.int32],
    out: NDArray[np.int32],
) -> int:
    """Write the names in force that a filter, `pattern`, matches, as long as there is room; returns how many there are.

    `data` are the names' bytes; `reached` (2, nodes) is for the walk.
    """
    at, stop, count = 0, pattern.size, 0
    reached[0, 0], width, now = 0, int(trie.nodes[0, _BELOW] > 0), 0
    while width:
        end, hashed = cut_level(pattern, at, stop, grammar.separator)
        single, below = end - at == 1, 0
        if single and end == stop and pattern[at] == grammar.rest:
            return int(_all_below(trie, children, grammar.rest_may_be_none, reached[now], width, out))
        wild = single and pattern[at] == grammar.one
        level = 0 if wild else trie.level_at[level_slot(trie, data, hashed, pattern, at, end)]
        for i in range(width):
            node = reached[now, i]
            if wild:
                child = children.first[node]
                while child != ABSENT:
                    if trie.nodes[child, _BELOW] and not children.hidden[child]:
                        reached[1 - now, below] = child
                        below += 1
                    child = children.next[child]
            elif level != ABSENT:
                child = trie.edges[edge_slot(trie.edges, node, level), _CHILD]
                if child >= 0:
                    reached[1 - now, below] = child
                    below += 1
        now, width = 1 - now, below
        if end == stop:
            break
        at = end + 1
    for i in range(width):
        count = take_chain(trie.nodes[reached[now, i], _ENDS], trie.before, out, count)
    return count


@kernel
def _all_below(
    trie: Trie, children: Children, themselves: bool, stack: NDArray[np.int32], many: int, out: NDArray[np.int32]
) -> int:
    """Write the names in force at nodes (if `themselves`) and below them; the first `many` of the stack."""
    count = 0
    if themselves:
        for i in range(many):
            count = take_chain(trie.nodes[stack[i], _ENDS], trie.before, out, count)
    while many:
        many -= 1
        child = children.first[stack[many]]
        while child != ABSENT:
            if trie.nodes[child, _BELOW] and not children.hidden[child]:
                count = take_chain(trie.nodes[child, _ENDS], trie.before, out, count)
                stack[many] = child
                many += 1
            child = children.next[child]
    return count
