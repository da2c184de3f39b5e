"""The load of brokers, window by window: their users, the traffic of publications, and their work as stations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.statistics.traffic import Traffic, traffic_columns

STATION = (
    "served",
    "queue_wait",
    "publication_wait",
    "control_wait",
    "utilisation",
    "offered_load",
    "queue_length",
    "queue_max",
    "queue_full",
)


def load_table(traffic: Traffic, stations: Columns, selections: Columns, edges: Sequence[float]) -> Columns:
    """One row per window and broker where the broker did anything.

    `stations` has the columns of `StationWindows`, none where brokers take no time; `selections` has the users' changes of broker;
    windows begin at all but the last of `edges` (s).
    """
    windows, brokers, counted = traffic.counted()
    size = len(traffic)
    keys = windows * size + brokers
    station_keys = stations["window"] * size + stations["broker"] if stations else keys[:0]
    every = np.union1d(keys, station_keys)
    window, broker = np.divmod(every, size)
    at, at_station = np.searchsorted(every, keys), np.searchsorted(every, station_keys)
    rows = np.zeros((len(every), counted.shape[1]), np.int64)
    rows[at] = counted
    table = {"window": window, "broker": broker, "users": users_hosted(selections, window, broker, np.asarray(edges))}
    table |= traffic_columns(rows)
    for name in STATION:
        if stations:
            table[name] = np.full(len(every), np.nan if name.endswith("wait") else 0, stations[name].dtype)
            table[name][at_station] = stations[name]
        else:
            table[name] = np.full(len(every), np.nan)
    return table


def users_hosted(
    selections: Columns,
    window: NDArray[np.int64],
    broker: NDArray[np.int64],
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The number of users that each broker hosted in each window, averaged over time; columns (rows) of windows and brokers."""
    time, moved = selections["time"], selections["from"] >= 0
    times = np.concatenate([time, time[moved]])
    where = np.concatenate([selections["broker"], selections["from"][moved]])
    change = np.concatenate([np.ones(len(time)), -np.ones(int(moved.sum()))])
    order = np.lexsort((times, where))
    times, where, change = times[order], where[order], change[order]
    rows = np.argsort(broker, kind="stable")
    brokers = broker[rows]
    area = np.zeros((2, len(window)))
    for each in np.unique(brokers):
        here = slice(*np.searchsorted(where, [each, each + 1]))
        mine = rows[slice(*np.searchsorted(brokers, [each, each + 1]))]
        area[:, mine] = _area(times[here], change[here], np.stack([edges[window[mine]], edges[window[mine] + 1]]))
    users: NDArray[np.float64] = (area[1] - area[0]) / (edges[window + 1] - edges[window])
    return users


def _area(times: NDArray[np.float64], change: NDArray[np.float64], until: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of a step function with these change times, from 0 to some other times."""
    times, number = np.concatenate([[0.0], times]), np.concatenate([[0.0], np.cumsum(change)])
    area = np.concatenate([[0.0], np.cumsum(number[:-1] * np.diff(times))])
    since = np.searchsorted(times, until, side="right") - 1
    return np.asarray(area[since] + number[since] * (until - times[since]))
