"""Shared parts of the `brokersim prepare` commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sim.cli.options import argument, option

if TYPE_CHECKING:
    from sim.workloads.format.workload import Workload
    from sim.workloads.traces.follow_tables import Preset
    from sim.workloads.traces.layouts import Layout

Inputs = Annotated[
    list[str], argument("INPUT…", "Files, plain or compressed (gzip, bzip2, xz, zstd), folders of them, or patterns.")
]
Out = Annotated[Path, option("WORKLOAD", "The folder to write; a workload already there is replaced.")]
Append = Annotated[
    bool,
    option(
        "--append",
        "Keep the rows beside the workload, so that files of another day can join it with the same command; files that have "
        "joined it already are not read again.",
    ),
]
Columns = Annotated[
    str | None,
    option(
        "NAMES",
        "The fields in order, such as user,time,_,latitude (_ skips one), or by their names in the file, such as "
        "user=label,time=ts (Parquet, JSON lines, and text with a header). A time in several columns is date, or weekday, and "
        "clock or minute.",
    ),
]
FORMAT = "The layout of the files, by a name below; other layout options override it. [default: detected from the first file]"


def layouts(presets: Iterable[Layout | Preset]) -> list[tuple[str, str]]:
    """The names and descriptions of presets and plain layouts."""
    from sim.workloads.traces.layouts import PLAIN

    return [(layout.name, layout.text) for layout in (*presets, *PLAIN.values())]


def rows_said(workload: Workload) -> str:
    """A text about what became of a trace's rows."""
    from sim.workloads.traces.quarantine import describe_reasons

    rows = workload.rows or {}
    quarantined, left_out = rows.get("quarantined", {}), rows.get("left_out", {})
    counts = f"{rows['read']:,} rows read, {rows['kept']:,} kept, {sum(quarantined.values()):,} quarantined"
    said = f"{counts} ({reasons})" if (reasons := describe_reasons(quarantined)) else counts
    return f"{said}, {sum(left_out.values()):,} left out ({describe_reasons(left_out)})" if left_out else said
