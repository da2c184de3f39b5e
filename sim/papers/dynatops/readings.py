"""What the claims of “DYNATOPS” have in common: variants, ways to read a delay, and claims about panels of figures."""

from __future__ import annotations

from dataclasses import replace

from sim.papers.claims import Claim, ClaimedQuantity, ClaimReading, Target
from sim.papers.quantities import metric_value

STATIC, LOCATION, GEOPS, GREEDY = "Bayeux (static)", "Bayeux (loc)", "GeoPS (reconstruction)", "DYNATOPS, w_d = 1"
NEAREST = "Bayeux (loc+PNS)"
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
    "user_notification_delay": ("end to end, each user alike", "average latency"),
    "user_tree_delay": ("from the root on, each user alike", "from the root"),
}
"""Readings of delay: what is measured, its name, and the sentence that allows it."""
EVEN = ("notification_delay", "tree_delay", "last_delivery_delay")
"""Readings that differ where brokers have equally many users, as in the Poisson model."""
WHOLE = ("notification_delay", "last_delivery_delay")
"""Readings of the whole way."""


def panel_claim(
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


def in_words(quantity: ClaimedQuantity, name: str, unit: str = "") -> ClaimedQuantity:
    """A number as evidence, in words."""
    return replace(quantity, name=name, unit=unit)


def delay_readings(numbers: dict[str, ClaimedQuantity], sentence: str = "", what: str = "") -> tuple[ClaimReading, ...]:
    """Readings of a delay, by its metric; `what` is said of each, and `sentence` allows it if the delay's own does not."""
    return tuple(
        ClaimReading(number, ", ".join(filter(None, (what, DELAYS[metric][0]))), sentence or DELAYS[metric][1])
        for metric, number in numbers.items()
    )


def hops_of(systems: tuple[str, ...], *points: str) -> tuple[ClaimedQuantity, ...]:
    """The hops of publications to the root and from there on, by system."""
    return tuple(
        in_words(metric_value(metric, system, point), ", ".join([system, *(points[1:] and [point]), way]), " hops")
        for system in systems
        for point in points
        for metric, way in (("uplink_hops", "to the root"), ("tree_hops", "from the root on"))
    )
