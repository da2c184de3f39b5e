"""“DYNATOPS” (Y. Zhao, K. Kim, N. Venkatasubramanian): what is shown of our runs."""

from __future__ import annotations

from sim.papers.dynatops.claims import BS, BS_BNR, DERIVED, LOCATION, MISPRINTS, OURS, SYSTEMS, TCO, claims
from sim.papers.dynatops.runs import sweeps
from sim.papers.paper import Paper, PaperTable, Section, charts, in_order, paper_tables

CELLS = ("c", "cells of a cluster")
RATE = ("rate", "changes per user and hour")
PUBLISHED = ("publications", "publications per topic and hour")
BOTH = ("notification_delay", "notification_overhead")

SECTIONS = (
    Section(
        "fig-5a",
        "Figure 5(a): how often users come back to a cell",
        "The paper's trace is not public; users of the mobility generator take its place. Its published facts do not "
        "come out all at once: with 450 thousand visits, of which half last less than a day, cells that a user sees "
        "once are too many.",
        charts("times", "visits to the cell, at most", "share_of_pairs"),
        (
            PaperTable(
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
        charts("days", "days, at most", "share_of_stays"),
        runs="fig-5",
    ),
    Section(
        "fig-6a",
        "Figure 6(a): subscription management overhead in the location model",
        "Tree joins and leaves, and the states that brokers of a cluster exchange twice a day. A cluster is a block "
        "of so many cells.",
        charts(*CELLS, "subscription_overhead", "broker_subscription_changes"),
        paper_tables("c", {"Subscription overhead": "subscription_overhead"}),
        "fig-6abf",
    ),
    Section(
        "fig-6b",
        "Figure 6(b): imbalance of load",
        "Standard deviation of brokers' loads relative to their mean, averaged over time. A load that is a share of "
        "all is so small that the paper's weight of 1 hardly counts; relative to the mean it does.",
        charts(*CELLS, "load_stddev"),
        paper_tables("c", {"Imbalance": "load_stddev"}),
        "fig-6abf",
    ),
    Section(
        "fig-6c",
        "Figure 6(c): handovers",
        "Times that a user's broker changes.",
        tables=(
            PaperTable(
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
        "From the publisher's broker to each broker that subscribes, every hop a round-trip time. Tapestry has routes "
        "of 2 or 3 hops where Chord has 5, so Bayeux stands on both; delay from the root on is what a reconfiguration "
        "can change.",
        tables=(
            PaperTable(
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
            PaperTable(
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
        charts(*CELLS, *BOTH, relative_to=LOCATION, variants=(LOCATION, BS, BS_BNR)),
        runs="fig-6abf",
    ),
    Section(
        "fig-7a",
        "Figure 7(a): broker-subscription changes in the Poisson model, multimodal pattern",
        "Users replace one of their five topics by another of their mode. All systems but DYNATOPS assign users at "
        "random. Ten publications per topic and hour.",
        (
            *charts(*RATE, "broker_subscription_changes", variants=SYSTEMS),
            *charts(*RATE, "subscription_overhead", variants=("Bayeux", "Bayeux on Chord", "DYNATOPS")),
        ),
        paper_tables("rate", {"Broker-subscription changes": "broker_subscription_changes"}),
        "fig-7",
    ),
    Section(
        "fig-7b",
        "Figure 7(b): notification delay",
        "Every hop is one unit (s). Ours are other optimisers beside the paper's greedy, and larger clusters.",
        (
            *charts(*RATE, "notification_delay", variants=SYSTEMS),
            *charts(*RATE, "notification_delay", relative_to="Bayeux", variants=("Bayeux", *OURS)),
        ),
        paper_tables("rate", {"Delay": "notification_delay", "Delay from the root on": "tree_delay"}),
        "fig-7",
    ),
    Section(
        "fig-7c",
        "Figure 7(c): notification overhead",
        "Messages below the root. Nearly all of the gain is that fewer brokers subscribe, which selection brings about.",
        (
            *charts(*RATE, "notification_overhead", variants=SYSTEMS),
            *charts(*RATE, "notification_overhead", relative_to="Bayeux", variants=("Bayeux", *OURS)),
        ),
        paper_tables("rate", {"Overhead": "notification_overhead", "Relay traffic": "external_overhead"}),
        "fig-7",
    ),
    Section(
        "fig-7d",
        "Figure 7(d): reconfiguration overhead",
        "Messages of the reconfiguration protocol, against links of the topic-connected overlay that change: DCB-M, "
        "in a reading of ours, rebuilt in parts as soon as a topic comes apart, or every hour; or GM, repaired.",
        (
            *charts(*RATE, "reconfiguration_overhead", variants=("TCO", *OURS)),
            *charts(*RATE, "reconfiguration_overhead", variants=TCO),
        ),
        paper_tables(
            "rate",
            {
                "Reconfiguration overhead": "reconfiguration_overhead",
                "Reconfigurations": "reconfigurations",
                "Topic-connected overlays: highest degree": "maximum_degree",
            },
        ),
        "fig-7",
    ),
    Section(
        "fig-8a",
        "Figure 8(a): notification delay by pattern of subscriptions",
        "0.1 changes per user and hour, ten publications per topic and hour. The last pattern is multimodal with all "
        "five topics drawn anew, from a new mode.",
        charts("pattern", "pattern", "notification_delay", variants=SYSTEMS),
        paper_tables(
            "variant",
            {"Delay": "notification_delay", "Broker-subscription changes": "broker_subscription_changes"},
            by="pattern",
            relative_to="Bayeux",
        ),
        "fig-8",
    ),
    Section(
        "fig-8b",
        "Figure 8(b): notification overhead by pattern of subscriptions",
        "Messages below the root.",
        charts("pattern", "pattern", "notification_overhead", variants=SYSTEMS),
        paper_tables("variant", {"Overhead": "notification_overhead"}, by="pattern", relative_to="Bayeux"),
        "fig-8",
    ),
    Section(
        "fig-9a",
        "Figure 9(a): the reconfiguration-free period in the location model, delay and overhead",
        "Clusters of 10 cells.",
        charts("days", "T_free (d)", *BOTH),
        runs="fig-9ab",
    ),
    Section(
        "fig-9b",
        "Figure 9(b): the same, reconfiguration overhead",
        "Messages of the protocol.",
        charts("days", "T_free (d)", "reconfiguration_overhead", "reconfigurations"),
        runs="fig-9ab",
    ),
    Section(
        "fig-9c",
        "Figure 9(c): the reconfiguration-free period in the Poisson model, delay and overhead",
        "Clusters of 5 brokers, 0.025 changes per user and hour, ten publications per topic and hour.",
        charts("hours", "T_free (h)", *BOTH),
        runs="fig-9cd",
    ),
    Section(
        "fig-9d",
        "Figure 9(d): the same, reconfiguration overhead",
        "Messages of the protocol.",
        charts("hours", "T_free (h)", "reconfiguration_overhead", "reconfigurations"),
        runs="fig-9cd",
    ),
    *(
        Section(
            f"fig-10{panel}",
            f"Figure 10({panel}): what configurations save against consistent hashing, by the number of {varied}",
            "Five topics a broker, a thousand publications of each topic in the period ahead; the policy is asked "
            "once. The other number is 100.",
            charts(varied, varied, "overhead_saved", "delay_saved", by="pattern"),
            paper_tables(
                varied,
                {
                    "SSBR cost saved (%)": "cost_saved",
                    "Relay traffic saved (%)": "overhead_saved",
                    "Delay saved (%)": "delay_saved",
                    "Brokers moved": "moved",
                },
                by="pattern",
            ),
            "fig-10",
        )
        for panel, varied in (("a", "brokers"), ("b", "topics"))
    ),
    Section(
        "table-2",
        "Table II: the time to compute a configuration",
        "CPU time on this machine, multimodal pattern, compiled code; the paper had a workstation of four cores at 2 GHz.",
        tables=paper_tables("point", {"CPU time (ms)": "milliseconds"}),
    ),
    Section(
        "clusters",
        "Clusters of other sizes",
        "The Poisson model, multimodal pattern, 0.1 changes and ten publications an hour, all on Chord: what "
        "selection brings alone, and what moving brokers adds to it.",
        charts(
            "c",
            "brokers of a cluster",
            "broker_subscription_changes",
            "notification_overhead",
            "notification_delay",
            "tree_delay",
            relative_to="static",
        ),
        paper_tables(
            "c",
            {
                "Broker-subscription changes": "broker_subscription_changes",
                "Overhead": "notification_overhead",
                "Delay": "notification_delay",
                "Imbalance of load": "load_stddev",
                "Reconfiguration overhead": "reconfiguration_overhead",
            },
        ),
    ),
    Section(
        "flooding",
        "Trees and flooding on topic-connected overlays",
        "A tenth of a publication per topic and hour. Flooding takes the quickest way, and a message over every link of the topic.",
        tables=(
            PaperTable(
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
        "The paper does not say how many publications there are, which decides whether a reconfiguration ever pays: "
        "its cost does not depend on them, its benefit does. Multimodal pattern, c = 5, 0.1 changes per user and "
        "hour, T_free = 10 h.",
        (
            *charts(*PUBLISHED, "reconfigurations"),
            *charts(*PUBLISHED, *BOTH, relative_to="BS alone"),
            *charts(*PUBLISHED, "reconfiguration_overhead"),
        ),
        paper_tables(
            "publications",
            {
                "Messages below the root": "notification_overhead",
                "Messages of the protocol": "reconfiguration_overhead",
            },
        ),
    ),
)


PAPER = Paper(
    title="DYNATOPS, reproduced",
    source="Y. Zhao, K. Kim, N. Venkatasubramanian: DYNATOPS: a dynamic topic-based publish/subscribe architecture. DEBS 2013.",
    text="Figures are described in prose only, so claims are those of the text and the captions. Where it is silent, "
    "the docs (DYNATOPS) say how it is read; above all it does not say how much is published. Its systems stand on "
    "unlike substrates, DYNATOPS on Chord and Bayeux on Tapestry, whose routes are shorter; Bayeux is shown on both. "
    "What bears “ours” is not the paper's, GeoPS is a reconstruction, and TCO is kept by a reading of ours of DCB-M.",
    readings=("",),
    smaller="fewer points, fewer users and less time than the paper has",
    sections=SECTIONS,
    claims=in_order(claims(), SECTIONS),
    misprints=MISPRINTS,
    sweeps=sweeps,
    derived=DERIVED,
)
