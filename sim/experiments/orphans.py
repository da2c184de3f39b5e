"""Orphans: runs in a results folder that its manifest does not name, left over from earlier questions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sim.base.errors import ResultsError
from sim.experiments.results import FORMAT, load_results, read_json
from sim.experiments.store import UNFINISHED, locked

_RUN = re.compile(r"[0-9a-f]{32}")
_BESIDE = {"manifest.json", "timing.json"}


@dataclass(frozen=True)
class Orphan:
    """The folder of an orphaned run, when the run ended ("" if unknown), and the size of its files (bytes)."""

    folder: Path
    ended: str
    bytes: int

    def remove(self) -> None:
        """Remove the run's folder atomically: a killed command leaves no half-removed run."""
        unfinished = self.folder.with_name(f"{UNFINISHED}{self.folder.name}")
        try:
            self.folder.rename(unfinished)
            shutil.rmtree(unfinished)
        except OSError as error:
            raise ResultsError(f"{error.filename}: cannot be removed ({error.strerror})") from None


@contextmanager
def orphans(folder: Path) -> Generator[tuple[list[Orphan], list[Path]]]:
    """The orphans of a folder, and foreign entries among its runs, with the folder locked meanwhile.

    Args:
        folder: a folder of results.

    Yields:
        The runs that the results do not need, with their `folder`, `bytes` and `remove()`; and the paths of other entries.

    Raises:
        ResultsError: where there are no finished results, or another command is writing.

    Examples:
        >>> from pathlib import Path
        >>> _ = sim.run(sim.example(), "results/example")
        >>> with sim.orphans(Path("results/example")) as (found, foreign):
        ...     sum(orphan.bytes for orphan in found)
        0
    """
    load_results(folder)  # checked first, so that no lock is written into an unrelated folder
    lock = locked(folder)
    try:
        manifest = load_results(folder).manifest
        if "further" not in manifest:
            raise ResultsError(
                f"{folder}: written by an earlier version; repeat its `brokersim run`, which records the runs that it needs"
            )
        named = {*manifest["runs"], *manifest["further"]}
        found, foreign = [], []
        for entry in sorted((folder / "runs").iterdir()):
            if entry.name in named or entry.name.startswith("."):
                continue
            orphan = _orphan(entry)
            foreign.append(entry) if orphan is None else found.append(orphan)
        yield found, foreign
    finally:
        lock.release()


def _orphan(entry: Path) -> Orphan | None:
    """The orphan for an entry among the runs, if it is the folder of a run and contains nothing else."""
    if not _RUN.fullmatch(entry.name) or entry.is_symlink() or not entry.is_dir():
        return None
    manifest = read_json(entry / "manifest.json") or {}
    known = {*_BESIDE, *(manifest.get("files") or {})}
    files = [path for path in entry.rglob("*") if path.is_symlink() or not path.is_dir()]
    if manifest.get("format") != f"{FORMAT}-run" or any(str(path.relative_to(entry)) not in known for path in files):
        return None
    ended = (read_json(entry / "timing.json") or {}).get("end", "")
    return Orphan(entry, str(ended), sum(path.lstat().st_size for path in files))
