"""What “Maximizing the Number of Satisfied Subscribers” claims, and why that comes out as it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from sim.papers.claims import (
    FALLS,
    MORE,
    RISES,
    Claim,
    ClaimedQuantity,
    Misprint,
    Target,
    at_least,
    at_most,
    in_readings,
    near,
)
from sim.papers.paper import Derived
from sim.papers.quantities import NOTHING, change, largest, mean_of, metric_value

READINGS = ("sparse", "dense")
B3M, FB3M, SLOW, PORTFOLIO = "GreedyB3M", "ModifiedGreedyFB3M", "ModifiedGreedyFB3MSlow", "ours: portfolio"
BOUND, BEST = "bound of the paper", "best proven bound"
RATIOS = {2: 0.87, 27: 0.83, 276: 0.75, 2763: 0.82}
"""Of GreedyB3M to the paper's bound, by tau."""
TOLERANCE = 0.02
"""Of ratios: the paper prints two digits, and its trace is another."""
LESS_THAN, AT_MOST = 20.0, 33.0
"""Seconds that ModifiedGreedyFB3M takes for all values of tau, and for one of them."""

DERIVED = (
    Derived("topics", "topics, at scale 1"),
    Derived("subscribers", "subscribers, at scale 1"),
    Derived("event_rate", "mean event rate"),
    Derived("lowest_tau", "τ = 2, of the mean event rate (%)"),
    Derived("highest_tau", "τ = 2763, of the mean event rate (%)"),
    Derived("topics_per_subscriber", "topics per subscriber"),
    Derived("satisfied", "subscribers satisfied (%)"),
    Derived("satisfaction", "mean satisfaction (%)"),
    Derived("ratio", "value / bound of the paper"),
    Derived("proven", "value / best proven bound"),
    Derived("seconds", "CPU time (s)"),
    Derived("milliseconds", "CPU time (ms)"),
)

REASONS = {
    "trace": "The generators are fitted to the published numbers.",
    "tau": "Digits are cut off: 0.1 % of the mean is 2.8, and 2 is 0.07 % of it.",
    "gap": "From half of this capacity on the bound hardly rises, and GreedyB3M comes ever nearer. With sparse interests the gap grows "
    "up to about there, with dense ones at τ = 2763 alone.",
    "progress": "A run goes on with other topics where one does not fit. That is worth less than 0.1 % of the subscribers mostly, and "
    "2 % where it is most.",
    "share": "Who subscribes to what decides this, and is unknown. A tenth of the capacity is enough for most subscribers of either "
    "shape, and nearly enough for all by the bound.",
    "ratio": "It depends on who subscribes to what, which is unknown. With sparse interests ratios are near the paper's at τ = 2 and "
    "2763, and higher between; with dense ones the bound is 100 % at every τ.",
    "pattern": "It goes on falling, in both shapes. The bound would have to fall faster than what greedy reaches, and stays above "
    "95 % here.",
    "closer": "Parts count. At τ = 2 hardly any topic brings a part only, and the two problems are the same.",
    "abstract": "It is highest at τ = 2, in the paper (0.87 for B3M) and here.",
    "guarantee": "By the best proven bound; the optimum is no higher.",
    "time": "Scores change by deltas, in compiled code. Absolute times say little across machines.",
    "slow": "Each pick has topics by the thousand computed anew, of which the next pick needs one.",
}


def claims() -> Iterator[Claim]:
    """All of section VII and of the abstract, each for both shapes."""
    for reading in READINGS:
        yield from in_readings(_trace(f"spotify-{reading}"), [reading])
    yield from in_readings((*_capacities(), *_ratios(), *_times()), READINGS)


def _trace(variant: str) -> Iterator[Claim]:
    for statement, metric, target, reason in (
        ("About 1.1 million topics", "topics", Target("1.1 million", 1.05e6, 1.15e6), "trace"),
        ("4.9 million subscribers", "subscribers", Target("4.9 million", 4.85e6, 4.95e6), "trace"),
        ("The mean event rate is 2763", "event_rate", near(2763, 0.5), "trace"),
        ("τ = 2 is 0.1 % of it", "lowest_tau", near(0.1, 0.05, " %"), "tau"),
        ("τ = 2763 is 100 % of it", "highest_tau", near(100, 0.05, " %"), "trace"),
    ):
        number = replace(mean_of(metric, variant), unit=" %" if metric.endswith("tau") else "")
        yield Claim("trace", "VII.A", statement, number, target, REASONS[reason])


def _capacities() -> Iterator[Claim]:
    yield Claim(
        "fig-1",
        "VII.B, fig. 1",
        "The gap between GreedyB3M and the bound grows with the capacity in most cases",
        ClaimedQuantity("steps of the capacity at which it grows, all τ", " %", _growing),
        at_least(50, " %"),
        REASONS["gap"],
    )
    yield Claim(
        "fig-1",
        "VII.B, fig. 1",
        "What one run has satisfied on its way is what runs to these capacities satisfy",
        ClaimedQuantity("subscribers that those satisfy beyond it, at most", "", _ahead),
        Target("none", 0.0, 0.0),
        REASONS["progress"],
    )
    yield Claim(
        "fig-1",
        "VII.B",
        "At τ = 27 about 72 % of all subscribers are satisfied (3.5 million)",
        replace(metric_value("satisfied_at_capacity", B3M, "τ = 27"), unit=" %"),
        near(72, 2, " %"),
        REASONS["share"],
    )
    yield Claim(
        "fig-1",
        "VII.B",
        "At τ = 27 the bound is 86 % (4.2 million)",
        replace(metric_value("satisfied_at_capacity", BOUND, "τ = 27"), unit=" %"),
        near(86, 2, " %"),
        REASONS["share"],
    )


def _ratios() -> Iterator[Claim]:
    for tau, ratio in RATIOS.items():
        statement = f"GreedyB3M comes to {ratio:g} of the bound at τ = {tau}"
        found = metric_value("ratio", B3M, f"τ = {tau:,}")
        yield Claim("fig-3", "VII.B, fig. 3", statement, found, near(ratio, TOLERANCE), REASONS["ratio"])
    found = metric_value("ratio", FB3M, "τ = 2,763")
    statement = "ModifiedGreedyFB3M comes to 0.9 of its bound at τ = 2763"
    yield Claim("fig-3", "VII.C, fig. 3", statement, found, near(0.9, TOLERANCE), REASONS["ratio"])
    for place, variant in (("VII.B, fig. 3", B3M), ("VII.C, fig. 2", FB3M)):
        for word, target, first, last in (("drops", FALLS, 2, 276), ("rises", RISES, 276, 2763)):
            statement = f"The ratio of {variant} {word} from τ = {first} to {last}"
            yield Claim(
                "fig-3", place, statement, change("ratio", variant, "tau", first, last), target, REASONS["pattern"]
            )
    yield Claim(
        "fig-3",
        "VII.C, fig. 2",
        "ModifiedGreedyFB3M is much closer to its bound than GreedyB3M",
        ClaimedQuantity("ratio of the one minus ratio of the other, mean over τ", "", _closer),
        MORE,
        REASONS["closer"],
    )
    for variant, ratio in ((B3M, 0.82), (FB3M, 0.9)):
        statement = f"{variant} comes to {ratio:g} of the bound at best"
        yield Claim(
            "fig-3", "abstract", statement, largest("ratio", [variant]), near(ratio, TOLERANCE), REASONS["abstract"]
        )
    yield Claim(
        "fig-3",
        "VI.3, VII.C",
        "ModifiedGreedyFB3M is significantly better than its guarantee",
        ClaimedQuantity("least value / best proven bound, of all τ", "", _least_proven),
        at_least(round((1 - 1 / math.e) / 2, 3)),
        REASONS["guarantee"],
    )


def _times() -> Iterator[Claim]:
    for variant, seconds in ((FB3M, LESS_THAN), (B3M, AT_MOST)):
        what = "less than 20 s for all τ" if variant == FB3M else "33 s at most (printed of ModifiedGreedyFB3M)"
        yield Claim(
            "fig-4a",
            "VII.C, fig. 4",
            f"{variant} takes {what}",
            _at_full_size(largest("seconds", [variant])),
            at_most(seconds, 0, " s"),
            REASONS["time"],
        )
    yield Claim(
        "fig-4a",
        "VII.C, fig. 4",
        "It takes longest at τ = 276",
        _at_full_size(ClaimedQuantity("CPU time of GreedyB3M at τ = 276, of the longest", "", _longest)),
        Target("the longest", 1.0, 1.0),
        REASONS["time"],
    )
    yield Claim(
        "fig-4a",
        "abstract",
        "Under 30 s in most of the experiments",
        _at_full_size(ClaimedQuantity("decisions of both under 30 s", " %", _under_30)),
        at_least(50, " %"),
        REASONS["time"],
    )
    yield Claim(
        "fig-4b",
        "VII.C, fig. 4",
        "ModifiedGreedyFB3M outperforms ModifiedGreedyFB3MSlow",
        ClaimedQuantity("CPU time of the slow one, of the other's, the least of all τ", "", _times_as_long),
        at_least(1),
        REASONS["slow"],
    )


def _at_full_size(quantity: ClaimedQuantity) -> ClaimedQuantity:
    """A number that there is at full size alone."""
    return replace(quantity, of=lambda runs: quantity.of(runs[runs["scale"] == 1]))


def _by_tau(runs: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    """A row per replication, a column per threshold, of the whole capacity."""
    chosen = runs[(runs["variant"] == variant) & runs[metric].notna()]
    table: pd.DataFrame = chosen.pivot_table(index="replication", columns="tau", values=metric)
    return table


def _growing(runs: pd.DataFrame) -> pd.Series:
    chosen = runs[runs["variant"] == f"{B3M}, one run"].sort_values("capacity")
    steps = chosen["gap"].groupby([chosen["replication"], chosen["tau"]]).diff().dropna()
    return 100 * (steps > 0).groupby(chosen["replication"]).mean()


def _ahead(runs: pd.DataFrame) -> pd.Series:
    return runs[runs["variant"] == B3M].groupby("replication")["ahead"].max()


def _closer(runs: pd.DataFrame) -> pd.Series:
    return (_by_tau(runs, "ratio", FB3M) - _by_tau(runs, "ratio", B3M)).mean(axis=1)


def _least_proven(runs: pd.DataFrame) -> pd.Series:
    return _by_tau(runs, "proven", FB3M).min(axis=1)


def _longest(runs: pd.DataFrame) -> pd.Series:
    seconds = _by_tau(runs, "seconds", B3M)
    return seconds[276] / seconds.max(axis=1) if 276 in seconds else NOTHING


def _under_30(runs: pd.DataFrame) -> pd.Series:
    decided = runs[runs["variant"].isin((B3M, FB3M)) & runs["seconds"].notna()]
    return 100 * (decided["seconds"] < 30).groupby(decided["replication"]).mean()


def _times_as_long(runs: pd.DataFrame) -> pd.Series:
    return runs[runs["variant"] == SLOW].groupby("replication")["times"].min()


GREEDY_TESTS, BOUND_TESTS = "tests/policies/test_offloading_greedy.py", "tests/policies/test_offloading_bounds.py"
PAPER_TESTS = "tests/papers/test_ods_paper.py"
MISPRINTS = (
    Misprint(
        "V.B, algorithm 3",
        "while V ≠ ∅, and only a subscriber that fits is removed from V",
        "Never ends once one does not fit. Costs are sorted, so that is the end.",
        f"{GREEDY_TESTS}::test_algorithm_3_as_printed_never_ends_once_a_subscriber_does_not_fit",
    ),
    Misprint(
        "VI.A, algorithm 5, line 11",
        "argmax over the topics that are left",
        "When the last one is taken there are none.",
        f"{GREEDY_TESTS}::test_algorithm_5_as_printed_looks_for_the_highest_of_no_topics",
    ),
    Misprint(
        "VI.A, algorithm 5, line 4",
        "Goes on while there are topics",
        "Keeps topics that gain nothing; algorithm 2 stops there.",
        f"{GREEDY_TESTS}::test_algorithm_5_as_printed_keeps_what_is_worth_nothing",
    ),
    Misprint(
        "VI.A, algorithm 5, lines 7 to 13",
        "Values are computed anew after a topic that fits only",
        "After one that does not fit the next is taken by its old value, which may be too high.",
        f"{GREEDY_TESTS}::test_algorithm_5_as_printed_believes_old_values_after_a_topic_that_does_not_fit",
    ),
    Misprint(
        "VI.A, algorithm 5, line 13",
        "until A[t'] = A[t]",
        "Two topics may be worth the same while a third on top is still to be computed: it must be the same topic.",
        f"{GREEDY_TESTS}::test_algorithm_5_as_printed_stops_as_two_topics_are_worth_the_same",
    ),
    Misprint(
        "Appendix C",
        "Lines 9 to 12 update the top of the heap in GreedyB3M, too",
        "Its scores are not submodular, they rise as subscribers come closer to what they need: that is silently wrong.",
        f"{GREEDY_TESTS}::test_a_rise_can_decide",
    ),
    Misprint(
        "V.B",
        "The number of updates is bounded by max |V_t ∩ V_t'|",
        "By the number of topics that share a subscriber: one subscriber of four topics makes three.",
        f"{PAPER_TESTS}::test_one_common_subscriber_makes_many_updates",
    ),
    Misprint(
        "VI.B, theorem VI.4",
        "The bound of B3M + 1",
        "What is left of the capacity pays for a part of the next subscriber, and for no more.",
        f"{BOUND_TESTS}::test_what_is_left_pays_for_a_part_where_the_theorem_adds_one",
    ),
    Misprint(
        "VII.B",
        "The intermediate results of a run are those of runs that stop at these capacities",
        "Up to the first topic that does not fit the smaller one, where that run goes on with others.",
        f"{PAPER_TESTS}::test_progress_of_one_run_is_less_than_a_run_of_its_own",
    ),
    Misprint(
        "VII.C",
        "ModifiedGreedyFB3M takes a maximum of 33 s",
        "It takes less than 20 s for all τ one sentence before; we read GreedyB3M.",
        f"{PAPER_TESTS}::test_what_the_paper_says_twice",
    ),
    Misprint(
        "abstract",
        "Up to 0.82 for B3M",
        "That is at τ = 2763; figure 3 has 0.87 at τ = 2.",
        f"{PAPER_TESTS}::test_what_the_paper_says_twice",
    ),
)
