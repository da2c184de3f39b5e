"""The claims of “DYNATOPS” and the numbers that test them; reasons are named in `page.toml`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sim.papers.claims import (
    FALLS,
    LESS,
    MORE,
    RISES,
    Claim,
    ClaimedQuantity,
    ClaimReading,
    Target,
    at_least,
    at_most,
    between,
    near,
)
from sim.papers.quantities import change, gain, least, mean_gain, mean_of, metric_value, shift, variant_difference

LOCATION, GEOPS, GREEDY = "Bayeux (loc)", "GeoPS (reconstruction)", "DYNATOPS, w_d = 1"
CHORD, NEW = "Bayeux (loc) on Chord", "DYNATOPS"
ALONE, BS, RELATIVE = "DYNATOPS (BS), w_l = 0", "DYNATOPS (BS), w_l = 1", "ours: BS, relative load"
BS_BNR = "DYNATOPS (BS+BNR)"
TCO = ("TCO", "TCO, hourly", "TCO, repaired")
PATTERNS = ("uniform", "zipf", "multimodal")
FAST = 0.2
"""Changes per user and hour at which subscriptions "change fast"."""


def claims() -> Iterator[Claim]:
    """All claims of section IV and the introduction, figure by figure."""
    yield from _trace()
    yield from _location()
    yield from _poisson()
    yield from _patterns()
    yield from _periods()
    yield from _configurations()


def _claim(
    figure: str,
    statement: str,
    sentence: str,
    number: ClaimedQuantity | tuple[ClaimReading, ...],
    target: Target,
    reason: str,
    ours: bool = False,
) -> Claim:
    """A claim about a panel of a figure, such as 6a, with one number or several readings."""
    readings = (ClaimReading(number),) if isinstance(number, ClaimedQuantity) else number
    place = f"fig. {figure[:-1]}({figure[-1]})"
    return Claim(f"fig-{figure}", place, statement, sentence, readings, target, reason, ours=ours)


def _trace() -> Iterator[Claim]:
    for figure, statement, sentence, metric, target in (
        ("5a", "450 thousand visits of 40 thousand users", "visits", "visits_per_user", near(11.25, 1.1)),
        ("5a", "160 thousand (user, cell) pairs", "visits", "pairs_per_user", near(4, 0.4)),
        ("5a", "A third of the pairs are single visits", "single visits", "single_visits", near(0.33, 0.04)),
        ("5b", "Half of the stays last less than a day", "under a day", "stays_under_day", near(0.5, 0.04)),
        ("5b", "A tenth of them more than a week", "over a week", "stays_over_week", near(0.1, 0.03)),
    ):
        yield _claim(figure, statement, sentence, mean_of(metric, "mobility generator"), target, "trace")


def _location() -> Iterator[Claim]:
    control, spread, ten = "subscription_overhead", "load_stddev", ("point", "c = 10")
    for c in (4, 10, 20, 50):
        statement = f"Over 40 % less subscription management overhead, c = {c}"
        less = gain(control, BS, LOCATION, "c", c)
        yield _claim("6a", statement, "management", less, at_least(40, " %"), "management")
    falls, rises = (change(control, BS, "c", *ends) for ends in ((4, 20), (20, 50)))
    yield _claim("6a", "It falls as clusters grow", "falls with c", falls, FALLS, "exchange")
    yield _claim("6a", "It rises again for large clusters", "rises with c", rises, RISES, "exchange")
    uneven, balanced = mean_gain(spread, ALONE, LOCATION, "c"), mean_gain(spread, BS, ALONE, "c")
    relative, fifth = mean_gain(spread, RELATIVE, ALONE, "c"), at_least(20, " %")
    yield _claim("6b", "Similarity alone worsens the imbalance", "imbalance", uneven, LESS, "imbalance")
    more = change(spread, ALONE, "c")
    yield _claim("6b", "The more so, the larger clusters are", "imbalance", more, RISES, "imbalance")
    yield _claim("6b", "The weight of load improves it", "weight", balanced, fifth, "weight")
    yield _claim("6b", "So does a relative load", "weight", relative, fifth, "weight", ours=True)
    fewer = gain("handovers", "DYNATOPS (BS)", GEOPS, *ten)
    yield _claim("6c", "Over 90 % fewer handovers than GeoPS", "handovers", fewer, at_least(90, " %"), "handovers")
    for figure, what, metric, bayeux, geops in (
        ("6d", "delay", "notification_delay", 60, 30),
        ("6e", "overhead", "notification_overhead", 40, 20),
    ):
        for baseline, margin, reason in (
            (LOCATION, bayeux, "tapestry"),
            (CHORD, bayeux, "same substrate"),
            (GEOPS, geops, "geops"),
        ):
            statement, less = f"Over {margin} % less {what} than {baseline}", gain(metric, GREEDY, baseline, *ten)
            yield _claim(figure, statement, "combined", less, at_least(margin, " %"), reason)
        for variant, means in (("DYNATOPS (BS)", "Selection"), ("DYNATOPS (BNR)", "Reconfiguration")):
            less = gain(metric, variant, CHORD, *ten)
            yield _claim(figure, f"{means} alone improves {what}", "both improve", less, MORE, means.lower())
        falls = change(metric, BS_BNR, "c")
        yield _claim("6f", f"Less {what}, the larger clusters are", "clusters", falls, FALLS, "clusters")


def _poisson() -> Iterator[Claim]:
    changes, cost = "broker_subscription_changes", "reconfiguration_overhead"
    delay, messages = "notification_delay", "notification_overhead"
    tenth, half, on_chord, ours = at_least(10, " %"), at_least(50, " %"), "Bayeux on Chord", "ours: lsap-sweep, c = 10"
    less = mean_gain(changes, NEW, "Bayeux", "rate")
    statement = "80 % fewer broker-subscription changes"
    yield _claim("7a", statement, "fewer changes", less, at_least(80, " %"), "multimodal")
    for figure, statement, sentence, compared, target, reason in (
        ("7b", "10 % less delay than Bayeux", "outperforms", (delay, NEW, "Bayeux"), tenth, "delay"),
        ("7b", "10 % less delay than Bayeux on Chord", "outperforms", (delay, NEW, on_chord), tenth, "delay"),
        ("7b", "10 % less delay than TCO", "outperforms", (delay, NEW, "TCO"), tenth, "delay"),
        ("7b", "The same, ours, on Chord", "outperforms", (delay, ours, on_chord), tenth, "delay"),
        ("7b", "TCO has more delay than Bayeux", "tco delay", (delay, "TCO", "Bayeux"), LESS, "tco delay"),
        ("7c", "Over 50 % less overhead than Bayeux", "outperforms", (messages, NEW, "Bayeux"), half, "overhead"),
        ("7c", "Over 50 % less overhead than TCO", "outperforms", (messages, NEW, "TCO"), half, "overhead"),
        ("7c", "TCO has less overhead than Bayeux", "tco overhead", (messages, "TCO", "Bayeux"), MORE, "tco overhead"),
    ):
        number = mean_gain(*compared, "rate")
        yield _claim(figure, statement, sentence, number, target, reason, ours=compared[1] == ours)
    rises = shift(cost, "TCO", "rate")
    yield _claim("7d", "TCO's rises with the rate of changes", "tco rises", rises, RISES, "tco cost")
    for baseline in TCO:
        statement, less = f"Over 90 % less than {baseline} at a high rate", gain(cost, NEW, baseline, "rate", FAST)
        yield _claim("7d", statement, "over 90 %", less, at_least(90, " %"), "cost")


def _patterns() -> Iterator[Claim]:
    delay, changes = "notification_delay", "broker_subscription_changes"
    for pattern, target, more in (("zipf", MORE, "less"), ("uniform", LESS, "more"), ("multimodal", LESS, "more")):
        statement = f"TCO has {more} delay than Bayeux, {pattern}"
        number = gain(delay, "TCO", "Bayeux", "pattern", pattern)
        yield _claim("8a", statement, "tco patterns", number, target, "tco delay")
    for figure, what, metric in (("8a", "delay", delay), ("8b", "overhead", "notification_overhead")):
        for pattern, baseline in product(PATTERNS, ("Bayeux", "TCO")):
            statement = f"DYNATOPS has less {what} than {baseline}, {pattern}"
            number = gain(metric, NEW, baseline, "pattern", pattern)
            yield _claim(figure, statement, "patterns", number, MORE, what)
    for pattern in ("uniform", "zipf", "multimodal, redrawn"):
        statement = f"80 % fewer broker-subscription changes, {pattern}"
        number = gain(changes, NEW, "Bayeux", "pattern", pattern)
        yield _claim("8a", statement, "fewer changes", number, at_least(80, " %"), "unlike", ours=True)


def _periods() -> Iterator[Claim]:
    for both, cost, by in (("9a", "9b", "days"), ("9c", "9d", "hours")):
        for metric, what in (("notification_delay", "Delay"), ("notification_overhead", "Overhead")):
            number, slightly = change(metric, NEW, by), between(0, 10, " %")
            yield _claim(both, f"{what} rises slightly with T_free", "period", number, slightly, "period")
        falls = shift("reconfiguration_overhead", NEW, by)
        yield _claim(cost, "Reconfiguration overhead falls with T_free", "fewer", falls, FALLS, "cheaper")


def _configurations() -> Iterator[Claim]:
    variant = "DYNATOPS-Greedy"
    saved = (("cost_saved", "SSBR cost"), ("overhead_saved", "relay traffic"), ("delay_saved", "delay"))
    for figure, varied in (("10a", "brokers"), ("10b", "topics")):
        for pattern, (metric, what) in product(("uniform", "multimodal"), saved):
            fewest = least(metric, variant, "pattern", pattern, varied)
            yield _claim(figure, f"Always saves {what}, {pattern}", "always", fewest, MORE, "configuration")
    for metric, what in saved:
        more = variant_difference(metric, variant, "pattern", "multimodal", "uniform")
        yield _claim("10a", f"Saves more {what} where patterns are skewed", "skewed", more, MORE, "skew")
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
