"""Perform runs one after another in the calling process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Self

from sim.experiments.outcomes import Progress, RunOutcome
from sim.experiments.perform import forget, perform
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store


class InProcess:
    """The engine that uses no other process."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        forget()

    def perform(self, specs: Sequence[RunSpec], tell: Progress) -> Iterator[tuple[RunSpec, RunOutcome]]:
        """As `RunEngine.perform`, in the order of `specs`."""
        for spec in specs:
            yield spec, perform(spec, self.store, partial(tell, spec))
