"""What is asked of files that are read, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Literal, Protocol


class ReadableFile(Protocol):
    """What is asked of a file that is read, a `Path` or a `StoreFile`."""

    @property
    def name(self) -> str:
        """Its last part."""
        ...

    @property
    def suffixes(self) -> Sequence[str]:
        """The endings of its name."""
        ...

    def __fspath__(self) -> str:
        """What stands for it where files are named."""
        ...

    def __hash__(self) -> int: ...

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """Its bytes."""
        ...
