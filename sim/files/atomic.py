"""Write files atomically: they appear under their names only once they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.base.errors import InputError


@contextmanager
def whole_file(path: Path, error: type[InputError] = InputError) -> Iterator[Path]:
    """A temporary file beside `path` that replaces it when the body is done; removed if the body fails.

    Raises `error` where it cannot be written, or where `path` is a pipe or a device, which a file must not replace.
    """
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path  # a link is kept, and its target is written
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise error(f"{path}: a pipe or a device; name a file to write")
        with replacing(target, unfinished):
            yield unfinished
    except OSError as problem:
        raise error(f"{path}: cannot be written ({problem.strerror})") from None


@contextmanager
def replacing(target: Path, unfinished: Path) -> Iterator[None]:
    """Let `unfinished`, which the body writes, take the place of `target`; it is removed if the body fails."""
    try:
        yield
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def check_name(path: str | Path, error: type[InputError] = InputError) -> None:
    """Raise `error` where a path is not valid UTF-8: tables, charts and JSON cannot hold such a name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise error(f"'{shown}': not valid UTF-8; name files and folders in UTF-8") from None
