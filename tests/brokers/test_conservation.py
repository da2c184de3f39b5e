"""Every due pair is counted where it becomes due and again where it ends: a miscount on either side fails the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tiny

from sim.brokers import record_kernels as rk
from sim.brokers.messages import Message
from sim.brokers.network import Network
from sim.errors import ConservationError


def network() -> Network:
    """
    0 ── 1 ── 2 ── 3     root 1, publisher at 0, subscribers at 2 and 3; some publications are still up or down at the end
         R    S    S
    """
    world = tiny.workload([set(), {0}, {0}], [(0.4 * n, 0, 0, 1) for n in range(25)])
    return tiny.network(world, tiny.graph([(0, 1), (1, 2), (2, 3)], [1]), [0, 2, 3], warm_up=3.0)


def at(share: float, act: Callable[[], Any]) -> Callable[[float], None]:
    """Progress that does something once, when a share of the time has passed."""
    return lambda passed: act() if passed == share else None


def test_nothing_is_amiss_where_nobody_meddles() -> None:
    quiet = network()
    quiet.run()
    metrics = quiet.metrics()
    assert metrics["due"] == metrics["delivered"] + metrics["lost"] + metrics["in_flight"]
    assert min(metrics["delivered"], metrics["in_flight"]) > 0


@pytest.mark.parametrize(
    ("counter", "complaint"),
    [
        ("published", "publications were published"),
        ("rooted", "publications were published"),
        ("dropped", "publications were published"),
        ("climbing", "publications were published"),
        ("due", "notifications were due to brokers"),
        ("in_flight", "notifications were due to brokers"),
        ("due_users", "notifications were due to users"),
        ("lost_users", "notifications were due to users"),
        ("in_flight_users", "notifications were due to users"),
    ],
)
@pytest.mark.parametrize("by", [-1, 1])
def test_a_counter_that_is_off_by_one_fails_the_run(counter: str, complaint: str, by: int) -> None:
    tampered = network()

    def tamper() -> None:
        getattr(tampered.recorder, counter)[0] += by

    with pytest.raises(ConservationError, match=f"window 0: .*{complaint}"):
        tampered.run(at(1.0, tamper))


@pytest.mark.parametrize("cause", ["joining", "queue_full"])
def test_a_loss_that_did_not_happen_fails_the_run(cause: str) -> None:
    tampered = network()

    def tamper() -> None:
        tampered.recorder.lost[cause][-1] += 1

    with pytest.raises(ConservationError, match=r"due to brokers"):
        tampered.run(at(1.0, tamper))


@pytest.mark.parametrize("column", [rk.DELIVERED, rk.DELIVERED_USERS])
def test_a_delivery_that_did_not_happen_fails_the_run(column: int) -> None:
    tampered = network()

    def tamper() -> None:
        tampered.recorder._counters[0, column] += 1

    with pytest.raises(ConservationError):
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
