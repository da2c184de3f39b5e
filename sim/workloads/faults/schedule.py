"""The schedule of a run's faults: the changes and their times, with all faults combined."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.units import format_duration
from sim.workloads.faults.fault import (
    BrokenLink,
    DeadManager,
    Drain,
    Fault,
    Join,
    Losses,
    Outage,
    Partition,
    Slowdown,
)
from sim.workloads.faults.members import members_wrong

RESTART, MEND, LOSS, SLOW_DOWN, CRASH, CUT, MANAGER_BACK, MANAGER_DEAD, DRAIN, JOIN = range(10)
"""The actions, in their order at one time."""
_NAMES = ("restart", "mend", "loss", "slow", "crash", "cut", "manager back", "manager dead", "drain", "join")

_Level = TypeVar("_Level", bool, float)


@dataclass(frozen=True, eq=False)
class FaultSchedule:
    """Effective changes in order of (time, action, target, other).

    `time` (s) is in [0, horizon). `target` is the broker of RESTART, CRASH and SLOW_DOWN, and the lower broker of a link (MEND,
    CUT), with the `other`, or a partition if `other` is -1; and -1 for LOSS and the manager. `value` is the new probability of
    LOSS, the new factor of service times of SLOW_DOWN, else 0. Partition p cuts the links between all brokers with different
    `sides[p]` (partitions, brokers). A link is cut while any fault cuts it. The `target` of DRAIN is one of the `drains`, that of
    JOIN one of the `joins`; of both only the beginning is known.
    """

    time: NDArray[np.float64]
    action: NDArray[np.int8]
    target: NDArray[np.int32]
    other: NDArray[np.int32]
    value: NDArray[np.float64]
    sides: NDArray[np.bool_]
    drains: tuple[Drain, ...] = ()
    joins: tuple[Join, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    def has(self, action: int) -> bool:
        """Whether an action is ever taken."""
        return bool((self.action == action).any())

    @property
    def strikes_brokers(self) -> bool:
        """Whether anything but the manager ever fails."""
        return not np.isin(self.action, (MANAGER_BACK, MANAGER_DEAD)).all()

    @property
    def changes_members(self) -> bool:
        """Whether brokers leave or join as planned."""
        return bool(self.joins) or any(drain.leaves for drain in self.drains)

    @property
    def manager_dead(self) -> list[tuple[float, float]]:
        """The spans (s) in which the manager is dead, in order, the last one infinite if it does not return."""
        starts, ends = (self.time[self.action == action].tolist() for action in (MANAGER_DEAD, MANAGER_BACK))
        return list(zip_longest(starts, ends, fillvalue=math.inf))

    def table(self, more: Sequence[tuple[float, str, int, float]] = ()) -> Columns:
        """What happens when, as columns of a table; `brokers` are the one, both ends of a link, or the smaller side of a partition.

        `more` are further rows, of what was not known beforehand: what happened when, to which broker, and a value.
        """
        rows = zip(
            *(column.tolist() for column in (self.time, self.action, self.target, self.other, self.value)), strict=True
        )
        known = [
            (time, _NAMES[row[0]], self._concerned(*row), value)
            for time, *row, value in rows
            if row[0] not in (DRAIN, JOIN)
        ]
        added = [(time, what, [broker], value) for time, what, broker, value in more]
        time, what, brokers, value = (
            zip(*sorted(known + added, key=lambda row: row[0]), strict=True) if known or added else ((),) * 4
        )
        return {
            "time": np.array(time, np.float64),
            "what": pa.array(what, pa.string()),
            "brokers": pa.array(brokers, pa.list_(pa.int32())),
            "value": np.array(value, np.float64),
        }

    def _concerned(self, action: int, target: int, other: int) -> list[int]:
        if action in (CUT, MEND) and other < 0:
            side = self.sides[target]
            found: list[int] = np.flatnonzero(side if 2 * np.count_nonzero(side) <= len(side) else ~side).tolist()
            return found
        return [broker for broker in (target, other) if broker >= 0]


class _Change(NamedTuple):
    time: float
    action: int
    target: int = -1
    other: int = -1
    value: float = 0.0


def resolve_faults(faults: Iterable[Fault], brokers: int, horizon: float, loss: float = 0.0) -> FaultSchedule:
    """The schedule of faults up to a horizon (s), for links that lose messages with probability `loss` without faults.

    A broker is down while any of its outages lasts, and a link or partition is cut likewise; the largest loss applies, and
    slowdowns are multiplied.
    """
    groups: defaultdict[Hashable, list[Fault]] = defaultdict(list)
    for fault in faults:
        groups[_what(fault, brokers)].append(fault)
    changes: list[_Change] = []
    sides: list[NDArray[np.bool_]] = []
    drains: list[Drain] = []
    joins: list[Join] = []
    for what in sorted(groups, key=repr):
        own = groups[what]
        match own[0]:
            case Outage(broker=broker):
                changes += _on_and_off(own, CRASH, RESTART, broker)
            case BrokenLink(one=one, other=other):
                changes += _on_and_off(own, CUT, MEND, min(one, other), max(one, other))
            case Partition(side=side):
                changes += _on_and_off(own, CUT, MEND, len(sides))
                sides.append(_side(side, brokers))
            case Losses():
                rates = [fault.probability for fault in own if isinstance(fault, Losses)]
                levels = _levels(own, rates, lambda lasting: max([loss, *lasting.values()]), loss)
                changes += [_Change(time, LOSS, value=rate) for time, rate in levels]
            case Slowdown(broker=broker):
                factors = [fault.factor for fault in own if isinstance(fault, Slowdown)]
                levels = _levels(own, factors, lambda lasting: math.prod(sorted(lasting.values())), 1.0)
                changes += [_Change(time, SLOW_DOWN, broker, value=factor) for time, factor in levels]
            case DeadManager():
                changes += _on_and_off(own, MANAGER_DEAD, MANAGER_BACK, -1)
            case Drain():
                drains = sorted(
                    (fault for fault in own if isinstance(fault, Drain)), key=lambda drain: (drain.start, repr(drain))
                )
                changes += [_Change(drain.start, DRAIN, number) for number, drain in enumerate(drains)]
            case Join():
                joins = sorted(
                    (fault for fault in own if isinstance(fault, Join)), key=lambda join: (join.start, join.broker)
                )
                changes += [_Change(join.start, JOIN, number) for number, join in enumerate(joins)]
    changes = sorted(change for change in changes if change.time < horizon)
    return _schedule(changes, np.array(sides, np.bool_).reshape(-1, brokers), drains, joins)


def _what(fault: Fault, brokers: int) -> Hashable:
    """The target of a fault; faults of the same target are combined."""
    match fault:
        case Outage(broker=broker) | Slowdown(broker=broker):
            return type(fault).__name__, broker
        case BrokenLink(one=one, other=other):
            return "BrokenLink", min(one, other), max(one, other)
        case Partition(side=side):
            return "Partition", _side(side, brokers).tobytes()
    return type(fault).__name__


def _side(side: frozenset[int], brokers: int) -> NDArray[np.bool_]:
    """The side of each broker; that of broker 0 is False, so that a partition is the same whichever side was named."""
    found = np.zeros(brokers, np.bool_)
    found[sorted(side)] = True
    apart: NDArray[np.bool_] = found != found[0]
    return apart


def faults_with_content(kind: str) -> str:
    """The sentence about faults of a workload of this kind, which has content."""
    return f"faults: a {kind} workload has content, for which faults are not supported yet (allowed: topics)"


def impossible(tables: Sequence[Sequence[Fault]], names: Sequence[str]) -> tuple[int, str] | None:
    """The first table with faults that contradict others, and what is wrong; None where there is none."""
    return _overlapping(tables, names) or members_wrong(tables, names) or next(_drained_in_vain(tables, names), None)


def _overlapping(tables: Sequence[Sequence[Fault]], names: Sequence[str]) -> tuple[int, str] | None:
    """The first table with a listed outage that overlaps another of its broker."""
    listed = [
        (fault.broker, fault.start, place, fault.end)
        for place, faults in enumerate(tables)
        for fault in faults
        if isinstance(fault, Outage) and fault.listed
    ]
    for (broker, start, place, end), (other, again, table, _) in pairwise(sorted(listed)):
        if broker == other and again < end:
            until = "permanently" if math.isinf(end) else f"until {format_duration(end)}"
            return table, (
                f"broker {names[broker]} is to crash at {format_duration(again)}, but is down from {format_duration(start)} "
                f"{until} by faults[{place}] (allowed: outages of one broker that do not overlap)"
            )
    return None


def _drained_in_vain(tables: Sequence[Sequence[Fault]], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Drains of brokers that are down by then, and stay so."""
    rows = [(place, fault) for place, faults in enumerate(tables) for fault in faults]
    gone: dict[int, tuple[float, int, str]] = {}
    for place, fault in sorted(rows, key=lambda row: (row[1].start, isinstance(row[1], Drain), row[0])):
        if isinstance(fault, Outage) and fault.listed and math.isinf(fault.end):
            gone[fault.broker] = fault.start, place, "crashes permanently"
        elif isinstance(fault, Drain):
            for broker in fault.brokers:
                if broker in gone and not fault.leaves:
                    start, by, how = gone[broker]
                    yield (
                        place,
                        f"broker {names[broker]} is to be drained at {format_duration(fault.start)}, but {how} at "
                        f"{format_duration(start)} by faults[{by}] (allowed: a broker that is up, or will be)",
                    )
                if math.isinf(fault.down):
                    gone[broker] = fault.start, place, "leaves" if fault.leaves else "is drained permanently"


def _on_and_off(faults: Sequence[Fault], on: int, off: int, target: int, other: int = -1) -> list[_Change]:
    levels = _levels(faults, [True] * len(faults), lambda lasting: len(lasting) > 0, False)
    return [_Change(time, on if level else off, target, other) for time, level in levels]


def _levels(
    faults: Sequence[Fault], values: Sequence[_Level], combine: Callable[[Mapping[int, _Level]], _Level], level: _Level
) -> Iterator[tuple[float, _Level]]:
    """The times at which the combined level of faults changes, with the new levels; before the first it is `level`."""
    edges = [(fault.start, True, number) for number, fault in enumerate(faults) if fault.start < fault.end]
    edges += [(fault.end, False, number) for number, fault in enumerate(faults) if fault.start < fault.end]
    lasting: dict[int, _Level] = {}
    for time, group in groupby(sorted(edges), key=lambda edge: edge[0]):
        for _, starts, number in group:
            if starts:
                lasting[number] = values[number]
            else:
                del lasting[number]
        now = combine(lasting)
        if now != level:
            yield time, now
            level = now


def _schedule(
    changes: Sequence[_Change], sides: NDArray[np.bool_], drains: Sequence[Drain], joins: Sequence[Join]
) -> FaultSchedule:
    time, action, target, other, value = zip(*changes, strict=True) if changes else ((),) * 5
    columns = (
        np.array(time, np.float64),
        np.array(action, np.int8),
        np.array(target, np.int32),
        np.array(other, np.int32),
        np.array(value, np.float64),
        sides,
    )
    for column in columns:
        column.flags.writeable = False
    return FaultSchedule(*columns, tuple(drains), tuple(joins))
