"""Options of the pipeline of check-ins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sim.workloads.models.location import LARGEST_CELL, SMALLEST_CELL
from sim.workloads.traces.checkins import Box
from sim.workloads.traces.trace_options import LARGEST_INT32, TraceOptions
from sim.workloads.traces.user_filters import UserFilters

Publishing = Literal["per-visit", "per-check-in"]


@dataclass(frozen=True)
class CheckinOptions(TraceOptions):
    """Which part of a trace is used, and how.

    `cell` is the side of a cell in degrees; check-ins outside of `box` are not used, nor those of users who do not pass the `filters`;
    each user gets `friends` friends; `seed` is that of all draws.
    """

    cell: float = 1.0
    box: Box | None = None
    filters: UserFilters = field(default_factory=UserFilters)
    friends: int = 4
    seed: int = 1
    publications: Publishing = "per-visit"

    def __post_init__(self) -> None:
        self.check("cell", SMALLEST_CELL, LARGEST_CELL)
        self.check("friends", 0, LARGEST_INT32)
        super().__post_init__()
