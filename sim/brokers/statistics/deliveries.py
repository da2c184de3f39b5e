"""Deliveries of due brokers, sorted by time for the legs to users."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.brokers.statistics.receipts import Audience

DELIVERY = np.dtype(
    [
        ("served", "f8"),  # when the broker had served it (s)
        ("arrived", "f8"),  # there
        ("rooted", "f8"),  # when it left its root; NaN by the best-effort channel
        ("number", "i8"),  # of the publication
        ("broker", "i4"),
        ("audience", "i4"),  # its audience, at this broker and others: a number from `DeliveryBuffer.entry`
    ],
    align=True,
)
"""A publication that a due broker has served."""


class Arrivals(NamedTuple):
    """Arrival times of publications at brokers: f at times (s, NaN: none) in the part `first[f]:first[f + 1]`, which may be empty."""

    times: NDArray[np.float64]
    first: NDArray[np.int64]


def arrivals_of(sizes: NDArray[np.int64]) -> Arrivals:
    """Arrivals with the given number of entries for each publication, all NaN."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    return Arrivals(np.full(first[-1], np.nan), first)


class DuePlaces(NamedTuple):
    """The due brokers of publications: f goes to `first[e]:first[e + 1]` of `brokers`, with due `users` each; e is `entry[f]`."""

    entry: NDArray[np.int64]
    first: NDArray[np.int64]
    brokers: NDArray[np.int32]
    users: NDArray[np.int32]


_BATCH = 1 << 14  # deliveries that are passed on at once, and
_USERS = 1 << 20  # users of their audiences, likewise


class DeliveryBuffer:
    """Collects deliveries in any order, and passes them on by time, then publication, once no earlier one can follow.

    Nothing is kept of those that have been passed on. `receive(deliveries, audiences)` is who gets them, and `lose(users, now)` what
    becomes of those that wait for users whose broker crashes (s).
    """

    receive: Callable[[Items, Sequence[Audience]], None]
    lose: Callable[[Sequence[int], float], None]

    def __init__(self) -> None:
        self._rows: list[tuple[float, float, float, int, int, int]] = []
        self._parts: list[Items] = []
        self._held, self._most = 0, _BATCH
        self._until = 0.0  # all earlier ones have been passed on (s)
        self._audiences: list[Audience] = []
        self._numbers: dict[int, int] = {}  # of audiences, by their ids
        self._users, self._most_users = 0, _USERS

    def entry(self, audience: Audience) -> int:
        """The number of an audience, valid until deliveries are passed on."""
        number = self._numbers.get(id(audience))
        if number is None:
            number = self._numbers[id(audience)] = len(self._audiences)
            self._audiences.append(audience)
            self._users += len(audience.users)
        return number

    def add(self, served: float, arrived: float, rooted: float, number: int, broker: int, audience: Audience) -> None:
        """Add one delivery: the fields of DELIVERY."""
        self._rows.append((served, arrived, rooted, number, broker, self.entry(audience)))
        self._held += 1

    def extend(self, rows: Items) -> None:
        """Several deliveries (DELIVERY)."""
        self._parts.append(rows)
        self._held += len(rows)

    def arrive(
        self,
        number: NDArray[np.int64],
        rooted: NDArray[np.float64],
        places: DuePlaces,
        arrivals: Arrivals,
        audiences: Sequence[Audience | None],
    ) -> None:
        """Add publications that were served on arrival at some of their places; each entry has its audience."""
        which = np.flatnonzero(~np.isnan(arrivals.times))
        publication = np.searchsorted(arrivals.first, which, side="right") - 1
        entry = places.entry[publication]
        place = places.first[entry] + which - arrivals.first[publication]
        due = places.users[place] > 0
        which, publication, entry, place = which[due], publication[due], entry[due], place[due]
        rows = np.zeros(len(which), DELIVERY)
        rows["served"] = rows["arrived"] = arrivals.times[which]
        rows["rooted"], rows["number"], rows["broker"] = rooted[publication], number[publication], places.brokers[place]
        entries, inverse = np.unique(entry, return_inverse=True)
        found = [audiences[each] for each in entries.tolist()]
        rows["audience"] = np.array([self.entry(audience) for audience in found if audience is not None], np.int32)[
            inverse
        ]
        self.extend(rows)

    def crash(self, users: Sequence[int], now: float) -> None:
        """The broker of these users crashes, when all that has been served before has been added."""
        self.advance(now)
        self.lose(users, now)

    @property
    def full(self) -> bool:
        """Whether it is time to pass on what can be."""
        return self._held >= self._most or self._users >= self._most_users

    def advance(self, until: float) -> None:
        """Pass on deliveries before `until` (s): no earlier ones will be added."""
        rows = np.concatenate([*self._parts, np.array(self._rows, DELIVERY)])
        ready = rows["served"] < until
        assert rows["served"].min(initial=math.inf) >= self._until, (
            "a delivery is earlier than those that have been passed on"
        )
        self._until = max(self._until, until)
        passed, kept, audiences = rows[ready], rows[~ready], self._audiences
        passed = passed[np.lexsort((passed["number"], passed["served"]))]
        entries, which = np.unique(kept["audience"], return_inverse=True)
        self._rows, self._parts, self._held, self._users = [], [kept], len(kept), 0
        self._audiences, self._numbers = [], {}
        kept["audience"] = np.array([self.entry(audiences[entry]) for entry in entries.tolist()], np.int32)[which]
        self._most, self._most_users = max(_BATCH, 2 * self._held), max(_USERS, 2 * self._users)
        if len(passed):
            self.receive(passed, audiences)
