"""Publications on their way from publishing users to their brokers, by quality of service: what gets there when, and how often."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.workloads.format.workload import Workload
from sim.workloads.models.exchange_kernels import Path, exchange, lost

ANSWERS = ("puback_messages", "pubrec_messages", "pubrel_messages", "pubcomp_messages", "client_retransmissions")
"""What is counted of publications on their way; and duplicates."""
_COUNTS = (*ANSWERS, "client_duplicates")


@dataclass(frozen=True)
class PublishingCounts:
    """What was counted for publications: when each was published (s), and a column for each count by its name.

    `delay` is the mean time until they got to their brokers (s), `lost` how many never did.
    """

    time: NDArray[np.float64]
    columns: dict[str, NDArray[np.int64]]
    delay: float | None
    lost: int


def publishing_metrics(counts: PublishingCounts | None) -> dict[str, float | int | None]:
    """The metrics of a run in which publications take such a way, if they do."""
    found = (None, 0) if counts is None else (counts.delay, counts.lost)
    return dict(zip(("publishing_delay", "unpublished"), found, strict=True))


@kernel
def _send_all(
    times: NDArray[np.float64],
    publisher: NDArray[np.int32],
    qos: NDArray[np.int8],
    order: NDArray[np.int64],
    path: Path,
    window: int,
    horizon: float,
    counts: NDArray[np.int64],
) -> tuple[list[float], list[int]]:
    """When (s) which publication arrives, of those that users publish, in the `order` of users and times.

    A user has at most `window` unanswered (0: any number) of quality 1 or 2.
    """
    arrivals, rows = [0.0 for _ in range(0)], [0 for _ in range(0)]
    unanswered = [0.0 for _ in range(0)]
    before, free = -1, 0.0
    for row in order:
        user, quality, start = publisher[row], qos[row], times[row]
        if user != before:
            before, free = user, 0.0
            unanswered.clear()
        if quality > 0:
            start = max(start, free)
            while len(unanswered) > 0 and unanswered[0] <= start:
                heapq.heappop(unanswered)
            if 0 < window <= len(unanswered):
                start = heapq.heappop(unanswered)
            free = start
        if start >= horizon:
            continue
        done = exchange(path, (row, user, quality, 0, False), start, start + path.latency, 0.0, horizon, horizon)
        if quality > 0:
            heapq.heappush(unanswered, done.acknowledged)
            counts[row, 0 if quality == 1 else 1] += done.received
            counts[row, 2] += done.releases
            counts[row, 3] += done.completions
            counts[row, 4] += max(done.sent - 1, 0) + max(done.releases - 1, 0)
        if done.received > 0 and quality != 1:
            arrivals.append(done.arrived)
            rows.append(row)
        if quality == 1:
            at = start
            for attempt in range(done.sent):
                if at + path.latency < horizon and not lost(path, row, user, attempt, 0):
                    arrivals.append(at + path.latency)
                    rows.append(row)
                at += path.timeout
            counts[row, 5] += max(done.received - 1, 0)
    return arrivals, rows


def through_publishers(
    workload: Workload, path: Path, window: int | None, horizon: float
) -> tuple[Workload, PublishingCounts]:
    """The workload in which users' publications get to their brokers over a path, before a horizon (s), and what that takes.

    What arrives again, of quality 1, is another publication. Publications from outside are where they are published.
    """
    published = workload.publications
    own = np.flatnonzero((published.publisher >= 0) & (published.time < horizon))
    order = own[np.argsort(published.publisher[own], kind="stable")]
    counts = np.zeros((len(published), len(_COUNTS)), np.int64)
    columns = published.time, published.publisher, published.qos
    times, rows = _send_all(*columns, order, path, window or 0, horizon, counts)
    outside = np.flatnonzero(published.publisher < 0)
    time = np.concatenate([np.array(times, np.float64), published.time[outside]])
    row = np.concatenate([np.array(rows, np.int64), outside])
    by_time = np.lexsort((row, time))
    sent = replace(published.rows(row[by_time]), time=time[by_time])
    got, first = np.unique(np.array(rows, np.int64), return_inverse=True)
    arrived = np.full(len(got), math.inf)
    np.minimum.at(arrived, first, np.array(times, np.float64))
    delay = float(np.mean(arrived - published.time[got])) if len(got) else None
    found = dict(zip(_COUNTS, counts.T, strict=True))
    return replace(workload, publications=sent), PublishingCounts(published.time, found, delay, len(own) - len(got))
