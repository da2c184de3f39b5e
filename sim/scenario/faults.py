"""Mistakes in [[faults]] that are known from the scenario alone, before there is a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.validation import Mistake
from sim.overlay.sites import Sites
from sim.scenario.kinds import Table
from sim.workloads.faults.fault import Fault, FaultSetting
from sim.workloads.faults.lifetimes import LifetimeFaults
from sim.workloads.faults.members import JoinFaults, LeaveFaults
from sim.workloads.faults.outages import ManagerFaults
from sim.workloads.faults.schedule import impossible
from sim.workloads.faults.timed import BeginningParameters
from sim.workloads.faults.trace import TraceFaults


def faults_wrong(
    tables: Sequence[Table], brokers: int | Sites, horizon: float, named: bool = True
) -> Iterator[Mistake]:
    """What is wrong with faults of these brokers, or of this number of them, up to a horizon (s); third-party kinds are not asked.

    Where only their number is known, and they are `named` by the workload, tables that name brokers are not checked.
    """
    names, regions = (
        (brokers.names, brokers.regions) if isinstance(brokers, Sites) else (tuple(map(str, range(brokers))), None)
    )
    setting, found = FaultSetting(names, regions, horizon, 0), list[Sequence[Fault]]()
    for place, table in enumerate(tables):
        found.append(())
        kind = plugins.load("faults", table.kind)
        if not plugins.are_ours(kind) or (
            named and isinstance(brokers, int) and not all(map(_numbered, _named(table)))
        ):
            continue
        try:
            model = kind(table.parameters)
            if isinstance(model, LifetimeFaults):
                model.failing(setting)
            else:
                found[-1] = model.faults(setting)
        except ScenarioError as error:
            yield ("faults", place), str(error)
    if wrong := impossible(found, names):
        yield ("faults", wrong[0]), wrong[1]


def strike_brokers(tables: Sequence[Table]) -> bool:
    """Whether anything but the manager is to fail; third-party kinds are not asked."""
    kinds = [table.parameters for table in tables if plugins.are_ours(type(table.parameters))]
    return not all(isinstance(parameters, ManagerFaults.Parameters) for parameters in kinds)


def plans_members(tables: Sequence[Table]) -> bool:
    """Whether brokers are to leave or join; third-party kinds are not asked."""
    return any(isinstance(table.parameters, LeaveFaults.Parameters | JoinFaults.Parameters) for table in tables)


def _named(table: Table) -> Iterator[int | str]:
    """The brokers that a table names."""
    yield from getattr(table.parameters, "brokers", None) or ()
    yield from (broker for link in getattr(table.parameters, "links", ()) for broker in link)
    if isinstance(table.parameters, TraceFaults.Parameters):
        yield from (name for row in table.parameters.file.content for name in (row.broker, row.other) if name)


def _numbered(broker: int | str) -> bool:
    return isinstance(broker, int) or broker.isdecimal()


def too_late(tables: Sequence[Table], horizon: float) -> Iterator[Mistake]:
    """Faults that begin after a horizon (s), or repeat too often up to it."""
    for place, table in enumerate(tables):
        if isinstance(table.parameters, BeginningParameters) and (wrong := table.parameters.wrong(horizon)):
            yield ("faults", place), wrong
