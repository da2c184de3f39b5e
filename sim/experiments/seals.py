"""Seals: SHA-256 sums by which a manifest vouches for itself and for the files beside it.

A manifest is a JSON file whose first key, on a line of its own, is `seal`: the sum of all bytes behind that line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sim.files.hashing import sha256_of

_LINE = re.compile(rb'\{\n  "seal": "([0-9a-f]{64})",\n')


def sealed(manifest: Mapping[str, Any]) -> tuple[str, bytes]:
    """The seal of a manifest, and the file that holds both."""
    rest = json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False).removeprefix("{\n").encode() + b"\n"
    seal = sha256_of(rest)
    return seal, f'{{\n  "seal": "{seal}",\n'.encode() + rest


def is_sealed(data: bytes) -> bool:
    """Whether a file is what was sealed."""
    line = _LINE.match(data)
    return line is not None and sha256_of(memoryview(data)[line.end() :]) == line[1].decode()
