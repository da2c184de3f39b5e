"""Which topics the back end keeps, and which are offloaded: for all brokers alike, or for each broker on its own."""

from __future__ import annotations

import numpy as np


class Sides:
    """`kept` (topics, brokers) tells whether the back end keeps a topic for a broker; at first it keeps all.

    `moves` (topics, brokers) counts how often that has changed.
    """

    def __init__(self, topics: int, brokers: int) -> None:
        self.kept = np.ones((topics, brokers), np.bool_)
        self.moves = np.zeros((topics, brokers), np.int32)
