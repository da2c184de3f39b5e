"""Measurement: CPU time in alternation with the alternative, medians of several runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Figure:
    """One figure and its bar; `holds` is whether the bar is met, None where it was not measured."""

    name: str
    value: str
    bar: str
    holds: bool | None


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time (s) that this process spends in `work`, garbage collected before."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def alternate(first: Callable[[], float], second: Callable[[], float], rounds: int = 5) -> tuple[float, float, float]:
    """Medians of two measurements taken in turn, and the median of their ratios pair by pair, first / second."""
    pairs = [(first(), second()) for _ in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


def family(process: int) -> list[int]:
    """The process and all its present descendants (Linux)."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # ended meanwhile
        return []
    return [process, *(descendant for child in children for descendant in family(child))]
