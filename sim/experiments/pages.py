"""Pages beside results: each says by a seal which results it shows, so that none is older than the runs without anybody's notice."""

from __future__ import annotations

import re
from pathlib import Path

NAME = "brokersim-results"
_SHOWN = re.compile(rf'<meta name="{NAME}" content="([0-9a-f ]+)">'.encode())
_HEAD = 4096


def remove_stale(folder: Path, seal: str) -> list[Path]:
    """Remove the pages in a folder that show other results than those of this seal, and give their paths.

    Pages that show none of ours are left alone. Raises OSError where one cannot be removed.
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
