"""Which topic filters match a topic: exact names, filters of MQTT, and subjects of NATS, in one compiled trie."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sim.content.matching import Matches
from sim.content.topic_kernels import ABSENT, Grammar, NameBytes, Trie, build_trie, match_names, pack_edges

EXACT_NAMES = Grammar(ABSENT, ABSENT, ABSENT, ABSENT, rest_may_be_none=False, strict=False)
"""A name matches itself."""
MQTT_FILTERS = Grammar(ord("/"), ord("+"), ord("#"), ord("$"), rest_may_be_none=True, strict=False)
"""Topic filters of MQTT 5.0, section 4.7: `+` is any level, `#` at the end any number of levels, neither at the beginning of `$…`."""
NATS_SUBJECTS = Grammar(ord("."), ord("*"), ord(">"), ABSENT, rest_may_be_none=False, strict=True)
"""Subjects of NATS: `*` is any token, `>` at the end one or more; a subject with an empty token matches nothing."""

GRAMMARS = {"exact": EXACT_NAMES, "mqtt": MQTT_FILTERS, "nats": NATS_SUBJECTS}


def has_wildcard(name: str, grammar: Grammar) -> bool:
    """Whether a filter matches other names than itself."""
    if grammar.separator == ABSENT:
        return False
    levels = name.split(chr(grammar.separator))
    return chr(grammar.one) in levels or levels[-1] == chr(grammar.rest)


class TopicIndex:
    """An index of topic filters, built once. A wildcard that is not all of its level, or the one for the rest elsewhere, is literal."""

    def __init__(self, filters: Iterable[str], grammar: Grammar = EXACT_NAMES) -> None:
        self._grammar, self._filters = grammar, _texts(filters)
        data, start = self._filters
        rooms = int(np.count_nonzero(data == grammar.separator)) + len(start)  # a node for each level, and the root
        slots = _slots(rooms)
        trie = Trie(
            np.full(slots, ABSENT, np.int32),
            np.empty(rooms, np.uint64),
            np.empty((rooms, 2), np.int64),
            np.full((slots, 4), ABSENT, np.int32),
            np.full((rooms, 4), ABSENT, np.int32),
            np.full(len(start) - 1, ABSENT, np.int32),
        )
        nodes = build_trie(self._filters, grammar, trie)
        edges = np.full(
            (_slots(nodes), 4), ABSENT, np.int32
        )  # as few as possible, which the processor's cache may hold
        pack_edges(trie.edges, edges)
        self._trie = trie._replace(edges=edges, nodes=trie.nodes[:nodes].copy())

    def match_all(self, published: Iterable[str]) -> Matches:
        """The filters that match each of these names, by their positions."""
        texts = _texts(published)
        indptr = np.zeros(len(texts.start), np.int64)
        return Matches(indptr, match_names(texts, self._filters.data, self._grammar, self._trie, indptr))

    def match(self, name: str) -> NDArray[np.int32]:
        """The filters that match a name, by their positions, ascending."""
        return self.match_all([name]).subscription


def _slots(entries: int) -> int:
    """The size of a hash table for this many entries: a power of two, of which they fill no more than half."""
    return 1 << (2 * entries).bit_length()


def _texts(names: Iterable[str]) -> NameBytes:
    encoded = [name.encode(errors="surrogatepass") for name in names]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([*map(len, encoded)], out=start[1:])
    return NameBytes(np.frombuffer(b"".join(encoded), np.uint8), start)
