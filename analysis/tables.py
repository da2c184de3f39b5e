"""The tables of many runs reduced to small frames for figures, averaged over replications."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import variants_of
from sim.experiments.results import Results
from sim.experiments.statistics import ROUNDING, half_width
from sim.metrics import METRICS, Metric

HOUR = 3600.0
_TAIL = 12
"""The powers of ten of a tail."""
CONTROL_TRAFFIC = Metric(
    "control_messages", "messages", "control messages between brokers, of all kinds", windows="sum"
)
"""All control traffic, as charts show it."""
_OF_CONTROL = (
    "subscription_overhead",
    "handover_messages",
    "reconfiguration_overhead",
    "drain_messages",
    "offload_messages",
    "fault_messages",
    "membership_messages",
    "stabilisation_messages",
    "healing_messages",
)


def control_messages(series: pd.DataFrame) -> pd.Series:
    """All control messages in each window of a time series."""
    return series.filter(items=_OF_CONTROL).sum(axis=1)


def runs_of(results: Results, variant: str) -> list[str]:
    """The hashes of a variant's runs, by replication."""
    runs = results.runs
    return list(runs[runs["variant"] == variant].sort_values("replication")["run"])


def over_time(results: Results, metrics: Sequence[str], points: int = 300) -> pd.DataFrame:
    """Metrics by window, with mean and 95 % confidence interval over the replications.

    Columns metric, variant, start, end (s), warm_up, mean, low, high (NaN where there is no interval). Sums are per hour, since the
    last window may be shorter. Neighbouring windows are merged until at most about `points` are left; then low and high are the
    10 % and 90 % quantiles of single windows of all replications. Metrics that have no time series are left out.
    """
    frames, singles = [], []
    for variant in variants_of(results):
        for run in runs_of(results, variant):
            series = results.table(run, "timeseries")
            merged = _windows(series, metrics, points)
            frames.append(merged.assign(variant=variant))
            if len(series) > points:
                single = _windows(series, metrics, len(series))
                starts = np.sort(merged["start"].unique())
                at = np.searchsorted(starts, single["start"], "right") - 1
                singles.append(single.assign(start=starts[at], variant=variant))
    columns = ["metric", "variant", "start", "end", "warm_up", "mean", "low", "high"]
    if not frames:
        return pd.DataFrame(columns=columns)
    table = _intervals(pd.concat(frames), columns[:5])
    if singles:
        bands = (
            pd.concat(singles).groupby(["metric", "variant", "start"])["value"].quantile(np.array([0.1, 0.9])).unstack()
        )
        keys = pd.MultiIndex.from_frame(table[["metric", "variant", "start"]])
        table[["low", "high"]] = bands.reindex(keys).to_numpy()
    return table


def faults_of(results: Results, run: str) -> pd.DataFrame:
    """When something fails in a run: columns start, end (s, infinite where it lasts), what, brokers."""
    return _spans(results.table(run, "faults") if results.has_table(run, "faults") else pd.DataFrame())


def failing(results: Results) -> pd.DataFrame:
    """The faults of all runs as in `faults_of`, with the `share` of runs in which each occurs."""
    spans = [faults_of(results, run) for variant in variants_of(results) for run in runs_of(results, variant)]
    every = pd.concat(spans) if spans else _spans(pd.DataFrame())
    counts = every.groupby([*every], as_index=False).size()
    return counts.assign(share=counts.pop("size") / max(1, len(spans)))


def _spans(faults: pd.DataFrame) -> pd.DataFrame:
    """From when to when each fault of a run lasts."""
    rows: list[tuple[float, float, str, str]] = []
    begun: dict[tuple[str, str], float] = {}
    least = faults.loc[faults["what"] == "loss", "value"].min() if len(faults) else 0.0
    normal = {"slow": 1.0, "loss": least}
    ends = {"restart": "crash", "mend": "cut", "manager back": "manager dead", "drained": "drain", "up": "down"}
    ends |= {"left": "leave", "joined": "join"}
    columns = (faults[name].tolist() if len(faults) else [] for name in ("time", "what", "brokers", "value"))
    for time, said, concerned, value in zip(*columns, strict=True):
        what, brokers = ends.get(said, said), ", ".join(map(str, concerned))
        start = begun.pop((what, brokers), None)
        if start is not None:
            rows.append((start, time, what, brokers))
        if said not in ends and value != normal.get(what):
            begun[what, brokers] = time
    rows += [(start, np.inf, *key) for key, start in begun.items()]
    return pd.DataFrame(sorted(rows), columns=["start", "end", "what", "brokers"])


def _intervals(values: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The mean of each group's column `value`, and its 95 % confidence interval as by `mean_interval`."""
    found = values.groupby(keys)["value"].agg(["mean", "std", "count", "min", "max"])
    found = found[found["count"] > 0]
    largest = np.maximum(found["min"].abs(), found["max"].abs())
    varied = (found["max"] - found["min"] > ROUNDING * largest).to_numpy()
    n = found["count"].to_numpy()
    half = np.full(len(found), np.nan)
    half[varied] = half_width((found["std"].to_numpy() / np.sqrt(n))[varied], n[varied] - 1, 0.95)
    table = found[["mean"]].assign(low=found["mean"] - half, high=found["mean"] + half)
    return table.reset_index()


def _windows(series: pd.DataFrame, metrics: Sequence[str], points: int) -> pd.DataFrame:
    """One run's series in long form, with neighbouring windows merged; none crosses the end of the warm-up."""
    if not len(series):
        return pd.DataFrame(columns=["metric", "start", "end", "warm_up", "value"])
    warm_up = series["warm_up"].to_numpy(dtype=bool)
    block = np.arange(len(series)) // max(1, -(-len(series) // points))
    first = np.flatnonzero(np.r_[True, (np.diff(block) > 0) | (warm_up[1:] != warm_up[:-1])])
    each = (series["end"] - series["start"]).to_numpy(np.float64)
    start, end = series["start"].to_numpy()[first], series["end"].to_numpy()[np.r_[first[1:], len(series)] - 1]
    length = end - start
    known: dict[str, NDArray[np.float64]] = {}
    drawn = [CONTROL_TRAFFIC if name == CONTROL_TRAFFIC.name else METRICS[name] for name in metrics]
    parts = {part for metric in drawn for part in metric.parts}
    parts |= {*_OF_CONTROL} if CONTROL_TRAFFIC in drawn else set()
    for name in parts & {*series}:
        column = series[name].to_numpy(np.float64, na_value=np.nan)
        average = name in METRICS and METRICS[name].windows == "average"
        defined = ~np.isnan(column)
        summed = np.add.reduceat(np.where(defined, column * each if average else column, 0.0), first)
        summed[np.add.reduceat(defined, first, dtype=np.int64) == 0] = np.nan
        known[name] = summed / length if average else summed
    if CONTROL_TRAFFIC in drawn:
        known[CONTROL_TRAFFIC.name] = control_messages(pd.DataFrame(known)).to_numpy(np.float64)
    values = {metric.name: value for metric in drawn if (value := metric.each(known)) is not None}
    values |= {
        metric.name: values[metric.name] / (length / HOUR)
        for metric in drawn
        if metric.windows == "sum" and metric.name in values
    }
    count = len(values)
    return pd.DataFrame(
        {
            "metric": np.repeat(np.array([*values], dtype=object), len(first)),
            "start": np.tile(start, count),
            "end": np.tile(end, count),
            "warm_up": np.tile(warm_up[first], count),
            "value": np.concatenate([*values.values(), np.empty(0)]),
        }
    )


def delay_distribution(results: Results, points: int = 300) -> pd.DataFrame:
    """Cumulative share of the delivered (publication, broker) pairs by delay, over all replications after the warm-up.

    Columns variant, delay (s, the upper edge of a bin at most 0.8 % wide; 0 for the pairs without any delay), share (0 … 1).
    Thinned to at most about `points` rows per variant, and as many for the tail.
    """
    frames = []
    for variant in variants_of(results):
        counts: list[pd.Series] = []
        for run in runs_of(results, variant):
            delays, series = results.table(run, "delays"), results.table(run, "timeseries")
            counted = delays[~delays["window"].isin(series.loc[series["warm_up"], "window"])]
            edge = counted["upper"].where(counted["lower"] > 0, 0.0)
            counts.append(counted["brokers"].groupby(edge).sum())
        total = pd.concat(counts).groupby(level=0).sum() if counts else pd.Series(dtype=np.float64)
        if total.sum() == 0:
            continue
        share = total.cumsum() / total.sum()
        steps = np.floor(share * points), np.floor(-np.log10((1 - share).clip(lower=1e-12)) * points / _TAIL)
        keep = np.logical_or.reduce([(step != step.shift()) | (step != step.shift(-1)) for step in steps])
        frames.append(pd.DataFrame({"variant": variant, "delay": share.index[keep], "share": share[keep].to_numpy()}))
    return pd.concat(frames) if frames else pd.DataFrame(columns=["variant", "delay", "share"])


def load_by_rank(results: Results, points: int = 300) -> pd.DataFrame:
    """User subscriptions per broker (time average), heaviest first, mean over the replications of each rank.

    Columns variant, rank (from 1), subscriptions; thinned to at most about `points` ranks, the heaviest all kept.
    """
    frames = []
    for variant in variants_of(results):
        loads = [results.table(run, "brokers")["subscriptions"] for run in runs_of(results, variant)]
        if not loads:
            continue
        ranked = pd.concat([load.sort_values(ascending=False).reset_index(drop=True) for load in loads], axis=1)
        mean = ranked.mean(axis=1).to_numpy()
        keep = np.unique(np.r_[np.arange(min(50, mean.size)), np.linspace(0, mean.size - 1, points).astype(int)])
        frames.append(pd.DataFrame({"variant": variant, "rank": keep + 1, "subscriptions": mean[keep]}))
    return pd.concat(frames) if frames else pd.DataFrame(columns=["variant", "rank", "subscriptions"])


def busiest_tree(results: Results, variant: str) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """The tree of the busiest topic at the end of the variant's first run, and the positions of all brokers.

    The tree has columns topic_name, node, parent, broker, position, role ("root", "subscriber", "relay"), subscribes, depth;
    parents precede their children. Brokers have a position on the ring, latitude and longitude, NaN if none. None where there is no
    tree.
    """
    runs = runs_of(results, variant)
    if not runs:
        return None
    tree, brokers = results.table(runs[0], "tree"), results.table(runs[0], "brokers")
    if tree.empty:
        return None
    parent = dict(zip(tree["node"], tree["parent"], strict=True))
    depth = {node: _depth(node, parent) for node in parent}
    role = np.where(tree["parent"] < 0, "root", np.where(tree["subscribes"], "subscriber", "relay"))
    ordered = tree.assign(role=role, depth=tree["node"].map(depth)).sort_values(["depth", "node"], ignore_index=True)
    return ordered, brokers.set_index("broker")[["position", "latitude", "longitude"]].astype(np.float64)


def _depth(node: int, parent: dict[int, int]) -> int:
    hops = 0
    while parent[node] >= 0:
        node, hops = parent[node], hops + 1
    return hops
