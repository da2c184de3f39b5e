"""Seals: SHA-256 sums by which a manifest vouches for itself and for the files beside it.

A manifest is a JSON file whose first key, on a line of its own, is `seal`: the sum of all bytes after that line. A page beside
results has the seals of the results that it shows, so that an outdated one is detected and removed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sim.base.naming import Raw
from sim.files.hashing import sha256_of

_LINE = re.compile(rb'\{\n  "seal": "([0-9a-f]{64})",\n')

_SHOWN = re.compile(rb'<meta name="brokersim-results" content="([0-9a-f ]+)">')
_HEAD = 4096


def sealed(manifest: Raw) -> tuple[str, bytes]:
    """The seal of a manifest, and the file's bytes with both."""
    rest = json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False).removeprefix("{\n").encode() + b"\n"
    seal = sha256_of(rest)
    return seal, f'{{\n  "seal": "{seal}",\n'.encode() + rest


def is_sealed(data: bytes) -> bool:
    """Whether a file is unchanged since it was sealed."""
    line = _LINE.match(data)
    return line is not None and sha256_of(memoryview(data)[line.end() :]) == line[1].decode()


def remove_stale(folder: Path, seal: str) -> list[Path]:
    """Remove the pages in a folder whose seal is not this one; return their paths.

    Pages without a seal are left alone. Raises OSError where one cannot be removed.
    """
    stale = [page for page in sorted(folder.glob("*.html")) if not _shows(page, seal)]
    for page in stale:
        page.unlink()
    return stale


def _shows(page: Path, seal: str) -> bool:
    try:
        with page.open("rb") as file:
            found = _SHOWN.search(file.read(_HEAD))
    except OSError:
        return True
    return found is None or seal in found[1].decode().split()
