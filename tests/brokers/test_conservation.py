"""Every due pair is counted where it becomes due and again where it ends: a miscount on either side fails the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tiny

from sim.base.errors import ConservationError
from sim.brokers.fabric.messages import Message
from sim.brokers.network import Network
from sim.brokers.statistics.ledger import CLIMBING, DROPPED, PUBLISHED, ROOTED, ROWS


def network() -> Network:
    """
    0 ── 1 ── 2 ── 3     root 1, publisher at 0, subscribers at 2 and 3; some publications are still up or down at the end
         R    S    S
    """
    world = tiny.workload([set(), {0}, {0}], [(0.4 * n, 0, 0, 1) for n in range(25)])
    return tiny.network(world, tiny.graph([(0, 1), (1, 2), (2, 3)], [1]), [0, 2, 3], warm_up=3.0, plane="events")


def at(share: float, act: Callable[[], Any]) -> Callable[[float], None]:
    """Progress that does something once, when a share of the time has passed."""
    return lambda passed: act() if passed == share else None


def test_nothing_is_amiss_where_nobody_meddles() -> None:
    quiet = network()
    quiet.run()
    metrics = quiet.metrics()
    assert metrics["due"] == metrics["delivered"] + metrics["lost"] + metrics["in_flight"]
    assert min(metrics["delivered"], metrics["in_flight"]) > 0


@pytest.mark.parametrize("column", [PUBLISHED, ROOTED, DROPPED, CLIMBING])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_publication_too_many_or_too_few_fails_the_run(column: int, by: int) -> None:
    tampered = network()

    def tamper() -> None:
        tampered.recorder.ledger.publications[0, column] += by

    with pytest.raises(ConservationError, match=r"window 0: .*publications were published"):
        tampered.run(at(1.0, tamper))


@pytest.mark.parametrize("row", range(ROWS))
@pytest.mark.parametrize("whom", ["brokers", "users"])
@pytest.mark.parametrize("by", [-1, 1])
def test_an_outcome_that_is_off_by_one_fails_the_run(row: int, whom: str, by: int) -> None:
    tampered = network()

    def tamper() -> None:
        tampered.recorder.ledger.pairs[-1, row, ("brokers", "users").index(whom)] += by

    with pytest.raises(ConservationError, match=f"notifications were due to {whom}"):
        tampered.run(at(1.0, tamper))


@pytest.mark.parametrize(("on_tree", "complaint"), [(True, "due to brokers"), (False, "were published")])
def test_a_message_that_vanishes_from_a_link_fails_the_run(on_tree: bool, complaint: str) -> None:
    robbed = network()

    def steal() -> None:
        queue = robbed.clock._queue
        on_links = [entry for entry in queue if isinstance(entry[3], Message)]
        queue.remove(next(entry for entry in on_links if (entry[3].carries.tree is not None) == on_tree))
        queue.sort()

    with pytest.raises(ConservationError, match=complaint):
        robbed.run(at(0.5, steal))
