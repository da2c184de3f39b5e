"""The choice of a data plane: the requested one, or the fastest that is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import ScenarioError
from sim.brokers.data.carrier import Carrier
from sim.brokers.data.compiled.carrier import CompiledCarrier
from sim.brokers.data.compiled.content import CompiledContentCarrier
from sim.brokers.data.compiled.engine import CompiledEngine
from sim.brokers.data.compiled.guaranteed_carrier import CompiledGuaranteedCarrier
from sim.brokers.data.content import ContentRule, FoldedCarrier
from sim.brokers.data.content_subscriptions import ContentSubscriptions
from sim.brokers.data.engine import Engine
from sim.brokers.data.events import EventEngine
from sim.brokers.data.folded import FoldedEngine
from sim.brokers.data.guaranteed import GuaranteedCarrier
from sim.brokers.data.guaranteed_kinds import ContentCarrier, FloodingCarrier
from sim.brokers.data.rerouted import ReroutingCarrier
from sim.brokers.data.rules import FloodRule, TopicRule
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.transmission import UNLIMITED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.overlay.folding import cannot_fold, hindrances
from sim.overlay.healing import Healing
from sim.workloads.faults.schedule import faults_with_content
from sim.workloads.format.workload import Workload

Plane = Literal["auto", "events", "compiled", "folded"]


def engine_of(
    asked: Plane,
    fabric: Fabric,
    recorder: Recorder,
    subscriptions: Subscriptions,
    workload: Workload,
    host: Callable[[], NDArray[np.int32]],
) -> Engine:
    """The engine of a data plane; `host()` is the live broker of each user. Raises ScenarioError where there is none."""
    guarantees = fabric.delivery.guarantees
    plane = _plane(asked, fabric, recorder, workload.content is not None, subscriptions.shared is not None)
    carried = fabric, recorder, subscriptions, workload.publications
    if workload.content is None:
        if plane == "compiled":
            compiled = CompiledGuaranteedCarrier if guarantees else CompiledCarrier
            return CompiledEngine(fabric, compiled(*carried))
        if plane == "folded":
            return FoldedEngine(*carried)
        by_topic, carrier = (FloodRule if fabric.overlay.floods else TopicRule)(*carried), Carrier
        if guarantees and fabric.overlay.floods:
            carrier = FloodingCarrier
        elif guarantees:
            carrier = ReroutingCarrier if isinstance(fabric.overlay, Healing) else GuaranteedCarrier
        return EventEngine(fabric, recorder, carrier(fabric, recorder, by_topic))
    if fabric.outages is not None:
        raise ScenarioError(faults_with_content(workload.kind))
    content, loads = ContentSubscriptions(workload.content), fabric.service.setting.matching > 0
    rule = ContentRule(*carried, content, host, loads)
    if plane == "compiled":
        return CompiledEngine(fabric, CompiledContentCarrier(*carried, rule))
    by_content = FoldedCarrier if plane == "folded" else ContentCarrier if guarantees else Carrier
    return EventEngine(fabric, recorder, by_content(fabric, recorder, rule))


def _plane(asked: Plane, fabric: Fabric, recorder: Recorder, content: bool, shares: bool) -> Plane:
    """The requested data plane, or the fastest that is exact. Raises ScenarioError where the requested one is not exact."""
    links = UNLIMITED if fabric.transmission is None else fabric.transmission.setting
    share, delivery = 0.0 if recorder.trace is None else recorder.trace.share, fabric.delivery
    found = hindrances(
        fabric.service.setting.service,
        fabric.links.jitter,
        links,
        share,
        fabric.overlay.floods,
        fabric.outages is not None,
        delivery.guarantee,
        shares,
    )
    if found and asked == "folded":
        raise ScenarioError(f"network.data_plane: {cannot_fold(found)}")
    by_events = {"topics that are flooded": fabric.overlay.floods, "content": content}
    only = [what for what, holds in by_events.items() if holds and delivery.guarantees]
    if only and asked == "compiled":
        raise ScenarioError(
            f'network.data_plane: "compiled" has no guarantee ("{delivery.guarantee}") for {only[0]} (allowed: "events", "auto")'
        )
    if asked != "auto":
        return asked
    return "events" if only else "compiled" if found else "folded"
