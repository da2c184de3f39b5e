"""What faults did: until deliveries recovered, what was lost, how long users were without a broker, and peaks of control traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import variants_of
from analysis.formatting import number, quantity
from analysis.tables import control_messages, faults_of, runs_of
from sim.experiments.results import Results
from sim.metrics.causes import CAUSES

WITHIN = 0.01
"""Deliveries have recovered when their ratio is back within this share of the ratio before the fault."""
DUPLICATES = ("duplicates", "duplicate_deliveries")
"""Copies that brokers had before, and deliveries that users had before."""
_LISTED = 20
"""The most faults that are listed one by one; more are put together by kind."""


class FaultTable(NamedTuple):
    """A table about faults: its caption, the names of columns, and rows of text."""

    what: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def fault_tables(results: Results) -> list[FaultTable]:
    """What each fault did in each variant, and what users and brokers saw of all; none where nothing failed."""
    names = variants_of(results)
    runs = {name: [run for run in runs_of(results, name) if results.has_table(run, "faults")] for name in names}
    found = {
        name: pd.concat(
            [effects(results.table(run, "timeseries"), faults_of(results, run)).assign(run=run) for run in own]
        )
        for name, own in runs.items()
        if own
    }
    if not any(len(effect) for effect in found.values()):
        return []
    tables = [
        FaultTable(f"faults: {name}" if len(names) > 1 else "faults", _COLUMNS, list(_rows(effect, len(runs[name]))))
        for name, effect in found.items()
    ]
    return [
        *tables,
        FaultTable(
            "users without a broker, and peaks of control traffic",
            _SEEN,
            [_seen(results, name, runs[name]) for name in found],
        ),
    ]


_COLUMNS = (
    "fault",
    "from",
    "lasts",
    "time to recover",
    "lowest delivery ratio",
    "lost pairs",
    "duplicates",
    "peak control messages",
)
_SEEN = (
    "variant",
    "users without a broker",
    "mean share of time",
    "p50",
    "p99",
    "longest",
    "peak control messages",
    "peak connection attempts",
)


def effects(series: pd.DataFrame, faults: pd.DataFrame) -> pd.DataFrame:
    """What each fault of a run did, by the windows of its time series after the warm-up, which are attributed to it.

    A window belongs to the fault that began last before its end, if that lasts, or deliveries have not recovered from it. `recovered`
    (s) is from the beginning of a fault to that of the first window in which the delivery ratio is back after it has fallen: 0 if it
    has not, infinite if it is not back before the next fault or the end. The ratio before is that of all earlier windows without
    faults; `lowest` is the lowest since.
    """
    series = series[~series["warm_up"].astype(bool)]
    start, end = (series[name].to_numpy(np.float64) for name in ("start", "end"))
    due, delivered = (series[name].to_numpy(np.float64) for name in ("due_users", "delivered_users"))
    ratio = np.divide(delivered, due, out=np.full(len(due), np.nan), where=due > 0)
    begun, over = faults["start"].to_numpy(np.float64), faults["end"].to_numpy(np.float64)
    struck = np.zeros(len(start), bool)
    for first, last in zip(begun, over, strict=True):
        struck |= (start < last) & (end > first)
    owner, rows = np.full(len(start), -1), []
    for fault, (first, last) in enumerate(zip(begun, over, strict=True)):
        later = begun[begun > first]
        since = (end > first) & (start < (later.min() if len(later) else np.inf))
        calm = ~struck & (end <= first)
        calm = calm if due[calm].sum() else ~struck
        before = delivered[calm].sum() / due[calm].sum() if due[calm].sum() else 1.0
        recovered = _recovered(start[since] - first, ratio[since] < (1 - WITHIN) * before, ratio[since])
        owner[since & (start < max(last, first + recovered))] = fault
        rows.append((recovered, np.nanmin(ratio[since]) if np.isfinite(ratio[since]).any() else np.nan))
    found = faults.reset_index(drop=True).assign(
        recovered=[recovered for recovered, _ in rows], lowest=[lowest for _, lowest in rows]
    )
    # columns that older runs lack count as 0
    counted = series.reindex(columns=[*(f"lost_{cause}" for cause in CAUSES), *DUPLICATES], fill_value=0)
    lost = counted.assign(control=control_messages(series)).reset_index(drop=True)
    by_fault = lost.groupby(owner)
    sums = by_fault.sum().reindex(found.index, fill_value=0)
    return pd.concat([found, sums.drop(columns="control")], axis=1).assign(
        control=by_fault["control"].max().reindex(found.index, fill_value=0)
    )


def _recovered(since: NDArray[np.float64], low: NDArray[np.bool_], ratio: NDArray[np.float64]) -> float:
    """From the beginning of a fault until the ratio is no longer low, by windows that begin `since` s after it."""
    if not low.any():
        return 0.0
    back = np.flatnonzero(~low & np.isfinite(ratio) & (np.arange(len(low)) > low.argmax()))
    return float(since[back[0]]) if len(back) else np.inf


def _rows(effect: pd.DataFrame, runs: int) -> Iterator[tuple[str, ...]]:
    """A row for each fault, or for each kind where they are many, or others in other runs."""
    effect = effect.assign(number=effect.groupby(["run", "what", "brokers"]).cumcount())
    keys = ["what", "brokers", "number"]
    often = effect.groupby(keys)["run"].nunique()
    alike = len(often) <= _LISTED and (often == runs).all()
    groups = [same for _, same in effect.groupby(keys if alike else ["what"])]
    for same in sorted(groups, key=lambda same: same["start"].mean()):
        what, brokers, lasts = same["what"].iloc[0], same["brokers"].iloc[0], (same["end"] - same["start"])
        named = f"{what} {brokers}".rstrip() if alike else f"{what}, {number(len(same) / runs)} per run"
        start = quantity(same["start"].mean(), "s") if alike else "–"
        long = quantity(lasts.mean(), "s") if np.isfinite(lasts).all() else "to the end"
        back = same["recovered"][np.isfinite(same["recovered"])]
        missing = f"not seen in {len(same) - len(back)} of {len(same)}" if len(back) < len(same) else ""
        recovered = ", ".join(filter(None, [quantity(back.mean(), "s") if len(back) else "", missing]))
        lost = {cause: same[f"lost_{cause}"].sum() / runs for cause in CAUSES}
        said = ", ".join(f"{cause.replace('_', ' ')} {number(pairs)}" for cause, pairs in lost.items() if pairs)
        lowest = number(same["lowest"].min()) if same["lowest"].notna().any() else "–"
        copies, again = (number(same[name].sum() / runs) for name in DUPLICATES)
        twice = "none" if copies == again == "0" else f"{copies} at brokers, {again} to users"
        yield named, start, long, recovered, lowest, said or "none", twice, number(same["control"].max())


def absences(results: Results, run: str) -> NDArray[np.float64]:
    """The share of the measured time that each user is connected to no broker."""
    rows = results.table(run, "decisions/selection").sort_values(["user", "time"], kind="stable")
    series = results.table(run, "timeseries")
    measured = series[~series["warm_up"].astype(bool)]
    first, last = measured["start"].min(), series["end"].max()
    until = rows["time"].shift(-1).where(rows["user"] == rows["user"].shift(-1), last)
    absent = (until.clip(lower=first) - rows["time"].clip(lower=first)).where(rows["broker"] < 0, 0.0)
    shares: NDArray[np.float64] = (absent.groupby(rows["user"]).sum() / (last - first)).to_numpy(np.float64)
    return shares


def _seen(results: Results, variant: str, runs: list[str]) -> tuple[str, ...]:
    """How long the users of a variant were without a broker, over all runs, and the peaks of control traffic in a window."""
    shares = np.concatenate([absences(results, run) for run in runs])
    series = [results.table(run, "timeseries") for run in runs]
    control = max(control_messages(each).where(~each["warm_up"].astype(bool), 0).max() for each in series)
    attempts = max(each["connection_attempts"].where(~each["warm_up"].astype(bool), 0).max() for each in series)
    quantiles = np.quantile(shares, [0.5, 0.99, 1.0], method="inverted_cdf")
    times = (f"{100 * share:.3g} %" for share in ((shares > 0).mean(), shares.mean(), *quantiles))
    return variant, *times, number(control), number(attempts)
