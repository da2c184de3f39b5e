"""Runs of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sim.api.interruption import keeping
from sim.api.results import ExperimentResults
from sim.api.scenarios import ScenarioSource, load_scenario, results_folder
from sim.experiments.options import RunKeywords, RunOptions
from sim.experiments.run import OnFailure, run_experiment

if TYPE_CHECKING:
    from sim.experiments.outcomes import Progress


def run(
    source: ScenarioSource,
    out: str | Path | None = None,
    workload: str | Path | None = None,
    overrides: Sequence[str] = (),
    progress: Progress | bool | None = None,
    on_failure: OnFailure | None = None,
    **options: Unpack[RunKeywords],
) -> ExperimentResults:
    """Run a scenario: every variant in every replication at every point of its sweep, on the same arrivals.

    Runs that are already in the folder are not repeated, so an interrupted call resumes. A run that fails, for any reason in a
    sweep, for an internal one elsewhere, is recorded in the results and does not stop the others.

    Args:
        source: a scenario file, its content (a `Scenario` or any dict), or a loaded one.
        out: the folder for results; results/NAME by default, with a hash where the scenario is not a file as it is.
        workload: a workload folder, instead of the one named in the scenario.
        overrides: texts `key.path=value` that override keys, such as "network.brokers=200".
        progress: True for bars on a terminal and in a notebook (which takes ipywidgets), and lines elsewhere; or a function
            called with a run and the share of it that is done, from 0 to 1.
        on_failure: called with each run that fails, as in `ExperimentResults.failed`.
        **options: how the runs are performed, as follows.

    Keyword Args:
        jobs (int): the number of processes; results do not depend on it.
        engine (str): "in-process", "pool" (processes), "spark", or "auto", by jobs and master.
        master (str): the master of a Spark cluster, such as "spark://host:7077".
        fail_fast (bool): raise RunFailed at the first run that fails.
        retry_failed (bool): repeat the runs that failed in this folder.
        verify (bool): check all files of existing runs, and repeat damaged ones.

    Returns:
        The results, read into memory.

    Raises:
        InputError: where the scenario, its workload or an option cannot be used, before anything is run.
        RunFailed: where a run failed under `fail_fast`.
        Interrupted: where it was interrupted; finished runs are kept.

    Examples:
        >>> results = sim.run(sim.example(), "results/example")
        >>> results.runs.groupby("variant")["publications"].sum().tolist()
        [136, 136]
    """
    from sim.api.progress import display

    experiment = load_scenario(source, overrides, workload)
    folder = results_folder(experiment, out)
    chosen = RunOptions.of(options, RunKeywords)
    with ExitStack() as opened:
        opened.enter_context(keeping(folder))
        if progress is True:
            bars = opened.enter_context(display(experiment))
            progress, on_failure = bars, on_failure or bars.failed
        return ExperimentResults.of(run_experiment(experiment, folder, chosen, progress or None, on_failure))
