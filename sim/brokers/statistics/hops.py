"""The trace: hops of publications one by one, of all or of a share that is the same on every engine."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Columns, Items
from sim.base.randomness_kernels import keyed_uniform

KINDS = ("uplink", "tree", "flood")
UPLINK, TREE, FLOOD = range(len(KINDS))
MOST_HOPS = 5_000_000
"""The most hops that are kept in a run."""
_TYPES: dict[str, type[np.generic]] = {
    "sent": np.float64,
    "received": np.float64,
    "publication": np.int64,
    "source": np.int64,
    "destination": np.int64,
    "kind": np.int8,
    "due": np.bool_,
}
HOP = np.dtype(list(_TYPES.items()), align=True)
"""When a message was sent and received (s), the publication, the brokers from and to, the kind of hop, and whether it was due there."""
_Hop = tuple[float, float, int, int, int, int, bool]
_BATCH = 1 << 12


class HopTrace:
    """The first `most` hops of publications, in the order in which they arrived; `share` of these are traced, drawn by `key`."""

    def __init__(self, share: float, key: int, most: int = MOST_HOPS) -> None:
        self.share, self.key, self._most = share, key, most
        self._batches: list[Items] = []
        self._rows: list[_Hop] = []
        self._kept = 0
        self._full_at: float | None = None

    def traces(self, publication: int) -> bool:
        """Whether the hops of a publication are traced."""
        return self.share >= 1.0 or keyed_uniform(self.key, publication, 0) < self.share

    def add(self, *hop: *_Hop) -> None:
        """Trace one hop: the fields of HOP."""
        self._rows.append(hop)
        if len(self._rows) == _BATCH:
            self._pack()

    def _pack(self) -> None:
        rows, self._rows = self._rows, []
        self.extend(np.array(rows, HOP))

    def extend(self, hops: Items) -> None:
        """Trace hops that followed each other (HOP)."""
        room = self._most - self._kept
        if len(hops) > room and self._full_at is None:
            self._full_at = float(hops["received"][room])
        self._batches.append(hops[:room].copy())
        self._kept += len(hops[:room])

    def table(self) -> Columns:
        """A row for every hop."""
        self._pack()
        hops = np.concatenate(self._batches)
        self._batches = [hops]
        return {name: hops[name] if name != "kind" else np.array(KINDS)[hops[name]] for name in _TYPES}

    def note(self) -> str | None:
        """A sentence for the user if hops were left out."""
        if self._full_at is None:
            return None
        return (
            f"the trace ends at {self._full_at:,.3f} s with {self._most:,} hops, the most that are kept: trace = 0.01 keeps the "
            "hops of one publication in a hundred"
        )
