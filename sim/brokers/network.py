"""The network as a whole: brokers on an overlay, users attached to them, publications on their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import ScenarioError
from sim.base.randomness import Streams, exponential, uniform
from sim.brokers.control.courier import Courier
from sim.brokers.control.manager import Decision, Manager, ReconfigurationSetting
from sim.brokers.control.offloading import UNMEASURED, OffloadingSetting, Service
from sim.brokers.control.protocol import Protocol
from sim.brokers.control.sides import Sides
from sim.brokers.control.trees import TreeControl
from sim.brokers.data.content import ContentRule, FoldedContentEngine
from sim.brokers.data.content_subscriptions import ContentSubscriptions
from sim.brokers.data.engine import Engine
from sim.brokers.data.events import EventEngine
from sim.brokers.data.folded import FoldedEngine
from sim.brokers.data.rules import FloodRule, TopicRule
from sim.brokers.fabric.clock import CONTROL, LOOKS, PUBLICATIONS, Clock, Feed
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.links import Links
from sim.brokers.fabric.stations import Server
from sim.brokers.statistics.receipts import Audiences, Receipts
from sim.brokers.statistics.record_kernels import BROKER_DELIVERED, RECEIVED, RELAYED, SENT
from sim.brokers.statistics.recorder import Channel, Columns, Recorder
from sim.brokers.statistics.satisfaction import Satisfaction
from sim.brokers.statistics.saturation import saturated
from sim.brokers.users.subscriptions import SplitSubscriptions, Subscriptions
from sim.brokers.users.users import Users
from sim.overlay.geometry import Dissemination, degrees
from sim.policies.views import SelectionPolicy
from sim.workloads.format.workload import Workload


@dataclass(frozen=True, eq=False)
class NetworkSetting:
    """What a network is made of. `hop_delay` (brokers, brokers) is in seconds; `node_of` (brokers) maps brokers to nodes.

    `service_time` is the mean seconds that a broker needs for a message, and `matching_time` for every counter that it moves to match
    content, both divided by its `capacity` (brokers; None: 1); `queue` is how many may wait (None: any number). `plane` is the data
    plane; "auto" takes the fastest that is exact. `regions` (brokers) are numbers; `reconfiguration` is None where brokers stay where
    they stand, `offloading` where nothing is offloaded and nobody's satisfaction measured; `notes` are sentences that go with the
    results.
    """

    overlay: Dissemination
    node_of: NDArray[np.int32]
    hop_delay: NDArray[np.float64]
    jitter: float
    policy: SelectionPolicy
    horizon: float
    warm_up: float = 0.0
    window: float = 3600.0
    join: Literal["instant", "message"] = "instant"
    control_count: Literal["hops", "requests"] = "hops"
    service: Literal["none", "deterministic", "exponential"] = "none"
    service_time: float = 0.0
    matching_time: float = 0.0
    queue: int | None = None
    trace: bool = False
    subscribers: bool = False
    plane: Literal["auto", "messages", "folded"] = "auto"
    capacity: NDArray[np.float64] | None = None
    regions: NDArray[np.int64] | None = None
    reconfiguration: ReconfigurationSetting | None = None
    offloading: OffloadingSetting | None = None
    notes: tuple[str, ...] = ()


def _folds(setting: NetworkSetting) -> bool:
    """Whether to fold: where that is asked for, or exact and left open. Raises ScenarioError where it is asked for and not exact."""
    contends = {
        f'brokers.service = "{setting.service}"': setting.service != "none",
        f"jitter {setting.jitter:g}": setting.jitter > 0,
        "trace = true": setting.trace,
        "an overlay that floods": setting.overlay.floods,
    }
    reasons = [reason for reason, holds in contends.items() if holds]
    if setting.plane == "folded" and reasons:
        raise ScenarioError(
            f'network.data_plane: "folded" makes no event of a hop and is not exact with {" and ".join(reasons)} '
            '(allowed: "messages", "auto")'
        )
    return not reasons and setting.plane != "messages"


class Network:
    """One run of one workload: everything that happens, in SimPy, from joining to the horizon."""

    def __init__(self, setting: NetworkSetting, workload: Workload, streams: Streams) -> None:
        brokers = len(setting.node_of)
        self.setting, self.workload = setting, workload
        self.clock = Clock()
        self.recorder = self._recorder(streams.key("best-effort channel"))
        self.node_of = setting.node_of.copy()
        self.capacity = np.ones(brokers) if setting.capacity is None else setting.capacity
        self.broker_of = np.empty(brokers, np.int32)
        self.broker_of[setting.node_of] = np.arange(brokers)
        self.servers = (
            []
            if setting.service == "none"
            else [Server(self.clock, setting.queue, setting.warm_up) for _ in range(brokers)]
        )
        fabric = Fabric(
            self.clock,
            setting.overlay,
            self.node_of,
            self.broker_of,
            Links(setting.hop_delay, setting.jitter, streams.key("jitter")),
            self.servers,
            self._service(streams.key("service")),
            setting.join == "instant",
        )
        courier = Courier(fabric)
        topics, offloading = len(workload.topics), setting.offloading
        sides = None if offloading is None or offloading.policy is None else Sides(topics, brokers)
        requests = setting.control_count == "requests"
        self.control = TreeControl(
            fabric, self.recorder, courier, requests, lambda: self.engine.advance(self.clock.now), sides
        )
        self.subscriptions = (
            Subscriptions(topics, brokers, self.control.transition)
            if sides is None
            else SplitSubscriptions(topics, brokers, self.control.transition, sides.kept)
        )
        self.engine = self._engine(fabric)
        self.users = Users(
            self.clock,
            workload,
            setting.policy,
            self.subscriptions,
            self.recorder,
            self.control.settle,
            self.control.changed,
        )
        self._protocol: Protocol | None = None
        self.manager: Manager | None = None
        if setting.reconfiguration is not None:
            parameters, served = setting.reconfiguration.parameters, self.subscriptions.served
            process = courier, self.control, self.engine, self.users, served
            self._protocol = Protocol(fabric, self.recorder, *process, parameters)
            decides = self._protocol, served, workload.published, setting.reconfiguration
            self.manager = Manager(fabric, self.recorder, *decides)
        self.offloading: Service | None = None
        if offloading is not None:
            split = self.control, self.users, self.subscriptions, self._protocol
            self.offloading = Service(fabric, self.recorder, *split, workload.published, offloading)
        self._outside = streams.key("outside publishers")
        self._publication = 0

    def _recorder(self, key: int) -> Recorder:
        """The books; `key` is that of the best-effort channel's draws."""
        setting, workload, offloading = self.setting, self.workload, self.setting.offloading
        copies, by_user, satisfaction, channel = 1, setting.subscribers, None, None
        if workload.content is not None:
            copies, by_user = workload.content.conjunctions.fields, False  # content is counted by whom it concerns
        if offloading is not None:
            chosen, by_user = offloading.parameters, True
            times, users = workload.publications.time, len(workload.users)
            satisfaction = Satisfaction(times, users, chosen.tau, chosen.period, setting.horizon)
            if offloading.policy is not None:
                channel = Channel(chosen.delivery_probability, chosen.extra_delay, key)
        return Recorder(
            setting.horizon,
            setting.warm_up,
            setting.window,
            setting.hop_delay,
            setting.trace,
            copies,
            Audiences(workload, len(self.setting.node_of)) if by_user else None,
            Receipts() if setting.subscribers else None,
            satisfaction,
            channel,
        )

    def _engine(self, fabric: Fabric) -> Engine:
        """The data plane asked for, or the fastest that is exact. Raises ScenarioError where there is none."""
        setting, workload = self.setting, self.workload
        folds, carried = _folds(setting), (fabric, self.recorder, self.subscriptions, workload.publications)
        published = workload.publications.time
        if workload.content is None:
            if folds:
                return FoldedEngine(*carried)
            return EventEngine(
                fabric, self.recorder, published, (FloodRule if setting.overlay.floods else TopicRule)(*carried)
            )
        if setting.overlay.floods:
            raise ScenarioError('network.geometry: dissemination "flood" does not carry content (allowed: "tree")')
        content, loads = ContentSubscriptions(workload.content), setting.matching_time > 0
        rule = ContentRule(*carried, content, lambda: self.users.host, loads)
        return (FoldedContentEngine if folds else EventEngine)(fabric, self.recorder, published, rule)

    def _service(self, key: int) -> Callable[[int, int, int, int], float]:
        """Service times (s) that belong to what is served, where, and at which stage of its way."""
        setting = self.setting
        mean: list[float] = (setting.service_time / self.capacity).tolist()
        each: list[float] = (setting.matching_time / self.capacity).tolist()

        def always(number: int, broker: int, stage: int, increments: int) -> float:
            return mean[broker] + increments * each[broker]

        def drawn(number: int, broker: int, stage: int, increments: int) -> float:
            return always(number, broker, stage, increments) * exponential(key, number, broker << 16 | stage)

        return drawn if setting.service == "exponential" else always

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Simulate up to the horizon; `progress` is told the share of simulated time, now and then.

        Raises ConservationError where a notification was lost count of.
        """
        horizon = self.setting.horizon
        self.users.join_all()
        self.control.adjust()
        self.control.bootstrapping = False
        Feed(self.clock, CONTROL, self.control.adjust_again).start(self.setting.overlay.period)
        self.users.start()
        if self.manager is not None:
            self.manager.start()
        if self.offloading is not None:
            self.offloading.start()
        publications = self.workload.publications
        Feed(self.clock, PUBLICATIONS, self._publish).start(float(publications.time[0]) if len(publications) else None)
        if progress is not None:
            self._report(progress)
        self.clock.run(until=horizon)
        if progress is not None:
            progress(1.0)
        self._close()

    def _report(self, progress: Callable[[float], None]) -> None:
        """Have `progress` called after each hundredth of the run but the last; the run goes on as if nobody looked."""
        step = 0

        def look() -> float | None:
            nonlocal step
            if step:
                progress(step / 100)
            step += 1
            return self.setting.horizon * step / 100 if step < 100 else None

        Feed(self.clock, LOOKS, look).start(look())

    def _publish(self) -> float | None:
        times, first = self.workload.publications.time, self._publication
        last = first + 1
        if self.engine.together > 1:  # nothing happens before the next event but publications
            last = max(last, min(first + self.engine.together, int(np.searchsorted(times, self.clock.peek()))))
        brokers = self._entries(first, last)
        if self._protocol is not None and self._protocol.running:
            for number, broker in enumerate(brokers, first):
                if not self._protocol.holds(number, broker):
                    self.engine.publish(number, [broker])
        else:
            self.engine.publish(first, brokers)
        self._publication = last
        return float(times[last]) if last < len(times) else None

    def _entries(self, first: int, last: int) -> list[int]:
        """The brokers of publishers; from outside any broker, at random, always the same for one publication."""
        host, publishers = self.users.host, self.workload.publications.publisher[first:last].tolist()
        return [
            int(host[publisher]) if publisher >= 0 else int(uniform(self._outside, number) * len(self.node_of))
            for number, publisher in enumerate(publishers, first)
        ]

    def _close(self) -> None:
        held = [message for server in self.servers for message in server.close(self.setting.horizon)]
        self.users.close()
        self.engine.close(held)
        self.recorder.close()
        if self.offloading is not None:
            self.offloading.close()

    # -- what came out

    def metrics(self) -> dict[str, float | int | None]:
        """All scalar metrics, in the order of `sim.metrics`."""
        served = sum(server.served for server in self.servers)
        seconds = self._measured_seconds()
        return {
            **self.recorder.metrics(),
            **(UNMEASURED if self.offloading is None else self.offloading.metrics()),
            "cross_region_bytes": self._cross_region_bytes(),
            "queue_wait": sum(server.wait for server in self.servers) / served if served else None,
            "utilisation": (
                sum(server.busy for server in self.servers) / (seconds * len(self.servers)) if self.servers else None
            ),
            "saturated_brokers": len(self._saturated()),
            **self._links(),
        }

    def _saturated(self) -> dict[int, float]:
        """The brokers that cannot keep up, and since when (s)."""
        seconds = self._measured_seconds()
        return {
            broker: server.behind_since
            for broker, server in enumerate(self.servers)
            if saturated(server.backlog, server.squares, seconds)
        }

    def _links(self) -> dict[str, float | int | None]:
        """The overlay's links, and what nodes keep to forward along trees, as they are at the end."""
        overlay, brokers = self.setting.overlay, len(self.node_of)
        degree, diameters = degrees(brokers, overlay.edges()), overlay.topic_diameters()
        spans = [] if diameters is None else diameters.tolist()
        return {
            "edges": int(degree.sum()) // 2,
            "average_degree": float(degree.mean()),
            "maximum_degree": int(degree.max()),
            "diameter": max(spans, default=None),
            "mean_topic_diameter": sum(spans) / len(spans) if spans else None,
            "tree_state": overlay.tree_state(),
        }

    def _cross_region_bytes(self) -> int | None:
        regions = self.setting.regions
        if regions is None:
            return None
        return int(self.recorder.statistics.links[regions[:, None] != regions, 1].sum())

    def _measured_seconds(self) -> float:
        return self.setting.horizon - self.setting.warm_up

    def brokers(self) -> Columns:
        """One row per broker: what it hosted (time averages), carried and served after the warm-up."""
        seconds = self._measured_seconds()
        counted, servers, since = self.recorder.statistics.per_broker, self.servers, self._saturated()
        none = [None] * len(self.node_of)
        return {
            "broker": np.arange(len(self.node_of)),
            "node": self.node_of,
            "subscriptions": [area / seconds for area in self.users.load_area],
            "users": [area / seconds for area in self.users.users_area],
            "topics": self.subscriptions.topics,
            "received": counted[:, RECEIVED],
            "sent": counted[:, SENT],
            "delivered": counted[:, BROKER_DELIVERED],
            "relayed": counted[:, RELAYED],
            "served": [s.served for s in servers] or none,
            "queue_wait": [s.wait / s.served if s.served else None for s in servers] or none,
            "utilisation": [s.busy / seconds for s in servers] or none,
            "queue_length": [s.waiting_area / seconds for s in servers] or none,
            "queue_full": [s.dropped for s in servers] or none,
            "backlog": [s.held for s in servers] or none,
            "backlog_seconds": [s.backlog for s in servers] or none,
            "saturated_since": [since.get(broker) for broker in range(len(self.node_of))],
        }

    def links(self) -> Columns:
        """Messages and bytes of every link that carried any after the warm-up."""
        sources, destinations = np.nonzero(self.recorder.statistics.links[:, :, 0])
        used = self.recorder.statistics.links[sources, destinations]
        return {"source": sources, "destination": destinations, "messages": used[:, 0], "bytes": used[:, 1]}

    def selections(self) -> Columns:
        """Which broker hosts whom from when on; `from` is -1 at the first attachment."""
        user, former, broker = np.array(self.users.decisions, np.int32).reshape(-1, 3).T
        return {"time": np.array(self.users.decided_at), "user": user, "from": former, "broker": broker}

    def configurations(self) -> Columns:
        """Which broker stands where from when on; `from` is -1 at first."""
        n, first = len(self.node_of), self.setting.node_of
        moves = np.empty((0, 3), np.int32)
        moved_at = np.empty(0)
        if self._protocol is not None:
            moves, moved_at = np.array(self._protocol.moves, np.int32).reshape(-1, 3), np.array(self._protocol.moved_at)
        return {
            "time": np.concatenate([np.zeros(n), moved_at]),
            "broker": np.concatenate([np.arange(n), moves[:, 0]]),
            "from": np.concatenate([np.full(n, -1), moves[:, 1]]),
            "node": np.concatenate([first, moves[:, 2]]),
        }

    def reconfigurations(self) -> Columns | None:
        """What was decided at the end of each reconfiguration period, where brokers are reconfigured."""
        if self.manager is None:
            return None
        names = [field.name for field in fields(Decision)]
        return {name: [getattr(decision, name) for decision in self.manager.decisions] for name in names}

    def offloadings(self) -> Columns | None:
        """What was decided in each period of the offloading service, and whom the back end satisfied, where there is one."""
        return None if self.offloading is None else self.offloading.table()

    def subscribers(self) -> Columns | None:
        """What each user received on each topic, from time 0 on, where that was kept."""
        receipts = self.recorder.receipts
        return None if receipts is None else dict(receipts.table())

    def trace(self) -> Columns | None:
        """Every hop of every publication, where the trace was kept."""
        rows = self.recorder.trace
        if rows is None:
            return None
        names = ("sent", "received", "publication", "source", "destination", "kind", "due")
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return dict(zip(names, columns, strict=True))
