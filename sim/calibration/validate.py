"""A scenario's workload on a broker that runs and in the simulator, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import ScenarioError
from sim.calibration.accounting import pinned, times_of_process
from sim.calibration.calibrate import broker_version, check_clean, machine
from sim.calibration.load import LoadGenerator, LoadPlan, LoadRecord
from sim.calibration.mqtt import SMALLEST, MqttConnection, broker_address
from sim.calibration.options import MeasuringOptions
from sim.calibration.samples import busy_shares, clean
from sim.metrics import MetricValue
from sim.scenario.model import Scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.workload import Publications, SubscriptionEvents, Workload

MOST_CLIENTS = 900
"""The most connections; systems commonly allow a process 1,024 open files."""
_PUBLISHERS = 50  # connections of publishers at most
GRACE = 1.0
"""How long after the last publication deliveries still count, s."""
_LONGEST_GRACE = 1e6


@dataclass(frozen=True)
class AllowedDifferences:
    """By how much the simulated quantity may differ, as a share of the measured one."""

    median: float = 0.15
    p99: float = 0.25
    throughput: float = 0.2
    deliveries: float = 0.0
    losses: float = 0.0


@dataclass(frozen=True)
class ComparedQuantity:
    """A quantity, measured and simulated, by how much they may differ (relative; None: any), and in which unit they are."""

    name: str
    unit: str
    measured: float
    simulated: float
    allowed: float | None

    @property
    def difference(self) -> float:
        """By how much the simulated value is higher, as a share of the measured one; infinite where that alone is 0."""
        if self.measured == self.simulated:
            return 0.0
        return (self.simulated - self.measured) / self.measured if self.measured else math.inf

    @property
    def agrees(self) -> bool | None:
        """Whether the difference is allowed; None where any is."""
        return None if self.allowed is None else abs(self.difference) <= self.allowed


@dataclass(frozen=True)
class ValidatedScenario:
    """A scenario on a broker and in the simulator: the quantities compared, and about the measurement."""

    url: str
    broker: str
    machine: str
    title: str
    variant: str
    seconds: float
    publications: int
    clean: float
    client: float
    quantities: list[ComparedQuantity]
    delays: NDArray[np.float64]
    notes: Sequence[str]

    @property
    def agrees(self) -> bool:
        """Whether no quantity differs by more than allowed."""
        return all(one.agrees is not False for one in self.quantities)


def replayed(scenario: Scenario, base: Workload | None, options: MeasuringOptions) -> Workload:
    """The part of the workload that is replayed. Raises ScenarioError where it cannot be, or there is more than one broker."""
    if scenario.network.brokers != 1:
        raise ScenarioError(f"network.brokers: one URL is one broker, found {scenario.network.brokers!r} (allowed: 1)")
    if scenario.brokers.service.kind == "none":
        raise ScenarioError(
            "brokers.service: kind 'none' takes no time, so that there are no delays to compare (allowed: any other kind)"
        )
    if scenario.faults:
        raise ScenarioError("faults: a broker that runs is not made to fail (allowed: none)")
    world = prepare_workload(scenario, 0, base)
    if world.content is not None:
        raise ScenarioError(f"workload: MQTT has topics, but a {world.kind} workload has content (allowed: topics)")
    horizon = min(scenario.horizon or world.horizon, options.seconds)
    publications = world.publications.rows(world.publications.time < horizon)
    events = world.subscription_events.rows(world.subscription_events.time < horizon)
    world = replace(world, horizon=horizon, publications=publications, subscription_events=events)
    copies = copies_due(world)
    messages = len(copies) + int(copies.sum())
    clients = len(world.users) + _PUBLISHERS
    if not len(copies):
        raise ScenarioError(f"workload: no publication in the first {horizon:g} s (allowed with: --seconds)")
    if messages > options.messages:
        raise ScenarioError(
            f"workload: {messages:,} messages in the first {horizon:g} s (allowed: --messages {options.messages:,}, or fewer --seconds)"
        )
    if clients > MOST_CLIENTS:
        raise ScenarioError(
            f"workload: {len(world.users):,} users, each a connection (allowed: {MOST_CLIENTS - _PUBLISHERS})"
        )
    return world


def copies_due(world: Workload) -> NDArray[np.int64]:
    """To how many users each publication is due."""
    wanted = world.interests.per_topic(len(world.topics))
    events, topic = world.subscription_events, world.publications.topic
    due = wanted[topic]
    for place in range(len(events)):
        later = np.searchsorted(world.publications.time, events.time[place], "left")
        due[later:] += np.where(topic[later:] == events.topic[place], events.action[place], 0)
    return due


def validate_scenario(
    url: str,
    scenario: Scenario,
    world: Workload,
    named: tuple[str, str],
    allowed: AllowedDifferences,
    options: MeasuringOptions,
    progress: Callable[[str], None],
) -> ValidatedScenario:
    """Simulate what `replayed` gave, replay it on the broker, and compare; `named` are the titles of scenario and variant."""
    address = broker_address(url, options.remote)
    simulated = _simulated(scenario, world)
    times = None if options.pid is None else times_of_process(options.pid)
    try:
        with pinned(options.pid), LoadGenerator(address, times) as load:
            broker = broker_version(MqttConnection(address, f"{load.run_name}-v"))
            plan = _plan(world)
            wanted = np.split(world.interests.indices, world.interests.indptr[1:-1])
            progress(f"connecting {len(world.users):,} users")
            load.connect(
                int(plan.publisher.max()) + 1,
                [each.tolist() for each in wanted],
                len(world.topics),
            )
            progress(f"replaying {len(plan):,} publications in {world.horizon:g} s")
            record = load.run(plan)
    finally:
        if times is not None:
            times.close()
    counts = world.publications.time[: len(record.sent)] >= scenario.warm_up
    kept = clean(record) & counts
    check_clean(str(address), float(kept.sum() / max((counts & (record.last > 0)).sum(), 1)), int(kept.sum()))
    delays = np.repeat(record.delay[kept], record.copies[kept])
    notes = (
        [f"publications smaller than {SMALLEST} B are replayed with {SMALLEST} B"]
        if (world.publications.size < SMALLEST).any()
        else []
    )
    return ValidatedScenario(
        str(address),
        broker,
        machine(),
        *named,
        world.horizon,
        int(counts.sum()),
        float(kept.sum() / max(counts.sum(), 1)),
        busy_shares(record)[1],
        _compared(record, plan, counts, delays, simulated, (world.horizon, world.horizon - scenario.warm_up), allowed),
        delays,
        notes,
    )


def _plan(world: Workload) -> LoadPlan:
    publications: Publications = world.publications
    events: SubscriptionEvents = world.subscription_events
    changes = zip(
        events.time.tolist(), events.user.tolist(), events.topic.tolist(), (events.action > 0).tolist(), strict=True
    )
    return LoadPlan(
        publications.topic.astype(np.int64),
        np.maximum(publications.size, SMALLEST).astype(np.int64),
        copies_due(world),
        (np.maximum(publications.publisher, 0) % _PUBLISHERS).astype(np.int64),
        publications.time,
        changes=list(changes),
        patience=2.0,
    )


@dataclass(frozen=True)
class _Simulated:
    """The metrics shortly after the last publication, and the deliveries lost once nothing is in flight."""

    metrics: dict[str, MetricValue]
    delivered: int
    lost: int


def _simulated(scenario: Scenario, world: Workload) -> _Simulated:
    grace, first = GRACE, None
    while True:
        record = simulate(scenario.model_copy(update={"horizon": world.horizon + grace}), world, 0)
        series = record.tables["timeseries"]
        counts = ~np.asarray(series["warm_up"], bool)
        delivered, due = (int(np.sum(np.asarray(series[name])[counts])) for name in ("delivered_users", "due_users"))
        first = first or (record.metrics, delivered)
        if not record.metrics["in_flight"] or grace > _LONGEST_GRACE:
            return _Simulated(*first, due - delivered)
        grace *= 10


def _compared(
    record: LoadRecord,
    plan: LoadPlan,
    counts: NDArray[np.bool_],
    delays: NDArray[np.float64],
    simulated: _Simulated,
    spans: tuple[float, float],
    allowed: AllowedDifferences,
) -> list[ComparedQuantity]:
    """All quantities; `spans` are the workload's horizon and how long it is without the warm-up, s."""
    missing = int(np.maximum(plan.copies - record.copies, 0)[counts].sum())
    horizon, seconds = spans
    end = record.start + int((horizon + GRACE) * 1e9)
    in_time = int((counts[record.number] & (record.stamp <= end)).sum())
    found = [
        ComparedQuantity("deliveries", "count", in_time, simulated.delivered, allowed.deliveries),
        ComparedQuantity("losses", "count", missing, simulated.lost, allowed.losses),
        ComparedQuantity("throughput", "1/s", in_time / seconds, simulated.delivered / seconds, allowed.throughput),
    ]
    limits = {"p50": allowed.median, "p90": None, "p99": allowed.p99}
    for quantile, limit in limits.items():
        value = simulated.metrics[f"user_notification_delay_{quantile}"]
        name = "median delay" if quantile == "p50" else f"{quantile} of delays"
        share = int(quantile[1:]) / 100
        found.append(
            ComparedQuantity(
                name, "s", float(np.quantile(delays, share)), np.nan if value is None else float(value), limit
            )
        )
    return found
