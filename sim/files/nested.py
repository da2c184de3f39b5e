"""Nested values with arrays in one file, which is safe to read, unlike a pickle."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

# Any: values of any types that JSON has, arrays, tuples and dicts among them.
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_nested(path: Path, value: object) -> None:
    """Write lists, tuples, dicts (with any keys), Counters, arrays and what JSON has; numbers of numpy become those of Python.

    Raises TypeError for other values.
    """
    arrays: list[NDArray[np.generic]] = []
    text = json.dumps(_plain(value, arrays)).encode()
    with path.open("wb") as file:
        np.savez(file, np.frombuffer(text, np.uint8), *arrays)


def read_nested(path: Path) -> Any:
    """What `write_nested` has written."""
    with np.load(path, allow_pickle=False) as found:
        arrays = [found[f"arr_{number}"] for number in range(len(found.files))]
    return _nested(json.loads(arrays[0].tobytes()), arrays)


def _plain(value: object, arrays: list[NDArray[np.generic]]) -> object:
    """The value as JSON: what JSON has not is an object with one key, its type; arrays are numbered from 1."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("arrays of objects cannot be written")
        arrays.append(value)
        return {"array": len(arrays)}
    if isinstance(value, dict):
        return {"counter" if isinstance(value, Counter) else "dict": _plain([*map(list, value.items())], arrays)}
    if isinstance(value, list | tuple):
        items = [_plain(one, arrays) for one in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    return value


def _nested(plain: Any, arrays: list[NDArray[np.generic]]) -> Any:
    if isinstance(plain, list):
        return [_nested(one, arrays) for one in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, inner),) = plain.items()
    if kind == "array":
        return arrays[inner]
    values = _nested(inner, arrays)
    if kind == "tuple":
        return tuple(values)
    return Counter(dict(values)) if kind == "counter" else dict(values)
