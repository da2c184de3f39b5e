"""“DYNATOPS” (Y. Zhao, K. Kim, N. Venkatasubramanian): what it claims, and what is shown of our runs."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.papers.claims import FALLS, LESS, MORE, RISES, Claim, Misprint, at_least, at_most, between, near
from analysis.papers.paper import Chart, Derived, Paper, Section, Table
from analysis.papers.quantities import change, difference, gain, least, mean_gain, mean_of, shift, value

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


def _number(name: str, title: str) -> Derived:
    """A number that a computed table has."""
    return Derived(name, title, (name,), lambda runs: runs[name])


DERIVED = (
    _number("visits_per_user", "visits per user"),
    _number("pairs_per_user", "(user, cell) pairs per user"),
    _number("single_visits", "pairs of a single visit"),
    _number("stays_under_day", "stays under a day"),
    _number("stays_over_week", "stays over a week"),
    _number("share_of_pairs", "share of (user, cell) pairs"),
    _number("share_of_stays", "share of stays"),
    _number("cost_saved", "SSBR cost saved (%)"),
    _number("overhead_saved", "relay traffic saved (%)"),
    _number("delay_saved", "delay saved (%)"),
    _number("moved", "brokers moved"),
    _number("milliseconds", "CPU time (ms)"),
)

SECTIONS = (
    Section(
        "fig-5a",
        "Figure 5(a): how often users come back to a cell",
        "The paper's trace is not public; users of the mobility generator take its place. Its published facts do not come out "
        "all at "
        "once: with 450 thousand visits, of which half last less than a day, cells that a user sees once are too many.",
        (Chart("share_of_pairs", "times", "visits to the cell, at most"),),
        (
            Table(
                "The workload and the trace of the paper",
                ("visits_per_user", "pairs_per_user", "single_visits", "stays_under_day", "stays_over_week"),
                "variant",
            ),
        ),
        "fig-5",
    ),
    Section(
        "fig-5b",
        "Figure 5(b): how long they stay",
        "From a visit to the user's next one; the last of each user is left out.",
        (Chart("share_of_stays", "days", "days, at most"),),
        runs="fig-5",
    ),
    Section(
        "fig-6a",
        "Figure 6(a): subscription management overhead in the location model",
        "Tree joins and leaves, and the states that brokers of a cluster exchange twice a day. A cluster is a block of so "
        "many cells.",
        (
            Chart("subscription_overhead", "c", "cells of a cluster"),
            Chart("broker_subscription_changes", "c", "cells of a cluster"),
        ),
        (Table("Subscription overhead", ("subscription_overhead",), "c"),),
        "fig-6abf",
    ),
    Section(
        "fig-6b",
        "Figure 6(b): imbalance of load",
        "Standard deviation of brokers' loads relative to their mean, averaged over time. A load that is a share of all is so "
        "small "
        "that the paper's weight of 1 hardly counts; relative to the mean it does.",
        (Chart("load_stddev", "c", "cells of a cluster"),),
        (Table("Imbalance", ("load_stddev",), "c"),),
        "fig-6abf",
    ),
    Section(
        "fig-6c",
        "Figure 6(c): handovers",
        "Times that a user's broker changes.",
        tables=(
            Table(
                "Handovers and control",
                (
                    "handovers",
                    "handover_messages",
                    "subscription_overhead",
                    "broker_subscription_changes",
                    "tree_state",
                ),
                "variant",
                relative_to=LOCATION,
            ),
        ),
        runs="fig-6cde",
    ),
    Section(
        "fig-6d",
        "Figure 6(d): notification delay in the location model",
        "From the publisher's broker to each broker that subscribes, every hop a round-trip time. Tapestry has routes of 2 or "
        "3 hops "
        "where Chord has 5, so Bayeux stands on both; delay from the root on is what a reconfiguration can change.",
        tables=(
            Table(
                "Delay",
                ("notification_delay", "user_notification_delay", "tree_delay", "tree_hops", "uplink_hops"),
                "variant",
                relative_to=LOCATION,
            ),
        ),
        runs="fig-6cde",
    ),
    Section(
        "fig-6e",
        "Figure 6(e): notification overhead in the location model",
        "Messages below the root; external ones go to brokers that only relay. GeoPS is a reconstruction of ours.",
        tables=(
            Table(
                "Overhead",
                (
                    "notification_overhead",
                    "external_overhead",
                    "uplink_messages",
                    "reconfiguration_overhead",
                    "reconfigured_brokers",
                ),
                "variant",
                relative_to=LOCATION,
            ),
        ),
        runs="fig-6cde",
    ),
    Section(
        "fig-6f",
        "Figure 6(f): delay and overhead against the size of clusters",
        "Selection and reconfiguration together, relative to location-based selection on Tapestry.",
        (
            Chart(
                "notification_delay", "c", "cells of a cluster", relative_to=LOCATION, variants=(LOCATION, BS, BS_BNR)
            ),
            Chart(
                "notification_overhead",
                "c",
                "cells of a cluster",
                relative_to=LOCATION,
                variants=(LOCATION, BS, BS_BNR),
            ),
        ),
        runs="fig-6abf",
    ),
    Section(
        "fig-7a",
        "Figure 7(a): broker-subscription changes in the Poisson model, multimodal pattern",
        "Users replace one of their five topics by another of their mode. All systems but DYNATOPS assign users at random. Ten "
        "publications per topic and hour.",
        (
            Chart("broker_subscription_changes", "rate", "changes per user and hour", variants=SYSTEMS),
            Chart(
                "subscription_overhead",
                "rate",
                "changes per user and hour",
                variants=("Bayeux", "Bayeux on Chord", "DYNATOPS"),
            ),
        ),
        (Table("Broker-subscription changes", ("broker_subscription_changes",), "rate"),),
        "fig-7",
    ),
    Section(
        "fig-7b",
        "Figure 7(b): notification delay",
        "Every hop is one unit (s). Ours are other optimisers beside the paper's greedy, and larger clusters.",
        (
            Chart("notification_delay", "rate", "changes per user and hour", variants=SYSTEMS),
            Chart(
                "notification_delay",
                "rate",
                "changes per user and hour",
                relative_to="Bayeux",
                variants=("Bayeux", *OURS),
            ),
        ),
        (Table("Delay", ("notification_delay",), "rate"), Table("Delay from the root on", ("tree_delay",), "rate")),
        "fig-7",
    ),
    Section(
        "fig-7c",
        "Figure 7(c): notification overhead",
        "Messages below the root. Nearly all of the gain is that fewer brokers subscribe, which selection brings about.",
        (
            Chart("notification_overhead", "rate", "changes per user and hour", variants=SYSTEMS),
            Chart(
                "notification_overhead",
                "rate",
                "changes per user and hour",
                relative_to="Bayeux",
                variants=("Bayeux", *OURS),
            ),
        ),
        (Table("Overhead", ("notification_overhead",), "rate"), Table("Relay traffic", ("external_overhead",), "rate")),
        "fig-7",
    ),
    Section(
        "fig-7d",
        "Figure 7(d): reconfiguration overhead",
        "Messages of the reconfiguration protocol, against links of the topic-connected overlay that change: DCB-M, in a "
        "reading of "
        "ours, rebuilt in parts as soon as a topic comes apart, or every hour; or GM, repaired.",
        (
            Chart("reconfiguration_overhead", "rate", "changes per user and hour", variants=("TCO", *OURS)),
            Chart("reconfiguration_overhead", "rate", "changes per user and hour", variants=TCO),
        ),
        (
            Table("Reconfiguration overhead", ("reconfiguration_overhead",), "rate"),
            Table("Reconfigurations", ("reconfigurations",), "rate"),
            Table("Topic-connected overlays: highest degree", ("maximum_degree",), "rate"),
        ),
        "fig-7",
    ),
    Section(
        "fig-8a",
        "Figure 8(a): notification delay by pattern of subscriptions",
        "0.1 changes per user and hour, ten publications per topic and hour. The last pattern is multimodal with all five "
        "topics drawn anew, from a new mode.",
        (Chart("notification_delay", "pattern", "pattern", variants=SYSTEMS),),
        (
            Table("Delay", ("notification_delay",), "variant", by="pattern", relative_to="Bayeux"),
            Table(
                "Broker-subscription changes",
                ("broker_subscription_changes",),
                "variant",
                by="pattern",
                relative_to="Bayeux",
            ),
        ),
        "fig-8",
    ),
    Section(
        "fig-8b",
        "Figure 8(b): notification overhead by pattern of subscriptions",
        "Messages below the root.",
        (Chart("notification_overhead", "pattern", "pattern", variants=SYSTEMS),),
        (Table("Overhead", ("notification_overhead",), "variant", by="pattern", relative_to="Bayeux"),),
        "fig-8",
    ),
    Section(
        "fig-9a",
        "Figure 9(a): the reconfiguration-free period in the location model, delay and overhead",
        "Clusters of 10 cells.",
        (Chart("notification_delay", "days", "T_free (d)"), Chart("notification_overhead", "days", "T_free (d)")),
        runs="fig-9ab",
    ),
    Section(
        "fig-9b",
        "Figure 9(b): the same, reconfiguration overhead",
        "Messages of the protocol.",
        (Chart("reconfiguration_overhead", "days", "T_free (d)"), Chart("reconfigurations", "days", "T_free (d)")),
        runs="fig-9ab",
    ),
    Section(
        "fig-9c",
        "Figure 9(c): the reconfiguration-free period in the Poisson model, delay and overhead",
        "Clusters of 5 brokers, 0.025 changes per user and hour, ten publications per topic and hour.",
        (Chart("notification_delay", "hours", "T_free (h)"), Chart("notification_overhead", "hours", "T_free (h)")),
        runs="fig-9cd",
    ),
    Section(
        "fig-9d",
        "Figure 9(d): the same, reconfiguration overhead",
        "Messages of the protocol.",
        (Chart("reconfiguration_overhead", "hours", "T_free (h)"), Chart("reconfigurations", "hours", "T_free (h)")),
        runs="fig-9cd",
    ),
    *(
        Section(
            f"fig-10{panel}",
            f"Figure 10({panel}): what configurations save against consistent hashing, by the number of {varied}",
            "Five topics a broker, a thousand publications of each topic in the period ahead; the policy is asked once. The "
            "other number "
            "is 100.",
            (
                Chart("overhead_saved", varied, varied, by="pattern"),
                Chart("delay_saved", varied, varied, by="pattern"),
            ),
            tuple(
                Table(caption, (metric,), varied, by="pattern")
                for caption, metric in (
                    ("SSBR cost saved (%)", "cost_saved"),
                    ("Relay traffic saved (%)", "overhead_saved"),
                    ("Delay saved (%)", "delay_saved"),
                    ("Brokers moved", "moved"),
                )
            ),
            "fig-10",
        )
        for panel, varied in (("a", "brokers"), ("b", "topics"))
    ),
    Section(
        "table-2",
        "Table II: the time to compute a configuration",
        "CPU time on this machine, multimodal pattern, compiled code; the paper had a workstation of four cores at 2 GHz.",
        tables=(Table("CPU time (ms)", ("milliseconds",), "point"),),
    ),
    Section(
        "clusters",
        "Clusters of other sizes",
        "The Poisson model, multimodal pattern, 0.1 changes and ten publications an hour, all on Chord: what selection brings "
        "alone, and "
        "what moving brokers adds to it.",
        tuple(
            Chart(metric, "c", "brokers of a cluster", relative_to="static")
            for metric in ("broker_subscription_changes", "notification_overhead", "notification_delay", "tree_delay")
        ),
        tuple(
            Table(caption, (metric,), "c")
            for caption, metric in (
                ("Broker-subscription changes", "broker_subscription_changes"),
                ("Overhead", "notification_overhead"),
                ("Delay", "notification_delay"),
                ("Imbalance of load", "load_stddev"),
                ("Reconfiguration overhead", "reconfiguration_overhead"),
            )
        ),
    ),
    Section(
        "flooding",
        "Trees and flooding on topic-connected overlays",
        "A tenth of a publication per topic and hour. Flooding takes the quickest way, and a message over every link of the topic.",
        tables=(
            Table(
                "DCB-M",
                ("notification_delay", "tree_hops", "notification_overhead", "duplicates"),
                "variant",
                relative_to="tree",
            ),
        ),
    ),
    Section(
        "publication-rate",
        "How many publications it takes",
        "The paper does not say how many publications there are, which decides whether a reconfiguration ever pays: its cost "
        "does not "
        "depend on them, its benefit does. Multimodal pattern, c = 5, 0.1 changes per user and hour, T_free = 10 h.",
        (
            Chart("reconfigurations", "publications", "publications per topic and hour"),
            Chart("notification_delay", "publications", "publications per topic and hour", relative_to="BS alone"),
            Chart("notification_overhead", "publications", "publications per topic and hour", relative_to="BS alone"),
            Chart("reconfiguration_overhead", "publications", "publications per topic and hour"),
        ),
        (
            Table("Messages below the root", ("notification_overhead",), "publications"),
            Table("Messages of the protocol", ("reconfiguration_overhead",), "publications"),
        ),
    ),
)


REASONS = {
    "trace": "Visits, pairs and stays of the paper cannot all be had from one generator: where users differ so much in pace "
    "that visits "
    "are few and stays short, most of them see many cells once.",
    "management": "Selection lowers tree joins and leaves, by more the more users there are; the exchange of states, c − 1 "
    "messages per "
    "broker and period, does not depend on users and takes much of that back. Tapestry's shorter routes make a join cheaper "
    "than Chord's.",
    "exchange": "The exchange of states grows with c, the trees' part shrinks: where the sum is lowest depends on how many users "
    "there are per broker.",
    "imbalance": "Users of a block gather at few of its brokers. The load is uneven under selection by location already: "
    "people live in cities.",
    "weight": "L_b is a share of all subscriptions, 1/|B| on average, so a weight of 1 only settles ties; relative to the "
    "mean it counts.",
    "handovers": "A user follows the block of cells, so each visit to another block is a handover; most visits that leave a "
    "cell of one "
    "degree leave a block of 2 × 5 too.",
    "tapestry": "Tapestry has 2 to 3 hops where Chord has 5, and that outweighs what brokers' places bring.",
    "same substrate": "On equal routes the greedy moves few brokers; nearly all of the gain in overhead is the selection's, "
    "which changes "
    "the routes of nobody.",
    "geops": "A reconstruction: each message goes from quadrant to nearer quadrant, and never far; Chord's routes know no "
    "geography.",
    "selection": "Fewer brokers subscribe, so there are fewer messages; the way to each of them is as long as before.",
    "reconfiguration": "The greedy stops at the first broker that cannot improve, and here moves few; uplinks, which the cost "
    "leaves "
    "out, may become longer.",
    "clusters": "Larger clusters leave fewer subscribers of a topic; with them the trees shrink, but not the routes.",
    "multimodal": "Users of one mode meet at one broker, where a topic of their mode is always wanted by somebody else. It "
    "takes users "
    "enough: with few, as in a quick look, less.",
    "delay": "On Chord a broker is 3 hops from the root whatever is selected; Bayeux's Tapestry has 2. What moving brokers "
    "saves takes "
    "large clusters and a strong optimiser.",
    "tco delay": "A breadth-first tree over links of brokers with many topics in common is short.",
    "tco overhead": "No relays. At full size almost every broker wants almost every topic, so there is little to save.",
    "overhead": "Nearly all of it comes from selection. With few users per broker, as in a quick look, brokers want few "
    "topics and less "
    "is saved.",
    "tco cost": "Each break changes a few links; more changes, more breaks.",
    "cost": "Where it pays to move brokers, that is once in ten hours at most; where it does not, nothing is sent. Against a "
    "topic-connected "
    "overlay it depends on how that is kept: rebuilt in parts it changes few links, which count one message each.",
    "unlike": "Single replacements tear users away from those they were grouped with, one by one: each handover changes what "
    "two brokers "
    "want.",
    "like": "As in figure 7.",
    "period": "Where few reconfigurations pay, T_free hardly matters.",
    "cheaper": "Fewer periods, fewer reconfigurations, where any pays.",
    "configuration": "Each swap of the greedy lowers the sum of relay traffic and delay, and here both.",
    "skew": "Where some brokers want the same topics they can relay for one another; the ways to them are not shorter for it.",
    "time": "Compiled, and each swap is evaluated by what it changes.",
}


def _claims() -> Iterator[Claim]:
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
        number = difference(metric, variant, "pattern", "multimodal", "uniform")
        yield Claim("fig-10a", "fig. 10", f"Saves more {what} where patterns are skewed", number, MORE, REASONS["skew"])
    for point, milliseconds in (
        ("10 brokers, 100 topics", 28),
        ("100 brokers, 100 topics", 184),
        ("1000 brokers, 100 topics", 96_000),
        ("100 brokers, 50 topics", 98),
        ("100 brokers, 500 topics", 502),
        ("100 brokers, 5000 topics", 1900),
    ):
        number, target = value("milliseconds", variant, point), at_most(milliseconds, 0, " ms")
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
        "by the closest preceding finger routes do not make trees; they do where the target itself may be the finger, as in "
        "the figure",
        "tests/overlay/test_chord.py::test_strict_rule_makes_routes_longer_and_no_trees",
    ),
)
PAPER = Paper(
    name="dynatops",
    title="DYNATOPS, reproduced",
    source="Y. Zhao, K. Kim, N. Venkatasubramanian: DYNATOPS: a dynamic topic-based publish/subscribe architecture. DEBS 2013.",
    text="Figures are described in prose only, so claims are those of the text and the captions. Where it is silent, the docs "
    "(DYNATOPS) say "
    "how it is read; above all it does not say how much is published. Its systems stand on unlike substrates, DYNATOPS on "
    "Chord and "
    "Bayeux on Tapestry, whose routes are shorter; Bayeux is shown on both. What bears “ours” is not the paper's, GeoPS is a "
    "reconstruction, and TCO is kept by a reading of ours of DCB-M.",
    readings=("",),
    sections=SECTIONS,
    claims=tuple(sorted(_claims(), key=lambda claim: [section.key for section in SECTIONS].index(claim.section))),
    misprints=MISPRINTS,
    derived=DERIVED,
)
