"""Outages of brokers and cut links that a file lists, as a trace of a real system does."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.units import format_duration
from sim.files.inputs import File, InputFile, csv_rows
from sim.workloads.faults.fault import FOR_GOOD, BrokenLink, FaultSetting, Outage
from sim.workloads.faults.links import link_of


class TraceRow(NamedTuple):
    """A row of a trace, and its line: a broker is down from `start` to `end` (s), or its link to another, where there is one."""

    line: int
    broker: str
    other: str
    start: float
    end: float


def parse_outages(text: str) -> tuple[TraceRow, ...]:
    """The rows of a CSV text with a header: broker, down_from, and perhaps up_at and other.

    Raises ValueError with the line of a mistake.
    """
    rows = []
    for row in csv_rows(text, ["broker", "down_from"], ["up_at", "other"]):
        start = row.number("down_from", least=0)
        end = row.number("up_at", above=start) if row.fields.get("up_at") else FOR_GOOD
        rows.append(TraceRow(row.line, row.text("broker"), row.fields.get("other", ""), start, end))
    return tuple(rows)


class TraceFaults:
    """Brokers crash and restart, and links are cut and mended, as a file lists it."""

    class Parameters(plugins.Parameters):
        file: Annotated[File[tuple[TraceRow, ...]], InputFile(parse_outages)]
        """A CSV file with the columns `broker` (name or number), `down_from` and `up_at` (seconds; empty: for good), and `other` where
        links are cut: the broker at the other end. Rows that begin at the horizon or later are left out."""

    def __init__(self, parameters: Parameters) -> None:
        self._file = parameters.file

    def faults(self, setting: FaultSetting) -> list[Outage | BrokenLink]:
        found: list[Outage | BrokenLink] = []
        for row in self._file.content:
            try:
                if row.other:
                    fault: Outage | BrokenLink = BrokenLink(
                        row.start, row.end, *link_of(setting, row.broker, row.other)
                    )
                else:
                    fault = Outage(row.start, row.end, setting.broker(row.broker), listed=True)
            except ScenarioError as error:
                raise ScenarioError(f"file: {self._file.name}, line {row.line}: {error}") from None
            if row.start < setting.horizon:
                found.append(fault)
        if not found:
            horizon = format_duration(setting.horizon)
            first = format_duration(min(row.start for row in self._file.content))
            raise ScenarioError(
                f"file: {self._file.name}: expected rows before the horizon ({horizon}), found the first at {first}"
            )
        return found
