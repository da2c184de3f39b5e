"""What workload generators promise; of those from elsewhere it is checked, as it is of workloads that are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sim.base.errors import PluginError, WorkloadError
from sim.base.randomness import Streams
from sim.plugins import described
from sim.workloads.format.workload import Workload, validate

if TYPE_CHECKING:
    _Kind: Any
else:
    _Kind = object


class Generator(Protocol):
    """Makes a workload from random streams. Plug-in group `brokersim.workload`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is made by `Generator(parameters)`.
    """

    def generate(self, streams: Streams) -> Workload:
        """The workload, in the format's order: the same for the same streams."""


class WatchedGenerator(_Kind):  # type: ignore[misc]
    """Stands before a generator's class and raises PluginError where what it makes is no workload."""

    def generate(self, streams: Streams) -> Workload:
        workload = super().generate(streams)
        if not isinstance(workload, Workload):
            raise PluginError(f"{described(type(self))}: generate returned {workload!r}, expected a Workload")
        try:
            validate(workload, Path())
        except WorkloadError as error:
            raise PluginError(f"{described(type(self))}: {error}") from None
        return workload
