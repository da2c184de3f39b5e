"""Where a workload goes, and the folder beside it in which it is made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sim.base.errors import WorkloadError
from sim.base.private import claimed_folder
from sim.workloads.format.folder import KEPT_ROWS


def check_room(out: Path) -> None:
    """Raise WorkloadError unless `out` is free, an empty folder, or a workload and nothing else."""
    if not os.path.exists(out):  # nor can it, with a name that is too long: `folder_beside` says so
        return
    if not out.is_dir():
        raise WorkloadError(f"{out}: is a file; give a new folder")
    try:
        files = json.loads((out / "manifest.json").read_bytes())["files"]
        own = {Path(name).parts[0] for name in files} | {"manifest.json", KEPT_ROWS}
    except (OSError, ValueError, TypeError, KeyError):
        own = set()
    other = sorted({entry.name for entry in out.iterdir()} - own)
    if other:
        raise WorkloadError(
            f"{out}: contains '{other[0]}', which is not part of a workload; give an empty or new folder"
        )


@contextmanager
def folder_beside(out: Path, purpose: str = "") -> Iterator[Path]:
    """A folder beside `out`, so that a rename can move what is made there, and so that a cluster's workers see it too.

    Leftovers of killed processes for `out` are removed, except one with this `purpose`, which is used.
    """
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(claimed_folder(out.parent, f".{out.name}.", ".unfinished", purpose))
        except OSError as error:
            raise WorkloadError(f"{out}: cannot be written ({error.strerror})") from None
        yield folder
