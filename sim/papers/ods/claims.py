"""The claims of “Maximizing the Number of Satisfied Subscribers”, and the reasons for their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from sim.papers.claims import (
    FALLS,
    MORE,
    RISES,
    Claim,
    ClaimedQuantity,
    ClaimReading,
    Target,
    at_least,
    at_most,
    in_readings,
    near,
)
from sim.papers.quantities import NOTHING, change, largest, mean_of, metric_value

READINGS = {"sparse": "shapes", "dense": "shapes", "fitted": "shapes"}
"""The shapes of the unpublished interests, the one that was there first, and the sentences that allow them."""
B3M, FB3M, SLOW, PORTFOLIO = "GreedyB3M", "ModifiedGreedyFB3M", "ModifiedGreedyFB3MSlow", "ours: portfolio"
BOUND, BEST = "bound of the paper", "best proven bound"
RATIOS = {2: 0.87, 27: 0.83, 276: 0.75, 2763: 0.82}
"""The ratio of GreedyB3M to the paper's bound, by tau."""
TOLERANCE = 0.02
"""The tolerance of ratios: the paper prints two digits, and has a different trace."""
LESS_THAN, AT_MOST = 20.0, 33.0
"""Seconds that ModifiedGreedyFB3M takes for all values of tau, and for one of them."""


def claims() -> Iterator[Claim]:
    """All claims of section VII and the abstract, each for all shapes."""
    yield from _trace()
    yield from _capacities()
    yield from _ratios()
    yield from _times()


def _claim(
    section: str, place: str, statement: str, sentence: str, number: ClaimedQuantity, target: Target, reason: str
) -> Claim:
    """A claim in all readings."""
    return Claim(section, place, statement, sentence, in_readings(number, READINGS), target, reason)


def _trace() -> Iterator[Claim]:
    for statement, sentence, metric, target, reason in (
        ("About 1.1 million topics", "sizes", "topics", Target("1.1 million", 1.05e6, 1.15e6), "trace"),
        ("4.9 million subscribers", "sizes", "subscribers", Target("4.9 million", 4.85e6, 4.95e6), "trace"),
        ("The mean event rate is 2763", "taus", "event_rate", near(2763, 0.5), "trace"),
        ("τ = 2 is 0.1 % of it", "taus", "lowest_tau", near(0.1, 0.05, " %"), "tau"),
        ("τ = 2763 is 100 % of it", "taus", "highest_tau", near(100, 0.05, " %"), "trace"),
    ):
        unit = " %" if metric.endswith("tau") else ""
        readings = tuple(
            ClaimReading(replace(mean_of(metric, shape), unit=unit), shape, READINGS[shape], shape)
            for shape in READINGS
        )
        yield Claim("trace", "VII.A", statement, sentence, readings, target, reason)


def _capacities() -> Iterator[Claim]:
    grows = ClaimedQuantity("steps of the capacity at which it grows, all τ", " %", _growing)
    statement = "The gap between GreedyB3M and the bound grows with the capacity in most cases"
    yield _claim("fig-1", "fig. 1", statement, "gap", grows, at_least(50, " %"), "gap")
    ahead = ClaimedQuantity("subscribers that those satisfy beyond it, at most", "", _ahead)
    statement = "What one run has satisfied on its way is what runs to these capacities satisfy"
    yield _claim("fig-1", "fig. 1", statement, "progress", ahead, Target("none", 0.0, 0.0), "progress")
    for statement, sentence, variant, share in (
        ("At τ = 27 about 72 % of all subscribers are satisfied (3.5 million)", "satisfied", B3M, 72),
        ("At τ = 27 the bound is 86 % (4.2 million)", "bound", BOUND, 86),
    ):
        found = replace(metric_value("satisfied_at_capacity", variant, "τ = 27"), unit=" %")
        yield _claim("fig-1", "fig. 1", statement, sentence, found, near(share, 2, " %"), "share")


def _ratios() -> Iterator[Claim]:
    for tau, ratio in RATIOS.items():
        statement = f"GreedyB3M comes to {ratio:g} of the bound at τ = {tau}"
        found = metric_value("ratio", B3M, f"τ = {tau:,}")
        yield _claim("fig-3", "fig. 3", statement, f"ratio {tau}", found, near(ratio, TOLERANCE), "ratio")
    found = metric_value("ratio", FB3M, "τ = 2,763")
    statement = "ModifiedGreedyFB3M comes to 0.9 of its bound at τ = 2763"
    yield _claim("fig-3", "fig. 3", statement, "closer", found, near(0.9, TOLERANCE), "ratio")
    for variant, sentences in ((B3M, ("drops", "rises")), (FB3M, ("pattern", "pattern"))):
        for word, target, first, last in (("drops", FALLS, 2, 276), ("rises", RISES, 276, 2763)):
            statement = f"The ratio of {variant} {word} from τ = {first} to {last}"
            number, sentence = change("ratio", variant, "tau", first, last), sentences[target is RISES]
            yield _claim("fig-3", "fig. 3", statement, sentence, number, target, word)
    closer = ClaimedQuantity("ratio of the one minus ratio of the other, mean over τ", "", _closer)
    statement = "ModifiedGreedyFB3M is much closer to its bound than GreedyB3M"
    yield _claim("fig-3", "fig. 3", statement, "much lower", closer, MORE, "closer")
    for variant, ratio in ((B3M, 0.82), (FB3M, 0.9)):
        statement = f"{variant} comes to {ratio:g} of the bound at best"
        number = largest("ratio", [variant])
        yield _claim("fig-3", "fig. 3", statement, "abstract", number, near(ratio, TOLERANCE), "abstract")
    least = ClaimedQuantity("least value / best proven bound, of all τ", "", _least_proven)
    statement = "ModifiedGreedyFB3M is significantly better than its guarantee"
    target = at_least(round((1 - 1 / math.e) / 2, 3))
    yield _claim("fig-3", "fig. 3", statement, "guarantee", least, target, "guarantee")


def _times() -> Iterator[Claim]:
    longest = ClaimedQuantity("CPU time of GreedyB3M at τ = 276, of the longest", "", _longest)
    under_30 = ClaimedQuantity("decisions of both under 30 s", " %", _under_30)
    quick, most = largest("seconds", [FB3M]), largest("seconds", [B3M])
    for statement, sentence, number, target in (
        (f"{FB3M} takes less than 20 s for all τ", "less than 20 s", quick, at_most(LESS_THAN, 0, " s")),
        (f"{B3M} takes 33 s at most (printed of {FB3M})", "33 s", most, at_most(AT_MOST, 0, " s")),
        (f"{B3M} takes longest at τ = 276", "33 s", longest, Target("the longest", 1.0, 1.0)),
        ("Under 30 s in most of the experiments", "under 30 s", under_30, at_least(50, " %")),
    ):
        yield _claim("fig-4a", "fig. 4", statement, sentence, _at_full_size(number), target, "time")
    slower = ClaimedQuantity("CPU time of the slow one, of the other's, the least of all τ", "", _times_as_long)
    statement = "ModifiedGreedyFB3M outperforms ModifiedGreedyFB3MSlow"
    yield _claim("fig-4b", "fig. 4", statement, "less than 20 s", slower, at_least(1), "slow")


def _at_full_size(quantity: ClaimedQuantity) -> ClaimedQuantity:
    """A number that exists only at full size."""
    return replace(quantity, of=lambda runs: quantity.of(runs[runs["scale"] == 1]))


def _by_tau(runs: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    """A row per replication, a column per threshold, of the whole capacity."""
    chosen = runs[(runs["variant"] == variant) & runs[metric].notna()]
    table: pd.DataFrame = chosen.pivot_table(index="replication", columns="tau", values=metric)
    return table


def _growing(runs: pd.DataFrame) -> pd.Series:
    chosen = runs[runs["variant"] == f"{B3M}, one run"].sort_values("capacity")
    steps = chosen["gap"].groupby([chosen["replication"], chosen["tau"]]).diff().dropna()
    return 100 * (steps > 0).groupby(chosen["replication"]).mean()


def _ahead(runs: pd.DataFrame) -> pd.Series:
    return runs[runs["variant"] == B3M].groupby("replication")["ahead"].max()


def _closer(runs: pd.DataFrame) -> pd.Series:
    return (_by_tau(runs, "ratio", FB3M) - _by_tau(runs, "ratio", B3M)).mean(axis=1)


def _least_proven(runs: pd.DataFrame) -> pd.Series:
    return _by_tau(runs, "proven", FB3M).min(axis=1)


def _longest(runs: pd.DataFrame) -> pd.Series:
    seconds = _by_tau(runs, "seconds", B3M)
    return seconds[276] / seconds.max(axis=1) if 276 in seconds else NOTHING


def _under_30(runs: pd.DataFrame) -> pd.Series:
    decided = runs[runs["variant"].isin((B3M, FB3M)) & runs["seconds"].notna()]
    return 100 * (decided["seconds"] < 30).groupby(decided["replication"]).mean()


def _times_as_long(runs: pd.DataFrame) -> pd.Series:
    return runs[runs["variant"] == SLOW].groupby("replication")["times"].min()
