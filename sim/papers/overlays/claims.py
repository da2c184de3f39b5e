"""The claims of “Publish-Subscribe Overlay Network Design”, and the reasons for their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim.papers.claims import FALLS, RISES, Claim, ClaimedQuantity, ClaimReading, Target, at_most, in_readings, near
from sim.papers.paper import Derived
from sim.papers.quantities import (
    between_variants,
    change,
    extreme_step,
    largest,
    largest_gain,
    largest_ratio,
    mean_gain,
    metric_value,
)

READINGS = {"exactly s": "fixed", "coin flips": "at random"}
"""The readings of the random interests, the most literal first, and the sentences that allow them."""
STARS = ("cd-oda", "cd-oda-i", "cd-oda-ii")
NAMES = {"gm": "GM", "cd-oda": "CD-ODA", "cd-oda-i": "CD-ODA-I", "cd-oda-ii": "CD-ODA-II"}

GAP = Derived(
    "gap",
    "links beyond the lower bound (%)",
    ("edges", "lower_bound"),
    lambda runs: 100 * (runs["edges"] / runs["lower_bound"] - 1),
)
LINKS = "at most this many times the links of GM"


def claims() -> Iterator[Claim]:
    """All claims of section 6.4 and table 1 in both readings, and of the worked examples."""
    yield from _figures()
    yield from _shapes()
    yield from _bounds()
    yield from _examples()


def _random(
    section: str, place: str, statement: str, sentence: str, number: ClaimedQuantity, target: Target, reason: str
) -> Claim:
    """A claim about random interests."""
    return Claim(section, place, statement, sentence, in_readings(number, READINGS), target, reason)


def _figures() -> Iterator[Claim]:
    degree, two = "average_degree", "cd-oda-ii"
    for section, figure, by, ratio, gain, gain_i in (
        ("fig-1a", "1(a)", "nodes", 2.3, 3, 2),
        ("fig-1b", "1(b)", "topics", 1.9, 6, 2),
        ("fig-2", "2", "subscriptions", 1.8, 20, 1),
    ):
        place = f"fig. {figure}"
        times = largest_ratio(degree, two, "gm", by)
        yield _random(section, place, f"CD-ODA-II needs {LINKS}", f"ratio {figure}", times, near(ratio, 0.1), "ratio")
        for one, percent, tolerance, reason in (
            ("cd-oda", gain, 1 if gain < 10 else 2, f"gain over {by}"),
            ("cd-oda-i", gain_i, 1, "gain over I"),
        ):
            statement, less = f"CD-ODA-II improves on {NAMES[one]} on average by", mean_gain(degree, two, one, by)
            yield _random(section, place, statement, f"gain {figure}", less, near(percent, tolerance, " %"), reason)
    highest, stars = largest_ratio(degree, "cd-oda", "gm", "nodes"), largest("diameter", STARS)
    statement = f"CD-ODA and both new designs need {LINKS}"
    yield _random("fig-1a", "fig. 1(a)", statement, "highest", highest, at_most(2.3, 0.1), "highest")
    most = largest_gain(degree, two, "cd-oda", "subscriptions")
    statement = "The new designs improve on CD-ODA by"
    yield _random("fig-2", "fig. 2", statement, "overall", most, near(20, 2, " %"), "overall")
    statement = "The topic diameter of CD-ODA and both new designs is always"
    yield _random("fig-1a", "fig. 1(a)", statement, "diameter", stars, near(2, 0), "stars")
    statement, grows = "The topic diameter of GM grows with the number of nodes", change("diameter", "gm", "nodes")
    yield _random("fig-1a", "fig. 1(a)", statement, "diameter", grows, RISES, "GM's diameter")


def _shapes() -> Iterator[Claim]:
    for section, figure, by, direction, target, designs in (
        ("fig-1a", "1(a)", "nodes", "decreases", FALLS, ("gm",)),
        ("fig-1b", "1(b)", "topics", "increases", RISES, tuple(NAMES)),
        ("fig-2", "2", "subscriptions", "decreases", FALLS, tuple(NAMES)),
    ):
        for design in designs:
            reason = {"nodes": "better pairs", "topics": "less in common", "subscriptions": "more in common"}[by]
            statement = f"The average degree of {NAMES[design]} {direction} with the number of {by}"
            step = extreme_step("average_degree", design, by, largest=target is FALLS)
            yield _random(section, f"fig. {figure}", statement, f"shape {figure}", step, target, reason)
        for design in STARS if by == "nodes" else ():
            statement = f"The average degree of {NAMES[design]} slightly decreases"
            falls = change("average_degree", design, by)
            yield _random(section, f"fig. {figure}", statement, "slightly", falls, FALLS, "slightly")


def _bounds() -> Iterator[Claim]:
    low, orders = "Low-ODA's {} degree (k = 1.5) is {} that of GM, O({})", Target("of its order", -math.inf, 1.5)
    for statement, sentence, metric, variant, target, reason in (
        (low.format("average", "near", "k log(nt)"), "average", "average_degree", "k = 1.5", orders, "orders"),
        (low.format("maximum", "below", "(n/k) log(nt)"), "maximum", "maximum_degree", "k = 1.5", FALLS, "maximum"),
        ("MinMax-ODA's average degree is above that of GM", "average", "average_degree", "minmax-oda", RISES, "minmax"),
    ):
        number = between_variants(metric, variant, "gm")
        yield _random("k-sweep", "table 1", statement, sentence, number, target, reason)


def _examples() -> Iterator[Claim]:
    star, optimum, formula = "n − 1 links, one star", "the optimum, n − 1 links", "3(n − 1)/2 − k links"
    for point, place, design, links, words, sentence in (
        ("example I", "fig. 3(a)", "cd-oda", 19, star, "examples I and II"),
        ("example II", "fig. 3(b)", "cd-oda", 20, star, "examples I and II"),
        ("example III", "fig. 4(a)", "cd-oda", 42, "2n − 4 links", "example III"),
        ("example III", "fig. 4(b)", "cd-oda-i", 22, optimum, "optimum III"),
        ("example IV", "fig. 5(a)", "cd-oda", 32, formula, "example IV"),
        ("example IV", "fig. 5(a)", "cd-oda-i", 32, formula, "example IV"),
        ("example IV", "fig. 5(b)", "cd-oda-ii", 24, optimum, "optimum IV"),
    ):
        statement = f"{NAMES[design]} makes {words} on {point}"
        yield _drawn(place, statement, sentence, metric_value("edges", design, point), links, "drawn")
    for n in (4, 6, 8, 10):
        statement = f"MinMax-ODA makes n(n − 2)/2 + 1 links on the lemma's example, n = {n}"
        number = metric_value("edges", "minmax-oda", f"lemma 3.1, n = {n}")
        yield _drawn("lemma 3.1", statement, "lemma 3.1", number, n * (n - 2) / 2 + 1, "lemma")


def _drawn(place: str, statement: str, sentence: str, number: ClaimedQuantity, links: float, reason: str) -> Claim:
    """A claim about a worked example."""
    return Claim("examples", place, statement, sentence, (ClaimReading(number),), near(links, 0), reason)
