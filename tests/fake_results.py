"""A synthetic results folder for the tests of the analysis: small, deterministic, with edge cases on request."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DAY = 86400.0
FACTORS = {"static": 1.0, "location": 1.35, "similarity": 0.57}
HEADLINE = ["broker_subscription_changes", "subscription_overhead", "notification_delay", "notification_overhead"]
SCALARS = {
    "notification_delay": ("notification_delay_sum", "delivered"),
    "tree_delay": ("tree_delay_sum", "delivered"),
    "tree_hops": ("tree_hops_sum", "delivered"),
}
COUNTS = (
    "broker_subscription_changes",
    "subscription_overhead",
    "handovers",
    "handover_messages",
    "notification_overhead",
    "publications",
    "due",
    "delivered",
)


def write_results(
    folder: Path,
    variants: Sequence[str] = ("static", "location", "similarity"),
    replications: int = 5,
    brokers: int = 12,
    windows: int = 24,
    warm_up: int = 4,
    ring: bool = True,
    places: bool = True,
    title: str = "Three ways to choose a broker",
    topic: str = "40,-74",
    overrides: Mapping[str, Any] | None = None,
    report: Mapping[str, Any] | None = None,
    failed: Sequence[Mapping[str, Any]] = (),
    seed: int = 7,
    workload_hash: str = "ab" * 32,
    version: str = "0.1.0",
    changed: Mapping[str, Any] | None = None,
    slower: float = 1.0,
) -> Path:
    """Write the folder; `warm_up` counts windows, `overrides` sets metrics to one value in every run (None: undefined).

    `changed` are tables of the scenario, and `slower` is the factor by which they change the delay.
    """
    workload = {
        "kind": "location",
        "hash": workload_hash,
        "origin": "2010-05-01T00:00:00Z",
        "horizon": windows * 3600.0,
        "counts": {"users": 1200, "topics": 284, "subscription_events": 3456, "publications": 86660},
        "sources": [{"file": "checkins.tsv.gz", "sha256": "cd" * 32, "bytes": 1234567}],
        "rows": {"read": 86670, "kept": 86660, "quarantined": {"null_island": 7, "bad_time": 3}},
        "generator": {
            "name": "checkins",
            "bounding_box": [30, -126, 50, -66],
            "window": None,
            "size": 100,
            "friends": 4,
        },
        "seed": 1,
        "cell": 1.0,
    }
    rows = []
    for v, variant in enumerate(variants):
        for replication in range(replications):
            identity = f"{variant}/{replication}/{seed}/{workload_hash}/{version}/{changed}/{slower}"
            run = hashlib.sha256(identity.encode()).hexdigest()[:16]
            shared = np.random.default_rng([seed - 6, replication])  # what variants have in common: the workload
            own = np.random.default_rng([2, v, replication])
            tables = _tables(
                shared, own, FACTORS.get(variant, 0.8 + 0.1 * v), brokers, windows, warm_up, ring, places, topic
            )
            metrics = _metrics(tables)
            metrics |= {"notification_delay": slower * metrics["notification_delay"], **(overrides or {})}
            path = folder / "runs" / run
            for name, table in tables.items():
                file = path / f"{name}.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                table.to_parquet(file, index=False)
            head = {"run": run, "point": 0, "variant": variant, "replication": replication, "seed": seed}
            about = {"hash": run, "scenario": {}, "version": version, "workload": workload}
            manifest = {**head, **about, "metrics": metrics, "complete": True}
            seal_run(path, manifest)
            rows.append({**head, **metrics})
    pd.DataFrame(rows).to_parquet(folder / "runs.parquet", index=False)
    scenario = {
        "title": title,
        "seed": seed,
        "replications": replications,
        "window": 3600.0,
        "warm_up": warm_up * 3600.0,
        "workload": {"kind": "prepared", "path": "w", "resample_users": False},
        "network": {"brokers": brokers, "geometry": {"kind": "chord", "bits": 32}},
        **(changed or {}),
    }
    manifest = {
        "format": "brokersim-results",
        "format_version": 2,
        "version": version,
        "title": title,
        "scenario": scenario,
        "variants": {variant: {**scenario, "selection": {"kind": variant}} for variant in variants},
        "parameters": [],
        "points": [{}],
        "sweep": {},
        "precision": None,
        "warm_up": [],
        "report": {"baseline": variants[0], "metrics": HEADLINE, **(report or {})},
        "seed": seed,
        "replications": replications,
        "workload": workload,
        "notes": [],
        "runs": [row["run"] for row in rows],
        "failed": list(failed),
        "complete": True,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def seal_run(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a run that vouches for the tables beside it."""
    tables = sorted(path.rglob("*.parquet"))
    files = {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in tables}
    values = {**{key: value for key, value in manifest.items() if key != "seal"}, "files": files}
    rest = json.dumps(values, indent=2)[2:].encode()
    line = f'{{\n  "seal": "{hashlib.sha256(rest).hexdigest()}",\n'
    (path / "manifest.json").write_bytes(line.encode() + rest)


def _tables(
    shared: np.random.Generator,
    own: np.random.Generator,
    factor: float,
    brokers: int,
    windows: int,
    warm_up: int,
    ring: bool,
    places: bool,
    topic: str,
) -> dict[str, pd.DataFrame]:
    window = np.arange(windows)
    busy = shared.lognormal(0, 0.2)
    publications = shared.poisson(30 * busy, windows)
    due = publications * 4
    changes = shared.poisson(200 * busy, windows) * factor * own.normal(1, 0.02, windows)
    delay = 0.04 * busy / factor * own.normal(1, 0.05, windows)
    series = pd.DataFrame(
        {
            "window": window,
            "start": window * 3600.0,
            "end": (window + 1) * 3600.0,
            "warm_up": window < warm_up,
            "publications": publications,
            "due": due,
            "delivered": due,
            "lost": 0,
            "in_flight": 0,
            "due_users": due * 3,
            "delivered_users": due * 3,
            "broker_subscription_changes": changes.astype(np.int64),
            "subscription_overhead": (changes * 2.5).astype(np.int64),
            "handovers": shared.poisson(3 * factor, windows),
            "handover_messages": shared.poisson(12 * factor, windows),
            "notification_overhead": due * 2,
            "notification_delay_sum": delay * due,
            "tree_delay_sum": delay * due / 2,
            "tree_hops_sum": 2.5 * due,
            "notification_delay": np.where(due > 0, delay, np.nan),
            "load_stddev": 0.5 * factor * own.normal(1, 0.05, windows),
            "load_jain": 0.7 / factor * own.normal(1, 0.01, windows),
        }
    )
    edges = np.r_[0, 1e-6, 0.01 * 1.3 ** np.arange(12)]
    shares = np.r_[0.05, 0, np.diff(1 / (1 + (edges[2:] / delay.mean()) ** -4.0))]
    counts = (np.outer(due, shares / shares.sum())).round().astype(np.int64)
    delays = pd.DataFrame(
        {
            "window": np.repeat(window, shares.size),
            "lower": np.tile(edges[:-1], windows),
            "upper": np.tile(edges[1:], windows),
            "brokers": counts.ravel(),
            "users": counts.ravel() * 3,
        }
    )
    position = np.sort(shared.random(brokers)) if ring else np.full(brokers, np.nan)
    broker = np.arange(brokers)
    subscriptions = np.sort(shared.pareto(1.5, brokers) * 100 / factor)
    members = np.arange(0, brokers, 2)
    tree = pd.DataFrame(
        {
            "topic": 17,
            "topic_name": topic,
            "node": members,
            "position": position[members],
            "broker": members,
            "parent": np.where(members == 0, -1, members // 4 * 2),
            "subscribes": members % 3 != 0,
        }
    )
    return {
        "timeseries": series,
        "delays": delays,
        "brokers": pd.DataFrame(
            {
                "broker": broker,
                "node": broker,
                "position": position,
                "latitude": shared.uniform(-60, 60, brokers) if places else np.nan,
                "longitude": shared.uniform(-180, 180, brokers) if places else np.nan,
                "subscriptions": subscriptions,
                "users": subscriptions,
                "name": [f"b{number}" for number in broker],
                "received": 10 * broker,
                "sent": 5 * broker,
                "offered_load": broker % 7 / 5,
                "utilisation": np.minimum(broker % 7 / 5, 1.0),
                "queue_length": broker % 7 / 2,
                "queue_wait": np.where(broker % 7 > 0, broker % 7 / 100, np.nan),
            }
        ),
        "load": _load(window[warm_up:], broker),
        "topics": pd.DataFrame(
            {
                "topic": np.arange(20),
                "name": [f"t{number}" for number in range(20)],
                "publications": np.arange(20) + 1,
                "brokers": 2,
                "users": np.arange(20) % 5,
                "copies": (np.arange(20) + 1) * (np.arange(20) % 5),
            }
        ),
        "links": pd.DataFrame({"source": broker[:-1], "destination": broker[1:], "messages": 5, "bytes": 500}),
        "tree": tree,
        "decisions/selection": pd.DataFrame({"time": [0.0], "user": [0], "from": [-1], "broker": [0]}),
        "decisions/configuration": pd.DataFrame({"time": [0.0], "broker": [0], "node": [0]}),
    }


def _load(windows: NDArray[np.int64], broker: NDArray[np.int64]) -> pd.DataFrame:
    """A row for each window and broker but the first, who never does anything."""
    window, who = np.repeat(windows, len(broker) - 1), np.tile(broker[1:], len(windows))
    busy = np.minimum(who % 7 / 5, 1.0)
    return pd.DataFrame(
        {
            "window": window,
            "broker": who,
            "received": 10 * who,
            "sent": 5 * who,
            "utilisation": busy * np.where(window % 2, 1.0, 0.5),
            "queue_length": 1.0 * who,
        }
    )


def _metrics(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    counted = tables["timeseries"][~tables["timeseries"]["warm_up"]]
    metrics: dict[str, Any] = {name: int(counted[name].sum()) for name in COUNTS}
    for name, (above, below) in SCALARS.items():
        metrics[name] = float(counted[above].sum() / counted[below].sum())
    return {
        **metrics,
        "load_stddev": float(counted["load_stddev"].mean()),
        "load_jain": float(counted["load_jain"].mean()),
        "queue_wait": None,
        "saturated_brokers": 0,
        "bootstrap_messages": 500,
        "lost": 0,
    }


def write_sweep(
    folder: Path,
    points: Sequence[Mapping[str, Any]],
    effect: Callable[[Mapping[str, Any], str], Mapping[str, float]] | None = None,
    detailed: Sequence[int] = (0,),
    sweep: Mapping[str, Any] | None = None,
    precision: Mapping[str, Any] | None = None,
    detected: Sequence[Mapping[str, Any]] = (),
    **one: Any,
) -> Path:
    """Results of a sweep: those of `write_results` at each point, with metrics multiplied by `effect` of point and variant.

    Points that are `detailed` have the tables of their runs, others the rows in `runs.parquet` only. `detected` are warm-ups by point.
    """
    write_results(folder, **one)
    base = pd.read_parquet(folder / "runs.parquet")
    number = np.repeat(np.arange(len(points)), len(base))
    runs = pd.concat([base] * len(points), ignore_index=True).assign(point=number)
    runs["run"] = [
        hashlib.sha256(f"{point}/{run}".encode()).hexdigest()[:16] for point, run in runs[["point", "run"]].values
    ]
    for place, key in enumerate(points[0]):
        runs.insert(5 + place, key, [points[point][key] for point in number])
    variants = list(dict.fromkeys(base["variant"]))
    factors = pd.DataFrame([(effect or _effect)(values, variant) for values in points for variant in variants])
    which = number * len(variants) + runs["variant"].map(variants.index).to_numpy()
    for metric in factors:
        runs[metric] = runs[metric].astype(np.float64) * factors[metric].to_numpy()[which]
    for point in detailed:
        for old, new in zip(base["run"], runs.loc[runs["point"] == point, "run"], strict=True):
            path = Path(shutil.copytree(folder / "runs" / old, folder / "runs" / new))
            seal_run(path, {**json.loads((path / "manifest.json").read_text()), "hash": new})
    for run in base["run"]:
        shutil.rmtree(folder / "runs" / run)
    runs.to_parquet(folder / "runs.parquet", index=False)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {
        "parameters": list(points[0]),
        "points": [dict(values) for values in points],
        "sweep": dict(sweep or {}),
        "precision": precision,
        "warm_up": list(detected),
        "runs": runs["run"].tolist(),
    }
    path.write_text(json.dumps(manifest))
    return folder


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination, the last key fastest; `__` in a name stands for a dot."""
    keys = [name.replace("__", ".") for name in values]
    return [dict(zip(keys, point, strict=True)) for point in itertools.product(*values.values())]


def _effect(values: Mapping[str, Any], variant: str) -> dict[str, float]:
    """Delays grow with every parameter; messages have a minimum, at a place that depends on the variant."""
    size = math.prod(1 + math.log10(1 + value) for value in values.values() if isinstance(value, (int, float)))
    best = 6.0 * FACTORS.get(variant, 1.0)
    return {"notification_delay": size / 4, "notification_overhead": 1 + (size - best) ** 2 / 20}
