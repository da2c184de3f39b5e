"""Floods: the parameters of geometries that can flood, and the tree of a flood over links."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim import plugins
from sim.base.validation import nested
from sim.overlay.geometry import NO_HOP_LIMIT, TopicTree
from sim.overlay.tree_kernels import breadth_first_tree


class FloodParameters(plugins.Parameters):
    """Parameters of geometries that can flood."""

    dissemination: Literal["tree", "flood"] = "tree"
    """Along trees from the root, or from each broker to all its neighbours but the sender (topic-connected: those in the topic)."""
    hops: int | None = Field(None, ge=1, lt=NO_HOP_LIMIT)
    """Floods: the most hops that a copy takes, counted from the root; any number by default."""

    @model_validator(mode="after")
    def _floods_alone_have_a_limit(self) -> FloodParameters:
        if self.hops is not None and not self.floods:
            raise nested([(("hops",), f'only with dissemination = "flood" (found {self.hops})')])
        return self

    @property
    def floods(self) -> bool:
        """Whether publications are flooded."""
        return self.dissemination == "flood"

    @property
    def hop_limit(self) -> int:
        """The most hops that a copy travels."""
        return NO_HOP_LIMIT if self.hops is None else self.hops


NO_FLOOD = FloodParameters()


def flood_tree(
    root: int,
    entry: int,
    wants: NDArray[np.bool_],
    first: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    hop_limit: int,
) -> TopicTree:
    """The tree of a flood from the root over the nodes that want it (n), and their neighbours among these.

    The links of node v lead to `neighbours[first[v]:first[v + 1]]`. A root that does not want it sends to `entry` alone.
    """
    tree = breadth_first_tree(root, entry, wants, first, neighbours)
    nodes = tree[0].tolist()
    place = {node: position for position, node in enumerate(nodes)}
    linked = [neighbours[first[node] : first[node + 1]].tolist() for node in nodes]
    if entry != root:
        linked[0] = [entry]
    return TopicTree(*tree, [[place[v] for v in around if wants[v]] for around in linked], hop_limit)
