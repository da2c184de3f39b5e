"""Problem files of `brokersim solve`: a JSON object, or a list of objects, which gives a list of solutions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from sim.base.errors import InputError
from sim.base.memory import need
from sim.base.naming import Raw, RawValue

SHOWN = 40
"""The most entries of a list that are printed."""
_BYTES = 10
"""Bytes of memory per byte of a file, as Python objects."""


def read_instances(source: Path) -> tuple[list[RawValue], bool]:
    """The objects of a JSON file, and whether they came as a list. Raises InputError where it cannot be read, or is too large."""
    try:
        need(_BYTES * source.stat().st_size, f"{source}")
        content = json.loads(source.read_bytes())
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not valid JSON ({error})") from None
    return (content, True) if isinstance(content, list) else ([content], False)


def print_solutions(solutions: list[Raw], listed: bool) -> None:
    """Print solutions as JSON: a list for a list, an object for an object."""
    print(json.dumps(solutions if listed else solutions[0], allow_nan=False))


def few(texts: Iterable[object], count: int) -> str:
    """The first entries of a list as text, and how to see the others."""
    shown = ", ".join(map(str, islice(texts, SHOWN)))
    return shown + (f", … and {count - SHOWN:,} more (all of them: --json)" if count > SHOWN else "")
