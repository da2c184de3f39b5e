"""Tuning: search by Optuna for the parameters of one variant at which metrics are best, within limits."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import le
from pathlib import Path

import pandas as pd
import pyarrow as pa

from sim.base.naming import RawValue
from sim.experiments.outcomes import clock
from sim.experiments.statistics import Interval, mean_interval, paired_t
from sim.files import toml
from sim.files.atomic import whole_file
from sim.files.hashing import sha256_of
from sim.files.parquet import write_table
from sim.scenario.expressions import KEEPS_UP, Limit
from sim.scenario.tuning import Tune
from sim.studies.journal import Journal, TrialOutcome, TrialResult
from sim.studies.search import SATURATED, Bench, Measure, Measured, Values, looks, value_at, verdict

JOURNAL, TRIALS = "trials.journal", "trials.parquet"


@dataclass(frozen=True)
class Trial:
    """A tried point with its results; `number` starts at 1.

    A pruned trial was stopped early, a failed one has no metrics; `reason` says why.
    """

    number: int
    values: Values
    state: TrialOutcome
    measured: Measured
    reason: str = ""

    def interval(self, metric: str) -> Interval:
        """A metric's mean with its 95 % confidence interval."""
        return mean_interval(self.measured.values(metric))

    def keeps(self, limits: Iterable[Limit]) -> bool:
        """Whether the means meet all limits."""
        return all(limit.holds(self.interval(limit.metric).mean) for limit in limits)


@dataclass(frozen=True)
class Tuned:
    """All trials, and the best: for one metric a single trial, for several the Pareto front.

    `exhausted` is true if no other point was left to try.
    """

    trials: tuple[Trial, ...]
    best: tuple[Trial, ...]
    exhausted: bool = False


_Tell = Callable[[Tuned], None]


def tune_scenario(bench: Bench, wanted: Tune, tell: _Tell = lambda tuned: None) -> Tuned:
    """Tune a variant; the same study in its results folder is resumed.

    The folder gets a table of all trials, and results with a point for each that was completed. Raises InputError where the request
    is incomplete or impossible.
    """
    wanted = wanted.checked().typed(bench.is_integer)
    bench.check({key: parameter.examples for key, parameter in wanted.vary.items()})
    start = {key: value_at(bench.subject, key) for key in wanted.vary}
    replications = bench.subject.replications
    journal = Journal(bench.store.folder / JOURNAL, _identity(bench, wanted), wanted, bench.subject.seed)
    with clock() as timing:
        tuned = tune(wanted, bench.measure, replications, journal, start, tell)
    _write(tuned, wanted, bench.store.folder / TRIALS)
    completed = [trial.values for trial in tuned.trials if trial.state == "complete"]
    if completed:
        bench.finish(completed, replications, wanted.metrics, timing)
    return tuned


def _identity(bench: Bench, wanted: Tune) -> str:
    """Identifies a study by everything that determines its trials, except their number."""
    vary = {key: repr(parameter) for key, parameter in wanted.vary.items()}
    study = {"runs": bench.identity, "vary": vary, **wanted.model_dump(mode="json", exclude={"trials"})}
    return sha256_of(json.dumps(study))[:32]


def frame(tuned: Tuned, wanted: Tune) -> pd.DataFrame:
    """A row per trial: its state, its values, and each metric's mean with its 95 % confidence interval (units: `sim.metrics`)."""
    best = {trial.number for trial in tuned.best}
    columns: dict[str, list[RawValue]] = {
        "trial": [trial.number for trial in tuned.trials],
        "state": [trial.state for trial in tuned.trials],
        "reason": [trial.reason for trial in tuned.trials],
        "replications": [len(trial.measured.metrics) for trial in tuned.trials],
        "feasible": [trial.keeps(wanted.limits) for trial in tuned.trials],
        "best": [trial.number in best for trial in tuned.trials],
    }
    for key in wanted.vary:
        values = [trial.values[key] for trial in tuned.trials]
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        columns[key] = values if numbers else [toml.text(value) for value in values]
    for metric in wanted.metrics:
        intervals = [trial.interval(metric) for trial in tuned.trials]
        columns[metric] = [interval.mean for interval in intervals]
        for end in ("low", "high"):
            known = [getattr(interval, end) for interval in intervals]
            columns[f"{metric}.{end}"] = [math.nan if value is None else value for value in known]
    return pd.DataFrame(columns)


def tune_sentences(tuned: Tuned, wanted: Tune) -> list[str]:
    """The results of the trials in sentences."""
    counts = {state: sum(trial.state == state for trial in tuned.trials) for state in ("complete", "pruned", "failed")}
    said = [
        f"{len(tuned.trials)} trials: {counts['complete']} completed, "
        f"{counts['pruned']} pruned (stopped early), {counts['failed']} failed."
    ]
    if tuned.exhausted:
        said.append("All points were tried.")
    if not tuned.best:
        limits = " and ".join(map(str, wanted.limits))
        said.append(f"No trial was completed within the limits ({limits})." if limits else "No trial was completed.")
    elif len(wanted.objectives) > 1:
        said.append("The trials shown are the Pareto front: no other trial is better in all metrics.")
    if KEEPS_UP in wanted.limits and (n := sum(t.state != "failed" and not t.measured.keeps_up for t in tuned.trials)):
        said.append(f"In {n} of them brokers are saturated: {SATURATED}.")
    said += [f"Failed: {reason}" for reason in dict.fromkeys(t.reason for t in tuned.trials if t.state == "failed")]
    return said


def _write(tuned: Tuned, wanted: Tune, path: Path) -> None:
    with whole_file(path) as unfinished:
        write_table(unfinished, pa.Table.from_pandas(frame(tuned, wanted), preserve_index=False))


def tune(
    wanted: Tune, measure: Measure, replications: int, journal: Journal, start: Values, tell: _Tell = lambda tuned: None
) -> Tuned:
    """Perform all trials that the journal lacks, one after another; `tell` is called with all so far after each.

    The first one takes the values of `start`, where they are allowed. An interrupted trial is drawn and measured again.
    """
    trials = [_recalled(number, ended, measure) for number, ended in enumerate(journal.ended, 1)]
    tuned = Tuned(tuple(trials), pareto_front(trials, wanted))
    while len(trials) < wanted.trials:
        values = journal.draw({} if trials else start)
        if values is None:
            return replace(tuned, exhausted=True)
        trial = _try(len(trials) + 1, values, wanted, measure, replications, trials)
        journal.end(_ended(trial, wanted))
        trials.append(trial)
        tuned = Tuned(tuple(trials), pareto_front(trials, wanted))
        tell(tuned)
    return tuned


def pareto_front(trials: Iterable[Trial], wanted: Tune) -> tuple[Trial, ...]:
    """The completed trials within the limits that no other dominates; the first of equal ones."""
    found: dict[tuple[float, ...], Trial] = {}
    for trial in _rivals(trials, wanted):
        # signed so that all are minimised
        losses = tuple(sign * trial.interval(metric).mean for metric, sign in wanted.objectives.items())
        found.setdefault(losses, trial)
    dominated = {losses for losses in found for other in found if other != losses and all(map(le, other, losses))}
    return tuple(trial for losses, trial in found.items() if losses not in dominated)


def _rivals(trials: Iterable[Trial], wanted: Tune) -> list[Trial]:
    return [trial for trial in trials if trial.state == "complete" and trial.keeps(wanted.limits)]


def _try(
    number: int, values: Values, wanted: Tune, measure: Measure, replications: int, before: Sequence[Trial]
) -> Trial:
    """Perform one trial: add replications until all are done, or the trial is statistically certain not to be among the best."""
    rivals = _rivals(before, wanted)
    for n in looks(replications):
        measured = measure(values, n)
        trial = Trial(number, values, "complete", measured)
        if measured.failure is not None:
            return _failed(number, values, measured.failure)
        if undefined := [metric for metric in wanted.metrics if not trial.interval(metric).n]:
            return _failed(number, values, f"{undefined[0]} is undefined")
        if n < replications and (reason := _hopeless(trial, wanted, rivals)):
            return replace(trial, state="pruned", reason=reason)
    return trial


def _hopeless(trial: Trial, wanted: Tune, rivals: Sequence[Trial]) -> str:
    """Why a trial is certainly not among the best: a limit is significantly missed, or another is better in all metrics; else ""."""
    for limit in wanted.limits:
        if verdict(limit, trial.interval(limit.metric)) == "missed":
            return f"misses {limit}"
    for rival in rivals:
        if all(_surely_worse(trial, rival, metric, sign) for metric, sign in wanted.objectives.items()):
            return f"worse than trial {rival.number}"
    return ""


def _surely_worse(trial: Trial, rival: Trial, metric: str, sign: int) -> bool:
    """Whether the confidence interval of the paired differences (common random numbers) is entirely on the wrong side of 0."""
    values = trial.measured.values(metric)
    return paired_t(sign * values, sign * rival.measured.values(metric)[: values.size]).difference.ends[0] > 0


def _recalled(number: int, ended: TrialResult, measure: Measure) -> Trial:
    """A trial restored from the journal; its runs are in the results or are repeated."""
    if ended.state == "failed":
        return _failed(number, ended.values, ended.reason)
    measured = measure(ended.values, ended.replications)
    if measured.failure is not None:
        return _failed(number, ended.values, measured.failure)
    return Trial(number, ended.values, ended.state, measured, ended.reason)


def _failed(number: int, values: Values, reason: str) -> Trial:
    return Trial(number, values, "failed", Measured(()), reason)


def _ended(trial: Trial, wanted: Tune) -> TrialResult:
    """The part of a trial that the journal keeps, and from which it draws others."""
    means: dict[str, float] = {}
    if trial.state != "failed":
        means = {
            metric: trial.interval(metric).mean for metric in (*wanted.metrics, *(x.metric for x in wanted.limits))
        }
    return TrialResult(
        trial.values,
        trial.state,
        len(trial.measured.metrics),
        trial.reason,
        [means[metric] for metric in wanted.objectives if means],
        {str(limit): _excess(limit, means[limit.metric]) for limit in wanted.limits if means},
    )


def _excess(limit: Limit, mean: float) -> float:
    """By how much a mean misses a limit: above 0 if it does."""
    beyond = mean - limit.value if limit.op in ("<", "<=") else limit.value - mean
    return beyond if limit.holds(mean) else max(beyond, sys.float_info.min)
