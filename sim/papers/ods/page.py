"""“Maximizing the Number of Satisfied Subscribers” (ODS): what is shown of our decisions."""

from __future__ import annotations

from sim.papers.ods.claims import B3M, BEST, BOUND, DERIVED, FB3M, MISPRINTS, PORTFOLIO, READINGS, claims
from sim.papers.ods.runs import sweeps
from sim.papers.paper import Paper, PaperTable, Section, charts, in_order, paper_tables

CAPACITY = ("capacity", "capacity (% of all notifications)")
SECTIONS = (
    Section(
        "trace",
        "The workloads and the trace",
        "The paper's trace is not public. Sizes, mean event rate and thresholds are known; how many topics a subscriber has, and how "
        "rates and popularity go together, is not, so there are two shapes: sparse, some 3 topics a subscriber and popular topics "
        "louder; dense, some 20, and rates that do not depend on popularity.",
        tables=(
            PaperTable(
                "The workloads and the trace of the paper",
                ("topics", "subscribers", "event_rate", "lowest_tau", "highest_tau", "topics_per_subscriber"),
                "variant",
            ),
        ),
    ),
    Section(
        "fig-1",
        "Figure 1: subscribers that GreedyB3M satisfies, by capacity",
        "The paper shows the progress of one run to 10 % (one run). A run to a smaller capacity goes on with topics that still fit "
        "where that of the larger one picks one that does not, and so can be ahead of it; policies are asked anew at four "
        "capacities. The best proven bound is the lowest of all that are known here, at the same four.",
        charts(*CAPACITY, "satisfied", by="panel", variants=(B3M, f"{B3M}, one run", PORTFOLIO, BOUND, BEST)),
        paper_tables("threshold", {"Subscribers satisfied at 10 % (%), by τ": "satisfied_at_capacity"}, by="reading"),
        "decisions",
    ),
    Section(
        "fig-2",
        "Figure 2: satisfaction by ModifiedGreedyFB3M, by capacity",
        "The same for F-B3M, where a subscriber counts with the share of what it needs. Theorem VI.4 adds 1 to its bound; here what is "
        "left of the capacity pays for a part of the next subscriber, which is a little less.",
        charts(*CAPACITY, "satisfaction", by="panel", variants=(FB3M, f"{FB3M}, one run", BOUND, BEST)),
        paper_tables("threshold", {"Mean satisfaction at 10 % (%), by τ": "satisfaction_at_capacity"}, by="reading"),
        "decisions",
    ),
    Section(
        "fig-3",
        "Figure 3: approximation ratios, by τ",
        "At 10 %: by the paper's bound, and by the best that is proven, which bounds what could be gained. Of F-B3M the "
        "paper names one number. Controls take topics in random order, the most popular or the loudest first.",
        (
            *charts("threshold", "τ", "ratio", by="reading", variants=(B3M, FB3M, f"paper: {B3M}", f"paper: {FB3M}")),
            *charts("threshold", "τ", "proven", by="reading", variants=(B3M, PORTFOLIO, FB3M)),
        ),
        paper_tables(
            "threshold",
            {"Of the paper's bound, by τ": "ratio", "Of the best proven bound, by τ": "proven"},
            by="reading",
        ),
        "decisions",
    ),
    Section(
        "fig-4a",
        "Figure 4: CPU time, by τ",
        "From interests to picks, one thread, on this machine, compiled code; the paper has C++ on Xeons of 2.13 GHz. Its numbers are "
        "of the full size, and are compared there alone.",
        charts("threshold", "τ", "seconds", by="reading", variants=(B3M, FB3M, PORTFOLIO)),
        paper_tables("threshold", {"CPU time (s), by τ": "seconds"}, by="reading"),
        "decisions",
    ),
    Section(
        "fig-4b",
        "Figure 4: ModifiedGreedyFB3MSlow",
        "The slow version computes the gain of all topics anew that share a subscriber with the pick. It picks the same topics. How "
        "much longer it takes grows with the size, so this is of a small part of the workload.",
        charts("threshold", "τ", "milliseconds", by="reading"),
        paper_tables("threshold", {"CPU time (ms), by τ": "milliseconds"}, by="reading"),
        "slow",
    ),
)
PAPER = Paper(
    title="Maximizing the Number of Satisfied Subscribers, reproduced",
    source="V. Setty, G. Kreitz, G. Urdaneta, R. Vitenberg, M. van Steen: Maximizing the Number of Satisfied Subscribers in Pub/Sub "
    "Systems Under Capacity Constraints.",
    text="A back end that can deliver a tenth of all notifications keeps those topics that satisfy the most subscribers. The trace is "
    "not public, and only sizes and a mean are known, so the rest is read in two ways, as sparse and as dense interests. "
    "Beside the paper's bound, which is weak where subscribers have many topics, stands the best that is proven here.",
    readings=READINGS,
    sections=SECTIONS,
    claims=in_order(claims(), SECTIONS),
    misprints=MISPRINTS,
    sweeps=sweeps,
    derived=DERIVED,
    smaller="fewer topics and fewer subscribers than the paper has, of the same distributions",
)
