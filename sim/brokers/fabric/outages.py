"""The present outages: brokers that are down, cut links, and slow brokers; and what the overlay routes around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.overlay.cuts import Cuts, no_cuts


class Outages:
    """The faults in progress.

    `down` and `draining` (brokers): whether they are; `bypassed` (brokers): those that the overlay routes around, if it heals.
    `absent` (brokers): those that are to join, or are leaving or have left, as planned; all are down but those about to leave.
    `closed` (brokers): those that take nothing from outside, since they are absent or about to be. `entry` (brokers): where
    publications from outside enter instead of at each broker; None while all accept them.
    `slowed` (brokers): the factor of service times. `active`: whether a broker is down or a link is cut. A link is cut where its
    ends are on different sides of a partition (`side`, brokers), or by itself (`links`: here · brokers + there for both directions,
    ascending). `partitions` (partitions, brokers) are those of the schedule: the brokers on one side of each.
    """

    def __init__(self, brokers: int, partitions: NDArray[np.bool_]) -> None:
        self.down = np.zeros(brokers, np.bool_)
        self.draining = np.zeros(brokers, np.bool_)
        self.bypassed = np.zeros(brokers, np.bool_)
        self.absent = np.zeros(brokers, np.bool_)
        self.closed = np.zeros(brokers, np.bool_)
        self.entry: NDArray[np.int64] | None = None
        self.slowed = np.ones(brokers)
        self.side = np.zeros(brokers, np.int64)
        self.links = np.empty(0, np.int64)
        # the links that the overlay routes around, between brokers and between their nodes
        self.avoided = self.avoided_nodes = no_cuts(brokers)
        self.avoids = False
        self.active = self.cuts = False
        self._brokers, self._partitions = brokers, partitions
        self._lasting = np.zeros(len(partitions), np.bool_)
        self._pairs: dict[int, None] = {}

    def take_down(self, broker: int, down: bool) -> None:
        """Take the broker down, or up again."""
        self.down[broker] = down
        self._look()

    def close(self, broker: int, closed: bool) -> None:
        """The broker accepts nothing from outside, or does again; publications then enter at the next one by number."""
        self.closed[broker] = closed
        others = np.flatnonzero(~self.closed)
        after = others[np.searchsorted(others, np.arange(self._brokers)) % len(others)]
        self.entry = after if self.closed.any() else None

    def up(self) -> float:
        """The share of brokers that are up, of those that are not absent."""
        there = int(np.count_nonzero(~self.absent))
        return 1.0 - int(np.count_nonzero(self.down & ~self.absent)) / max(there, 1)

    def accepting(self) -> NDArray[np.bool_]:
        """Which brokers accept users: those that are neither down, nor being drained, nor have yet to rejoin the overlay."""
        return ~(self.down | self.draining | self.bypassed)

    def accepts(self, broker: int) -> bool:
        """Whether the broker accepts users."""
        return not (self.down.item(broker) or self.draining.item(broker) or self.bypassed.item(broker))

    def cut_off(self, partition: int, cut: bool) -> None:
        """Cut the sides of a partition off from each other, or restore them."""
        self._lasting[partition] = cut
        self.side = self._sides(self._lasting)
        self._look()

    def _sides(self, partitions: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The side of each broker (brokers) that some of the partitions leave it on, by number."""
        if not partitions.any():
            return np.zeros(self._brokers, np.int64)
        return np.unique(self._partitions[partitions], axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def cut_link(self, one: int, other: int, cut: bool) -> None:
        """Cut the link between two brokers, or restore it."""
        for here, there in ((one, other), (other, one)):
            if cut:
                self._pairs[here * self._brokers + there] = None
            else:
                self._pairs.pop(here * self._brokers + there, None)
        self.links = np.array(sorted(self._pairs), np.int64)
        self._look()

    def lasting(self) -> frozenset[int]:
        """The cuts that last, as numbers: ~p for partition p, and links as in `links`."""
        return frozenset([*(~np.flatnonzero(self._lasting)).tolist(), *self._pairs])

    def of(self, cuts: frozenset[int]) -> Cuts:
        """The links that some cuts are about, as `lasting` has them."""
        partitions = np.zeros(len(self._partitions), np.bool_)
        partitions[[~cut for cut in cuts if cut < 0]] = True
        return Cuts(self._sides(partitions), np.array(sorted(cut for cut in cuts if cut >= 0), np.int64))

    def avoid(self, brokers: Cuts, nodes: Cuts) -> None:
        """The overlay routes around these links, between brokers and between the nodes on which they stand."""
        self.avoided, self.avoided_nodes, self.avoids = brokers, nodes, brokers.any()

    def _look(self) -> None:
        self.cuts = bool(self._lasting.any() or self._pairs)
        self.active = self.cuts or bool(self.down.any())

    def cut(self, here: int, there: int) -> bool:
        """Whether the link between two brokers is cut."""
        if not self.cuts:
            return False
        return self.side.item(here) != self.side.item(there) or here * self._brokers + there in self._pairs

    def stops(self, here: int, there: int) -> str | None:
        """The cause of loss of a copy that arrives from one broker at another now; None if it is not lost."""
        if self.cut(here, there):
            return "partitioned"
        return "crashed" if self.down.item(there) else None
