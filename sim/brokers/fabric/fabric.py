"""The fabric that carries all messages: the clock, the overlay, the configuration, the links, the servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.clock import Clock
from sim.brokers.fabric.delivery import NO_GUARANTEE, DeliverySetting
from sim.brokers.fabric.links import Links
from sim.brokers.fabric.outages import Outages
from sim.brokers.fabric.service import ServiceTimes
from sim.brokers.fabric.stations import Server
from sim.brokers.fabric.transmission import Transmission
from sim.overlay.geometry import Dissemination


@dataclass(frozen=True, eq=False)
class Fabric:
    """Shared by the data plane and the control of trees.

    `node_of` (brokers) and `broker_of` (nodes) are the live mapping. `transmission` is None where a hop takes only its latency.
    `servers` is empty where brokers take no time; otherwise `service` gives service times. `joins_instantly`: trees change at once.
    `outages` is None where nothing ever fails. `delivery` is what brokers do about lost copies.
    """

    clock: Clock
    overlay: Dissemination
    node_of: NDArray[np.int32]
    broker_of: NDArray[np.int32]
    links: Links
    transmission: Transmission | None
    servers: list[Server]
    service: ServiceTimes
    joins_instantly: bool
    outages: Outages | None = None
    delivery: DeliverySetting = NO_GUARANTEE
