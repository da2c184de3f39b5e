"""Brokers that cannot keep up: which, since when, and how much waits, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.comparison import variants_of
from analysis.formatting import number, quantity
from analysis.sweeps.axes import axes_of, points_said
from sim.experiments.results import Results
from sim.scenario.expressions import KEEPS_UP

NAMED = 3
"""How many brokers, or points of a sweep, a sentence names at most."""
WARNING = "Delays and deliveries cover only what was delivered."


def saturated_points(results: Results) -> set[tuple[int, str]]:
    """The points (their numbers) and variants at which brokers do not keep up in most replications."""
    means = results.runs.groupby(["point", "variant"], as_index=False)[KEEPS_UP.metric].mean()
    behind = means[means[KEEPS_UP.metric] >= KEEPS_UP.value]
    return set(zip(behind["point"].tolist(), behind["variant"].tolist(), strict=True))


def saturation(results: Results) -> Iterator[str]:
    """A sentence for each variant with saturated brokers, or one over all points of a sweep; nothing where all brokers keep up."""
    runs = results.runs
    behind = runs[runs[KEEPS_UP.metric] > 0]
    if behind.empty:
        return
    if len(results.manifest["points"]) > 1:
        yield _over_points(results, sorted(set(behind["point"])))
        return
    for variant in variants_of(results):
        of_variant = behind[behind["variant"] == variant].sort_values("replication")
        if len(of_variant):
            count = int((runs["variant"] == variant).sum())
            yield _of_variant(results, variant, of_variant["run"].iloc[0], len(of_variant), count)


def _of_variant(results: Results, variant: str, run: str, times: int, count: int) -> str:
    """What waits at which brokers in one run, the first of those of the variant in which brokers are saturated."""
    brokers = results.table(run, "brokers")
    brokers = brokers[brokers["saturated_since"].notna()].sort_values("backlog_seconds", ascending=False, kind="stable")
    named = ", ".join(
        f"broker {name} since {quantity(since, 's')} ({number(messages)} messages there at the end, "
        f"{quantity(seconds, 's')} more work than it could do)"
        for name, since, messages, seconds in brokers[["name", "saturated_since", "backlog", "backlog_seconds"]]
        .head(NAMED)
        .itertuples(index=False, name=None)
    )
    more = len(brokers) - NAMED
    others = f" and {number(more)} other{'s' if more > 1 else ''}" if more > 0 else ""
    what = "a broker is" if len(brokers) == 1 else f"{number(len(brokers))} brokers are"
    where = "" if count == 1 else f" in {times} of {count} replications{', the first of them' if times > 1 else ''}"
    return f"{variant}: {what} saturated{where}: {named}{others}. {WARNING}"


def _over_points(results: Results, points: list[int]) -> str:
    axes, all_points = axes_of(results), results.manifest["points"]
    named = "; ".join(points_said(axes, all_points[point]) for point in points[:NAMED])
    more = f"; and {number(len(points) - NAMED)} more" if len(points) > NAMED else ""
    return f"Brokers are saturated at {number(len(points))} of {number(len(all_points))} points ({named}{more}). {WARNING[:-1]} there."
