"""Where brokers stand physically, as latency models and anchored geometries see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Sites:
    """The brokers of a network, one entry each: names, positions in degrees (NaN where unknown), and regions where they have any."""

    names: tuple[str, ...]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    regions: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def have_places(self) -> bool:
        """Whether all positions are known."""
        return not bool(np.isnan(self.latitude).any() or np.isnan(self.longitude).any())
