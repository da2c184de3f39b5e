"""The whole network: brokers on an overlay, users attached to them, publications in transit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.randomness import Streams
from sim.brokers.control.courier import Courier
from sim.brokers.control.faults import Failing, FaultControl
from sim.brokers.control.healing import HealingControl, HealingSetting
from sim.brokers.control.manager import Manager, ReconfigurationSetting
from sim.brokers.control.offloaded_topics import OffloadedTopics
from sim.brokers.control.offloading import OffloadingService, OffloadingSetting, capacity_metrics
from sim.brokers.control.protocol import ReconfigurationProtocol
from sim.brokers.control.topic_trees import BusiestTree, TreeSteps
from sim.brokers.control.transition import Placement
from sim.brokers.control.trees import TreeControl
from sim.brokers.data.planes import Plane, engine_of
from sim.brokers.data.publishers import Publishers
from sim.brokers.fabric.clock import CONTROL, LOOKS, Clock, Feed
from sim.brokers.fabric.delivery import NO_GUARANTEE, DeliverySetting
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.link_windows import LinkWindows
from sim.brokers.fabric.links import Links
from sim.brokers.fabric.outages import Outages
from sim.brokers.fabric.service import ServiceTimes
from sim.brokers.fabric.stations import NO_TIME, StationSetting, stations
from sim.brokers.fabric.transmission import UNLIMITED, LinkSetting, Transmission
from sim.brokers.statistics.deliveries import DeliveryBuffer
from sim.brokers.statistics.hops import HopTrace
from sim.brokers.statistics.load import load_table
from sim.brokers.statistics.receipts import Audiences, Receipts
from sim.brokers.statistics.recorder import Details, Recorder
from sim.brokers.statistics.records import Channel
from sim.brokers.statistics.satisfaction import Satisfaction
from sim.brokers.statistics.traffic import BYTES_IN, BYTES_OUT, cross_region_bytes, link_table, traffic_columns
from sim.brokers.users.changes import Changes
from sim.brokers.users.legs import AT_ONCE, SESSIONS, ClientSetting, Legs, QualitySetting, SessionSetting
from sim.brokers.users.reconnect import RECONNECT, ReconnectSetting
from sim.brokers.users.retained import retained_messages
from sim.brokers.users.sharing import SharedSubscriptions
from sim.brokers.users.subscriptions import SplitSubscriptions, Subscriptions
from sim.brokers.users.users import HostedUsers
from sim.metrics import MetricValue, declared_metrics
from sim.overlay.geometry import Dissemination, link_metrics
from sim.overlay.pair_times import PairTimes
from sim.policies.sharing.view import SharingPolicy
from sim.policies.views import SelectionPolicy
from sim.workloads.faults.schedule import LOSS, SLOW_DOWN, FaultSchedule
from sim.workloads.format.workload import Workload
from sim.workloads.models.publishing import PublishingCounts, publishing_metrics


@dataclass(frozen=True, eq=False)
class NetworkSetting:
    """What a network is made of. `hop_delay` (brokers, brokers) is in seconds; `node_of` (brokers) maps brokers to nodes.

    `stations` gives service times, which are divided by the brokers' `capacity` (brokers; None: 1). `plane` is the data
    plane; "auto" takes the fastest that is exact. `regions` (brokers) are numbers; `reconfiguration` is None where brokers do not
    move, `offloading` where nothing is offloaded and satisfaction is not measured, `faults` where nothing fails; `reconnect` is how
    users of crashed brokers reconnect; `delivery` is what brokers do about lost copies; `healing` is None where the overlay does
    not heal and no broker leaves or joins; `sharing` chooses among users who share subscriptions, None where nobody does; `notes` are
    sentences for the results.
    """

    overlay: Dissemination
    node_of: NDArray[np.int32]
    hop_delay: NDArray[np.float64] | PairTimes
    jitter: float
    policy: SelectionPolicy
    horizon: float
    warm_up: float = 0.0
    window: float = 3600.0
    join: Literal["instant", "message"] = "instant"
    control_count: Literal["hops", "requests"] = "hops"
    stations: StationSetting = NO_TIME
    links: LinkSetting = UNLIMITED
    clients: ClientSetting = AT_ONCE
    sessions: SessionSetting = SESSIONS
    quality: QualitySetting | None = None
    publishing: PublishingCounts | None = None
    trace: float = 0.0
    subscribers: bool = False
    topic_delays: bool = False
    plane: Plane = "auto"
    capacity: NDArray[np.float64] | None = None
    regions: NDArray[np.int64] | None = None
    reconfiguration: ReconfigurationSetting | None = None
    offloading: OffloadingSetting | None = None
    faults: FaultSchedule | None = None
    reconnect: ReconnectSetting = RECONNECT
    delivery: DeliverySetting = NO_GUARANTEE
    healing: HealingSetting | None = None
    sharing: SharingPolicy | None = None
    notes: tuple[str, ...] = ()

    def passes_on(self, workload: Workload) -> bool:
        """Whether what brokers have served gets to users later, or not all of it."""
        later = self.clients.matters or len(workload.absences) > 0 or workload.publications.retain.any()
        return self.quality is not None or bool(later)

    @property
    def measured_seconds(self) -> float:
        """The measured time: from the end of the warm-up to the horizon."""
        return self.horizon - self.warm_up


def _shared(
    setting: NetworkSetting, workload: Workload, recorder: Recorder, subscriptions: Subscriptions, legs: Legs | None
) -> SharedSubscriptions | None:
    """The subscriptions that groups of users share, if there are any."""
    policy, audiences = setting.sharing, recorder.audiences
    if policy is None or audiences is None or not len(workload.shares):
        return None
    version, brokers = subscriptions.version, len(setting.node_of)
    shared = SharedSubscriptions(workload.shares, policy, audiences, workload.publications, version, brokers)
    leaves = bool(setting.clients.reconnect_after or len(workload.absences))
    if legs is not None and ("load" in policy.observes or leaves):
        shared.observe = legs.observe
    return shared


class Network:
    """One run of one workload in SimPy, from joining to the horizon."""

    def __init__(self, setting: NetworkSetting, workload: Workload, streams: Streams) -> None:
        brokers = len(setting.node_of)
        self.setting, self.workload = setting, workload
        self.clock, self._hops = Clock(), PairTimes.of(setting.hop_delay)
        self.recorder = self._recorder(streams.key("best-effort channel"), streams.key("trace"))
        self._retained = retained_messages(self.clock, workload, self.recorder, lambda: self.users)
        passed = setting.clients, setting.sessions, self.recorder, workload, self._retained, setting.quality
        keys = tuple(map(streams.key, ("client jitter", "slow clients", "client loss", "qos of subscriptions")))
        self._legs = None if self.recorder.deliveries is None else Legs(*passed, keys)
        self.node_of = setting.node_of.copy()
        self.capacity = np.ones(brokers) if setting.capacity is None else setting.capacity
        self.broker_of = np.empty(brokers, np.int32)
        self.broker_of[setting.node_of] = np.arange(brokers)
        self.servers = stations(self.clock, setting.stations, setting.warm_up, self.capacity)
        self._fabric = fabric = self._make_fabric(streams)
        outages = fabric.outages
        courier = Courier(fabric, lambda: self.engine)
        topics, offloading = len(workload.topics), setting.offloading
        offloaded = None if offloading is None or offloading.policy is None else OffloadedTopics(topics, brokers)
        requests = setting.control_count == "requests"
        self.control = TreeControl(
            fabric, self.recorder, courier, requests, lambda: self.engine.advance(self.clock.now), offloaded
        )
        self.subscriptions = (
            Subscriptions(topics, brokers, self.control.transition)
            if offloaded is None
            else SplitSubscriptions(topics, brokers, self.control.transition, offloaded.kept)
        )
        self.subscriptions.shared = _shared(setting, workload, self.recorder, self.subscriptions, self._legs)
        records = self.recorder, self.subscriptions, workload
        self.engine = engine_of(setting.plane, fabric, *records, lambda: self.users.host)
        self.users = HostedUsers(
            self.clock,
            workload,
            setting.policy,
            self.subscriptions,
            self.recorder,
            self.control.before_change,
            self.control.changed,
            outages,
        )
        self.busiest_tree = BusiestTree(fabric, workload, self.users, self.subscriptions)
        self._changes = Changes(
            self.clock, workload, self.users, brokers, lambda: self.engine.follows and not self.users.absent
        )
        protocol: ReconfigurationProtocol | None = None
        self.manager: Manager | None = None
        if setting.reconfiguration is not None:
            timeout = setting.reconfiguration.parameters.timeout
            dead = () if setting.faults is None else setting.faults.manager_dead
            process = self.control, self.engine, self._changes, self.subscriptions
            protocol = ReconfigurationProtocol(fabric, self.recorder, *process, timeout, dead)
            decides = protocol, self.subscriptions, workload.published, setting.reconfiguration
            self.manager = Manager(fabric, self.recorder, *decides)
        self.offloading: OffloadingService | None = None
        if offloading is not None:
            split = self.control, self.users, self.subscriptions, protocol
            self.offloading = OffloadingService(fabric, self.recorder, *split, workload.published, offloading)
        self._protocol = protocol
        heals = fabric, self.recorder, self.control, self.engine
        self._healing = None if setting.healing is None else HealingControl(*heals, setting.healing)
        self._faults: FaultControl | None = None
        if setting.faults is not None and outages is not None:
            failing = Failing(setting.faults, setting.reconnect, streams.key("reconnect"))
            struck = self.control, self.engine, self.users, self._changes, protocol
            self._faults = FaultControl(fabric, self.recorder, failing, *struck)
            self._faults.healing = self._healing
            self._faults.steps = TreeSteps(fabric, self.busiest_tree, setting.window)
        entries = workload.publications, self.users.host, streams.key("outside publishers"), self.engine, self.recorder
        self._publishers = Publishers(self.clock, *entries, protocol, outages)
        if self._faults is not None:
            self._faults.tell(self._publishers)

    def _make_fabric(self, streams: Streams) -> Fabric:
        setting, brokers = self.setting, len(self.node_of)
        links, faults = Links(self._hops, setting.jitter, streams.key("jitter")), setting.faults
        outages = Outages(brokers, faults.sides) if faults is not None and faults.strikes_brokers else None
        windows = LinkWindows(self.recorder.edges, self.recorder.measured, brokers)
        carried = self.clock, links, setting.links, brokers, streams.key("loss"), windows
        limited = setting.links.limits or (faults is not None and faults.has(LOSS))
        slowed = outages.slowed if outages is not None and faults is not None and faults.has(SLOW_DOWN) else None
        return Fabric(
            self.clock,
            setting.overlay,
            self.node_of,
            self.broker_of,
            links,
            Transmission(*carried) if limited else None,
            self.servers,
            ServiceTimes(setting.stations, self.capacity, streams.key("service"), slowed),
            setting.join == "instant",
            outages,
            setting.delivery,
        )

    def _recorder(self, key: int, trace_key: int) -> Recorder:
        """Create the recorder; the keys are for the best-effort channel's draws, and for the choice of traced publications."""
        setting, workload, offloading = self.setting, self.workload, self.setting.offloading
        passes_on = setting.passes_on(workload)
        by_user = setting.subscribers or passes_on or len(workload.shares) > 0
        copies, satisfaction, channel = 1, None, None
        if workload.content is not None:
            copies, by_user = workload.content.conjunctions.fields, False  # receipts of content are counted by user
        if offloading is not None:
            chosen, by_user = offloading.parameters, True
            times, users = workload.publications.time, len(workload.users)
            satisfaction = Satisfaction(times, users, chosen.tau, chosen.period, setting.horizon)
            if offloading.policy is not None:
                channel = Channel(chosen.delivery_probability, chosen.extra_delay, key)
        details = Details(
            HopTrace(setting.trace, trace_key) if setting.trace else None,
            Audiences(workload, len(setting.node_of)) if by_user else None,
            Receipts() if setting.subscribers else None,
            satisfaction,
            channel,
            DeliveryBuffer() if passes_on else None,
            len(workload.topics) if setting.topic_delays else 0,
        )
        off_tree = "joining" if setting.join == "message" else "unreachable"  # as other joins take no time
        return Recorder(setting.horizon, setting.warm_up, setting.window, self._hops, copies, details, off_tree)

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Simulate up to the horizon; `progress` is called repeatedly with the share of simulated time.

        Raises ConservationError where notifications were miscounted.
        """
        self.start()
        if progress is not None:
            self._report(progress)
        self.clock.advance(self.setting.horizon)
        if progress is not None:
            progress(1.0)
        self.close()

    def start(self) -> None:
        """Let all users join, and schedule what happens; the clock can then be advanced, in one step or several."""
        if self._faults is not None:
            self._faults.prepare()
        self.users.join_all()
        self.control.adjust()
        self.control.bootstrapping = False
        Feed(self.clock, CONTROL, self.control.adjust_again).start(self.setting.overlay.period)
        self.users.start()
        self._changes.start()
        for part in (self.manager, self.offloading, self._publishers, self._retained, self._healing, self._faults):
            if part is not None:
                part.start()

    def _report(self, progress: Callable[[float], None]) -> None:
        """Call `progress` after each hundredth of the run but the last, without any effect on the run."""
        step = 0

        def look() -> float | None:
            nonlocal step
            if step:
                progress(step / 100)
            step += 1
            return self.setting.horizon * step / 100 if step < 100 else None

        Feed(self.clock, LOOKS, look).start(look())

    def close(self) -> None:
        """Account for everything at the horizon. Raises ConservationError where notifications were miscounted."""
        self.users.close()
        if self._healing is not None:
            self._healing.close()
        self._publishers.close()
        self.stations = self.engine.close()
        if self._legs is not None:
            self._legs.close()
        if (sent := self.setting.publishing) is not None:
            self.recorder.count_at(sent.time, sent.columns)
        self.recorder.close()
        if self.offloading is not None:
            self.offloading.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the results."""
        trace = None if self.recorder.trace is None else self.recorder.trace.note()
        return (*self.setting.notes, *([] if trace is None else [trace]))

    def metrics(self) -> dict[str, MetricValue]:
        """All scalar metrics. Raises MetricError where they are not those that `sim.metrics` declares."""
        setting = self.setting
        found = {
            **self.recorder.metrics(),
            **capacity_metrics(self.offloading),
            "cross_region_bytes": cross_region_bytes(self.recorder.links, setting.regions),
            **self.stations.metrics(setting.measured_seconds),
            "saturated_links": 0 if self._fabric.transmission is None else self._fabric.transmission.saturated(),
            **publishing_metrics(setting.publishing),
            **link_metrics(len(self.node_of), setting.overlay),
        }
        return declared_metrics(found)

    def tables(self) -> dict[str, Columns]:
        """All requested tables, by their names in a run's folder."""
        recorder = self.recorder
        placement = Placement(self._fabric) if self._protocol is None else self._protocol.placement
        published = self.workload.published(self.setting.warm_up, self.setting.horizon)
        tables = {
            "timeseries": recorder.timeseries(),
            "brokers": self._brokers(),
            "links": self._links(),
            "load": load_table(
                recorder.traffic,
                self.stations.windows.columns(self.setting.stations.servers),
                self.users.selections(),
                recorder.edges,
            ),
            "topics": recorder.with_delays(self.subscriptions.table(published)),
            "delays": recorder.delays(),
            "decisions/selection": self.users.selections(),
            "decisions/configuration": placement.table(),
        }
        kept = {
            "faults": self._faults or self.setting.faults,
            "tree_steps": None if self._faults is None else self._faults.steps,
            "decisions/reconfiguration": self.manager,
            "decisions/offloading": self.offloading,
            "link_load": None if self._fabric.transmission is None else self._fabric.transmission.windows,
            "subscribers": recorder.receipts,
            "trace": recorder.trace,
        }
        return tables | {name: dict(each.table()) for name, each in kept.items() if each is not None}

    def _links(self) -> Columns:
        """One row per link that carried publications after the warm-up, with further columns if links have limits."""
        table, transmission = link_table(self.recorder.links, len(self.node_of)), self._fabric.transmission
        columns = table["source"], table["destination"], table["bytes"]
        return {**table, **({} if transmission is None else transmission.columns(*columns))}

    def _brokers(self) -> Columns:
        """One row per broker: subscriptions and users hosted (time averages), messages carried and served after the warm-up."""
        seconds, brokers = self.setting.measured_seconds, len(self.node_of)
        counted, transmission = self.recorder.traffic.by_broker(), self._fabric.transmission
        return {
            "broker": np.arange(brokers),
            "node": self.node_of,
            "subscriptions": [area / seconds for area in self.users.load_area],
            "users": [area / seconds for area in self.users.users_area],
            "topics": self.subscriptions.topics,
            **traffic_columns(counted),
            **({} if transmission is None else transmission.interfaces(counted[:, BYTES_IN], counted[:, BYTES_OUT])),
            **self.stations.columns(brokers, seconds, self.setting.horizon),
        }
