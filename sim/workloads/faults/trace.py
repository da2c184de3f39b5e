"""Outages of brokers and cut links listed in a file, such as a trace of a real system."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.units import format_duration
from sim.files.inputs import File, InputFile, csv_rows
from sim.workloads.faults.fault import FOR_GOOD, BrokenLink, FaultSetting, Outage
from sim.workloads.faults.links import link_of


class TraceRow(NamedTuple):
    """A row of a trace with its line: a broker, or its link to another if given, is down from `start` to `end` (s)."""

    line: int
    broker: str
    other: str
    start: float
    end: float


def parse_outages(text: str) -> tuple[TraceRow, ...]:
    """Parse outages: CSV with the columns broker, down_from, and optionally up_at and other.

    Raises ValueError with the line of a mistake.
    """
    rows = []
    for row in csv_rows(text, ["broker", "down_from"], ["up_at", "other"]):
        start = row.number("down_from", least=0)
        end = row.number("up_at", above=start) if row.fields.get("up_at") else FOR_GOOD
        rows.append(TraceRow(row.line, row.text("broker"), row.fields.get("other", ""), start, end))
    return tuple(rows)


class TraceFaults:
    """Brokers crash and restart, and links are cut and restored, as listed in a file."""

    class Parameters(plugins.Parameters):
        file: Annotated[File[tuple[TraceRow, ...]], InputFile(parse_outages)]
        """A CSV file with the columns `broker` (name or number), `down_from` and `up_at` (seconds; empty: permanent), and, for cut
        links, `other`: the broker at the other end. Rows that begin at the horizon or later are left out."""

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
