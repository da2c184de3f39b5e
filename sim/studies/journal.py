"""The journal of a search: an Optuna file with the finished trials, from which the next ones are drawn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod
from pathlib import Path

# Any: options of Optuna's.
from typing import Any, Literal

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from sim.base.errors import ResultsError
from sim.base.naming import Raw, RawValue
from sim.base.randomness import Streams
from sim.base.randomness_kernels import keyed_mix
from sim.scenario.tuning import Parameter, Tune, TunedRange
from sim.studies.search import Values

DRAWS = 10
"""How many times to sample from the model for a new point; after that, points are drawn uniformly."""
DIGITS = 6
"""Significant digits of drawn numbers, so that the numbers shown are those run."""

TrialOutcome = Literal["complete", "pruned", "failed"]
STATES: dict[str, TrialOutcome] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class TrialResult:
    """The result of a finished trial: its state, number of replications, and the reason if it was pruned or failed.

    `means` has the means of the objectives, `excess` by how much each limit is missed (0 or less if it is met).
    """

    values: Values
    state: TrialOutcome
    replications: int
    reason: str
    means: Sequence[float] = ()
    excess: Mapping[str, float] = field(default_factory=dict)


class Journal:
    """The trials of the study called `name`; a file may hold several studies.

    A trial is one line of the file, written when it has ended. Draws are determined by the seed and the earlier trials, so that an
    interrupted trial, which is not in the file, is drawn again. Only one process may have the file open. Raises ResultsError where
    it is damaged.
    """

    def __init__(self, path: Path, name: str, wanted: Tune, seed: int) -> None:
        self._wanted = wanted
        self._key = Streams(seed).key("tune")
        self._kept = _open(path, name, wanted)
        self._drawn = _study(wanted)  # in memory, as unfinished trials are not in the file
        self._drawn.add_trials(self._kept.trials)
        self._tried = {_text(ended.values) for ended in self.ended}

    @property
    def ended(self) -> Iterator[TrialResult]:
        """All finished trials, in order."""
        for trial in self._kept.trials:
            values, said = self._values(trial.params), trial.user_attrs
            yield TrialResult(values, STATES[trial.state.name], said["replications"], said["reason"])

    def draw(self, start: Values) -> Values | None:
        """Draw a point not tried yet, or None where there is none; the first one has the values of `start` where allowed.

        Source: the tree-structured Parzen estimator (Bergstra et al. 2011), on all parameters jointly for a single objective.
        """
        sizes = [parameter.size for parameter in self._wanted.vary.values()]
        if None not in sizes and len(self._tried) >= prod(size or 0 for size in sizes):
            return None
        fixed = {key: _label(start[key]) for key in start if start[key] in self._wanted.vary[key]}
        distributions = {key: _distribution(parameter) for key, parameter in self._wanted.vary.items()}
        for draw in count():
            seed = int(keyed_mix(self._key, len(self._kept.trials), draw)) >> 32
            by_trials = draw < DRAWS
            sampler = optuna.samplers.TPESampler(seed=seed) if by_trials else optuna.samplers.RandomSampler(seed=seed)
            self._drawn.sampler = sampler
            if draw == 0 and fixed:
                self._drawn.enqueue_trial(fixed)
            trial = self._drawn.ask(distributions)
            self._drawn.tell(trial, state=TrialState.FAIL)
            values = self._values(trial.params)
            if _text(values) not in self._tried:
                return values
        raise AssertionError("unreachable")

    def end(self, ended: TrialResult) -> None:
        """Record a finished trial."""
        pruned = ended.state == "pruned"
        trial = create_trial(
            state=next(TrialState[name] for name, state in STATES.items() if state == ended.state),
            values=list(ended.means) if ended.state == "complete" else None,
            params={key: _label(value) for key, value in ended.values.items()},
            distributions={key: _distribution(self._wanted.vary[key]) for key in ended.values},
            user_attrs={"replications": ended.replications, "reason": ended.reason},
            intermediate_values={ended.replications: ended.means[0]} if pruned and len(ended.means) == 1 else {},
            constraints=dict(ended.excess),
        )
        self._kept.add_trial(trial)
        self._drawn.add_trial(trial)
        self._tried.add(_text(ended.values))

    def _values(self, drawn: Raw) -> Values:
        return {key: _value(parameter, drawn[key]) for key, parameter in self._wanted.vary.items()}


def _study(wanted: Tune, **where: Any) -> optuna.Study:
    """Create the study."""
    both = {1: optuna.study.StudyDirection.MINIMIZE, -1: optuna.study.StudyDirection.MAXIMIZE}
    said = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # Optuna logs every new study
    try:
        return optuna.create_study(directions=[both[sign] for sign in wanted.objectives.values()], **where)
    finally:
        optuna.logging.set_verbosity(said)


def _open(path: Path, name: str, wanted: Tune) -> optuna.Study:
    # Left by a killed process: no other process has the file open
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    try:
        _drop_half_a_line(path)
        storage = JournalStorage(JournalFileBackend(str(path)))
        if name in optuna.get_all_study_names(storage):
            return optuna.load_study(study_name=name, storage=storage)
        return _study(wanted, storage=storage, study_name=name)
    except (ValueError, KeyError, TypeError):
        remedy = "remove it to repeat the trials from the existing runs"
        raise ResultsError(f"{path}: not a journal of trials, or damaged; {remedy}") from None


def _drop_half_a_line(path: Path) -> None:
    """Remove an incomplete last line, left by a full disk or a power failure."""
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def _distribution(parameter: Parameter) -> BaseDistribution:
    if not isinstance(parameter, TunedRange):
        return CategoricalDistribution([_label(value) for value in parameter.values])
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)


def _label(value: RawValue) -> RawValue:
    """A value as Optuna accepts it: tables become text."""
    return value if isinstance(value, (int, float, str, bool)) else json.dumps(value)


def _value(parameter: Parameter, drawn: RawValue) -> RawValue:
    """The drawn value; fractional numbers are rounded to few digits."""
    if not isinstance(parameter, TunedRange):
        return next(value for value in parameter.values if _label(value) == drawn)
    if parameter.whole:
        return drawn
    return min(max(float(f"{drawn:.{DIGITS}g}"), parameter.low), parameter.high)


def _text(values: Values) -> str:
    return json.dumps(values, sort_keys=True)
