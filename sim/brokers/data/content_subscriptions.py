"""Subscriptions to content as brokers see them: each waits at one predicate's topic, and is matched there."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.content.matching import MatchingIndex
from sim.content.matching_kernels import count_holding
from sim.content.predicates import Content, occurring, routing

_BLOCK = 4096  # publications that are matched at once


class _Block(NamedTuple):
    """Publications that were matched together: the topics of each (n, fields), and the users it concerns.

    Publication i concerns the users `user[indptr[i]:indptr[i + 1]]`, each by a subscription that waits at the topic at the same
    index; they are sorted by topic and user, without repeated pairs.
    """

    topics: NDArray[np.int32]
    indptr: NDArray[np.int64]
    topic: NDArray[np.int32]
    user: NDArray[np.int32]


class ContentSubscriptions:
    """The users that match each publication, topic by topic. Publications are matched in blocks, on first use."""

    def __init__(self, content: Content) -> None:
        self._content, self._predicates = content, occurring(content)
        self._index = MatchingIndex(content.conjunctions)
        self._waits = routing(content, self._predicates)
        self._by_topic = np.argsort(self._waits, kind="stable").astype(np.int32)
        self._starts = np.searchsorted(self._waits[self._by_topic], np.arange(len(self._predicates) + 1))
        self._block = lru_cache(maxsize=4)(self._match)

    @property
    def fields(self) -> int:
        """The number of topics that each publication is sent to."""
        return self._content.conjunctions.fields

    def _match(self, block: int) -> _Block:
        values = self._content.values[block * _BLOCK : (block + 1) * _BLOCK]
        matches, owner = self._index.match_all(values), self._content.conjunctions.owner
        number = np.repeat(np.arange(len(values)), np.diff(matches.indptr))
        topic, user = self._waits[matches.subscription], owner[matches.subscription]
        order = np.lexsort((user, topic, number))
        number, topic, user = number[order], topic[order], user[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(number) != 0) | (np.diff(topic) != 0) | (np.diff(user) != 0)
        indptr = np.searchsorted(number[new], np.arange(len(values) + 1))
        return _Block(self._predicates.ids(np.arange(self.fields), values), indptr, topic[new], user[new])

    def subscribed(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of subscriptions and publications, for compiled code.

        Subscriptions `waiting[waiting_from[t]:waiting_from[t + 1]]` wait at topic t; subscription s of user `owner[s]` requires
        `asked_value[k]` in `asked_field[k]` for k in `asked_from[s]:asked_from[s + 1]`. `values` (publications, fields).
        """
        wanted = self._content.conjunctions
        return {
            "waiting": self._by_topic,
            "waiting_from": self._starts,
            "owner": wanted.owner,
            "asked_from": wanted.indptr,
            "asked_field": wanted.field,
            "asked_value": wanted.value,
            "values": self._content.values,
        }

    def topics(self, number: int) -> list[int]:
        """The topics that a publication is sent to: its predicates, by field."""
        topics: list[int] = self._block(number // _BLOCK).topics[number % _BLOCK].tolist()
        return topics

    def concerned(self, number: int, topic: int) -> list[int]:
        """The users with a subscription that waits at the topic and that the publication matches, ascending."""
        block, i = self._block(number // _BLOCK), number % _BLOCK
        start, end = block.indptr[i : i + 2]
        first, last = np.searchsorted(block.topic[start:end], (topic, topic + 1))
        users: list[int] = block.user[start + first : start + last].tolist()
        return users

    def increments(self, number: int, topic: int, host: NDArray[np.int32], brokers: int) -> NDArray[np.int64]:
        """The counter increments of each broker to match a publication with its users' subscriptions that wait at the topic."""
        wanted, counts = self._content.conjunctions, np.zeros(brokers, np.int64)
        subscriptions = self._by_topic[self._starts[topic] : self._starts[topic + 1]]
        where = host[wanted.owner[subscriptions]]
        row = self._content.values[number]
        count_holding(row, subscriptions, wanted.indptr, wanted.field, wanted.value, where, counts)
        return counts
