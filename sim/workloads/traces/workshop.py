"""Where a pipeline works: the folder it may write to, and what is beside it until the workload is whole."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from sim.base.errors import WorkloadError
from sim.base.private import claimed_folder
from sim.spark import cause
from sim.workloads.traces.sources import Source, original

# Called with what is being done and, again and again, with how far it is ("" at its start).
TraceProgress = Callable[[str, str], None]


def iso(micros: int) -> str:
    """A time in µs since 1970 as ISO 8601, UTC, to the second."""
    return f"{np.datetime64(micros, 'us').astype('datetime64[s]')}Z"


def check_room(out: Path) -> None:
    """Raise WorkloadError unless `out` is free, an empty folder, or a workload and nothing else."""
    if not os.path.exists(out):  # nor can it, with a name that is too long: `workshop` says so
        return
    if not out.is_dir():
        raise WorkloadError(f"{out}: is a file; give a new folder")
    try:
        files = json.loads((out / "manifest.json").read_bytes())["files"]
        own = {Path(name).parts[0] for name in files} | {"manifest.json"}
    except (OSError, ValueError, TypeError, KeyError):
        own = set()
    other = sorted({entry.name for entry in out.iterdir()} - own)
    if other:
        raise WorkloadError(f"{out}: holds '{other[0]}', which is no part of a workload; give an empty or new folder")


@contextmanager
def workshop(out: Path) -> Iterator[Path]:
    """A folder beside `out`, so that a rename can move what is made there, and so that a cluster's workers see it too.

    What killed processes left of theirs for `out` is cleared away.
    """
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(claimed_folder(out.parent, f".{out.name}.", ".unfinished"))
        except OSError as error:
            raise WorkloadError(f"{out}: cannot be written ({error.strerror})") from None
        yield folder


def put_in_place(made: Path, out: Path, aside: Path) -> None:
    """Rename `made` to `out`; a workload that stands there is moved `aside` first."""
    if out.exists():
        out.rename(aside)
    made.rename(out)


@contextmanager
def blaming(sources: Sequence[Source]) -> Iterator[None]:
    """Where Spark fails because of a file, say which and why: one that does not unpack, or a value that no type of Spark holds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        for source in sources:
            if (damage := source.damage()) is not None:
                raise WorkloadError(f"{source.path}: {damage}") from None
        if read := re.search(r"reading file (?:file:)?(/\S+)", str(error)):
            file = original(Path(unquote(read[1].rstrip("."))))
            raise WorkloadError(f"{file}: cannot be read ({cause(error)})") from None
        raise
