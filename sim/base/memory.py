"""Available memory, so that a run that needs more ends with a message instead of being killed."""

from __future__ import annotations

import gc
import math
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.base.errors import InputError

_PAGE = os.sysconf("SC_PAGE_SIZE")
_GROUPS = Path("/sys/fs/cgroup")
_GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),  # version 1
)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Make Python collect garbage less often: a run creates millions of objects, with hardly any reference cycles."""
    before = gc.get_threshold()
    if before[0]:  # otherwise collection is off
        gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def need(size: float, what: str) -> None:
    """Raise InputError where `what` needs more bytes than are available."""
    if size > (there := available()):
        raise InputError(f"{what}: this needs about {_text(size)} of memory, available: {_text(there)}")


def available() -> float:
    """Available memory in bytes, without swapping and within the limits of this process and its container."""
    return max(0.0, min(_of_machine(), _of_container(), _of_process()))


def _text(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _of_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # all installed memory, where the system is not Linux
        return float(os.sysconf("SC_PHYS_PAGES") * _PAGE)


def _of_container() -> float:
    """Bytes left within the control group's limit, as seen by this process; file caches count as free."""
    for names in _GROUP_FILES:
        try:
            limit, used, stat = ((_GROUPS / name).read_text() for name in names)
        except OSError:
            continue
        cached = next((int(line.split()[1]) for line in stat.splitlines() if line.startswith("inactive_file ")), 0)
        return math.inf if limit.strip() == "max" else float(int(limit) - int(used) + cached)
    return math.inf


def _of_process() -> float:
    """Bytes left within `ulimit -v`."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    try:
        return float(limit - int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE)
    except OSError:
        return float(limit)
