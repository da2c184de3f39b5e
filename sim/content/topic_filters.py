"""Which topic filters match a topic: exact names, filters of MQTT, and subjects of NATS, in one compiled trie."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.content.matching import Matches
from sim.content.topic_kernels import (
    ABSENT,
    OUT,
    Grammar,
    NameBytes,
    Trie,
    build_trie,
    finish_trie,
    match_names,
    put_all,
)

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
    """An index of topic filters. A wildcard that is not all of its level, or the one for the rest elsewhere, is literal.

    It is built once for all filters that may ever be in force; those in force, at first all, come and go by `add` and `remove`.
    """

    def __init__(self, filters: Iterable[str], grammar: Grammar = EXACT_NAMES) -> None:
        self._grammar, self._filters = grammar, name_bytes(filters)
        self._trie = built_trie(self._filters, grammar)
        put_all(self._trie, np.arange(len(self._trie.home)), True)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in (*self._trie, *self._filters))

    def add(self, filters: ArrayLike) -> None:
        """Let filters, by their positions, be in force. Raises ValueError where one is already."""
        self._put(filters, True)

    def remove(self, filters: ArrayLike) -> None:
        """Let filters, by their positions, cease to be in force. Raises ValueError where one is not in force."""
        self._put(filters, False)

    def _put(self, filters: ArrayLike, in_force: bool) -> None:
        chosen = np.atleast_1d(np.asarray(filters, np.int64))
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self._trie.home):
            raise ValueError(f"filters {chosen.min()}..{chosen.max()}, allowed: 0..{len(self._trie.home) - 1}")
        place = put_all(self._trie, chosen, in_force)
        if place != ABSENT:
            raise ValueError(f"filter {chosen[place]} is {'' if in_force else 'not '}in force")

    def match_all(self, published: Iterable[str]) -> Matches:
        """The filters in force that match each of these names, by their positions."""
        texts = name_bytes(published)
        indptr = np.zeros(len(texts.start), np.int64)
        return Matches(indptr, match_names(texts, self._filters.data, self._grammar, self._trie, indptr))

    def match(self, name: str) -> NDArray[np.int32]:
        """The filters in force that match a name, by their positions, ascending."""
        return self.match_all([name]).subscription


def _slots(entries: int) -> int:
    """The size of a hash table for this many entries: a power of two, of which they fill no more than half."""
    return 1 << (2 * entries).bit_length()


def name_bytes(names: Iterable[str]) -> NameBytes:
    """Names as bytes for kernels."""
    encoded = [name.encode(errors="surrogatepass") for name in names]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([*map(len, encoded)], out=start[1:])
    return NameBytes(np.frombuffer(b"".join(encoded), np.uint8), start)


def built_trie(filters: NameBytes, grammar: Grammar) -> Trie:
    """The trie of these filters, all out of force."""
    data, start = filters
    rooms = int(np.count_nonzero(data == grammar.separator)) + len(start)  # a node for each level, and the root
    slots = _slots(rooms)
    trie = Trie(
        np.full(slots, ABSENT, np.int32),
        np.empty(rooms, np.uint64),
        np.empty((rooms, 2), np.int64),
        np.full((slots, 4), ABSENT, np.int32),
        np.full((rooms, 4), ABSENT, np.int32),
        np.full(len(start) - 1, OUT, np.int32),
        np.full(len(start) - 1, ABSENT, np.int32),
        np.full(rooms, ABSENT, np.int32),
        np.full(rooms, ABSENT, np.int32),
        np.empty(len(start) - 1, np.int32),
    )
    trie.nodes[:, -1] = 0
    nodes, levels = build_trie(filters, grammar, trie)
    # as small as possible, so that the processor's cache may hold it
    found = trie._replace(
        level_at=np.full(_slots(levels), ABSENT, np.int32),
        level_hash=trie.level_hash[:levels].copy(),
        level_text=trie.level_text[:levels].copy(),
        edges=np.full((_slots(nodes), 4), ABSENT, np.int32),
        nodes=trie.nodes[:nodes].copy(),
        parent=trie.parent[:nodes].copy(),
        slot=trie.slot[:nodes].copy(),
    )
    finish_trie(found, trie.edges)
    return found
