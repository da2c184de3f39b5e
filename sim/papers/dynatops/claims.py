"""The claims of “DYNATOPS” and the numbers that test them; reasons are named in `page.toml`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pandas as pd

from sim.papers.claims import FALLS, MORE, Claim, ClaimedQuantity, ClaimReading, at_most, between
from sim.papers.dynatops.location import location_claims
from sim.papers.dynatops.poisson import poisson_claims
from sim.papers.dynatops.readings import DELAYS, NEW, delay_readings, in_words, panel_claim
from sim.papers.quantities import change, least, metric_value, shift, variant_difference


def claims() -> Iterator[Claim]:
    """All claims of section IV and the introduction, figure by figure."""
    yield from location_claims()
    yield from poisson_claims()
    yield from _periods()
    yield from _configurations()


def _periods() -> Iterator[Claim]:
    for both, cost, by, ends in (("9a", "9b", "days", ("2 d", "28 d")), ("9c", "9d", "hours", ("5 h", "30 h"))):
        made = tuple(
            in_words(metric_value(metric, NEW, point), f"{what} with T_free = {point}")
            for metric, what in (("reconfigurations", "reconfigurations"), ("reconfigured_brokers", "brokers moved"))
            for point in ends
        )
        delays, slightly = delay_readings({metric: change(metric, NEW, by) for metric in DELAYS}), between(0, 10, " %")
        yield panel_claim(both, "Delay rises slightly with T_free", "period", delays, slightly, "period", evidence=made)
        number = change("notification_overhead", NEW, by)
        yield panel_claim(
            both, "Overhead rises slightly with T_free", "period", number, slightly, "period", evidence=made
        )
        falls = shift("reconfigurations", NEW, by)
        yield panel_claim(
            cost, "Fewer reconfigurations with a longer T_free", "fewer", falls, FALLS, "occasions", evidence=made
        )
        falls = shift("reconfiguration_overhead", NEW, by)
        statement = "Reconfiguration overhead falls with T_free"
        yield panel_claim(cost, statement, "fewer", falls, FALLS, "cheaper", evidence=made)


def _configurations() -> Iterator[Claim]:
    variant = "DYNATOPS-Greedy"
    saved = (("cost_saved", "SSBR cost"), ("overhead_saved", "relay traffic"), ("delay_saved", "delay"))
    for figure, varied in (("10a", "brokers"), ("10b", "topics")):
        for pattern, (metric, what) in product(("uniform", "multimodal"), saved):
            readings = tuple(
                ClaimReading(least(metric, policy, "pattern", pattern, varied), name, "output")
                for policy, name in ((variant, "by its cost"), ("SSBR-Greedy", "whatever moving costs"))
            )
            moved = in_words(least("moved", variant, "pattern", pattern, varied), "brokers moved, at least")
            statement = f"Always saves {what}, {pattern}"
            yield panel_claim(figure, statement, "always", readings, MORE, "configuration", evidence=(moved,))
    for metric, what in saved:
        more = variant_difference(metric, variant, "pattern", "multimodal", "uniform")
        readings = (
            ClaimReading(more, "a broker wants five topics, as a user"),
            ClaimReading(more, "a broker wants ten topics, a whole mode", "patterns on brokers", section="modes"),
        )
        both = tuple(_mean_saved(metric, variant, pattern) for pattern in ("uniform", "multimodal"))
        statement = f"Saves more {what} where patterns are skewed"
        yield panel_claim("10a", statement, "skewed", readings, MORE, "skew", evidence=both)
    for point, milliseconds in (
        ("10 brokers, 100 topics", 28),
        ("100 brokers, 100 topics", 184),
        ("1000 brokers, 100 topics", 96_000),
        ("100 brokers, 50 topics", 98),
        ("100 brokers, 500 topics", 502),
        ("100 brokers, 5000 topics", 1900),
    ):
        number, target = metric_value("milliseconds", variant, point), at_most(milliseconds, 0, " ms")
        statement = f"{point}: time to compute"
        yield Claim("table-2", "table II", statement, "table II", (ClaimReading(number),), target, "time")


def _mean_saved(metric: str, variant: str, pattern: str) -> ClaimedQuantity:
    """What a policy saves in one pattern, averaged over all sizes (%)."""

    def of(runs: pd.DataFrame) -> pd.Series:
        chosen = runs[(runs["variant"] == variant) & (runs["pattern"] == pattern)]
        return chosen.groupby("replication")[metric].mean()

    return ClaimedQuantity(f"{pattern}, mean of all sizes", " %", of)
