"""Other routes for what a sender keeps, once the overlay has healed around the broker that it was for, or the link to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.fabric import Fabric
from sim.overlay.healing import Healing, detour

ROUND, MOST_ROUNDS = 1 << 16, 63
"""In keyed draws, a copy on the n-th detour of its publication is that of an attempt n · ROUND later; further ones count as this."""


class Branch(NamedTuple):
    """A tree from a sender to brokers below it, over the brokers (k); `parents`, `first_child` and `depth` as in TopicTree.

    At some positions (k) a broker `waits`: no route leads there now.
    """

    brokers: NDArray[np.int32]
    parents: NDArray[np.int32]
    first_child: NDArray[np.int32]
    depth: NDArray[np.int32]
    waits: NDArray[np.bool_]

    @property
    def waits_still(self) -> bool:
        """Whether it leads nowhere, to the one broker that it is for."""
        return len(self.brokers) == 2 and self.waits.item(1)


class Diversion:
    """A branch that a flight takes: `users` (k) are those due there, and `places` (k) the positions on its own tree, -1 for relays.

    `places` are given by broker, `due_users` by place; the sender is `above` hops below the root.
    """

    def __init__(self, branch: Branch, places: Mapping[int, int], due_users: NDArray[np.int32], above: int) -> None:
        self.brokers: list[int] = branch.brokers.tolist()
        self.depth: list[int] = (branch.depth + above).tolist()
        self.waits: list[bool] = branch.waits.tolist()
        self.places = [places.get(broker, -1) for broker in self.brokers]
        self.users = [int(due_users[place]) if place >= 0 else 0 for place in self.places]
        self._bounds: list[int] = branch.first_child.tolist()

    def children(self, position: int) -> range:
        """The positions below one."""
        return range(self._bounds[position], self._bounds[position + 1])

    def places_below(self, position: int) -> list[int]:
        """The places due at a position and below."""
        found, todo = [], [position]
        for here in todo:
            todo.extend(self.children(here))
            found.extend([self.places[here]] if self.places[here] >= 0 else [])
        return found


class Detours:
    """The present routes around brokers and links that the overlay routes around."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, self._overlay = fabric, fabric.overlay
        self._outages = fabric.outages

    def needed(self, sender: int, broker: int) -> bool:
        """Whether the overlay routes around the broker or the link to it; a sender that has left it knows no other routes."""
        outages = self._outages
        if outages is None or outages.bypassed.item(sender):
            return False
        return outages.bypassed.item(broker) or (outages.avoids and outages.avoided.cut(sender, broker))

    def branch(self, topic: int, sender: int, to: Sequence[int]) -> Branch | None:
        """The present routes from a broker to others; None from one that has left the overlay."""
        overlay, node_of, broker_of, outages = (
            self._overlay,
            self._fabric.node_of,
            self._fabric.broker_of,
            self._outages,
        )
        assert isinstance(overlay, Healing)
        assert outages is not None
        if outages.bypassed.item(sender):
            return None
        node = node_of.item(sender)
        cuts = outages.avoided_nodes if outages.avoids else None
        avoided = outages.bypassed[broker_of], cuts
        found = detour(overlay.routes_from(topic, node), node, node_of[list(to)].tolist(), *avoided)
        tree = found.tree
        return Branch(broker_of[tree.nodes], tree.parents, tree.first_child, tree.depth, found.waits)
