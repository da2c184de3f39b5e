"""Reproduce a paper: all runs of its figures, and one page with its claims beside our numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import as_file, files
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.base.errors import InputError
from sim.experiments.code import version
from sim.experiments.options import DEFAULT_OPTIONS, RunOptions
from sim.experiments.outcomes import Progress
from sim.experiments.plan import RunSpec
from sim.experiments.results import Results
from sim.experiments.run import run_experiment
from sim.files.atomic import whole_file
from sim.files.parquet import read_frame, write_table
from sim.papers.kept import SECTION_TABLES, keep_section, larger_sections
from sim.papers.page import Reproduction, SectionRuns, write_page
from sim.papers.paper import Paper, find_paper
from sim.papers.sweeps import Computed, PaperSweep, SweepSetting

PAGE = "index.html"
_OFTEN = 5.0  # s, between two lines about the same section

_Say = Callable[[str], None]
Do = Callable[..., Results]
"""Performs an experiment's runs in a results folder, with the requested options."""


@dataclass(frozen=True)
class ReproductionRequest:
    """A paper by its name, the scale (above 0, up to 1), the folder of the user's own data, and one figure, or "" for all.

    `larger` is the folder of another reproduction, whose figures of this scale or a larger one are taken unchanged, whatever version
    made them.
    """

    paper: str
    scale: float = 1.0
    data: Path | None = None
    figure: str = ""
    larger: Path | None = None

    def __post_init__(self) -> None:
        """Raises InputError where there is no such paper, or the scale is not allowed."""
        find_paper(self.paper)
        if not 0 < self.scale <= 1:
            raise InputError(f"--scale {self.scale:g}: allowed: above 0, up to 1")

    @property
    def command(self) -> str:
        """The command line of the request."""
        figure = f" {self.figure}" if self.figure else ""
        scale = f" --scale {self.scale:g}" if self.scale < 1 else ""
        data = " --data DIR" if self.data else ""
        larger = " --with DIR" if self.larger else ""
        return f"brokersim reproduce {self.paper}{figure}{scale}{data}{larger}"

    @property
    def page(self) -> str:
        """The name of the page's file."""
        return f"{self.figure}.html" if self.figure else PAGE


def reproduce(
    request: ReproductionRequest,
    out: Path,
    options: RunOptions = DEFAULT_OPTIONS,
    say: _Say = lambda line: None,
) -> Reproduction:
    """Run what is missing in `out` and write the page there; `say` is called with each step.

    `out` gets a folder of results for each section, and the page `index.html`, or that of the requested figure. Raises InputError
    where `out` contains something else, the data is not as expected, or there is no such figure.
    """
    paper = find_paper(request.paper)
    _check_room(out, paper)
    if request.figure:
        paper = paper.only(request.figure)
    do = partial(run_experiment, options=replace(options, retry_failed=True))
    sources = {section.source for section in paper.sections}
    larger = {name: runs for name, runs in larger_sections(request.larger, request.scale).items() if name in sources}
    began = time.perf_counter()
    with as_file(files(paper.scenarios)) as scenarios:
        setting = SweepSetting(request.scale, Path(scenarios), out, request.data)
        # report problems with the data before anything is run
        planned = [sweep for sweep in paper.sweeps(setting) if sweep.section in sources - set(larger)]
        code = version(paper.sweeps.__module__)
        made = {
            name: _made(list(parts), setting, code, do, say) for name, parts in groupby(planned, attrgetter("section"))
        }
    for name, section in made.items():
        keep_section(section, out / SECTION_TABLES / f"{name}.parquet")
    reproduction = Reproduction(paper, made | larger, request.command, version(), request.scale)
    write_page(reproduction, out / request.page)
    say(f"{sum(len(section.runs) for section in made.values()):,} runs, {time.perf_counter() - began:.1f} s")
    return reproduction


def _made(parts: Sequence[PaperSweep | Computed], setting: SweepSetting, code: str, do: Do, say: _Say) -> SectionRuns:
    """The runs of one section: a sweep, or a table in parts, computed by this version of the code."""
    first = parts[0]
    if isinstance(first, PaperSweep):
        return _run(first, setting, do, say)
    tables = [_table(part, setting, code, say) for part in parts if not isinstance(part, PaperSweep)]
    table = pd.concat(tables, ignore_index=True)
    points = list(dict.fromkeys(table["point"]))
    replications = int(table["replication"].nunique())
    shown = setting.shown(first.scenario)
    return SectionRuns(table, shown, points, replications, setting.scale, version(), first.notes)


def _table(part: Computed, setting: SweepSetting, code: str, say: _Say) -> pd.DataFrame:
    """A computed table; an existing one is reused."""
    path = setting.folder / part.section / f"{part.part}.parquet"
    identity = {b"version": code.encode(), b"identity": part.identity.encode()}
    known = pq.read_schema(path).metadata if path.is_file() else {}
    if any(known.get(key) != value for key, value in identity.items()):
        say(f"{part.section}: {part.part} computed as in {setting.shown(part.scenario)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pandas(part.table(), preserve_index=False)
        with whole_file(path) as unfinished:
            write_table(unfinished, table.replace_schema_metadata(identity))
    return read_frame(path)


def _run(sweep: PaperSweep, setting: SweepSetting, do: Do, say: _Say) -> SectionRuns:
    """All runs of one section."""
    for note in sweep.notes:
        say(f"{sweep.section}: {note}")
    table, failed = pd.DataFrame(), []
    if sweep.points:
        experiment = sweep.experiment(setting.scenarios / sweep.scenario)
        runs = len(experiment.points) * len(experiment.variants) * sweep.replications
        said = f"{len(sweep.points)} points, {runs:,} runs of {setting.shown(sweep.scenario)}"
        say(f"{sweep.section}: {said}")
        others = [folder for folder in sorted(setting.folder.glob("*")) if folder.name != sweep.section]
        progress = _progress(sweep.section, runs, say)
        results = do(experiment, setting.folder / sweep.section, progress=progress, others=others)
        table, failed = sweep.table(results), results.failed
    names = [point.name for point in sweep.points]
    shown = setting.shown(sweep.scenario)
    return SectionRuns(table, shown, names, sweep.replications, setting.scale, version(), sweep.notes, failed)


def _progress(section: str, runs: int, say: _Say) -> Progress:
    """Report the number of finished runs from time to time."""
    done, last = 0, time.monotonic()

    def tell(_spec: RunSpec, fraction: float) -> None:
        nonlocal done, last
        if fraction == 1.0:
            done += 1
            if time.monotonic() - last > _OFTEN:
                last = time.monotonic()
                say(f"{section}: {done:,} of {runs:,} runs done")

    return tell


def _check_room(folder: Path, paper: Paper) -> None:
    known = {PAGE, SECTION_TABLES, "interests", *(section.source for section in paper.sections)}
    known |= {f"{section.figure[:length]}.html" for section in paper.sections for length in (-1, None)}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give a new folder")
    other = sorted({entry.name for entry in folder.glob("*")} - known)
    if other:
        raise InputError(
            f"{folder}: contains '{other[0]}', which no reproduction has written; give an empty or new folder"
        )
