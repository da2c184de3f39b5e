"""The whole workflow on a small synthetic region: raw check-ins with errors, a workload, a comparison, a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path

from analysis.report import write_report
from sim.base.errors import InputError
from sim.base.randomness import Streams
from sim.experiments.options import DEFAULT_OPTIONS, RunOptions
from sim.experiments.outcomes import Progress
from sim.experiments.results import Results
from sim.experiments.run import run_experiment
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario
from sim.spark import spark_session
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.checkins import write_checkins
from sim.workloads.synthetic.mobility import MobilityWorkload
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.checkins import Box
from sim.workloads.traces.layouts import GOWALLA
from sim.workloads.traces.pipeline import prepare_checkins

CHECKINS, _WORKLOAD, RESULTS, REPORT = "checkins.tsv", "workload", "results", "report.html"
SEED = 1
DIRT = 0.02

_Say = Callable[[str], None]


def demo(
    folder: Path,
    options: RunOptions = DEFAULT_OPTIONS,
    say: _Say = lambda line: None,
    watch: Callable[[Experiment], AbstractContextManager[Progress | None]] = lambda _experiment: nullcontext(),
) -> Results:
    """Write raw check-ins, the workload prepared from them, results and the report to `folder`.

    `say` is called with each step and its duration, `watch` returns the runs' progress callback. Runs that the folder already holds
    are not repeated. Raises InputError where it holds something else.
    """
    _check_room(folder)
    people = _people()
    with _step(say, f"1/4  Writing synthetic check-ins, a few of them invalid: {folder / CHECKINS}") as came_to:
        came_to(_write_checkins(people, folder / CHECKINS))
    with _step(say, f"2/4  Preparing a workload from them with Spark: {folder / _WORKLOAD}") as came_to:
        workload = _prepare(people, folder, say)
        came_to(_told(workload))
    with as_file(files("scenarios") / "quickstart.toml") as scenario:
        experiment = load_scenario(scenario, workload=folder / _WORKLOAD)
        variants, replications = experiment.variants, experiment.base.replications
        with _step(
            say, f"3/4  Running {', '.join(variants)}, {replications} times each: {folder / RESULTS}"
        ) as came_to:
            with watch(experiment) as progress:
                results = run_experiment(experiment, folder / RESULTS, replace(options, retry_failed=True), progress)
            published = int(results.runs["publications"].sum())
            came_to(f"{len(results.runs)} runs with {published:,} publications, {len(results.failed)} failed")
    with _step(say, f"4/4  Writing the report: {folder / REPORT}") as came_to:
        write_report(results, folder / REPORT)
        came_to("one page, to be opened in a browser, with or without a network")
    return results


def _people() -> MobilityWorkload:
    """Some hundred users in a region of 8 × 10 cells for three weeks."""
    parameters = MobilityWorkload.Parameters(
        users=500, horizon=21 * 86400.0, box=(36.0, -84.0, 44.0, -74.0), cities=12, gap=6 * 3600.0
    )
    return MobilityWorkload(parameters)


def _write_checkins(people: MobilityWorkload, path: Path) -> str:
    streams = Streams(SEED)
    rows = write_checkins(path, people.checkins(streams), DIRT, streams.generator("workload.dirt"))
    return f"{sum(rows.values()):,} rows, {sum(rows.values()) - rows['good']:,} of them invalid"


def _prepare(people: MobilityWorkload, folder: Path, say: _Say) -> Workload:
    def tell(step: str, detail: str) -> None:
        if not detail:
            say(f"     {step}")

    start = round(datetime.fromisoformat(people.parameters.origin).timestamp() * 1e6)
    tell("starting Spark", "")
    with spark_session(short=True) as spark:
        window = start, start + round(people.parameters.horizon * 1e6)
        options = CheckinOptions(window, box=Box(*people.parameters.box), seed=SEED)
        return prepare_checkins(spark, [folder / CHECKINS], folder / _WORKLOAD, GOWALLA, options, progress=tell)


def _told(workload: Workload) -> str:
    rows = workload.rows or {}
    return (
        f"{rows['kept']:,} of {rows['read']:,} rows kept, the others in quarantine; {len(workload.users):,} users, "
        f"{len(workload.topics):,} cells, {len(workload.publications):,} visits"
    )


def _check_room(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give a new folder")
    other = sorted({entry.name for entry in folder.glob("*")} - {CHECKINS, _WORKLOAD, RESULTS, REPORT})
    if other:
        raise InputError(f"{folder}: contains '{other[0]}', which no demo has written; give an empty or new folder")


@contextmanager
def _step(say: _Say, what: str) -> Generator[_Say]:
    """Report a step, and at its end the result and duration."""
    came_to: list[str] = []
    say(what)
    began = time.perf_counter()
    yield came_to.append
    say(f"     {came_to[0]} ({time.perf_counter() - began:.1f} s)")
