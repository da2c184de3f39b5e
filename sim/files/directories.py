"""Folders in which several processes exchange files: on a file system that they share, or in a store that all of them reach."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Any: PyArrow has no types for its file systems and files.
from typing import Any

import pyarrow as pa
from pyarrow import fs

_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True)
class Directory:
    """A folder at a `path` of one of Arrow's file systems. It can be sent to other processes, by value."""

    system: Any
    path: str

    @property
    def local(self) -> bool:
        """Whether it is a folder of the file system, and its files can be mapped."""
        return isinstance(self.system, fs.LocalFileSystem)

    def below(self, name: str) -> Directory:
        """A folder in it, which is made."""
        inner = Directory(self.system, f"{self.path}/{name}")
        self.system.create_dir(inner.path)
        return inner

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return bool(self.system.get_file_info(f"{self.path}/{name}").type == fs.FileType.File)

    def input(self, name: str) -> Any:
        """A file, mapped where that is possible."""
        return self.system.open_input_file(f"{self.path}/{name}")

    @contextmanager
    def output(self, name: str) -> Iterator[Any]:
        """A file to be written, which is there once the body has ended; if several processes write it, the last one counts."""
        path = f"{self.path}/{name}"
        if not self.local:  # where a file is there only once it is closed
            with self.system.open_output_stream(path) as file:
                yield file
            return
        partial = f"{path}.{os.getpid()}"
        with self.system.open_output_stream(partial) as file:
            yield file
        Path(partial).replace(path)

    def sha256(self, name: str) -> str:
        """The SHA-256 of a file, as hexadecimal digits."""
        found = hashlib.sha256()
        with self.input(name) as file:
            while piece := file.read(_AT_ONCE):
                found.update(piece)
        return found.hexdigest()

    def fetch(self, names: Iterable[str], folder: Path) -> None:
        """Copy files to a folder of this machine."""
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with self.input(name) as file, (folder / name).open("wb") as copy:
                while piece := file.read(_AT_ONCE):
                    copy.write(piece)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self.has(name):
            self.system.delete_file(f"{self.path}/{name}")

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The batches of rows in a file that Arrow has streamed; none if there is no such file."""
        if self.has(name):
            with self.input(name) as file, pa.ipc.open_stream(file) as stream:
                yield from stream


def on_disk(folder: Path) -> Directory:
    """A folder of the file system."""
    return Directory(fs.LocalFileSystem(use_mmap=True), str(folder))
