"""Compare the deliveries of runs with those recorded in a trace, by topic and subscriber."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sim.base.errors import ScenarioError
from sim.experiments.results import Results
from sim.files.parquet import read_frame
from sim.scenario.experiment import Experiment
from sim.workloads.format.folder import load_workload
from sim.workloads.format.manifest import read_manifest
from sim.workloads.models.live_filters import with_topics_of_filters

KEYS = ["topic", "user"]


@dataclass(frozen=True)
class DeliveryCheck:
    """The deliveries of one run beside those of the trace.

    `counts` has a row for each topic and subscriber (by name, in the order of ids) with a delivery in either: `trace`, `simulated`,
    and `difference`, how many more were simulated. Those who share a subscription are one subscriber: who of them gets a message is
    the strategy's choice.
    """

    variant: str
    replication: int
    counts: pd.DataFrame

    @property
    def differing(self) -> pd.DataFrame:
        """The rows that differ, the largest differences first."""
        order = self.counts["difference"].abs().sort_values(ascending=False, kind="stable").index
        return self.counts.loc[order].query("difference != 0")

    def sentence(self) -> str:
        """The result of the check in one sentence."""
        trace, simulated, pairs = self.counts["trace"].sum(), self.counts["simulated"].sum(), len(self.counts)
        totals = f"{trace:,} deliveries in the trace, {simulated:,} simulated"
        if self.differing.empty:
            return f"{totals}: equal for each of {pairs:,} pairs of topic and subscriber."
        off = self.differing["difference"].abs().sum()
        return (
            f"{totals}: {len(self.differing):,} of {pairs:,} pairs of topic and subscriber differ, by {off:,} in all."
        )


def traces_of(experiment: Experiment) -> dict[str, Path]:
    """The folder of each variant's workload. Raises ScenarioError where one has no deliveries to check a run against."""
    found = {}
    for variant, scenario in experiment.variants.items():
        table, where = scenario.workload, f"{experiment.path or 'scenario'}: variant {variant}"
        if table.kind != "prepared":
            raise ScenarioError(
                f"{where}: a workload of kind '{table.kind}' is synthetic: there is no trace with deliveries to compare with"
            )
        if table.path is None:
            raise ScenarioError(f"{where}: workload.path: missing; name a workload folder there or with --workload")
        if table.resample_users:
            raise ScenarioError(f"{where}: workload.resample_users draws users other than those of the trace")
        if not read_manifest(table.path)[0]["counts"].get("deliveries"):
            raise ScenarioError(
                f"{where}: {table.path} has no deliveries to compare with; logs with deliver rows have (brokersim prepare events)"
            )
        found[variant] = table.path
    return found


def check_deliveries(results: Results, experiment: Experiment) -> list[DeliveryCheck]:
    """Compare all finished runs with the traces that drove them, up to the runs' horizons; runs must have `subscribers = true`."""
    traces = traces_of(experiment)
    checks = []
    for run, variant, replication in zip(
        *(results.runs[key] for key in ("run", "variant", "replication")), strict=True
    ):
        simulated = results.table(run, "subscribers").rename(columns={"delivered": "simulated"})
        counts = _compare(traces[variant], experiment.variants[variant].horizon, simulated)
        checks.append(DeliveryCheck(variant, int(replication), counts))
    return checks


def _compare(folder: Path, horizon: float | None, simulated: pd.DataFrame) -> pd.DataFrame:
    recorded = read_frame(folder / "deliveries.parquet", ["time", "topic", "subscriber"])
    if horizon is not None:
        recorded = recorded[recorded["time"] < horizon]
    recorded = recorded.rename(columns={"subscriber": "user"})[KEYS].astype("int64")
    trace = recorded.groupby(KEYS).size().rename("trace").reset_index()
    counts = trace.merge(simulated, on=KEYS, how="outer").fillna(0).astype("int64").sort_values(KEYS)
    topics, users = (
        read_frame(folder / f"{key}s.parquet", [key, "name"]).set_index(key)["name"].astype(object) for key in KEYS
    )
    counts["subscriber"] = counts["user"].map(users)
    if (folder / "shares.parquet").exists():
        shares = _shares(folder)
        shares["name"] = shares["user"].map(users)
        members = shares.groupby(["topic", "group"]).agg(user=("user", "min"), subscriber=("name", _together))
        counts = counts.merge(shares.drop(columns="name"), on=KEYS, how="left")
        own = counts[counts["group"].isna()].drop(columns="group")
        shared = counts.dropna(subset="group").groupby(["topic", "group"])[["trace", "simulated"]].sum()
        counts = pd.concat([own, members.join(shared, how="inner").reset_index()]).sort_values(KEYS, kind="stable")
    return pd.DataFrame(
        {
            "topic": counts["topic"].map(topics),
            "subscriber": counts["subscriber"],
            "trace": counts["trace"],
            "simulated": counts["simulated"],
            "difference": counts["simulated"] - counts["trace"],
        }
    ).reset_index(drop=True)


def _shares(folder: Path) -> pd.DataFrame:
    """Who shares which topics."""
    if "filters" not in read_manifest(folder)[0]["counts"]:
        return read_frame(folder / "shares.parquet", [*KEYS, "group"])
    return pd.DataFrame(with_topics_of_filters(load_workload(folder)).shares.columns)


def _together(names: pd.Series[str]) -> str:
    """What those who share a subscription are called: at most three of them by name."""
    some = names.tolist()
    if len(some) > 3:
        return f"{', '.join(some[:2])} or {len(some) - 2:,} others"
    return " or ".join(([", ".join(some[:-1])] if some[:-1] else []) + some[-1:])
