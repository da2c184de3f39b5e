"""Tiny networks in which copies are sent again until they are acknowledged, against the oracle."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from oracles.faults import CRASH, CUT, DRAIN, MEND, RESTART
from oracles.guarantees import Network
from test_against_oracle import GRAIN, Case, compare, random_delivery, reproducible
from test_faults_against_oracle import cut_off, faulted, healed, outcome


@st.composite
def guaranteed(draw: st.DrawFn, **fixed: Any) -> Case:
    """Any case in which something may fail and heal, with a guarantee."""
    case: Case = draw(faulted(heals=True, **fixed))
    rng = random.Random(f"delivery {case.seed}")
    case.delivery = random_delivery(rng)
    if case.service[0] != "none":
        case.load = {**case.load, "acknowledgement": rng.choice((0.0, GRAIN / 4, GRAIN))}
    return case


def test_simulator_and_oracle_agree_on_what_is_sent_again() -> None:
    tally: Counter[str] = Counter()

    @reproducible(60)
    @given(guaranteed())
    def run(case: Case) -> None:
        truth = compare(case)
        assert isinstance(truth, Network)
        tally.update({"cases": 1, "floods": case.floods})
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
    "acknowledgements served",
)
RARELY = (
    *("copies lost, link", "acknowledgements lost by a link", "crashed", "joining", "detours up", "detours down"),
    *("copies of quality 0", "copies of quality 1", "copies of quality 2"),
)


TRIANGLE = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.5), (2, 3, 1.5), (0, 4, 1.0)]
KEEPS = {
    "guarantee": "at-least-once",
    "timeout": 4.0,
    "backoff": 1.0,
    "longest": 4.0,
    "attempts": None,
    "store": "persistent",
}


def dead_for_good(geometry: str, publications: list[Any], others: tuple[int, ...], **more: Any) -> Case:
    """Broker 0 crashes at 1.2 for good, and is routed around from the check at 2 on."""
    case = healed(geometry, publications, others, delivery=KEEPS, **more)
    return replace(case, faults={**case.faults, "rows": [(1.2, CRASH, 0, -1, 0.0)]})


def test_what_is_sent_again_goes_round_a_broker_that_is_dead_for_good() -> None:
    """A triangle with a tail: 1–0–2, 1–3–2 is slower, and 4 is behind 0.

    What is published at 1 comes to 0 at 2, in vain, and is sent again from 1 at 5: over 3 to 2, where it is at 8. To 4 there is no
    way: the copy waits at 1.
    """
    truth, found = outcome(dead_for_good("graph", [(1.0, 0, 0, 1)], (1, 2, 4), links=TRIANGLE))
    assert truth.delivered == {(0, 1): 1.0, (0, 2): 8.0}
    assert (found["lost"], found["in_flight"]) == (0, 1)
    assert found["retransmissions"] == 2


def test_what_waits_for_a_way_goes_on_once_there_is_one() -> None:
    """The same with 0 up again at 10: 1 looks for a way to 4 at 5, 9 and 13, and finds the one over 0."""
    case = dead_for_good("graph", [(1.0, 0, 0, 1)], (1, 4), links=TRIANGLE)
    truth, found = outcome(
        replace(case, faults={**case.faults, "rows": [(1.2, CRASH, 0, -1, 0.0), (10.0, RESTART, 0, -1, 0.0)]})
    )
    assert truth.delivered == {(0, 1): 1.0, (0, 4): 15.0}
    assert found["retransmissions"] == 2


def test_what_is_on_its_way_up_goes_to_the_present_root() -> None:
    """A star whose hub, 0, is dead when the publication comes to it: 1, where it was published, is the hub when it sends it again."""
    truth, found = outcome(dead_for_good("star", [(1.0, 0, 0, 1)], (2, 3)))
    assert truth.delivered == {(0, 2): 6.0, (0, 3): 6.0}
    assert (found["lost"], found["retransmissions"]) == (0, 0)


def test_what_is_sent_again_goes_round_a_cut_link() -> None:
    """What 1 publishes at 1.5 is lost on its way to the hub, 0, and goes by 2 at 5.5: to 0 at 7.5, and from there to 2."""
    truth, found = outcome(cut_off("star", [(1.5, 0, 0, 1)], others=(2,), delivery=KEEPS))
    assert truth.delivered == {(0, 2): 8.5}
    assert (found["lost"], found["retransmissions"]) == (0, 2)


def test_what_is_cut_off_by_all_links_waits_until_one_is_mended() -> None:
    """1 sends at 3 to 0, which is linked to nobody else, looks for another way at 7, and sends it at 11."""
    truth, found = outcome(cut_off("graph", [(3.0, 0, 0, 1)], others=(0,), links=[(0, 1, 1.0)], delivery=KEEPS))
    assert truth.delivered == {(0, 0): 12.0}
    assert found["lost"] == 0


def test_a_broker_that_leaves_stays_until_all_is_acknowledged() -> None:
    """In a mesh, 1 leaves at 1 with a grace of 1: it is routed around at 2, and would be gone at 3.

    But what its user has published at 0.5 is also for 0, the link to which is cut until 6: sent again at 4.5 and 8.5, it is there at
    9.5, which 1 knows at 10.5. It looks at 3, 7 and 11.
    """
    case = cut_off("full-mesh", [(0.5, 0, 0, 1)], others=(0, 2), delivery=KEEPS)
    rows = [(0.4, CUT, 0, 1, 0.0), (1.0, DRAIN, 0, -1, 0.0), (6.0, MEND, 0, 1, 0.0)]
    truth, found = outcome(
        replace(case, faults={**case.faults, "rows": rows, "drains": [((1,), None, 1.0, math.inf, True)]})
    )
    assert found["broker_departures"] == 1
    assert truth.delivered == {(0, 2): 1.5, (0, 0): 9.5}
    assert (found["lost"], found["in_flight"]) == (0, 0)
    assert truth.seen["brokers that stay until all is acknowledged"] == 2


def test_what_waits_for_a_broker_that_leaves_enters_at_the_next() -> None:
    """In a mesh, broker 1 crashes at 1 and leaves at 5, still down: what was to enter there from outside enters at broker 2 at 5."""
    case = healed("full-mesh", [(2.0, 0, -1, 1)] * 6, others=(0, 2), delivery=KEEPS)
    rows = [(1.0, CRASH, 1, -1, 0.0), (5.0, DRAIN, 0, -1, 0.0)]
    truth, found = outcome(
        replace(case, faults={**case.faults, "rows": rows, "drains": [((1,), None, 1.0, math.inf, True)]})
    )
    assert Counter(time for (_, broker), time in truth.delivered.items() if broker == 2)[5.0] == 1
    assert (found["delivered"], found["lost"], found["in_flight"]) == (12, 0, 0)


def test_what_a_client_keeps_comes_before_what_it_publishes_as_it_is_back() -> None:
    """A user is without a broker from 1.25 to 1.5, and keeps what it publishes at 1.375; each is served for 0.25."""
    case = healed("full-mesh", [(time, 0, 0, 1) for time in (1.375, 1.5, 1.5)], others=(2,), delivery=KEEPS)
    reconnect = {"detection": 0.25, "wait": 0.25, "same": False}
    rows = [(1.25, CRASH, 1, -1, 0.0), (10.0, RESTART, 1, -1, 0.0)]
    truth, _ = outcome(
        replace(
            case,
            service=("deterministic", 0.25),
            policy=("scripted", [1, 2, 0, 0, 0], ()),
            faults={**case.faults, **reconnect, "rows": rows},
        )
    )
    assert sorted(truth.delivered.values()) == [truth.delivered[number, 2] for number in range(3)]
