"""What a workload has, as far as it decides which scenarios it fits; for synthetic ones, before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from sim.workloads.format.workload import Workload


@dataclass(frozen=True)
class Traits:
    """Whether a workload of some kind is content instead of topics, and has what scenarios may need."""

    kind: str
    content: bool = False
    places: bool = False
    """Some topic has a place."""
    bytes: bool = True
    """Some publication has a size, or there is none."""
    shares: bool = False
    """Some subscription is shared."""
    absences: bool = False
    """Some user is away at some time."""


@runtime_checkable
class HasTraits(Protocol):
    """Parameters of a generator that determine the traits of its workloads."""

    def traits(self, kind: str) -> Traits:
        """The traits of all workloads of these parameters; `kind` is the generator's."""


def traits_of(workload: Workload) -> Traits:
    """The traits of an existing workload."""
    sizes = workload.publications.size
    return Traits(
        workload.kind,
        workload.content is not None,
        not np.isnan(workload.topics.latitude).all(),
        not len(sizes) or bool(sizes.any()),
        bool(len(workload.shares)),
        bool(len(workload.absences)),
    )
