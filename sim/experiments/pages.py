"""Pages beside results: each carries the seal of the results it shows, so that an outdated page is detected and removed."""

from __future__ import annotations

import re
from pathlib import Path

NAME = "brokersim-results"
_SHOWN = re.compile(rf'<meta name="{NAME}" content="([0-9a-f ]+)">'.encode())
_HEAD = 4096


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
