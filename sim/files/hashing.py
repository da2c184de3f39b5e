"""SHA-256 sums of files and of text, as hexadecimal digits."""

from __future__ import annotations

import hashlib

from sim.files.readable import ReadableFile


def sha256(path: ReadableFile) -> str:
    """The sum of a file. Raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def sha256_of(data: str | bytes | memoryview) -> str:
    """The sum of bytes, or of text in UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
