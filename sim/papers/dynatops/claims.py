"""What “DYNATOPS” claims, and why that comes out as it does; `sim.papers.dynatops.page` shows it."""

from __future__ import annotations

from collections.abc import Iterator

from sim.papers.claims import FALLS, LESS, MORE, RISES, Claim, Misprint, at_least, at_most, between, near
from sim.papers.paper import Derived
from sim.papers.quantities import change, gain, least, mean_gain, mean_of, metric_value, shift, variant_difference

LOCATION, GEOPS, GREEDY = "Bayeux (loc)", "GeoPS (reconstruction)", "DYNATOPS, w_d = 1"
CHORD = "Bayeux (loc) on Chord"
ALONE, BS, RELATIVE = "DYNATOPS (BS), w_l = 0", "DYNATOPS (BS), w_l = 1", "ours: BS, relative load"
BS_BNR = "DYNATOPS (BS+BNR)"
SYSTEMS = ("Bayeux", "Bayeux on Chord", "TCO", "DYNATOPS (BS)", "DYNATOPS")
TCO = ("TCO", "TCO, hourly", "TCO, repaired")
OURS = ("DYNATOPS", "ours: lsap-sweep", "ours: lsap-sweep, c = 10", "ours: cost-aware")
PATTERNS = ("uniform", "zipf", "multimodal")
FAST = 0.2
"""Changes per user and hour at which subscriptions "change fast"."""

DERIVED = (
    Derived("visits_per_user", "visits per user"),
    Derived("pairs_per_user", "(user, cell) pairs per user"),
    Derived("single_visits", "pairs of a single visit"),
    Derived("stays_under_day", "stays under a day"),
    Derived("stays_over_week", "stays over a week"),
    Derived("share_of_pairs", "share of (user, cell) pairs"),
    Derived("share_of_stays", "share of stays"),
    Derived("cost_saved", "SSBR cost saved (%)"),
    Derived("overhead_saved", "relay traffic saved (%)"),
    Derived("delay_saved", "delay saved (%)"),
    Derived("moved", "brokers moved"),
    Derived("milliseconds", "CPU time (ms)"),
)

REASONS = {
    "trace": "Visits, pairs and stays of the paper cannot all be had from one generator: where users differ so much "
    "in pace that visits are few and stays short, most of them see many cells once.",
    "management": "Selection lowers tree joins and leaves, by more the more users there are; the exchange of states, "
    "c − 1 messages per broker and period, does not depend on users and takes much of that back. Tapestry's shorter "
    "routes make a join cheaper than Chord's.",
    "exchange": "The exchange of states grows with c, the trees' part shrinks: where the sum is lowest depends on how "
    "many users there are per broker.",
    "imbalance": "Users of a block gather at few of its brokers. The load is uneven under selection by location "
    "already: people live in cities.",
    "weight": "L_b is a share of all subscriptions, 1/|B| on average, so a weight of 1 only settles ties; relative to "
    "the mean it counts.",
    "handovers": "A user follows the block of cells, so each visit to another block is a handover; most visits that "
    "leave a cell of one degree leave a block of 2 × 5 too.",
    "tapestry": "Tapestry has 2 to 3 hops where Chord has 5, and that outweighs what brokers' places bring.",
    "same substrate": "On equal routes the greedy moves few brokers; nearly all of the gain in overhead is the "
    "selection's, which changes the routes of nobody.",
    "geops": "A reconstruction: each message goes from quadrant to nearer quadrant, and never far; Chord's routes "
    "know no geography.",
    "selection": "Fewer brokers subscribe, so there are fewer messages; the way to each of them is as long as before.",
    "reconfiguration": "The greedy stops at the first broker that cannot improve, and here moves few; uplinks, which "
    "the cost leaves out, may become longer.",
    "clusters": "Larger clusters leave fewer subscribers of a topic; with them the trees shrink, but not the routes.",
    "multimodal": "Users of one mode meet at one broker, where a topic of their mode is always wanted by somebody "
    "else. It takes users enough: with few, as in a quick look, less.",
    "delay": "On Chord a broker is 3 hops from the root whatever is selected; Bayeux's Tapestry has 2. What moving "
    "brokers saves takes large clusters and a strong optimiser.",
    "tco delay": "A breadth-first tree over links of brokers with many topics in common is short.",
    "tco overhead": "No relays. At full size almost every broker wants almost every topic, so there is little to save.",
    "overhead": "Nearly all of it comes from selection. With few users per broker, as in a quick look, brokers want "
    "few topics and less is saved.",
    "tco cost": "Each break changes a few links; more changes, more breaks.",
    "cost": "Where it pays to move brokers, that is once in ten hours at most; where it does not, nothing is sent. "
    "Against a topic-connected overlay it depends on how that is kept: rebuilt in parts it changes few links, which "
    "count one message each.",
    "unlike": "Single replacements tear users away from those they were grouped with, one by one: each handover "
    "changes what two brokers want.",
    "like": "As in figure 7.",
    "period": "Where few reconfigurations pay, or none, T_free hardly matters.",
    "cheaper": "Fewer periods, fewer reconfigurations, where any pays; with few users, as in a quick look, none may.",
    "configuration": "Each swap of the greedy lowers the sum of relay traffic and delay, and here both.",
    "skew": "Where some brokers want the same topics they can relay for one another; the ways to them are not shorter for it.",
    "time": "Compiled, and each swap is evaluated by what it changes.",
}


def claims() -> Iterator[Claim]:
    """All of section IV and of the introduction, figure by figure."""
    yield from _trace()
    yield from _location()
    yield from _poisson()
    yield from _patterns()
    yield from _periods()
    yield from _configurations()


def _trace() -> Iterator[Claim]:
    for panel, statement, metric, target in (
        ("a", "450 thousand visits of 40 thousand users", "visits_per_user", near(11.25, 1.1)),
        ("a", "160 thousand (user, cell) pairs", "pairs_per_user", near(4, 0.4)),
        ("a", "A third of the pairs are single visits", "single_visits", near(0.33, 0.04)),
        ("b", "Half of the stays last less than a day", "stays_under_day", near(0.5, 0.04)),
        ("b", "A tenth of them more than a week", "stays_over_week", near(0.1, 0.03)),
    ):
        number = mean_of(metric, "mobility generator")
        yield Claim(f"fig-5{panel}", f"IV-A1, fig. 5({panel})", statement, number, target, REASONS["trace"])


def _location() -> Iterator[Claim]:
    control, spread = "subscription_overhead", "load_stddev"
    for c in (4, 10, 20, 50):
        statement, number = (
            f"Over 40 % less subscription management overhead, c = {c}",
            gain(control, BS, LOCATION, "c", c),
        )
        yield Claim("fig-6a", "I, fig. 6(a)", statement, number, at_least(40, " %"), REASONS["management"])
    for statement, ends, target in (
        ("It falls as clusters grow", (4, 20), FALLS),
        ("It rises again for large clusters", (20, 50), RISES),
    ):
        yield Claim("fig-6a", "fig. 6(a)", statement, change(control, BS, "c", *ends), target, REASONS["exchange"])
    for statement, number, target, reason in (
        ("Similarity alone worsens the imbalance", mean_gain(spread, ALONE, LOCATION, "c"), LESS, "imbalance"),
        ("The more so, the larger clusters are", change(spread, ALONE, "c"), RISES, "imbalance"),
        ("The weight of load improves it", mean_gain(spread, BS, ALONE, "c"), at_least(20, " %"), "weight"),
        ("So does a relative load (ours)", mean_gain(spread, RELATIVE, ALONE, "c"), at_least(20, " %"), "weight"),
    ):
        yield Claim("fig-6b", "fig. 6(b)", statement, number, target, REASONS[reason])
    fewer = gain("handovers", "DYNATOPS (BS)", GEOPS, "point", "c = 10")
    yield Claim(
        "fig-6c", "fig. 6(c)", "Over 90 % fewer handovers than GeoPS", fewer, at_least(90, " %"), REASONS["handovers"]
    )
    for panel, what, metric, bayeux, geops in (
        ("d", "delay", "notification_delay", 60, 30),
        ("e", "overhead", "notification_overhead", 40, 20),
    ):
        for baseline, margin, reason in (
            (LOCATION, bayeux, "tapestry"),
            (CHORD, bayeux, "same substrate"),
            (GEOPS, geops, "geops"),
        ):
            statement, number = (
                f"Over {margin} % less {what} than {baseline}",
                gain(metric, GREEDY, baseline, "point", "c = 10"),
            )
            yield Claim(f"fig-6{panel}", f"fig. 6({panel})", statement, number, at_least(margin, " %"), REASONS[reason])
        for variant, means, reason in (
            ("DYNATOPS (BS)", "Selection", "selection"),
            ("DYNATOPS (BNR)", "Reconfiguration", "reconfiguration"),
        ):
            statement, number = f"{means} alone improves {what}", gain(metric, variant, CHORD, "point", "c = 10")
            yield Claim(f"fig-6{panel}", f"fig. 6({panel})", statement, number, MORE, REASONS[reason])
        falls = change(metric, BS_BNR, "c")
        yield Claim("fig-6f", "fig. 6(f)", f"Less {what}, the larger clusters are", falls, FALLS, REASONS["clusters"])


def _poisson() -> Iterator[Claim]:
    changes, delay, messages, cost = (
        "broker_subscription_changes",
        "notification_delay",
        "notification_overhead",
        "reconfiguration_overhead",
    )
    for panel, statement, compared, target, reason in (
        (
            "a",
            "80 % fewer broker-subscription changes",
            (changes, "DYNATOPS", "Bayeux"),
            at_least(80, " %"),
            "multimodal",
        ),
        ("b", "10 % less delay than Bayeux", (delay, "DYNATOPS", "Bayeux"), at_least(10, " %"), "delay"),
        (
            "b",
            "10 % less delay than Bayeux on Chord",
            (delay, "DYNATOPS", "Bayeux on Chord"),
            at_least(10, " %"),
            "delay",
        ),
        ("b", "10 % less delay than TCO", (delay, "DYNATOPS", "TCO"), at_least(10, " %"), "tco delay"),
        ("b", "The same, ours, on Chord", (delay, OURS[2], "Bayeux on Chord"), at_least(10, " %"), "delay"),
        ("b", "TCO has more delay than Bayeux", (delay, "TCO", "Bayeux"), LESS, "tco delay"),
        ("c", "Over 50 % less overhead than Bayeux", (messages, "DYNATOPS", "Bayeux"), at_least(50, " %"), "overhead"),
        ("c", "Over 50 % less overhead than TCO", (messages, "DYNATOPS", "TCO"), at_least(50, " %"), "overhead"),
        ("c", "TCO has less overhead than Bayeux", (messages, "TCO", "Bayeux"), MORE, "tco overhead"),
    ):
        yield Claim(
            f"fig-7{panel}", f"fig. 7({panel})", statement, mean_gain(*compared, "rate"), target, REASONS[reason]
        )
    yield Claim(
        "fig-7d",
        "fig. 7(d)",
        "TCO's rises with the rate of changes",
        shift(cost, "TCO", "rate"),
        RISES,
        REASONS["tco cost"],
    )
    for baseline in TCO:
        statement, number = (
            f"Over 90 % less than {baseline} at a high rate",
            gain(cost, "DYNATOPS", baseline, "rate", FAST),
        )
        yield Claim("fig-7d", "I, fig. 7(d)", statement, number, at_least(90, " %"), REASONS["cost"])


def _patterns() -> Iterator[Claim]:
    delay = "notification_delay"
    for pattern, target, statement in (
        ("zipf", MORE, "TCO has less delay than Bayeux, zipf"),
        ("uniform", LESS, "TCO has more delay than Bayeux, uniform"),
        ("multimodal", LESS, "TCO has more delay than Bayeux, multimodal"),
    ):
        number = gain(delay, "TCO", "Bayeux", "pattern", pattern)
        yield Claim("fig-8a", "fig. 8(a)", statement, number, target, REASONS["tco delay"])
    for panel, what, metric in (("a", "delay", delay), ("b", "overhead", "notification_overhead")):
        for pattern in PATTERNS:
            for baseline in ("Bayeux", "TCO"):
                statement = f"DYNATOPS has less {what} than {baseline}, {pattern}"
                number = gain(metric, "DYNATOPS", baseline, "pattern", pattern)
                yield Claim(
                    f"fig-8{panel}",
                    f"fig. 8({panel})",
                    statement,
                    number,
                    MORE,
                    REASONS["delay" if panel == "a" else "overhead"],
                )
    for pattern in ("uniform", "zipf", "multimodal, redrawn"):
        statement = f"80 % fewer broker-subscription changes, {pattern}"
        number = gain("broker_subscription_changes", "DYNATOPS", "Bayeux", "pattern", pattern)
        yield Claim("fig-8a", "I, IV-C1", statement, number, at_least(80, " %"), REASONS["unlike"])


def _periods() -> Iterator[Claim]:
    for first, second, by in (("a", "b", "days"), ("c", "d", "hours")):
        for metric, what in (("notification_delay", "Delay"), ("notification_overhead", "Overhead")):
            statement, number = f"{what} rises slightly with T_free", change(metric, "DYNATOPS", by)
            target = between(0, 10, " %")
            yield Claim(f"fig-9{first}", f"fig. 9({first})", statement, number, target, REASONS["period"])
        statement, number = (
            "Reconfiguration overhead falls with T_free",
            shift("reconfiguration_overhead", "DYNATOPS", by),
        )
        yield Claim(f"fig-9{second}", f"fig. 9({second})", statement, number, FALLS, REASONS["cheaper"])


def _configurations() -> Iterator[Claim]:
    variant = "DYNATOPS-Greedy"
    saved = (("cost_saved", "SSBR cost"), ("overhead_saved", "relay traffic"), ("delay_saved", "delay"))
    for panel, varied in (("a", "brokers"), ("b", "topics")):
        for pattern in ("uniform", "multimodal"):
            for metric, what in saved:
                statement, number = (
                    f"Always saves {what}, {pattern}",
                    least(metric, variant, "pattern", pattern, varied),
                )
                yield Claim(f"fig-10{panel}", f"fig. 10({panel})", statement, number, MORE, REASONS["configuration"])
    for metric, what in saved:
        number = variant_difference(metric, variant, "pattern", "multimodal", "uniform")
        yield Claim("fig-10a", "fig. 10", f"Saves more {what} where patterns are skewed", number, MORE, REASONS["skew"])
    for point, milliseconds in (
        ("10 brokers, 100 topics", 28),
        ("100 brokers, 100 topics", 184),
        ("1000 brokers, 100 topics", 96_000),
        ("100 brokers, 50 topics", 98),
        ("100 brokers, 500 topics", 502),
        ("100 brokers, 5000 topics", 1900),
    ):
        number, target = metric_value("milliseconds", variant, point), at_most(milliseconds, 0, " ms")
        yield Claim("table-2", "table II", f"{point}: time to compute", number, target, REASONS["time"])


SEARCH = "tests/policies/test_reconfiguration"
MISPRINTS = (
    Misprint(
        "appendix B, eq. 16e, 16f",
        "y = 1 only if all nodes behind an edge subscribe",
        "y = 1 if any does: y ≥ S for each of them; as printed trees lose their edges",
        f"{SEARCH}_search.py::test_equation_16_as_printed_lets_trees_lose_their_edges",
    ),
    Misprint(
        "appendix C, lemma 3.4",
        "a swap is evaluated by the paths from the roots to the two brokers",
        "with round-trip times everything below them is priced anew, for topics that neither wants, too",
        f"{SEARCH}_cost.py::test_topics_that_neither_wants_are_priced_anew_by_round_trips_only",
    ),
    Misprint(
        "II-A, fig. 2",
        "routes as by Chord's default routing",
        "by the closest preceding finger routes do not make trees; they do where the target itself may be the finger, "
        "as in the figure",
        "tests/overlay/test_chord.py::test_strict_rule_makes_routes_longer_and_no_trees",
    ),
)
