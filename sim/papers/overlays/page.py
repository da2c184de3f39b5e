"""“Publish-Subscribe Overlay Network Design” (M. Onus, A. W. Richa): what is shown of our runs."""

from __future__ import annotations

from sim.papers.overlays.claims import GAP, MISPRINTS, READINGS, claims
from sim.papers.overlays.runs import sweeps
from sim.papers.paper import Paper, PaperTable, Section, charts, in_order, paper_tables

HOURS = ("hours", "hours of change")
DEGREES = ("average_degree", "maximum_degree", "mean_topic_diameter")


def _figure(key: str, title: str, column: str, text: str) -> Section:
    return Section(
        key,
        title,
        text,
        charts(column, column, *DEGREES, by="reading"),
        paper_tables(column, {"Average degree": "average_degree"}, by="reading"),
    )


SECTIONS = (
    _figure(
        "fig-1a",
        "Figure 1(a): average degree against the number of nodes",
        "nodes",
        "100 topics, 10 subscriptions per node. The stars of the CD family pay for their topic diameter of 2 with a centre that is "
        "linked to almost everybody; GM's maximum degree is low and its topics are long chains.",
    ),
    _figure(
        "fig-1b",
        "Figure 1(b): average degree against the number of topics",
        "topics",
        "100 nodes, 20 subscriptions per node.",
    ),
    _figure(
        "fig-2",
        "Figure 2: average degree against the number of subscriptions",
        "subscriptions",
        "100 nodes, 100 topics.",
    ),
    Section(
        "examples",
        "Examples I to IV and the example of lemma 3.1",
        "Links of each design on the paper's worked examples.",
        tables=paper_tables("point", {"Links": "edges"}),
    ),
    Section(
        "k-sweep",
        "Low-ODA between GM and MinMax-ODA",
        "The paper bounds both degrees for any k and shows neither. Low-ODA buys most of what MinMax-ODA gains in maximum degree at "
        "almost GM's average degree while k is between 1 and 2.",
        charts("variant", "design; k of Low-ODA", *DEGREES, colour="reading"),
        (PaperTable("Designs against GM", ("average_degree", "maximum_degree"), "variant", "reading", "gm"),),
    ),
    Section(
        "real",
        "Interests that people really have",
        "All designs on real interests, and how far they are beyond the best lower bound on the number of links, which is a weak one "
        "where most topics have few subscribers. The paper has synthetic interests only.",
        tables=(
            PaperTable(
                "Designs",
                ("edges", "gap", "average_degree", "maximum_degree", "diameter", "mean_topic_diameter"),
                "variant",
                "data",
            ),
        ),
    ),
    Section(
        "drift",
        "Under change: repair against rebuild",
        "The paper leaves changing interests to future work. Every node replaces one of its topics by another 0.4 times an hour. The "
        "overlay is repaired where it falls apart, with a fresh GM in its place when it has more than 1.05 times as many links "
        "(repaired), or never (repaired only); or made anew in those parts of DCB-M, in a reading of our own, that have changed. "
        "Links are relative to a fresh GM of the same interests; control messages are two for each link set up or taken down.",
        (
            *charts(*HOURS, "edges", relative_to="rebuilt"),
            *charts(*HOURS, "reconfiguration_overhead", "maximum_degree", "mean_topic_diameter"),
        ),
        paper_tables("hours", {"Links": "edges", "Control messages": "reconfiguration_overhead"}),
    ),
    Section(
        "rendezvous",
        "Rendezvous trees and topic-connected overlays on one workload",
        "The same publications and changes of interest over the trees of a Chord ring, whose brokers relay for topics that they do not "
        "want, and over overlays in which only subscribers forward. Degrees are those of the links that a broker keeps.",
        tables=(
            PaperTable(
                "Delays and messages",
                (
                    "notification_delay",
                    "tree_hops",
                    "messages_per_publication",
                    "external_overhead",
                    "duplicates",
                ),
                "variant",
                relative_to="chord",
            ),
            PaperTable(
                "Links and control",
                (
                    "average_degree",
                    "maximum_degree",
                    "bootstrap_messages",
                    "subscription_overhead",
                    "reconfiguration_overhead",
                ),
                "variant",
                relative_to="chord",
            ),
        ),
    ),
)
PAPER = Paper(
    title="Publish-Subscribe Overlay Network Design, reproduced",
    source="M. Onus, A. W. Richa: Publish-Subscribe Overlay Network Design. Arizona State University.",
    text="The paper says of its random interests that each node has s topics and wants each topic uniformly at random. Read as "
    "independent coin flips of probability s/t its figures come out; with exactly s topics per node they do not. Both are shown side "
    "by side, and coin flips count as the reproduction. Average degrees stand beside maximum degrees and topic diameters, which "
    "the paper leaves out. Links that join nothing are never made; of equally good links that between the lowest nodes is taken.",
    readings=READINGS,
    sections=SECTIONS,
    claims=in_order(claims(), SECTIONS),
    misprints=MISPRINTS,
    sweeps=sweeps,
    derived=(GAP,),
)
