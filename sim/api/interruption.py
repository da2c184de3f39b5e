"""Interrupted calls keep the runs that have finished, and say where."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Interrupted(KeyboardInterrupt):
    """A call was interrupted while runs were in progress: finished ones are kept in `folder`, and the same call resumes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"interrupted; finished runs are kept in {folder}")
        self.folder = folder


@contextmanager
def keeping(folder: Path) -> Generator[None]:
    """Raise Interrupted, which names the folder of results, where the body is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(folder) from None
