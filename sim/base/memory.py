"""How much memory there is still to take, so that what needs more ends in a sentence and not in a killed process."""

from __future__ import annotations

import math
import os
import resource
from pathlib import Path

from sim.base.errors import InputError

_PAGE = os.sysconf("SC_PAGE_SIZE")
_GROUPS = Path("/sys/fs/cgroup")
_GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),  # version 1
)


def need(size: float, what: str) -> None:
    """Raise InputError where `what` needs more bytes than there are."""
    if size > (there := available()):
        raise InputError(f"{what}: this needs about {_told(size)} of memory, available: {_told(there)}")


def available() -> float:
    """Bytes: what the machine can give without swapping, as far as this process and its container are allowed to take it."""
    return max(0.0, min(_of_machine(), _of_container(), _of_process()))


def _told(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _of_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # no Linux: all that is built in
        return float(os.sysconf("SC_PHYS_PAGES") * _PAGE)


def _of_container() -> float:
    """By the limit of the control group in which it lives, as it sees it; caches of files give way."""
    for names in _GROUP_FILES:
        try:
            limit, used, stat = ((_GROUPS / name).read_text() for name in names)
        except OSError:
            continue
        cached = next((int(line.split()[1]) for line in stat.splitlines() if line.startswith("inactive_file ")), 0)
        return math.inf if limit.strip() == "max" else float(int(limit) - int(used) + cached)
    return math.inf


def _of_process() -> float:
    """By `ulimit -v`."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    try:
        return float(limit - int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE)
    except OSError:
        return float(limit)
