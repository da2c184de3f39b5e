"""The claims of “Publish-Subscribe Overlay Network Design”, and the reasons for their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim.papers.claims import FALLS, RISES, Claim, Target, at_most, in_readings, near
from sim.papers.paper import Derived
from sim.papers.quantities import (
    between_variants,
    change,
    extreme_step,
    largest,
    largest_ratio,
    mean_gain,
    metric_value,
)

READINGS = ("coin flips", "exactly s")
STARS = ("cd-oda", "cd-oda-i", "cd-oda-ii")
NAMES = {"gm": "GM", "cd-oda": "CD-ODA", "cd-oda-i": "CD-ODA-I", "cd-oda-ii": "CD-ODA-II"}

GAP = Derived(
    "gap",
    "links beyond the lower bound (%)",
    ("edges", "lower_bound"),
    lambda runs: 100 * (runs["edges"] / runs["lower_bound"] - 1),
)
FEWER = dict.fromkeys(NAMES, "fewer stars") | {"gm": "more in common"}
"""Why degrees fall with the number of subscriptions, by design."""
LINKS = "at most this many times the links of GM"


def claims() -> Iterator[Claim]:
    """All claims of section 6.4 and table 1 in both readings, and of the worked examples."""
    yield from in_readings((*_figures(), *_shapes(), *_bounds()), READINGS)
    yield from _examples()


def _figures() -> Iterator[Claim]:
    degree, two = "average_degree", "cd-oda-ii"
    for section, place, by, ratio, gain, gain_i, reason in (
        ("fig-1a", "6.4.1, fig. 1(a)", "nodes", 2.3, 3, 2, "gain over nodes"),
        ("fig-1b", "6.4.2, fig. 1(b)", "topics", 1.9, 6, 2, "gain over topics"),
        ("fig-2", "6.4.3, fig. 2", "subscriptions", 1.8, 20, 1, "gain over subscriptions"),
    ):
        times = largest_ratio(degree, two, "gm", by)
        yield Claim(section, place, f"CD-ODA-II needs {LINKS}", times, near(ratio, 0.1), "ratio")
        for one, percent, tolerance, why in (
            ("cd-oda", gain, 1 if gain < 10 else 2, reason),
            ("cd-oda-i", gain_i, 1, "gain over I"),
        ):
            statement, less = f"CD-ODA-II improves on {NAMES[one]} on average by", mean_gain(degree, two, one, by)
            yield Claim(section, place, statement, less, near(percent, tolerance, " %"), why)
    highest, stars = largest_ratio(degree, "cd-oda", "gm", "nodes"), largest("diameter", STARS)
    yield Claim("fig-1a", "6.4", f"CD-ODA and both new designs need {LINKS}", highest, at_most(2.3, 0.1), "highest")
    statement = "The topic diameter of CD-ODA and both new designs is always"
    yield Claim("fig-1a", "6.4", statement, stars, near(2, 0), "stars")


def _shapes() -> Iterator[Claim]:
    for section, place, by, direction, target, reasons in (
        ("fig-1a", "6.4.1, fig. 1(a)", "nodes", "decreases", FALLS, {"gm": "better pairs"}),
        ("fig-1b", "6.4.2, fig. 1(b)", "topics", "increases", RISES, dict.fromkeys(NAMES, "less in common")),
        ("fig-2", "6.4.3, fig. 2", "subscriptions", "decreases", FALLS, FEWER),
    ):
        for design, reason in reasons.items():
            statement = f"The average degree of {NAMES[design]} {direction} with the number of {by}"
            step = extreme_step("average_degree", design, by, largest=target is FALLS)
            yield Claim(section, place, statement, step, target, reason)
        for design in STARS if by == "nodes" else ():
            statement = f"The average degree of {NAMES[design]} slightly decreases"
            reason = "rises instead" if design == "cd-oda" else "rises first"
            yield Claim(section, place, statement, change("average_degree", design, by), FALLS, reason)


def _bounds() -> Iterator[Claim]:
    low, orders = "Low-ODA's {} degree (k = 1.5) is {} that of GM, O({})", Target("of its order", -math.inf, 1.5)
    for place, statement, metric, variant, target, reason in (
        ("table 1", low.format("average", "near", "k log(nt)"), "average_degree", "k = 1.5", orders, "orders"),
        ("table 1", low.format("maximum", "below", "(n/k) log(nt)"), "maximum_degree", "k = 1.5", FALLS, "third"),
        (
            "3, table 1",
            "MinMax-ODA's average degree is above that of GM",
            "average_degree",
            "minmax-oda",
            RISES,
            "tenth",
        ),
    ):
        yield Claim("k-sweep", place, statement, between_variants(metric, variant, "gm"), target, reason)


def _examples() -> Iterator[Claim]:
    star, optimum, formula = "n − 1 links, one star", "the optimum, n − 1 links", "3(n − 1)/2 − k links"
    for point, place, design, links, words in (
        ("example I", "A.2.1", "cd-oda", 19, star),
        ("example II", "A.2.1", "cd-oda", 20, star),
        ("example III", "A.2.2", "cd-oda", 42, "2n − 4 links"),
        ("example III", "A.2.2", "cd-oda-i", 22, optimum),
        ("example IV", "A.2.3", "cd-oda", 32, formula),
        ("example IV", "A.2.3", "cd-oda-i", 32, formula),
        ("example IV", "A.2.3", "cd-oda-ii", 24, optimum),
    ):
        statement = f"{NAMES[design]} makes {words} on {point}"
        yield Claim("examples", place, statement, metric_value("edges", design, point), near(links, 0), "same")
    for n in (4, 6, 8, 10):
        statement = f"MinMax-ODA makes n(n − 2)/2 + 1 links on the lemma's example, n = {n}"
        number, printed = metric_value("edges", "minmax-oda", f"lemma 3.1, n = {n}"), near(n * (n - 2) / 2 + 1, 0)
        yield Claim("examples", "lemma 3.1", statement, number, printed, "same" if n == 4 else "useless links")
