"""Tiny networks in which copies are sent again until they are acknowledged, against the oracle."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from oracles.guarantees import Network
from test_against_oracle import Case, compare, random_delivery, reproducible
from test_faults_against_oracle import faulted


@st.composite
def guaranteed(draw: st.DrawFn, **fixed: Any) -> Case:
    """Any case in which something may fail and nothing is flooded, with a guarantee."""
    case: Case = draw(faulted(**fixed))
    rng = random.Random(f"delivery {case.seed}")
    case.dissemination, case.hops, case.delivery = "tree", None, random_delivery(rng)
    return case


def test_simulator_and_oracle_agree_on_what_is_sent_again() -> None:
    tally: Counter[str] = Counter()

    @reproducible(60)
    @given(guaranteed())
    def run(case: Case) -> None:
        truth = compare(case)
        assert isinstance(truth, Network)
        tally["cases"] += 1
        tally.update(name for name, often in truth.seen.items() if often)
        tally.update(set(truth.lost.values()))

    run()
    assert min(tally[what] for what in OFTEN) >= tally["cases"] / 5, tally
    assert min(tally[what] for what in RARELY) >= tally["cases"] / 20, tally


OFTEN = (
    "copies lost, crashed",
    "copies lost, partitioned",
    "copies lost, queue_full",
    "acknowledgements before a cut",
    "sent again after a restart",
    "expired",
)
RARELY = "copies lost, link", "acknowledgements lost by a link", "crashed", "joining"
