"""The claims of “DYNATOPS” about the location model: its trace, and figure 6."""

from __future__ import annotations

from collections.abc import Iterator

from sim.papers.claims import FALLS, LESS, MORE, RISES, Claim, ClaimedQuantity, ClaimReading, at_least, near, or_more
from sim.papers.dynatops.readings import (
    ALONE,
    BASE_2,
    BS,
    BS_BNR,
    CHORD,
    DELAYS,
    GEOPS,
    GREEDY,
    LOCATION,
    NEAREST,
    RARELY,
    SPREAD,
    STATIC,
    delay_readings,
    hops_of,
    in_words,
    panel_claim,
)
from sim.papers.quantities import change, gain, mean_gain, mean_of, metric_value

SHARES = {
    "visits_per_user": "visits per user",
    "pairs_per_user": "(user, cell) pairs per user",
    "single_visits": "share of pairs of a single visit",
    "stays_under_day": "share of stays under a day",
    "stays_over_week": "over a week",
}
"""Numbers of the trace that one setting of the generator has to meet at once, in words."""


def _trace() -> Iterator[Claim]:
    for figure, statement, sentence, metric, target in (
        ("5a", "3 million check-ins of 40 thousand users", "check-ins", "checkins_per_user", near(75, 7.5)),
        ("5a", "450 thousand visits of 40 thousand users", "visits", "visits_per_user", near(11.25, 1.1)),
        ("5a", "160 thousand (user, cell) pairs", "visits", "pairs_per_user", near(4, 0.4)),
        ("5a", "A third of the pairs are single visits", "single visits", "single_visits", near(0.33, 0.04)),
        ("5b", "Half of the stays last less than a day", "under a day", "stays_under_day", near(0.5, 0.04)),
        ("5b", "A tenth of them more than a week", "over a week", "stays_over_week", near(0.1, 0.03)),
    ):
        shares = tuple(in_words(mean_of(each, "mobility generator"), words) for each, words in SHARES.items())
        number = mean_of(metric, "mobility generator")
        yield panel_claim(figure, statement, sentence, number, target, "trace", evidence=shares)


def location_claims() -> Iterator[Claim]:
    """Figures 5 and 6, panel by panel."""
    yield from _trace()
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
        spent = _spent((BS, CHORD), f"c = {c}")
        yield panel_claim("6a", statement, "management", readings, at_least(40, " %"), "management", evidence=spent)
    for baseline in (STATIC, NEAREST, GEOPS):
        readings = tuple(
            ClaimReading(
                gain(control, selection, baseline, *ten), f"exchange every {hours} h", "T_update", "", "fig-6c"
            )
            for selection, hours in (("DYNATOPS (BS)", 12), (RARELY, 48))
        )
        statement = f"Significantly less subscription management overhead than {baseline}, c = 10"
        spent = _spent(("DYNATOPS (BS)", baseline), "c = 10")
        yield panel_claim("6a", statement, "significantly less", readings, MORE, "management", evidence=spent)
    fewer = change("broker_subscription_changes", BS, "c")
    statement = "Updates of topic trees become fewer as clusters grow"
    yield panel_claim("6a", statement, "falls with c", fewer, FALLS, "tree updates")
    for statement, sentence, ends, target in (
        ("It falls as clusters grow", "falls with c", (4, 20), FALLS),
        ("It rises again for large clusters", "rises with c", (20, 50), RISES),
    ):
        readings = tuple(
            ClaimReading(change(control, selection, "c", *ends), f"exchange every {hours} h", "T_update")
            for selection, hours in ((BS, 12), (RARELY, 48))
        )
        yield panel_claim("6a", statement, sentence, readings, target, "exchange")


def _spent(systems: tuple[str, str], point: str) -> tuple[ClaimedQuantity, ...]:
    """What two systems do, and spend, to manage subscriptions."""
    return tuple(
        in_words(metric_value(metric, system, point), f"{words} of {system}")
        for metric, words in (
            ("broker_subscription_changes", "broker-subscription changes"),
            ("subscription_overhead", "messages"),
        )
        for system in systems
    )


def _load() -> Iterator[Claim]:
    spread = "load_stddev"
    uneven = mean_gain(spread, ALONE, LOCATION, "c")
    yield panel_claim("6b", "Similarity alone worsens the imbalance", "imbalance", uneven, LESS, "imbalance")
    more = change(spread, ALONE, "c")
    ends = tuple(in_words(metric_value(spread, ALONE, f"c = {c}"), f"imbalance at c = {c}") for c in (4, 10, 20, 50))
    statement = "The more so, the larger clusters are"
    yield panel_claim("6b", statement, "imbalance", more, RISES, "imbalance", evidence=ends)
    readings = tuple(
        ClaimReading(mean_gain(spread, selection, ALONE, "c"), name, "weight of load")
        for selection, name in ((SPREAD, "w_l = 0.1 |B|"), (BS, "w_l = 1"))
    )
    statement = "The weight of load improves it greatly, by a fifth or more"
    yield panel_claim("6b", statement, "weight", readings, at_least(20, " %"), "weight")


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
    yield panel_claim("6c", statement, "handovers", readings, fewer, "handovers", evidence=(evidence,))


def _notification() -> Iterator[Claim]:
    ten, messages = ("point", "c = 10"), "notification_overhead"
    substrates = (
        (LOCATION, "Tapestry of base 16", "Tapestry"),
        (BASE_2, "Tapestry of base 2", "Tapestry"),
        (CHORD, "on equal routes", "equal routes"),
    )
    for shorter, sentence in ((at_least(60, " %"), "combined"), (or_more(30, " %"), "in general")):
        delays = tuple(
            reading
            for baseline, name, said in substrates
            for reading in delay_readings(
                {metric: gain(metric, GREEDY, baseline, *ten) for metric in DELAYS}, said, name
            )
        )
        others = ((STATIC, "static selection", "static"), (NEAREST, "with nearest neighbours", "PNS"))
        delays += tuple(
            ClaimReading(
                gain("notification_delay", GREEDY, baseline, *ten), f"Tapestry of base 16, {name}, end to end", said
            )
            for baseline, name, said in others
        )
        statement = f"{shorter.text.capitalize()} less delay than Bayeux"
        hops = hops_of((GREEDY, LOCATION), "c = 10")
        yield panel_claim("6d", statement, sentence, delays, shorter, "substrate", evidence=hops)
    for lower, sentence in ((at_least(40, " %"), "combined"), (or_more(30, " %"), "in general")):
        overheads = tuple(
            ClaimReading(gain(messages, GREEDY, baseline, *ten), name, said)
            for baseline, name, said in (*substrates, *others)
        )
        statement = f"{lower.text.capitalize()} less overhead than Bayeux"
        yield panel_claim("6e", statement, sentence, overheads, lower, "less traffic")
    geops = delay_readings({metric: gain(metric, GREEDY, GEOPS, *ten) for metric in DELAYS})
    hop_times = tuple(_time_of_a_hop(system) for system in (GREEDY, GEOPS))
    statement, third = "Over 30 % less delay than GeoPS", at_least(30, " %")
    yield panel_claim("6d", statement, "combined", geops, third, "geops", evidence=hop_times)
    less = gain(messages, GREEDY, GEOPS, *ten)
    yield panel_claim("6e", "Over 20 % less overhead than GeoPS", "combined", less, at_least(20, " %"), "geops")
    for variant, means in (("DYNATOPS (BS)", "Selection"), ("DYNATOPS (BNR)", "Reconfiguration")):
        delays = delay_readings({metric: gain(metric, variant, CHORD, *ten) for metric in DELAYS})
        yield panel_claim("6d", f"{means} alone improves delay", "both improve", delays, MORE, means.lower())
        less = gain(messages, variant, CHORD, *ten)
        yield panel_claim("6e", f"{means} alone improves overhead", "both improve", less, MORE, means.lower())
    fewer = gain("internal_overhead", "DYNATOPS (BS)", CHORD, *ten)
    statement = "Selection reduces the brokers that subscribe to a topic"
    yield panel_claim("6e", statement, "smaller trees", fewer, MORE, "less traffic")
    delays = delay_readings({metric: change(metric, BS_BNR, "c") for metric in DELAYS})
    hops = hops_of((BS_BNR,), "c = 4", "c = 50")
    yield panel_claim("6f", "Less delay, the larger clusters are", "clusters", delays, FALLS, "clusters", evidence=hops)
    falls = change(messages, BS_BNR, "c")
    yield panel_claim("6f", "Less overhead, the larger clusters are", "clusters", falls, FALLS, "clusters")
    statement = "Reconfiguration saves more relays, the larger clusters are"
    yield panel_claim("6f", statement, "skewed by selection", _relays_saved(), MORE, "relays")


def _time_of_a_hop(system: str) -> ClaimedQuantity:
    """The mean time of a hop below the root (ms)."""
    delay, hops = (metric_value(metric, system, "c = 10") for metric in ("tree_delay", "tree_hops"))
    return ClaimedQuantity(f"{system}, a hop", " ms", lambda runs: 1000 * delay.of(runs) / hops.of(runs))


def _relays_saved() -> ClaimedQuantity:
    """By how many points reconfiguration saves a larger share of relay traffic with the largest clusters than with the smallest."""
    ends = [gain("external_overhead", BS_BNR, BS, "c", c) for c in (4, 50)]
    name = "relay traffic saved by reconfiguration, c = 50 less c = 4"
    return ClaimedQuantity(name, " points", lambda runs: ends[1].of(runs) - ends[0].of(runs))
