"""The claims of “Generating Subscriptions and Publications”, and the reasons for their outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from sim.papers.claims import MORE, RISES, Claim, ClaimedQuantity, ClaimReading, Reason, Target, near
from sim.papers.quantities import metric_value

MATCHES = range(1, 9)
OVERLAPS = tuple(f"v = {v}" for v in range(5))
TABLE_1: dict[str, tuple[int | str, ...]] = {
    "alpha": (96, 336, 672, 840, 672, 336, 96, 12),
    "optimal_alpha": (100, 4950, 161700, "3 million", "75 million", "1 billion", "15 billion", "186 billion"),
    "beta": (96, 48, 24, 24, 12, 12, 12, 12),
    "optimal_beta": (100, 50, 33, 25, 20, 16, 14, 12),
}
TABLE_2 = {
    "v = 0": (96, 336, 672, 840, 672, 336, 96, 12),
    "v = 1": (99, 392, 784, 980, 784, 392, 112, 14),
    "v = 2": (98, 433, 896, 1120, 896, 448, 128, 16),
    "v = 3": (98, 478, 1046, 1330, 1064, 532, 152, 19),
    "v = 4": (100, 534, 1252, 1657, 1344, 672, 192, 24),
}
WORDS = {"million": 1e6, "billion": 1e9}


def claims() -> Iterator[Claim]:
    """All claims of both tables and of sections 6.2 and 7."""
    statement = "A publication of algorithm 2 matches its target and nothing else"
    reason = Reason(
        "Every subscription keeps a predicate of its own.",
        "Step (d)(ii) as printed takes predicates that made earlier subscriptions independent; corrected, none is missed.",
    )
    missed = ClaimedQuantity("targets missed, m = 4, mean over z from 2 to 7", " %", _missed)
    yield _claim("printed", "algorithm 2", statement, "algorithm 2", missed, Target("none missed", 0.0, 0.0), reason)
    yield from _overlap()
    yield from _figures()
    yield from _table_1()
    yield from _table_2()


def _claim(
    section: str,
    place: str,
    statement: str,
    sentence: str,
    number: ClaimedQuantity,
    target: Target,
    reason: str | Reason,
) -> Claim:
    """A claim that can be read in one way."""
    return Claim(section, place, statement, sentence, (ClaimReading(number),), target, reason)


def _target(printed: int | str) -> Target:
    if isinstance(printed, int):
        return near(printed, 0)
    digits, word = printed.split()
    return Target(f"> {printed}", int(digits) * WORDS[word], math.inf)


def _at(metric: str, variant: str, z: int, name: str) -> ClaimedQuantity:
    """A number of the tables."""
    return replace(metric_value(metric, variant, f"z = {z}"), name=name)


def _table_1() -> Iterator[Claim]:
    said = {
        "alpha": ("α({z}) of disjoint subsets", "r C(t, z)"),
        "optimal_alpha": ("α({z}) of an impossible set of 100", "C(h, z)"),
        "beta": ("β({z}) of disjoint subsets", "r floor(t / z)"),
        "optimal_beta": ("β({z}) of an impossible set of 100", "floor(h / z)"),
    }
    for metric, printed in TABLE_1.items():
        statement, reason = said[metric]
        for z, number in zip(MATCHES, printed, strict=True):
            found = _at(metric, "v = 0", z, "by formula" if metric.startswith("optimal") else "hit exactly")
            why = Reason(f"{reason}.", f"By formula it is {reason}.")
            yield _claim("table-1", "table 1", statement.format(z=z), "table 1", found, _target(number), why)

    statement = "Compared with the optimum, the loss of β(z) is not as great as that of α(z)"
    ahead = ClaimedQuantity("β(z) less α(z), shares of the optimum, least from z = 2 on", "", _closer_to_optimum)
    yield _claim("table-1", "table 1", statement, "not as great", ahead, MORE, "not as great")


def _table_2() -> Iterator[Claim]:
    for variant, printed in TABLE_2.items():
        for z, number in zip(MATCHES, printed, strict=True):
            statement, found = f"α({z}) for {variant}", _at("alpha", variant, z, "hit exactly")
            yield _claim("table-2", "table 2", statement, "table 2", found, near(number, 0), "overlapping")


def _over_z(name: str, unit: str, metric: str, of: Callable[[pd.DataFrame], float]) -> ClaimedQuantity:
    """A number derived from a metric by z and overlap, per replication."""

    def numbers(runs: pd.DataFrame) -> pd.Series:
        found = {
            replication: of(part.pivot_table(index="z", columns="variant", values=metric)[list(OVERLAPS)])
            for replication, part in runs.groupby("replication")
        }
        return pd.Series(found, dtype=float)

    return ClaimedQuantity(name, unit, numbers)


def _least_step(alpha: pd.DataFrame) -> float:
    return float((alpha.loc[2:].pct_change(axis=1) * 100).iloc[:, 1:].min().min())


def _mean_factor(alpha: pd.DataFrame) -> float:
    return float((alpha["v = 4"] / alpha["v = 0"]).loc[2:].mean())


def _least_change(beta: pd.DataFrame) -> float:
    return float(100 * (beta.div(beta["v = 0"], axis=0) - 1).min().min())


def _overlap() -> Iterator[Claim]:
    step = _over_z("least change from one v to the next, z from 2", " %", "alpha", _least_step)
    yield _claim("table-2", "table 2", "More overlap increases α(z)", "more overlap", step, RISES, "more overlap")
    factor = _over_z("α(z) for v = 4 against v = 0, mean over z from 2", "", "alpha", _mean_factor)
    statement = "An overlap of v = 4 roughly doubles the diversity"
    yield _claim("table-2", "table 2", statement, "doubles", factor, near(2, 0.2), "doubles")
    least, never = (
        _over_z("least change of β(z) from v = 0", " %", "beta", _least_change),
        Target("never falls", 0.0, math.inf),
    )
    yield _claim("beta", "7", "Overlap only increases β(z)", "beta", least, never, "beta")


def _figures() -> Iterator[Claim]:
    for variant, count, pairs in (("overlapping", 22, 11), ("disjoint", 21, 9)):
        statement = f"β(2) of {count} subscriptions in {variant} sets of seven"
        number = metric_value("beta", variant, "figure 7.2")
        yield _claim("fig-7.2", "figure 7.2", statement, "figure 7.2", number, near(pairs, 0), "pairs")


def _closer_to_optimum(runs: pd.DataFrame) -> pd.Series:
    chosen = runs[(runs["variant"] == "v = 0") & (runs["z"] > 1)]
    shares = chosen["beta"] / chosen["optimal_beta"] - chosen["alpha"] / chosen["optimal_alpha"]
    return shares.groupby(chosen["replication"]).min()


def _missed(runs: pd.DataFrame) -> pd.Series:
    chosen = runs[(runs["variant"] == "m = 4") & runs["z"].between(2, 7)]
    return chosen.groupby("replication")["missed_targets"].mean()
