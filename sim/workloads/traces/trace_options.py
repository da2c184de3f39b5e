"""Options that all pipelines share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.base.errors import WorkloadError
from sim.workloads.traces.times import Window, iso

LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True)
class TraceOptions:
    """Which part of a trace is used, and how: rows of a `window`, publications of `size` bytes if the trace has no sizes.

    With `append`, rows are kept in the workload's folder, and join those that are kept there already. `work` is the URL of a folder
    in a store for what tasks exchange, instead of one beside the workload.
    """

    window: Window = (None, None)
    size: int = 100
    append: bool = field(default=False, kw_only=True)
    work: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Raises WorkloadError where an option is out of its limits."""
        self.check("size", 0, LARGEST_INT32)

    def check(self, option: str, least: float, most: float) -> None:
        """Raise WorkloadError unless an option is within limits."""
        if not least <= (value := getattr(self, option)) <= most:
            raise WorkloadError(f"--{option} is {value}, allowed: {least} to {most}")

    @property
    def span(self) -> list[str | None]:
        """The window, as it stands in a manifest."""
        return [None if time is None else iso(time) for time in self.window]
