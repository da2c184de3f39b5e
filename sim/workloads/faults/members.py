"""Planned changes of the network: brokers that leave it, brokers that join it, and what is impossible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal

from pydantic import Field

from sim.base.errors import ScenarioError
from sim.base.units import Duration, format_duration, unit
from sim.workloads.faults.fault import FOR_GOOD, Drain, Fault, FaultSetting, Join, Outage
from sim.workloads.faults.timed import BeginningParameters, BrokerReferences

Rate = Annotated[float, Field(gt=0, le=2**53)]


class LeaveFaults:
    """Brokers leave the network as planned, one after the other: users, topics and places in trees move to others."""

    class Parameters(BeginningParameters):
        brokers: BrokerReferences
        """A broker, by number or name, or a list of them, of which each leaves when the one before has left."""
        rate: Rate | None = Field(default=None, json_schema_extra=unit("1/s"))
        """How many users are moved per second; all at once by default."""
        grace: Duration = 30.0
        """How long a broker stays up once its users have left, to serve what is on its way to it, and again once its topics have."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Drain]:
        given = self._parameters
        brokers = tuple(dict.fromkeys(map(setting.broker, given.brokers)))
        return [
            Drain(start, FOR_GOOD, brokers, given.rate, given.grace, FOR_GOOD, leaves=True)
            for start in given.starts(setting.horizon)
        ]


class JoinFaults:
    """Brokers join the network as planned, which they are no part of until then: topics, places in trees and users move to them."""

    class Parameters(BeginningParameters):
        brokers: BrokerReferences
        """A broker, by number or name, or a list of them, which join simultaneously."""
        users: Literal["none", "policy", "share", "region"] = "none"
        """Which users move there: none, so that it gets users only by later decisions; those whom the selection policy sends there; or
        one by one from the broker with the most users, until it has its share, of all brokers or of those of its region."""
        rate: Rate | None = Field(default=None, json_schema_extra=unit("1/s"))
        """How many users move to each of them per second; all at once by default."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Join]:
        given = self._parameters
        if given.users == "region" and setting.regions is None:
            raise ScenarioError(
                "users: these brokers have no regions "
                '(allowed: "share", or network.brokers = a CSV file with the columns broker and region)'
            )
        users: Literal["none", "policy", "share"] = "share" if given.users == "region" else given.users
        return [
            Join(start, FOR_GOOD, broker, given.rate, users, self._among(setting, broker))
            for broker in dict.fromkeys(map(setting.broker, given.brokers))
            for start in given.starts(setting.horizon)
        ]

    def _among(self, setting: FaultSetting, broker: int) -> frozenset[int]:
        """The brokers whose users may move."""
        if self._parameters.users != "region" or setting.regions is None:
            return frozenset(range(setting.brokers))
        own = setting.regions[broker]
        return frozenset(other for other, region in enumerate(setting.regions) if region == own)


def members_wrong(tables: Sequence[Sequence[Fault]], names: Sequence[str]) -> tuple[int, str] | None:
    """The first table with a planned change that is impossible, and what is wrong; None where there is none."""
    return next(chain(_out_of_order(tables, names), _nobody_left(tables, len(names))), None)


def _out_of_order(tables: Sequence[Sequence[Fault]], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Brokers that join or leave twice, leave before they join, or fail before they are there."""
    joins: dict[int, tuple[float, int]] = {}
    leaves: dict[int, tuple[float, int]] = {}
    brokers: tuple[int, ...]
    for place, fault in _in_time(tables):
        if isinstance(fault, Join):
            known, brokers, what = joins, (fault.broker,), "join"
        elif isinstance(fault, Drain) and fault.leaves:
            known, brokers, what = leaves, fault.brokers, "leave"
        else:
            continue
        for broker in brokers:
            at = f"broker {names[broker]} is to {what} at {format_duration(fault.start)}"
            if broker in known:
                again, by = known[broker]
                yield place, f"{at}, but {what}s at {format_duration(again)} by faults[{by}] (allowed: once)"
            if what == "join" and not fault.start:
                yield place, f"{at}, without having been absent (allowed: times after 0)"
            if what == "join" and broker in leaves:
                again, by = leaves[broker]
                yield (
                    place,
                    f"{at}, but is there until it leaves at {format_duration(again)} by faults[{by}] "
                    "(allowed: a broker that is absent from the start)",
                )
            known[broker] = fault.start, place
    for place, fault in _in_time(tables):
        early: tuple[int, ...] = ()
        if isinstance(fault, Outage) and fault.listed:
            early, what = (fault.broker,), "crash"
        elif isinstance(fault, Drain):
            early, what = fault.brokers, "leave" if fault.leaves else "be drained"
        for broker in early:
            time, by = joins.get(broker, (-math.inf, 0))
            if fault.start <= time:
                yield (
                    place,
                    f"broker {names[broker]} is to {what} at {format_duration(fault.start)}, but only joins at "
                    f"{format_duration(time)} by faults[{by}] (allowed: later)",
                )


def _nobody_left(tables: Sequence[Sequence[Fault]], brokers: int) -> Iterator[tuple[int, str]]:
    """The table after which no broker would be left."""
    there = set(range(brokers))
    for place, fault in _in_time(tables):
        if isinstance(fault, Join):
            there.discard(fault.broker)
            if not there:
                yield (
                    place,
                    f"all brokers are to join ({brokers} of {brokers}; allowed: all but one that is there before)",
                )
    for place, fault in _in_time(tables):
        if isinstance(fault, Join):
            there.add(fault.broker)
        elif isinstance(fault, Drain) and fault.leaves:
            there.difference_update(fault.brokers)
            if not there:
                yield place, f"the last broker is to leave at {format_duration(fault.start)} (allowed: all but one)"


def _in_time(tables: Sequence[Sequence[Fault]]) -> list[tuple[int, Fault]]:
    """All faults with their tables, by their beginning; brokers join first."""
    rows = [(place, fault) for place, faults in enumerate(tables) for fault in faults]
    return sorted(rows, key=lambda row: (row[1].start, not isinstance(row[1], Join), row[0]))
