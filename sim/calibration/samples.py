"""Which measurements count: those during which neither the broker nor the client waited for a core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.calibration.load import LoadRecord

LONGEST_WAIT = 200e-6
"""From this wait for a core on (s, between two looks at the accounts), or this delay of sending, what was under way does not count."""
_TIME, _BROKER, _BROKER_WAITED, _, _CLIENT_WAITED = range(5)
"""The columns of `LoadRecord.accounts`."""


def waited(record: LoadRecord) -> NDArray[np.bool_]:
    """Whether broker or client waited for a core between each two rows of the accounts."""
    steps = np.diff(record.accounts, axis=0)
    found: NDArray[np.bool_] = (steps[:, _BROKER_WAITED] > LONGEST_WAIT * 1e9) | (
        steps[:, _CLIENT_WAITED] > LONGEST_WAIT * 1e9
    )
    return found


def clean(record: LoadRecord) -> NDArray[np.bool_]:
    """Whether each publication arrived, and neither broker nor client waited for a core since they last had nothing to do.

    Nor was one sent late since then: the client then sends what is due all at once.
    """
    sent, last = record.sent, np.maximum(record.last, record.sent)
    times, wrong = record.accounts[:, _TIME], waited(record)
    before = np.concatenate([[0], np.cumsum(wrong)])
    done = np.maximum.accumulate(last)
    begins = np.concatenate([[True], sent[1:] >= done[:-1]])
    opening = np.maximum.accumulate(np.where(begins, np.arange(len(sent)), 0))
    late = np.concatenate([[0], np.cumsum(record.late > LONGEST_WAIT * 1e9)])
    start = sent[opening]
    first = np.clip(np.searchsorted(times, start, "right") - 1, 0, len(wrong))
    until = np.clip(np.searchsorted(times, last, "right"), 0, len(wrong))
    counts: NDArray[np.bool_] = (before[until] == before[first]) & (late[1:] == late[opening]) & (record.last > 0)
    return counts


def clean_rate(record: LoadRecord) -> tuple[float, float]:
    """Publications completed per second while neither waited for a core, and the share of time in which that was so.

    The first and the last tenth of the time are left out.
    """
    times, right = record.accounts[:, _TIME], ~waited(record)
    span = times[-1] - times[0]
    middle = (times[:-1] > times[0] + span // 10) & (times[1:] < times[-1] - span // 10)
    done = np.histogram(record.last, times)[0]
    width = np.diff(times) / 1e9
    kept = middle & right
    seconds = float(width[kept].sum())
    share = seconds / float(width[middle].sum()) if middle.any() else 0.0
    return (float(done[kept].sum()) / seconds if seconds else 0.0), share


def busy_shares(record: LoadRecord) -> tuple[float, float]:
    """The shares of time that the broker ran, and that the client had something to do, without their waits for a core."""
    ran = record.accounts[-1] - record.accounts[0]
    broker, client = (
        done / max(ran[_TIME] - ran[waits], 1)
        for done, waits in ((ran[_BROKER], _BROKER_WAITED), (record.worked, _CLIENT_WAITED))
    )
    return min(float(broker), 1.0), min(float(client), 1.0)


def time_per_publication(records: Sequence[LoadRecord]) -> float:
    """The time (s) of a saturated broker for a publication: how much longer delays are for each additional one under way."""
    under_way, delays = [], []
    for record in records:
        done = np.sort(record.last)
        under_way.append(1 + np.arange(len(record.sent)) - np.searchsorted(done, record.sent, "right"))
        delays.append(record.delay)
    x, y = np.concatenate(under_way), np.concatenate(delays)
    known, place = np.unique(x, return_inverse=True)
    middle = np.array(
        [np.median(each) for each in np.split(y[np.argsort(place, kind="stable")], np.cumsum(np.bincount(place))[:-1])]
    )
    weight = np.sqrt(np.bincount(place))
    return float(np.polyfit(known, middle, 1, w=weight)[0]) if len(known) > 1 else np.nan


def seconds_on_core(record: LoadRecord) -> float:
    """The time (s) that the broker ran per publication."""
    ran = record.accounts[-1, _BROKER] - record.accounts[0, _BROKER]
    return float(ran) / 1e9 / max(len(record.sent), 1)
