"""Random streams by name, so that draws of one part never shift those of another, and keys for draws by identity.

Streams serve whatever is drawn in a fixed order (a workload, an initial assignment). Draws by identity are in
`sim.base.randomness_kernels`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Streams:
    """All streams of one replication of one scenario; variants that share seed and replication share the streams."""

    seed: int
    replication: int = 0

    def _sequence(self, name: str) -> np.random.SeedSequence:
        digest = hashlib.blake2s(name.encode(), digest_size=8).digest()
        return np.random.SeedSequence(self.seed, spawn_key=(self.replication, int.from_bytes(digest, "little")))

    def generator(self, name: str) -> np.random.Generator:
        """A new generator at the start of the stream of this name."""
        return np.random.default_rng(self._sequence(name))

    def key(self, name: str) -> int:
        """A 63-bit key for draws by identity."""
        return int(self._sequence(name).generate_state(1, np.uint64)[0] >> np.uint64(1))
