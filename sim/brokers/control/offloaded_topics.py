"""Which topics are offloaded, for all brokers alike or for each broker on its own; the back end keeps the others."""

from __future__ import annotations

import numpy as np


class OffloadedTopics:
    """Offloaded topics: `kept` (topics, brokers) is whether the back end keeps a topic for a broker; at first it keeps all.

    `moves` (topics, brokers) counts how often that has changed.
    """

    def __init__(self, topics: int, brokers: int) -> None:
        self.kept = np.ones((topics, brokers), np.bool_)
        self.moves = np.zeros((topics, brokers), np.int32)
