"""The kernel's accounting of tasks: for how long they ran, and for how long they waited for a core while they could have run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sim.calibration.mqtt import BrokerError

_LINE = 80  # bytes that three numbers take at most


class TaskTimes:
    """How long tasks ran and waited, from their files `schedstat` (Linux), which stay open."""

    def __init__(self, files: list[Path]) -> None:
        self._open = [os.open(file, os.O_RDONLY) for file in files]

    def read(self) -> tuple[int, int]:
        """The time (ns) that the tasks ran, and waited for a core, since they began."""
        ran = waited = 0
        for file in self._open:
            try:
                one, other, *_ = os.pread(file, _LINE, 0).split()
            except (OSError, ValueError):
                continue  # the task has ended
            ran += int(one)
            waited += int(other)
        return ran, waited

    def close(self) -> None:
        """Close the files."""
        for file in self._open:
            os.close(file)
        self._open = []


def times_of_this_thread() -> TaskTimes:
    """The times of the calling thread; none where the system keeps no such accounts."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return TaskTimes([file] if file.exists() else [])


def times_of_process(process: int) -> TaskTimes:
    """The times of all threads of a process. Raises BrokerError where there is no such process or account."""
    folder = Path(f"/proc/{process}/task")
    try:
        return TaskTimes([task / "schedstat" for task in sorted(folder.iterdir())])
    except OSError as error:
        what = "no such process on this machine" if not folder.exists() else f"cannot be read ({error.strerror})"
        raise BrokerError(f"--pid {process}: {what} (allowed: the number of the broker's process, on Linux)") from None


class Cores(NamedTuple):
    """The cores that a client uses and those that a broker may use; empty where that is not known."""

    client: frozenset[int]
    broker: frozenset[int]

    @property
    def apart(self) -> bool:
        """Whether broker and client never share a core."""
        return bool(self.client and self.broker) and not self.client & self.broker


@contextmanager
def pinned(process: int | None) -> Iterator[Cores]:
    """Keep the calling thread on one core while the body runs, if possible one that the process may not use."""
    if not hasattr(os, "sched_setaffinity"):
        yield Cores(frozenset(), frozenset())
        return
    before = os.sched_getaffinity(0)
    try:
        others = frozenset(os.sched_getaffinity(process)) if process else frozenset()
    except OSError:
        others = frozenset()
    own = max(before - others or before)
    os.sched_setaffinity(0, {own})
    try:
        yield Cores(frozenset({own}), others)
    finally:
        os.sched_setaffinity(0, before)
