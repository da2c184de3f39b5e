"""The claims of “DYNATOPS” about the Poisson model: figures 7 and 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import pandas as pd

from sim.papers.claims import LESS, MORE, RISES, Claim, ClaimBound, ClaimedQuantity, ClaimReading, at_least, or_more
from sim.papers.dynatops.readings import (
    DELAYS,
    EVEN,
    FAST,
    LEAST,
    NEW,
    PATTERNS,
    TCO,
    WHOLE,
    delay_readings,
    hops_of,
    in_words,
    panel_claim,
)
from sim.papers.quantities import gain, mean_gain, mean_of, shift


def poisson_claims() -> Iterator[Claim]:
    """Figures 7 and 8, panel by panel."""
    yield from _figure_7()
    yield from _patterns()


def _figure_7() -> Iterator[Claim]:
    changes, control = "broker_subscription_changes", "subscription_overhead"
    less = mean_gain(changes, NEW, "Bayeux", "rate")
    statement = "80 % fewer broker-subscription changes"
    yield panel_claim("7a", statement, "fewer changes", less, or_more(80, " %"), "multimodal")
    less = mean_gain(changes, NEW, "TCO", "rate")
    yield panel_claim("7a", f"{statement} than TCO", "fewer changes", less, or_more(80, " %"), "multimodal")
    managed = tuple(
        ClaimReading(mean_gain(control, NEW, baseline, "rate"), name, sentence)
        for baseline, name, sentence in _substrates()
    )
    statement = "Less subscription management overhead than Bayeux"
    spent = (
        in_words(mean_of(changes, NEW), "broker-subscription changes"),
        in_words(mean_of(control, NEW), "messages for these and for the exchange of states"),
    )
    yield panel_claim("7a", statement, "fewer changes", managed, MORE, "management", evidence=spent)
    yield from _poisson_delay()
    messages, half = "notification_overhead", at_least(50, " %")
    for baseline in ("Bayeux", "TCO"):
        less = mean_gain(messages, NEW, baseline, "rate")
        yield panel_claim("7c", f"Over 50 % less overhead than {baseline}", "outperforms", less, half, "overhead")
    less = mean_gain(messages, "TCO", "Bayeux", "rate")
    yield panel_claim("7c", "TCO has less overhead than Bayeux", "tco overhead", less, MORE, "tco overhead")
    yield from _reconfiguration()


def _substrates() -> Iterator[tuple[str, str, str]]:
    """Readings of Bayeux in the Poisson model: the variant, the name, and the sentence."""
    for base in (16, 4, 2):
        yield ("Bayeux" if base == 16 else f"Bayeux, base {base}", f"Tapestry of base {base}", "Tapestry")
    yield "Bayeux on Chord", "on equal routes", "equal routes"


def _poisson_delay() -> Iterator[Claim]:
    delay, chord, tenth = "notification_delay", "Bayeux on Chord", or_more(10, " %")
    readings: list[ClaimReading] = []
    for baseline, name, sentence in _substrates():
        for reading in delay_readings({m: mean_gain(m, NEW, baseline, "rate") for m in EVEN}, sentence, name):
            bound = None
            if reading.name == "on equal routes, from the root on":
                least_possible = mean_gain("tree_delay", LEAST, chord, "rate")
                bound = ClaimBound("The best places of brokers, by exact assignment, save", least_possible)
            readings.append(replace(reading, bound=bound))
    yield panel_claim("7b", "10 % less delay than Bayeux", "outperforms", tuple(readings), tenth, "delay")
    less = _with_tco(lambda metric, tco: mean_gain(metric, NEW, tco, "rate"))
    hops = (
        in_words(mean_of("uplink_hops", NEW), f"{NEW}, to the root", " hops"),
        in_words(mean_of("tree_hops", "TCO"), "TCO, from the root on", " hops"),
    )
    yield panel_claim("7b", "10 % less delay than TCO", "outperforms", less, tenth, "to the root", evidence=hops)
    ours = mean_gain(delay, "ours: lsap-sweep, c = 10", chord, "rate")
    yield panel_claim(
        "7b", "The same by lsap-sweep, c = 10, on equal routes", "outperforms", ours, tenth, "delay", ours=True
    )
    more = _with_tco(lambda metric, tco: mean_gain(metric, tco, "Bayeux", "rate"))
    yield panel_claim("7b", "TCO has more delay than Bayeux", "tco delay", more, LESS, "tco delay")


def _with_tco(number: Callable[[str, str], ClaimedQuantity], than: str = "") -> tuple[ClaimReading, ...]:
    """Readings of a delay by its metric and by the parts of DCB-M, whose variant `number` takes.

    None is from the root on: TCO's roots are the publishers' brokers, so that this would be all of TCO's delay, and a part of ours.
    """
    return tuple(
        reading
        for tco, name in TCO.items()
        for reading in delay_readings(
            {metric: number(metric, tco) for metric in WHOLE},
            "DCB-M",
            ", ".join(filter(None, (f"TCO with {name}", than))),
        )
    )


def _reconfiguration() -> Iterator[Claim]:
    cost, kept = "reconfiguration_overhead", (*TCO, "TCO, hourly", "TCO, repaired")
    names = {name: TCO.get(name, name.removeprefix("TCO, ")) for name in kept}
    rises = tuple(ClaimReading(shift(cost, tco, "rate"), f"TCO with {name}", "DCB-M") for tco, name in TCO.items())
    yield panel_claim("7d", "TCO's rises with the rate of changes", "tco rises", rises, RISES, "tco cost")
    less = tuple(ClaimReading(_less_sensitive(cost, tco), f"TCO with {name}", "DCB-M") for tco, name in TCO.items())
    yield panel_claim("7d", "That of DYNATOPS rises less than TCO's", "less sensitive", less, MORE, "sensitive")
    for statement, sentence in (("Over 90 % less than TCO at a high rate", "over 90 %"),):
        readings = tuple(
            ClaimReading(gain(cost, NEW, tco, "rate", FAST), f"TCO: {names[tco]}", "DCB-M") for tco in kept
        )
        evidence = (break_even(cost),)
        yield panel_claim("7d", statement, sentence, readings, at_least(90, " %"), "cost", evidence=evidence)


def _less_sensitive(metric: str, tco: str) -> ClaimedQuantity:
    """By how much more TCO's cost rises from the lowest rate of changes to the highest than that of DYNATOPS."""
    theirs, ours = shift(metric, tco, "rate"), shift(metric, NEW, "rate")
    return ClaimedQuantity(f"rise of {tco} less rise of {NEW}", "", lambda runs: theirs.of(runs) - ours.of(runs))


def break_even(cost: str) -> ClaimedQuantity:
    """Hours until the changes of TCO's links at a high rate have cost as much as all reconfigurations of the run."""

    def of(runs: pd.DataFrame) -> pd.Series:
        chosen = runs[runs["rate"] == FAST]
        by = {name: chosen[chosen["variant"] == name].set_index("replication")[cost] for name in (NEW, "TCO")}
        return by[NEW] / by["TCO"] * (chosen["measured"].max() if len(chosen) else 0.0)

    return ClaimedQuantity("hours until TCO has cost as much", " h", of)


def _gain_of_tco(pattern: str, metric: str, tco: str) -> ClaimedQuantity:
    return gain(metric, tco, "Bayeux", "pattern", pattern)


def _gain_over_zipf(pattern: str, metric: str, tco: str) -> ClaimedQuantity:
    """By how many per cent a delay of TCO is below that under Zipf."""

    def of(runs: pd.DataFrame) -> pd.Series:
        chosen = runs[runs["variant"] == tco]
        by = {each: chosen[chosen["pattern"] == each].set_index("replication")[metric] for each in (pattern, "zipf")}
        return 100 * (1 - by[pattern] / by["zipf"])

    return ClaimedQuantity(f"gain of {tco} with {pattern} over itself with zipf", " %", of)


def _patterns() -> Iterator[Claim]:
    changes = "broker_subscription_changes"
    for pattern, target, how in (("zipf", MORE, "low"), ("uniform", LESS, "worse"), ("multimodal", LESS, "worse")):
        statement = f"TCO has a {how} delay, {pattern}"
        readings = _with_tco(partial(_gain_of_tco, pattern), "than Bayeux's")
        if pattern != "zipf":
            readings = (*_with_tco(partial(_gain_over_zipf, pattern), "than its own under Zipf"), *readings)
        yield panel_claim("8a", statement, "tco patterns", readings, target, "tco delay")
    bayeux = (
        ("Bayeux", "Tapestry of base 16", "Tapestry"),
        ("Bayeux, base 2", "Tapestry of base 2", "Tapestry"),
        ("Bayeux on Chord", "on equal routes", "equal routes"),
    )
    tco = tuple((baseline, f"TCO with {name}", "DCB-M") for baseline, name in TCO.items())
    messages = ("notification_overhead",)
    for figure, what in (("8a", "delay"), ("8b", "overhead")):
        for pattern, (system, baselines) in product(PATTERNS, (("Bayeux", bayeux), ("TCO", tco))):
            metrics = messages if what == "overhead" else WHOLE if system == "TCO" else EVEN
            readings = tuple(
                ClaimReading(
                    gain(metric, NEW, baseline, "pattern", pattern),
                    ", ".join([name, *DELAYS.get(metric, ())[:1]]),
                    sentence,
                )
                for baseline, name, sentence in baselines
                for metric in metrics
            )
            statement = f"DYNATOPS has less {what} than {system}, {pattern}"
            hops = hops_of((NEW, baselines[0][0]), pattern) if what == "delay" else ()
            reason = "to the root" if what == "delay" and system == "TCO" else what
            yield panel_claim(figure, statement, "patterns", readings, MORE, reason, evidence=hops)
    for pattern in ("uniform", "zipf", "multimodal, redrawn"):
        statement = f"80 % fewer broker-subscription changes, {pattern}"
        number = gain(changes, NEW, "Bayeux", "pattern", pattern)
        yield panel_claim("8a", statement, "fewer changes", number, or_more(80, " %"), "unlike", ours=True)
