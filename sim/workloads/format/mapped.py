"""Workloads that many processes share: written once as they lie in memory, and mapped from there by all, read-only."""

from __future__ import annotations

import mmap
import os
import pickle
from pathlib import Path

from sim.workloads.format.workload import Workload

ALIGNMENT = 64  # bytes: where arrow wants its buffers to begin; numpy is content with less


def write_mapped(workload: Workload, path: Path) -> None:
    """Write a loaded workload to one file, its arrays one behind the other, for `open_mapped` of the same version.

    Arrays, numpy's and arrow's, are pickle's out-of-band buffers: whatever tables a workload has, and comes to have, is in it.
    """
    buffers: list[pickle.PickleBuffer] = []
    frame = pickle.dumps(workload, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    with path.open("wb") as file:
        pickle.dump((frame, [len(view) for view in views]), file)
        for view in views:
            file.seek(-file.tell() % ALIGNMENT, os.SEEK_CUR)
            file.write(view)


def open_mapped(path: Path) -> Workload:
    """The workload, nothing of it read before it is used: its arrays are read-only, and in memory once for all processes.

    They are plain arrays and none of `np.memmap`, whose elements take Python twice as long to fetch.
    """
    with path.open("rb") as file:
        frame, lengths = pickle.load(file)  # noqa: S301
        start = file.tell()
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    views = []
    for length in lengths:
        start += -start % ALIGNMENT
        views.append(mapped[start : start + length])
        start += length
    workload: Workload = pickle.loads(frame, buffers=views)  # noqa: S301
    return workload
