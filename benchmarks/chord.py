"""Chord under failures and churn, at the sizes of tables II and III of Stoica et al. (ToN 2003): 1,000 nodes, 10,000 lookups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.measure import Figure
from sim.overlay.chord_protocol import Lookup, churn, fail_at_once

NODES, LOOKUPS = 1000, 10_000
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_WAIT = (15**2 + 15 * 45 + 45**2) / 3 / (15 + 45)  # s until a node next stabilises, seen at any time: E[X²] / 2E[X]
RATES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


def _summary(lookups: Sequence[Lookup]) -> tuple[str, float, float]:
    """Hops and timeouts, means with the 1st and 99th percentiles, and failures; the share of failures and the mean hops."""
    hops, timeouts, found = np.array(lookups, np.int64).T
    ends = [np.percentile(values, (1, 99)).astype(int).tolist() for values in (hops, timeouts)]
    means = (
        f"{values.mean():.2f} {what} ({low}–{high})"
        for values, what, (low, high) in zip((hops, timeouts), ("hops", "timeouts"), ends, strict=True)
    )
    failed = int(np.count_nonzero(found == 0))
    return f"{', '.join(means)}, {failed} of {len(lookups):,} failed", failed / len(lookups), float(hops.mean())


def figures() -> Iterator[Figure]:
    """Lookups after simultaneous failures, and under churn."""
    for share in SHARES:
        text, failed, hops = _summary(fail_at_once(NODES, share, LOOKUPS))
        yield Figure(
            f"{share:.0%} of nodes fail at once", text, "none failed, at most log₂ n hops", not failed and hops <= 10
        )
    for rate in RATES:
        run = churn(NODES, rate, LOOKUPS)
        text, failed, _ = _summary(run.lookups)
        expected = 2 / (3 + NODES / (_WAIT * rate))
        text += f", {run.wrong:.2%} wrong successors"
        holds = failed < 0.02 and 0.8 * expected < run.wrong < 1.2 * expected
        yield Figure(
            f"{rate} joins and failures per second",
            text,
            f"failed < 2 %; wrong successors {expected:.2%} ± a fifth",
            holds,
        )
