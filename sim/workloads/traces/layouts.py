"""How files of check-ins are written: a description per layout, which the pipeline reads and never asks for by name."""

from __future__ import annotations

from dataclasses import dataclass

USED = ("user", "time", "latitude", "longitude")


@dataclass(frozen=True)
class Layout:
    """Text files with one check-in a line, fields parted by `delimiter`, no quoting, no header.

    `columns` names the fields in order; those of `USED` must be among them, others are read over. `time_format` is a
    datetime pattern of Spark (times without a zone are UTC), `time_example` shows it to people.
    """

    name: str
    columns: tuple[str, ...]
    delimiter: str
    time_format: str
    time_example: str


GOWALLA = Layout(
    name="gowalla",
    columns=("user", "time", "latitude", "longitude", "place"),
    delimiter="\t",
    time_format="yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
    time_example="2010-10-19T23:55:27Z",
)

LAYOUTS = {layout.name: layout for layout in (GOWALLA,)}
