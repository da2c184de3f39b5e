"""One run: build the network of a scenario, simulate it with a workload, and return the recorded results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

# Any: positions are whatever a geometry has.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim import plugins
from sim.base.arrays import Columns, frozen
from sim.base.errors import ScenarioError, WorkloadError
from sim.base.memory import need
from sim.base.randomness import Streams
from sim.base.validation import dotted
from sim.brokers.control.healing import HealingSetting
from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.control.offloading import OffloadingSetting
from sim.brokers.fabric.delivery import DeliverySetting
from sim.brokers.fabric.stations import StationSetting
from sim.brokers.fabric.transmission import LinkSetting
from sim.brokers.network import Network, NetworkSetting
from sim.brokers.users.leg_distances import DistanceSetting
from sim.brokers.users.legs import ClientSetting, QualitySetting, SessionSetting, Speed
from sim.brokers.users.reconnect import ReconnectSetting
from sim.files.inputs import File
from sim.files.parquet import strings
from sim.metrics import MetricValue
from sim.overlay.geometry import Dissemination, GeometrySetting
from sim.overlay.latency import LatencyModel, LatencySetting
from sim.overlay.pair_times import PairTimes
from sim.overlay.promises import GeometryPromises, LatencyPromises
from sim.overlay.sites import Sites
from sim.own_metrics import Tables, compute
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.promises import OffloadingPromises, ReconfigurationPromises, SelectionPromises
from sim.policies.reconfiguration.problem import ReconfigurationPolicy
from sim.policies.reconfiguration.process import ProcessParameters
from sim.policies.views import SelectionPolicy, SelectionSetting
from sim.scenario.brokers import Brokers
from sim.scenario.fitting import NOT_SLOW, Once, each_time, misfits, overlay_misfits, unplaced
from sim.scenario.links import LinksTable
from sim.scenario.model import NetworkTable, Scenario, Unlimited
from sim.scenario.qos import QosTable, with_qos
from sim.scenario.sessions import SessionsTable, with_sessions
from sim.workloads.faults.fault import Fault, FaultModel, FaultSetting, Slowdown
from sim.workloads.faults.promises import FaultPromises
from sim.workloads.faults.schedule import FaultSchedule, impossible, resolve_faults
from sim.workloads.format.traits import Traits, traits_of
from sim.workloads.format.workload import Topics, Users, Workload
from sim.workloads.models.live_filters import with_topics_of_filters
from sim.workloads.models.location import redrawn
from sim.workloads.promises import Generator, WorkloadPromises

BYTES_PER_PAIR = 16
"""Bytes per pair of brokers where something is kept of all: times that are given as a matrix, and routes."""
BYTES_PER_BROKER = 8_000
"""Bytes per broker: what it is, does and knows of others."""
BYTES_PER_TOPIC = 17
"""Bytes per broker and topic: the users that want it, the broker's place in the topic's tree, and the routes from and to its root."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The results of one run: scalar metrics by name (None where undefined), and tables as columns (docs/formats.md).

    `notes` are sentences about the network for the user.
    """

    metrics: dict[str, MetricValue]
    tables: dict[str, Columns]
    notes: tuple[str, ...] = ()


def prepare_workload(scenario: Scenario, replication: int, base: Workload | None) -> Workload:
    """The workload of one replication: newly generated, or the prepared `base`.

    If the scenario asks for it, friends of a prepared workload are redrawn in each replication after the first, users in all.
    Subscriptions to filters are then those to topics, as these appear.
    """
    streams = Streams(scenario.seed, replication)
    table = scenario.workload
    if base is None:
        generator: Generator = plugins.make(WorkloadPromises, table.kind, table.parameters)
        return with_topics_of_filters(generator.generate(streams))
    return with_topics_of_filters(
        redrawn(base, streams, table.resample_users) if replication or table.resample_users else base
    )


def broker_sites(scenario: Scenario, workload: Workload) -> tuple[Sites, float | None]:
    """Where all brokers stand, and the cells' side (degrees) where brokers are cells."""
    topics = workload.topics
    cells = np.flatnonzero(~np.isnan(topics.latitude))
    wanted = scenario.network.brokers
    if isinstance(wanted, File):
        return wanted.content, None
    if wanted == "cells":
        return _at_cells(topics, cells), workload.cell
    if not len(cells):
        return unplaced(wanted), None
    if wanted > len(cells):
        raise ScenarioError(
            f"network.brokers: {wanted} brokers, but the workload has only {len(cells)} cells (allowed: 1 to {len(cells)})"
        )
    published = workload.published()[cells]
    return _at_cells(topics, np.sort(cells[np.lexsort((cells, -published))[:wanted]])), None


def _at_cells(topics: Topics, cells: NDArray[np.int64]) -> Sites:
    names = tuple(topics.names[cell].as_py() for cell in cells.tolist())
    return Sites(names, frozen(topics.latitude[cells]), frozen(topics.longitude[cells]))


def _check(scenario: Scenario, workload: Workload) -> float:
    """The horizon (s), once it is known that scenario and workload fit."""
    if not len(workload.topics):
        raise WorkloadError("topics.parquet: no topics, so there is nothing to simulate")
    _check_size(scenario, workload)
    check_fit(scenario, workload.horizon, traits_of(workload))
    return scenario.horizon if scenario.horizon is not None else workload.horizon


def check_fit(scenario: Scenario, horizon: float, traits: Traits, once: Once = each_time) -> None:
    """Raise ScenarioError where a scenario does not fit a workload with a horizon (s) and traits, before a network is built."""
    for keys, text in scenario.steps_wrong(horizon if scenario.horizon is None else scenario.horizon):
        raise ScenarioError(f"{dotted(keys)}: {text}")
    for sentence in misfits(scenario, traits, once):
        raise ScenarioError(sentence)


def build(scenario: Scenario, workload: Workload, replication: int) -> Network:
    """Build the network of one run, before any user has joined.

    Raises ScenarioError where scenario and workload do not fit, WorkloadError where the workload has no topics.
    """
    horizon, streams = _check(scenario, workload), Streams(scenario.seed, replication)
    workload = with_sessions(scenario.network.sessions, workload, streams, horizon)
    workload, publishing = with_qos(scenario.network.qos, workload, streams, horizon)
    sites, cell = broker_sites(scenario, workload)
    brokers = len(sites)
    capacity = frozen(np.ones(brokers)) if sites.capacity is None else sites.capacity
    geometry, latency, selection = scenario.network.geometry, scenario.network.latency, scenario.selection
    times: LatencyModel = plugins.make(
        LatencyPromises, latency.kind, latency.parameters, LatencySetting(sites, streams.key("latency"))
    )
    round_trips = PairTimes.of(times.round_trips)
    overlay: Dissemination = plugins.make(
        GeometryPromises,
        geometry.kind,
        geometry.parameters,
        GeometrySetting(
            brokers,
            len(workload.topics),
            streams.key("geometry"),
            sites,
            round_trips,
            np.stack([workload.topics.latitude, workload.topics.longitude], 1),
        ),
    )
    faults = _faults(scenario, sites, streams, horizon)
    for sentence in overlay_misfits(scenario, overlay, False, faults is not None and faults.changes_members):
        raise ScenarioError(sentence)
    round_trips = PairTimes.of(round_trips if overlay.round_trips is None else overlay.round_trips)
    policy: SelectionPolicy = plugins.make(
        SelectionPromises,
        selection.kind,
        selection.parameters,
        SelectionSetting(
            len(workload.users), sites.latitude, sites.longitude, cell, streams.key("selection"), capacity
        ),
    )
    node_of = (
        np.arange(brokers) if overlay.nodes_are_brokers else streams.generator("configuration").permutation(brokers)
    )
    setting = NetworkSetting(
        overlay=overlay,
        node_of=node_of.astype(np.int32),
        hop_delay=round_trips if scenario.network.hop_cost == "rtt" else round_trips.times(0.5),
        jitter=times.jitter,
        policy=policy,
        horizon=horizon,
        warm_up=scenario.warm_up,
        window=scenario.window,
        join=scenario.network.join,
        control_count=scenario.network.control_count,
        stations=_stations(scenario.brokers),
        links=_links(scenario.network.links),
        clients=_clients(scenario.network, sites, workload.users),
        sessions=_sessions(scenario.network),
        quality=_quality(scenario.network.qos),
        publishing=publishing,
        trace=float(scenario.trace),
        subscribers=scenario.subscribers,
        topic_delays=scenario.topic_delays,
        plane=scenario.network.data_plane,
        capacity=capacity,
        regions=None if sites.regions is None else np.unique(sites.regions, return_inverse=True)[1],
        reconfiguration=_reconfiguration(scenario, streams.key("reconfiguration")),
        offloading=_offloading(scenario, streams.key("offloading")),
        faults=faults,
        reconnect=ReconnectSetting(
            **dict(scenario.network.reconnect), connection_rate=scenario.brokers.connection_rate
        ),
        delivery=DeliverySetting(**dict(scenario.network.delivery)),
        healing=_healing(scenario, faults),
        sharing=scenario.network.sharing_policy(workload, brokers, streams.key("sharing")),
        notes=(*times.notes, *scenario.network.unused(workload)),
    )
    return Network(setting, workload, streams)


def _faults(scenario: Scenario, sites: Sites, streams: Streams, horizon: float) -> FaultSchedule | None:
    """What fails when, None where nothing can. Raises ScenarioError where the network does not have what is to fail."""
    if not scenario.faults:
        return None
    found: list[Sequence[Fault]] = []
    for place, table in enumerate(scenario.faults):
        model: FaultModel = plugins.make(FaultPromises, table.kind, table.parameters)
        setting = FaultSetting(sites.names, sites.regions, horizon, streams.key(f"faults/{place}"))
        try:
            found.append(model.faults(setting))
        except ScenarioError as error:
            raise ScenarioError(f"faults[{place}]: {error}") from None
    everything = list(chain(*found))
    if scenario.brokers.service.kind == "none" and any(isinstance(fault, Slowdown) for fault in everything):
        raise ScenarioError(NOT_SLOW)
    if wrong := impossible(found, sites.names):
        raise ScenarioError(f"faults[{wrong[0]}]: {wrong[1]}")
    return resolve_faults(everything, len(sites), horizon, scenario.network.links.loss)


def _healing(scenario: Scenario, faults: FaultSchedule | None) -> HealingSetting | None:
    """How the overlay heals, or lets brokers leave and join; None where neither happens."""
    table, planned = scenario.network.healing, faults is not None and faults.changes_members
    if table.period is None and not planned:
        return None
    return HealingSetting(math.inf if table.period is None else table.period, table.convergence)


def _stations(brokers: Brokers) -> StationSetting:
    service = {key: value for key, value in brokers.service if key not in ("kind", "preset", "file")}
    queueing = {key: value for key, value in brokers if key not in ("service", "connection_rate")}
    measured = ((), ()) if brokers.service.file is None else brokers.service.file.content
    return StationSetting(brokers.service.kind, **service, histogram=measured, **queueing)


def _links(table: LinksTable) -> LinkSetting:
    """Rates in bytes per second."""
    rates = {name: _bytes_per_second(getattr(table, name)) for name in ("bandwidth", "interface")}
    return LinkSetting(**rates, loss=table.loss, buffer=table.buffer, buffer_bytes=table.buffer_bytes)


def _clients(network: NetworkTable, sites: Sites, users: Users) -> ClientSetting:
    """The legs to users, with rates in bytes per second."""
    if network.clients.per_km and (nowhere := np.flatnonzero(np.isnan(users.latitude))).size:
        name = users.names[int(nowhere[0])].as_py()
        raise ScenarioError(
            f"network.clients.per_km: user '{name}' has no place (allowed: a place for each user, or 0)"
        )
    table, slow = network.clients, network.clients.slow
    speed = Speed(table.latency, _bytes_per_second(table.rate), table.window)
    slower = Speed(
        speed.latency if slow.latency is None else slow.latency,
        speed.rate if slow.rate is None else _bytes_per_second(slow.rate),
        speed.window if slow.window is None else slow.window,
    )
    shared = {
        name: getattr(table, name) for name in ("jitter", "buffer", "buffer_bytes", "overflow", "reconnect_after")
    }
    distance = DistanceSetting(table.per_km, sites.latitude, sites.longitude) if table.per_km else None
    return ClientSetting(speed, slow.share, slow.first, slower, **shared, until=network.delay_until, distance=distance)


def _sessions(network: NetworkTable) -> SessionSetting:
    """What may wait in sessions, which outlive a crash of their broker if that stores what it has to deliver."""
    limits = ("queue", "queue_bytes", "max_age", "overflow", "rate", "qos_0")
    table, stored = network.sessions, network.delivery.store == "persistent"
    survive = stored and table.persistent and table != SessionsTable()
    return SessionSetting(**{name: getattr(table, name) for name in limits}, survive=survive)


def _quality(table: QosTable | None) -> QualitySetting | None:
    """How messages go to users by quality of service."""
    if table is None:
        return None
    return QualitySetting(table.subscriptions, table.loss, math.inf if table.timeout is None else table.timeout)


def _bytes_per_second(rate: float | None) -> float | None:
    """A rate in bytes per second."""
    return None if rate is None else rate / 8.0


def _check_size(scenario: Scenario, workload: Workload) -> None:
    """Raise InputError where the network needs more memory than is available."""
    wanted, topics = scenario.network.brokers, len(workload.topics)
    if wanted == "cells":
        brokers = int(np.count_nonzero(~np.isnan(workload.topics.latitude)))
    else:
        brokers = len(wanted.content) if isinstance(wanted, File) else wanted
    network = scenario.network
    times_given = not plugins.are_ours(plugins.load("latency", network.latency.kind))
    pairs = brokers if times_given or network.geometry.kind == "graph" or scenario.reconfiguration.kind != "none" else 0
    size = float(brokers) * (BYTES_PER_BROKER + BYTES_PER_PAIR * pairs + BYTES_PER_TOPIC * topics)
    need(size, f"network.brokers: {brokers:,} brokers and {topics:,} topics")


def _reconfiguration(scenario: Scenario, key: int) -> ReconfigurationSetting | None:
    """The reconfiguration process, which moves brokers to other nodes."""
    kind, parameters = scenario.reconfiguration.kind, scenario.reconfiguration.parameters
    if kind == "none":
        return None
    policy: ReconfigurationPolicy = plugins.make(ReconfigurationPromises, kind, parameters)
    assert isinstance(parameters, ProcessParameters)
    return ReconfigurationSetting(policy, parameters, key)


def _offloading(scenario: Scenario, key: int) -> OffloadingSetting | None:
    """The offloading process, which decides the topics that the back end keeps."""
    kind, parameters = scenario.offloading.kind, scenario.offloading.parameters
    policy = None
    if isinstance(parameters, Unlimited):
        if parameters.tau is None:
            return None
        chosen = OffloadingParameters(tau=parameters.tau, period=parameters.period)
    else:
        policy = plugins.make(OffloadingPromises, kind, parameters)
        assert isinstance(parameters, OffloadingParameters)
        chosen = parameters
    return OffloadingSetting(policy, chosen, key)


def simulate(
    scenario: Scenario, workload: Workload, replication: int, progress: Callable[[float], None] | None = None
) -> RunRecord:
    """Run one variant on the workload of one replication; `progress` is called repeatedly with the share of simulated time."""
    network = build(scenario, workload, replication)
    network.run(progress)
    tables = network.tables()
    sites, _ = broker_sites(scenario, workload)
    positions = network.setting.overlay.positions
    place: Any = [None] * len(sites) if positions is None else positions[network.node_of]
    tables["brokers"] |= {
        "name": sites.names,
        "region": pa.nulls(len(sites), pa.string()) if sites.regions is None else strings(sites.regions),
        "capacity": network.capacity,
        "position": place,
        "latitude": sites.latitude,
        "longitude": sites.longitude,
    }
    if "trace" in tables:
        tables["trace"] |= {"topic": workload.publications.topic[tables["trace"]["publication"]]}
    topics = workload.topics.names
    tables["topics"] |= {"name": strings(topics[topic].as_py() for topic in tables["topics"]["topic"].tolist())}
    tables["tree"] = network.busiest_tree.columns(network.busiest_tree.topic())
    metrics, seen, columns = network.metrics(), Tables(dict(tables)), dict(tables["timeseries"])
    for own in scenario.metrics.tables:
        metrics[own.kind], column = compute(own.kind, own.parameters, seen)
        columns |= column
    return RunRecord(metrics, tables | {"timeseries": columns}, network.notes)
