"""Tapestry (Zhao et al. 2001) with rendezvous trees, as Bayeux uses it (Zhuang et al. 2001)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim import plugins
from sim.base.errors import refuse
from sim.overlay.chord import hashed_ids, hashed_topics
from sim.overlay.geometry import GeometrySetting
from sim.overlay.prefix_kernels import surrogate_roots
from sim.overlay.prefixes import Prefixes, PrefixTrees, digits_of
from sim.overlay.sites import Sites
from sim.overlay.trees import TreeState

_MOST_BITS = 62


class Tapestry(PrefixTrees):
    """Prefix routing, digit by digit, with surrogate routing to a topic's root; trees of forward routes to the members, as in Bayeux.

    With proximity neighbour selection node i is broker i, whose id is drawn: only brokers have distances. Without it, brokers are
    mapped to nodes as on a ring.
    """

    class Parameters(plugins.Parameters):
        digits: int = Field(8, ge=1, le=62)
        """Number of digits of an id."""
        base: Literal[2, 4, 8, 16, 32, 64] = 16
        """Base of the digits."""
        pns: bool = False
        """Proximity neighbour selection: each entry of a routing table is the nearest candidate by round-trip time, not any one."""
        state: TreeState = "members"
        """State that brokers keep for a topic's tree: all members below them, as in Bayeux, or their children on it."""

        @property
        def bits(self) -> int:
            """Number of bits of an id."""
            return self.digits * (self.base.bit_length() - 1)

        def unfit(self, brokers: int | None, _sites: Sites | None) -> str | None:
            if (brokers or 1) <= 1 << self.bits <= 1 << _MOST_BITS:
                return None
            count = "" if brokers is None else f" for {brokers} brokers"
            return (
                f"network.geometry.digits: {self.base}^{self.digits} ids{count} "
                f"(allowed: at least as many ids as brokers, and at most 2^{_MOST_BITS})"
            )

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where ids are too long, or too few for all brokers."""
        refuse(parameters.unfit(setting.nodes, setting.sites))
        levels, base, nodes, bits = parameters.digits, parameters.base, setting.nodes, parameters.bits
        generator = np.random.default_rng(setting.key)
        ids = generator.permutation(hashed_ids(setting.key, nodes, bits))  # neighbouring brokers share no prefix
        prefixes = Prefixes(ids, levels, base)
        self.nodes_are_brokers = parameters.pns
        if parameters.pns:
            assert setting.round_trips is not None
            table = prefixes.nearest(setting.round_trips)
        else:
            table = prefixes.drawn(generator)
        self._topics = digits_of(hashed_topics(setting, bits), levels, base)
        super().__init__(surrogate_roots(table, self._topics, 0), prefixes, table, parameters.state)

    def roots_among(self, live: NDArray[np.int64]) -> NDArray[np.int32]:
        """The surrogate roots (topics)."""
        return surrogate_roots(self.table, self._topics, int(live[0]))
