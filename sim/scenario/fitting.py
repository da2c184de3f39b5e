"""What does not fit together in a scenario, its workload and its plug-ins, as far as that is known before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sim import plugins
from sim.base.arrays import frozen
from sim.base.naming import Raw
from sim.base.validation import Mistake
from sim.files.inputs import File
from sim.overlay.floods import FloodParameters
from sim.overlay.geometry import Dissemination
from sim.overlay.healing import Healing
from sim.overlay.sites import Sites
from sim.overlay.trees import RendezvousTrees
from sim.plugins import Found
from sim.scenario.faults import plans_members, strike_brokers
from sim.scenario.model import MORE_SHARED, NetworkTable, Scenario, Unlimited
from sim.scenario.reading import Reading
from sim.scenario.sessions import SessionsTable
from sim.workloads.faults.outages import SlowFaults
from sim.workloads.faults.schedule import faults_with_content
from sim.workloads.format.traits import HasTraits, Traits


def read_scenario(reading: Reading, raw: Raw, runs: bool = True) -> tuple[Scenario | None, list[Mistake]]:
    """The scenario of a table, or None and its mistakes; if it `runs`, these include what its workload lacks."""
    scenario, wrong = reading.read(Scenario, raw, MORE_SHARED)
    if runs and scenario is not None and isinstance(drawn := scenario.workload.parameters, HasTraits):
        traits = drawn.traits(scenario.workload.kind)
        wrong = [_mistake(sentence) for sentence in misfits(scenario, traits, reading.once)]
    return None if wrong else scenario, wrong


def _mistake(sentence: str) -> Mistake:
    """A sentence that begins with a key, as a mistake there."""
    key, _, text = sentence.partition(": ")
    return tuple(key.split(".")), text


_MOST_NAMED = 100_000
"""Up to this many brokers get names before a run; it takes too much memory to name as many as may be asked for."""
NOT_SLOW = "faults: brokers without a service time cannot be slow (allowed: brokers.service with a kind)"
Once: TypeAlias = Callable[..., str | None]
"""Calls a function with arguments, or returns what it returned for the same ones before."""


def each_time(function: Callable[..., str | None], *arguments: object) -> str | None:
    """Call a function with arguments, without looking for an earlier result."""
    return function(*arguments)


def misfits(scenario: Scenario, traits: Traits, once: Once = each_time) -> Iterator[str]:
    """Sentences, each beginning with a key, about what does not fit a workload of these traits; third-party plug-ins are not asked."""
    network = scenario.network
    if network.brokers == "cells" and not traits.places:
        yield (
            'network.brokers: "cells" needs topics with places, which this workload does not have '
            "(allowed: a number of brokers, a CSV file)"
        )
        return
    if not traits.bytes:
        for key in _rates(network):
            without = f"(allowed: publications with bytes, or no {key.rpartition('.')[2]})"
            yield f"network.{key}: no publication of the workload has a size {without}"
    if network.clients.per_km and not traits.places:
        yield "network.clients.per_km: a workload without places has no distances (allowed: a workload with places, or 0)"
    yield from _content(scenario, traits) if traits.content else _topics(scenario, traits)
    geometry = plugins.load("geometry", network.geometry.kind)
    if plugins.are_ours(geometry):
        own = getattr(network.geometry.parameters, "pns", False)  # the one that makes nodes brokers in some cases only
        yield from overlay_misfits(scenario, geometry, bool(own), plans_members(scenario.faults))
    brokers, sites = _known_sites(network.brokers, traits)
    if network.clients.per_km and traits.places and sites is not None and not sites.have_places:
        yield "network.clients.per_km: brokers without places have no distances (allowed: a file with latitude and longitude)"
    for table in (network.latency, network.geometry, scenario.selection):
        if hasattr(table.parameters, "unfit") and plugins.are_ours(type(table.parameters)):
            wrong = once(_unfit, table.parameters, brokers, sites)
            if wrong is not None:
                yield wrong
    if scenario.brokers.service.kind == "none" and any(
        isinstance(table.parameters, SlowFaults.Parameters) for table in scenario.faults
    ):
        yield NOT_SLOW


def overlay_misfits(
    scenario: Scenario, overlay: Dissemination | type[Dissemination], nodes_are_brokers: bool, planned: bool
) -> Iterator[str]:
    """What an overlay, or all of a class, cannot do that the scenario asks for; `planned`: brokers leave or join."""
    kind = scenario.network.geometry.kind
    if scenario.network.join == "message" and not overlay.single_root:
        yield (
            f'network.join: "message" asks the root of a topic\'s tree, but kind "{kind}" has a tree for each publisher '
            '(allowed: "instant")'
        )
    moves = isinstance(overlay, RendezvousTrees) or (isinstance(overlay, type) and issubclass(overlay, RendezvousTrees))
    if scenario.reconfiguration.kind != "none" and (nodes_are_brokers or overlay.nodes_are_brokers or not moves):
        yield (
            f'reconfiguration.kind: "{scenario.reconfiguration.kind}" moves brokers between nodes, but on geometry "{kind}" '
            'node i is always broker i (allowed: "none")'
        )
    heals = scenario.network.healing.period is not None
    if (heals or planned) and not isinstance(overlay, Healing):
        what = "network.healing:" if heals else "faults: brokers leave or join, but"
        yield f'{what} geometry "{kind}" cannot heal (allowed: a geometry with `heal`, as "chord" has)'


def _rates(network: NetworkTable) -> Iterator[str]:
    """The keys with rates in bits per second."""
    links, clients = network.links, network.clients
    rates = {
        "links.bandwidth": links.bandwidth,
        "links.interface": links.interface,
        "clients.rate": clients.rate,
        "clients.slow.rate": clients.slow.rate,
    }
    return (key for key, rate in rates.items() if rate is not None)


def _topics(scenario: Scenario, traits: Traits) -> Iterator[str]:
    """What does not fit topics."""
    if scenario.brokers.service.matching:
        yield f"brokers.service.matching: a {traits.kind} workload has topics, not content to match (allowed: 0)"
    if traits.shares and not isinstance(scenario.offloading.parameters, Unlimited):
        yield (
            "offloading.kind: topics with shared subscriptions cannot be offloaded, and this workload has shares "
            '(allowed: "none")'
        )
    if traits.absences and scenario.network.sessions.offline:
        yield "network.sessions.offline: the workload says itself when users are away (allowed: no offline)"


def _content(scenario: Scenario, traits: Traits) -> Iterator[str]:
    """What does not fit content."""
    network, has = scenario.network, f"but a {traits.kind} workload has content"
    geometry = network.geometry.parameters
    if isinstance(geometry, FloodParameters) and geometry.floods:
        yield 'network.geometry: dissemination "flood" does not carry content (allowed: "tree")'
    if strike_brokers(scenario.faults):
        yield faults_with_content(traits.kind)
    offloading = scenario.offloading
    if not isinstance(offloading.parameters, Unlimited) or offloading.parameters.tau is not None:
        yield f'offloading.kind: "{offloading.kind}" applies to topics, {has} (allowed: "none", without tau)'
    if network.sessions.offline or network.sessions.retained != SessionsTable().retained:
        yield f"network.sessions.{'offline' if network.sessions.offline else 'retained'}: applies to topics, {has}"
    if network.qos is not None and network.qos.publishers.latency:
        yield f"network.qos.publishers: applies to topics, {has} (allowed: no latency)"


def _known_sites(brokers: int | str | File[Sites], traits: Traits) -> tuple[int | None, Sites | None]:
    """The number of brokers, and their sites, where these do not depend on what is drawn."""
    if isinstance(brokers, File):
        return len(brokers.content), brokers.content
    if isinstance(brokers, str):
        return None, None
    return brokers, None if traits.places or brokers > _MOST_NAMED else unplaced(brokers)


def _unfit(parameters: Found, brokers: int | None, sites: Sites | None) -> str | None:
    """What the parameters of a plug-in say about these brokers, as a function of arguments that can be compared."""
    wrong: str | None = parameters.unfit(brokers, sites)
    return wrong


@lru_cache(maxsize=16)
def unplaced(brokers: int) -> Sites:
    """Brokers that are named by their numbers and stand nowhere."""
    nowhere = frozen(np.full(brokers, np.nan))
    return Sites(tuple(map(str, range(brokers))), nowhere, nowhere)
