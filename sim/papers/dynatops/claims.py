"""The claims of “DYNATOPS” and the numbers that test them; reasons are named in `page.toml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import pandas as pd

from sim.papers.claims import (
    FALLS,
    LESS,
    MORE,
    RISES,
    Claim,
    ClaimBound,
    ClaimedQuantity,
    ClaimReading,
    Target,
    at_least,
    at_most,
    between,
    near,
)
from sim.papers.quantities import change, gain, least, mean_gain, mean_of, metric_value, shift, variant_difference

STATIC, LOCATION, GEOPS, GREEDY = "Bayeux (static)", "Bayeux (loc)", "GeoPS (reconstruction)", "DYNATOPS, w_d = 1"
CHORD, BASE_2, NEW, LEAST = "Bayeux (loc) on Chord", "Bayeux (loc), base 2", "DYNATOPS", "ours: least delay"
ALONE, BS, SPREAD = "DYNATOPS (BS), w_l = 0", "DYNATOPS (BS), w_l = 1", "DYNATOPS (BS), w_l = 0.1 |B|"
RARELY, BS_BNR = "DYNATOPS (BS), T_update = 48 h", "DYNATOPS (BS+BNR)"
TCO = {"TCO": "short ways", "TCO, least degree": "least degree"}
"""Readings of DCB-M by their parts, and the names of these readings."""
PATTERNS = ("uniform", "zipf", "multimodal")
FAST = 0.2
"""Changes per user and hour at which subscriptions "change fast"."""
DELAYS = {
    "notification_delay": ("end to end", "average latency"),
    "tree_delay": ("from the root on", "from the root"),
    "last_delivery_delay": ("until the last subscriber", "average latency"),
}
"""Readings of delay: what is measured, its name, and the sentence that allows it."""
WHOLE = [metric for metric in DELAYS if metric != "tree_delay"]
"""Readings of the whole way."""


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
    evidence: tuple[ClaimedQuantity, ...] = (),
) -> Claim:
    """A claim about a panel of a figure, such as 6a, with one number or several readings."""
    readings = (ClaimReading(number),) if isinstance(number, ClaimedQuantity) else number
    place = f"fig. {figure[:-1]}({figure[-1]})"
    return Claim(f"fig-{figure}", place, statement, sentence, readings, target, reason, evidence, ours)


def _named(quantity: ClaimedQuantity, name: str, unit: str = "") -> ClaimedQuantity:
    """A number as evidence, in words."""
    return replace(quantity, name=name, unit=unit)


def _delays(numbers: dict[str, ClaimedQuantity], sentence: str = "", what: str = "") -> tuple[ClaimReading, ...]:
    """Readings of a delay, by its metric; `what` is said of each, and `sentence` allows it if the delay's own does not."""
    return tuple(
        ClaimReading(number, ", ".join(filter(None, (what, DELAYS[metric][0]))), sentence or DELAYS[metric][1])
        for metric, number in numbers.items()
    )


def _trace() -> Iterator[Claim]:
    for figure, statement, sentence, metric, target in (
        ("5a", "3 million check-ins of 40 thousand users", "check-ins", "checkins_per_user", near(75, 7.5)),
        ("5a", "450 thousand visits of 40 thousand users", "visits", "visits_per_user", near(11.25, 1.1)),
        ("5a", "160 thousand (user, cell) pairs", "visits", "pairs_per_user", near(4, 0.4)),
        ("5a", "A third of the pairs are single visits", "single visits", "single_visits", near(0.33, 0.04)),
        ("5b", "Half of the stays last less than a day", "under a day", "stays_under_day", near(0.5, 0.04)),
        ("5b", "A tenth of them more than a week", "over a week", "stays_over_week", near(0.1, 0.03)),
    ):
        yield _claim(figure, statement, sentence, mean_of(metric, "mobility generator"), target, "trace")


def _location() -> Iterator[Claim]:
    yield from _management()
    yield from _load()
    yield from _handovers()
    yield from _notification()


def _management() -> Iterator[Claim]:
    control, ten = "subscription_overhead", ("point", "c = 10")
    for c in (4, 10, 20, 50):
        readings = tuple(
            ClaimReading(gain(control, selection, baseline, "c", c), f"{names}, {how}", sentence)
            for baseline, names, sentence in (
                (LOCATION, "Tapestry", "Tapestry"),
                (CHORD, "on equal routes", "equal routes"),
            )
            for selection, how in ((BS, "exchange every 12 h"), (RARELY, "exchange every 48 h"))
        )
        statement = f"Over 40 % less subscription management overhead than Bayeux (loc), c = {c}"
        yield _claim("6a", statement, "management", readings, at_least(40, " %"), "management")
    for baseline in (STATIC, GEOPS):
        less = ClaimReading(gain(control, "DYNATOPS (BS)", baseline, *ten), section="fig-6c")
        statement = f"Significantly less subscription management overhead than {baseline}, c = 10"
        yield _claim("6a", statement, "significantly less", (less,), MORE, "management")
    for statement, sentence, ends, target in (
        ("It falls as clusters grow", "falls with c", (4, 20), FALLS),
        ("It rises again for large clusters", "rises with c", (20, 50), RISES),
    ):
        readings = tuple(
            ClaimReading(change(control, selection, "c", *ends), f"exchange every {hours} h", "T_update")
            for selection, hours in ((BS, 12), (RARELY, 48))
        )
        yield _claim("6a", statement, sentence, readings, target, "exchange")


def _load() -> Iterator[Claim]:
    spread = "load_stddev"
    uneven = mean_gain(spread, ALONE, LOCATION, "c")
    yield _claim("6b", "Similarity alone worsens the imbalance", "imbalance", uneven, LESS, "imbalance")
    more = change(spread, ALONE, "c")
    yield _claim("6b", "The more so, the larger clusters are", "imbalance", more, RISES, "imbalance")
    readings = tuple(
        ClaimReading(mean_gain(spread, selection, ALONE, "c"), name, "weight of load")
        for selection, name in ((SPREAD, "w_l = 0.1 |B|"), (BS, "w_l = 1"))
    )
    statement = "The weight of load improves it greatly, by a fifth or more"
    yield _claim("6b", statement, "weight", readings, at_least(20, " %"), "weight")


def _handovers() -> Iterator[Claim]:
    readings = tuple(
        ClaimReading(gain("handovers", selection, GEOPS, "point", "c = 10"), name, sentence)
        for selection, name, sentence in (
            ("DYNATOPS (BS)", "users follow the blocks", "continuous area"),
            ("DYNATOPS (BS), joined", "users stay in the cluster that they joined", "joining cluster"),
        )
    )
    evidence = metric_value("load_stddev", "DYNATOPS (BS), joined", "c = 10")
    statement, fewer = "Over 90 % fewer handovers than GeoPS", at_least(90, " %")
    yield _claim("6c", statement, "handovers", readings, fewer, "handovers", evidence=(evidence,))


def _notification() -> Iterator[Claim]:
    ten, messages = ("point", "c = 10"), "notification_overhead"
    substrates = (
        (LOCATION, "Tapestry of base 16", "Tapestry"),
        (BASE_2, "Tapestry of base 2", "Tapestry"),
        (CHORD, "on equal routes", "equal routes"),
    )
    for percent, sentence in ((60, "combined"), (30, "in general")):
        delays = tuple(
            reading
            for baseline, name, said in substrates
            for reading in _delays({metric: gain(metric, GREEDY, baseline, *ten) for metric in DELAYS}, said, name)
        )
        statement, shorter = f"Over {percent} % less delay than Bayeux", at_least(percent, " %")
        hops = _ways((GREEDY, LOCATION), "c = 10")
        yield _claim("6d", statement, sentence, delays, shorter, "substrate", evidence=hops)
    for percent, sentence in ((40, "combined"), (30, "in general")):
        overheads = tuple(
            ClaimReading(gain(messages, GREEDY, baseline, *ten), name, said) for baseline, name, said in substrates
        )
        statement = f"Over {percent} % less overhead than Bayeux"
        yield _claim("6e", statement, sentence, overheads, at_least(percent, " %"), "less traffic")
    geops = _delays({metric: gain(metric, GREEDY, GEOPS, *ten) for metric in DELAYS})
    hop_times = tuple(_time_of_a_hop(system) for system in (GREEDY, GEOPS))
    statement, third = "Over 30 % less delay than GeoPS", at_least(30, " %")
    yield _claim("6d", statement, "combined", geops, third, "geops", evidence=hop_times)
    less = gain(messages, GREEDY, GEOPS, *ten)
    yield _claim("6e", "Over 20 % less overhead than GeoPS", "combined", less, at_least(20, " %"), "geops")
    for variant, means in (("DYNATOPS (BS)", "Selection"), ("DYNATOPS (BNR)", "Reconfiguration")):
        delays = _delays({metric: gain(metric, variant, CHORD, *ten) for metric in DELAYS})
        yield _claim("6d", f"{means} alone improves delay", "both improve", delays, MORE, means.lower())
        less = gain(messages, variant, CHORD, *ten)
        yield _claim("6e", f"{means} alone improves overhead", "both improve", less, MORE, means.lower())
    delays = _delays({metric: change(metric, BS_BNR, "c") for metric in DELAYS})
    yield _claim("6f", "Less delay, the larger clusters are", "clusters", delays, FALLS, "clusters")
    falls = change(messages, BS_BNR, "c")
    yield _claim("6f", "Less overhead, the larger clusters are", "clusters", falls, FALLS, "clusters")


def _ways(systems: tuple[str, ...], point: str) -> tuple[ClaimedQuantity, ...]:
    """The hops of publications to the root and from there on, by system."""
    return tuple(
        _named(metric_value(metric, system, point), f"{system}, {way}", " hops")
        for system in systems
        for metric, way in (("uplink_hops", "to the root"), ("tree_hops", "from the root on"))
    )


def _time_of_a_hop(system: str) -> ClaimedQuantity:
    """The mean time of a hop below the root (ms)."""
    delay, hops = (metric_value(metric, system, "c = 10") for metric in ("tree_delay", "tree_hops"))
    return ClaimedQuantity(f"{system}, a hop", " ms", lambda runs: 1000 * delay.of(runs) / hops.of(runs))


def _poisson() -> Iterator[Claim]:
    changes, control = "broker_subscription_changes", "subscription_overhead"
    less = mean_gain(changes, NEW, "Bayeux", "rate")
    statement = "80 % fewer broker-subscription changes"
    yield _claim("7a", statement, "fewer changes", less, at_least(80, " %"), "multimodal")
    managed = tuple(
        ClaimReading(mean_gain(control, NEW, baseline, "rate"), name, sentence)
        for baseline, name, sentence in _substrates()
    )
    statement = "Less subscription management overhead than Bayeux"
    spent = (
        _named(mean_of(changes, NEW), "broker-subscription changes"),
        _named(mean_of(control, NEW), "messages for these and for the exchange of states"),
    )
    yield _claim("7a", statement, "fewer changes", managed, MORE, "management", evidence=spent)
    yield from _poisson_delay()
    messages, half = "notification_overhead", at_least(50, " %")
    for baseline in ("Bayeux", "TCO"):
        less = mean_gain(messages, NEW, baseline, "rate")
        yield _claim("7c", f"Over 50 % less overhead than {baseline}", "outperforms", less, half, "overhead")
    less = mean_gain(messages, "TCO", "Bayeux", "rate")
    yield _claim("7c", "TCO has less overhead than Bayeux", "tco overhead", less, MORE, "tco overhead")
    yield from _reconfiguration()


def _substrates() -> Iterator[tuple[str, str, str]]:
    """Readings of Bayeux in the Poisson model: the variant, the name, and the sentence."""
    for base in (16, 4, 2):
        yield ("Bayeux" if base == 16 else f"Bayeux, base {base}", f"Tapestry of base {base}", "Tapestry")
    yield "Bayeux on Chord", "on equal routes", "equal routes"


def _poisson_delay() -> Iterator[Claim]:
    delay, chord, tenth = "notification_delay", "Bayeux on Chord", at_least(10, " %")
    readings: list[ClaimReading] = []
    for baseline, name, sentence in _substrates():
        for reading in _delays({m: mean_gain(m, NEW, baseline, "rate") for m in DELAYS}, sentence, name):
            bound = None
            if reading.name == "on equal routes, from the root on":
                least_possible = mean_gain("tree_delay", LEAST, chord, "rate")
                bound = ClaimBound("The best places of brokers, by exact assignment, save", least_possible)
            readings.append(replace(reading, bound=bound))
    yield _claim("7b", "10 % less delay than Bayeux", "outperforms", tuple(readings), tenth, "delay")
    less = _with_tco(lambda metric, tco: mean_gain(metric, NEW, tco, "rate"))
    hops = (
        _named(mean_of("uplink_hops", NEW), f"{NEW}, to the root", " hops"),
        _named(mean_of("tree_hops", "TCO"), "TCO, from the root on", " hops"),
    )
    yield _claim("7b", "10 % less delay than TCO", "outperforms", less, tenth, "to the root", evidence=hops)
    ours = mean_gain(delay, "ours: lsap-sweep, c = 10", chord, "rate")
    yield _claim(
        "7b", "The same by lsap-sweep, c = 10, on equal routes", "outperforms", ours, tenth, "delay", ours=True
    )
    more = _with_tco(lambda metric, tco: mean_gain(metric, tco, "Bayeux", "rate"))
    yield _claim("7b", "TCO has more delay than Bayeux", "tco delay", more, LESS, "tco delay")


def _with_tco(number: Callable[[str, str], ClaimedQuantity]) -> tuple[ClaimReading, ...]:
    """Readings of a delay by its metric and by the parts of DCB-M, whose variant `number` takes.

    None is from the root on: TCO's roots are the publishers' brokers, so that this would be all of TCO's delay, and a part of ours.
    """
    return tuple(
        reading
        for tco, name in TCO.items()
        for reading in _delays({metric: number(metric, tco) for metric in WHOLE}, "DCB-M", f"TCO with {name}")
    )


def _reconfiguration() -> Iterator[Claim]:
    cost, kept = "reconfiguration_overhead", (*TCO, "TCO, hourly", "TCO, repaired")
    names = {name: TCO.get(name, name.removeprefix("TCO, ")) for name in kept}
    rises = tuple(ClaimReading(shift(cost, tco, "rate"), f"TCO with {name}", "DCB-M") for tco, name in TCO.items())
    yield _claim("7d", "TCO's rises with the rate of changes", "tco rises", rises, RISES, "tco cost")
    less = tuple(ClaimReading(_less_sensitive(cost, tco), f"TCO with {name}", "DCB-M") for tco, name in TCO.items())
    yield _claim("7d", "That of DYNATOPS rises less than TCO's", "less sensitive", less, MORE, "sensitive")
    for statement, sentence in (("Over 90 % less than TCO at a high rate", "over 90 %"),):
        readings = tuple(
            ClaimReading(gain(cost, NEW, tco, "rate", FAST), f"TCO: {names[tco]}", "DCB-M") for tco in kept
        )
        evidence = (break_even(cost),)
        yield _claim("7d", statement, sentence, readings, at_least(90, " %"), "cost", evidence=evidence)


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


def _patterns() -> Iterator[Claim]:
    changes = "broker_subscription_changes"
    for pattern, target, more in (("zipf", MORE, "less"), ("uniform", LESS, "more"), ("multimodal", LESS, "more")):
        statement = f"TCO has {more} delay than Bayeux, {pattern}"
        readings = _with_tco(partial(_gain_of_tco, pattern))
        yield _claim("8a", statement, "tco patterns", readings, target, "tco delay")
    bayeux = (
        ("Bayeux", "Tapestry of base 16", "Tapestry"),
        ("Bayeux, base 2", "Tapestry of base 2", "Tapestry"),
        ("Bayeux on Chord", "on equal routes", "equal routes"),
    )
    tco = tuple((baseline, f"TCO with {name}", "DCB-M") for baseline, name in TCO.items())
    messages = ("notification_overhead",)
    for figure, what in (("8a", "delay"), ("8b", "overhead")):
        for pattern, (system, baselines) in product(PATTERNS, (("Bayeux", bayeux), ("TCO", tco))):
            metrics = messages if what == "overhead" else WHOLE if system == "TCO" else DELAYS
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
            hops = _ways((NEW, baselines[0][0]), pattern) if what == "delay" else ()
            reason = "to the root" if what == "delay" and system == "TCO" else what
            yield _claim(figure, statement, "patterns", readings, MORE, reason, evidence=hops)
    for pattern in ("uniform", "zipf", "multimodal, redrawn"):
        statement = f"80 % fewer broker-subscription changes, {pattern}"
        number = gain(changes, NEW, "Bayeux", "pattern", pattern)
        yield _claim("8a", statement, "fewer changes", number, at_least(80, " %"), "unlike", ours=True)


def _periods() -> Iterator[Claim]:
    for both, cost, by, ends in (("9a", "9b", "days", ("2 d", "28 d")), ("9c", "9d", "hours", ("5 h", "30 h"))):
        made = tuple(
            _named(metric_value(metric, NEW, point), f"{what} with T_free = {point}")
            for metric, what in (("reconfigurations", "reconfigurations"), ("reconfigured_brokers", "brokers moved"))
            for point in ends
        )
        delays, slightly = _delays({metric: change(metric, NEW, by) for metric in DELAYS}), between(0, 10, " %")
        yield _claim(both, "Delay rises slightly with T_free", "period", delays, slightly, "period")
        number = change("notification_overhead", NEW, by)
        yield _claim(both, "Overhead rises slightly with T_free", "period", number, slightly, "period")
        falls = shift("reconfiguration_overhead", NEW, by)
        statement = "Reconfiguration overhead falls with T_free"
        yield _claim(cost, statement, "fewer", falls, FALLS, "cheaper", evidence=made)


def _configurations() -> Iterator[Claim]:
    variant = "DYNATOPS-Greedy"
    saved = (("cost_saved", "SSBR cost"), ("overhead_saved", "relay traffic"), ("delay_saved", "delay"))
    for figure, varied in (("10a", "brokers"), ("10b", "topics")):
        for pattern, (metric, what) in product(("uniform", "multimodal"), saved):
            readings = tuple(
                ClaimReading(least(metric, policy, "pattern", pattern, varied), name, "output")
                for policy, name in ((variant, "by its cost"), ("SSBR-Greedy", "whatever moving costs"))
            )
            moved = _named(least("moved", variant, "pattern", pattern, varied), "brokers moved, at least")
            statement = f"Always saves {what}, {pattern}"
            yield _claim(figure, statement, "always", readings, MORE, "configuration", evidence=(moved,))
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
