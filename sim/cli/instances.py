"""Problem files of `brokersim solve`: a JSON object, or a list of objects, which gives a list of solutions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.memory import need

_BYTES = 10
"""Bytes of memory per byte of a file, once its numbers and lists are objects."""


def read_instances(source: Path) -> tuple[list[Any], bool]:
    """The objects of a JSON file, and whether they came as a list. Raises InputError where it cannot be read, or is too large."""
    try:
        need(_BYTES * source.stat().st_size, f"{source}")
        content = json.loads(source.read_bytes())
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not valid JSON ({error})") from None
    return (content, True) if isinstance(content, list) else ([content], False)


def print_solutions(solutions: list[dict[str, Any]], listed: bool) -> None:
    """Print solutions as JSON: a list for a list, an object for an object."""
    print(json.dumps(solutions if listed else solutions[0], allow_nan=False))
