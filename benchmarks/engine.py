"""The compiled engine, compared with the plane on which SimPy makes all hops, on networks of three sizes, and with other simulators."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks import queues
from benchmarks.measure import Figure, alternate, cpu_seconds
from benchmarks.networks import Plane, loaded, relay

ROUNDS = 3
PUBLICATIONS = 200_000
SIZES = {200: (100, 60, 60_000, 3e6), 1_000: (200, 200, 30_000, 2e6), 10_000: (1_000, 200, 30_000, 1e6)}
"""By number of brokers: topics, brokers that want each, publications, and the least hops/s."""
MESSAGES = {1: 2_000_000, 10: 200_000}
"""By fan-out: messages."""


@dataclass(frozen=True)
class Rival:
    """A simulator of queues: its constructor, its name, and the factor by which its work is reduced."""

    make: Callable[[int, int], Callable[[], float]]
    name: str
    share: int
    fan_outs: tuple[int, ...]
    bar: float | None


RIVALS = (
    Rival(queues.simpy_callbacks, "SimPy, callbacks", 10, (1, 10), 15.0),
    Rival(queues.cimba, "cimba", 1, (1,), 1.0),
    Rival(queues.ciw, "ciw", 200, (1,), None),
    Rival(queues.salabim, "salabim", 400, (1,), None),
)


def _relayed(plane: Plane, publications: int) -> float:
    """Deliveries/s on the relay whose brokers take time."""
    network = relay(200, 6, publications, plane, service=0.001)
    seconds = cpu_seconds(network.run)
    assert network.metrics()["delivered"] == publications
    return publications / seconds


def _hops_per_second(brokers: int) -> float:
    """Hops/s once all users have joined; brokers have half load, or as much as the busiest can bear."""
    topics, wanting, publications, _ = SIZES[brokers]
    network = loaded(brokers, topics, wanting, publications)
    marks: list[float] = []
    network.run(lambda _: marks.append(time.process_time()))
    seconds = time.process_time() - marks[0]  # the first mark is set when all users have joined
    metrics = network.metrics()
    hops = metrics["notification_overhead"] + metrics["uplink_messages"]  # type: ignore[operator]
    return float(hops) / seconds


def _per_second(make: Callable[[int, int], Callable[[], float]], messages: int, fan_out: int) -> float:
    """Copies served per second of CPU; the mean time from arrival to the end of service must agree with theory."""
    run = make(messages, fan_out)
    means: list[float] = []
    seconds = cpu_seconds(lambda: means.append(run()))
    assert abs(means[0] / queues.SOJOURN - 1) < 0.25, means
    return messages * fan_out / seconds


def figures() -> list[Figure]:
    """Rates and ratios, measured in alternation. Rivals that are not installed are left out with a note."""
    # Compiles the kernels; Cimba's before ours, since it does not find its own types after others have been compiled.
    for rival in (*(rival.make for rival in RIVALS if _is_there(rival)), queues.brokersim):
        _per_second(rival, 5_000, 1)
    for plane in ("events", "compiled"):
        _relayed(plane, 100)
    return [*_beside_events(), *_by_size(), *(figure for rival in RIVALS for figure in _beside(rival))]


def _beside_events() -> list[Figure]:
    compiled, events, ratio = alternate(
        lambda: _relayed("compiled", PUBLICATIONS), lambda: _relayed("events", PUBLICATIONS // 100), ROUNDS
    )
    text = f"{ratio:.1f} × ({6 * compiled:,.0f} hops/s against {6 * events:,.0f})"
    return [
        Figure("compiled engine beside events, 6-hop relay, 200 brokers that take time", text, "≥ 60 ×", ratio >= 60)
    ]


def _by_size() -> list[Figure]:
    found = []
    for brokers, (topics, wanting, _, bar) in SIZES.items():
        rate = median(_hops_per_second(brokers) for _ in range(ROUNDS))
        name = (
            f"compiled engine, {brokers:,} brokers that take time, {topics:,} topics wanted by {wanting} each: hops/s"
        )
        found.append(Figure(name, f"{rate:,.0f}", f"≥ {bar:,.0f}", rate >= bar))
    return found


def _is_there(rival: Rival) -> bool:
    return importlib.util.find_spec(rival.make.__name__.split("_")[0]) is not None


def _beside(rival: Rival) -> list[Figure]:
    found = []
    for fan_out in rival.fan_outs:
        name = f"M/M/1, fan-out of {fan_out}, beside {rival.name}: copies served"
        bar = "—" if rival.bar is None else f"≥ {rival.bar:g} ×"
        if not _is_there(rival):
            found.append(Figure(name, "not measured: pip install brokersim[engines]", bar, None))
            continue
        messages = MESSAGES[fan_out]
        ours, others, ratio = alternate(
            lambda messages=messages, fan_out=fan_out: _per_second(queues.brokersim, messages, fan_out),  # type: ignore[misc]
            lambda messages=messages, fan_out=fan_out: _per_second(rival.make, messages // rival.share, fan_out),  # type: ignore[misc]
            ROUNDS,
        )
        text = f"{ratio:.1f} × ({ours:,.0f}/s against {others:,.0f}/s)"
        found.append(Figure(name, text, bar, rival.bar is None or ratio >= rival.bar))
    return found
