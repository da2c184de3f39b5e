"""Searches: the best parameters of a variant, and the smallest value of a key at which a limit holds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from sim.api.console import Say, silent
from sim.api.interruption import keeping
from sim.base.installed import need_extra
from sim.base.naming import Raw, RawValue
from sim.experiments.options import RunOptions, SearchKeywords
from sim.metrics import own_names
from sim.scenario.expressions import Limit
from sim.scenario.keys import option_of
from sim.scenario.tuning import Tune
from sim.studies import capacity as capacities
from sim.studies.capacity import CapacityAnswer, CapacityQuestion, capacity_sentences
from sim.studies.search import Bench, Values

if TYPE_CHECKING:
    from sim.studies.tune import Tuned


@dataclass(frozen=True)
class TunedVariant:
    """The result of `tune`: the trials in `tuned`, what was `wanted`, and the folder of results.

    `options` gives the options with which `brokersim run` takes the values of each of the best trials.

    Examples:
        >>> how = {"vary": ["network.brokers=2,4"], "trials": 2, "out": "results/tuned"}
        >>> tuned = sim.tune(sim.example(), ["notification_delay"], **how)
        >>> tuned.options[0].startswith("--set network.brokers=")
        True
    """

    title: str
    variant: str
    folder: Path
    wanted: Tune
    tuned: Tuned
    options: Sequence[str]

    @property
    def best(self) -> list[Values]:
        """The values of the best trials, by key: one for a single metric, the Pareto front for several, [] if none meets the limits.

        Examples:
            >>> how = {"vary": ["network.brokers=2,4"], "trials": 2, "out": "results/tuned"}
            >>> tuned = sim.tune(sim.example(), ["notification_delay"], **how)
            >>> [list(values) for values in tuned.best]
            [['network.brokers']]
        """
        return [trial.values for trial in self.tuned.best]

    @property
    def table(self) -> pd.DataFrame:
        """A row per trial: its state, its values, and each metric's mean with its 95 % confidence interval.

        Examples:
            >>> how = {"vary": ["network.brokers=2,4"], "trials": 2, "out": "results/tuned"}
            >>> tuned = sim.tune(sim.example(), ["notification_delay"], **how)
            >>> len(tuned.table)
            2
        """
        from sim.studies.tune import frame

        return frame(self.tuned, self.wanted)

    @property
    def sentences(self) -> list[str]:
        """The result in sentences.

        Examples:
            >>> how = {"vary": ["network.brokers=2,4"], "trials": 2, "out": "results/tuned"}
            >>> tuned = sim.tune(sim.example(), ["notification_delay"], **how)
            >>> len(tuned.sentences) > 0
            True
        """
        from sim.studies.tune import tune_sentences

        return tune_sentences(self.tuned, self.wanted)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


@dataclass(frozen=True)
class FoundCapacity:
    """The result of `capacity`: the `question`, all values tried in `found`, and the folder of results.

    Examples:
        >>> how = {"until": "notification_delay < 1h", "stop": 4, "out": "results/capacity"}
        >>> found = sim.capacity(sim.example(), "network.brokers", **how)
        >>> found.question.limit.metric
        'notification_delay'
    """

    title: str
    variant: str
    folder: Path
    question: CapacityQuestion
    found: CapacityAnswer

    @property
    def answer(self) -> float | int | str | None:
        """The value found, in the key's unit; None where the limit holds at no value.

        Examples:
            >>> how = {"until": "notification_delay < 1h", "stop": 4, "out": "results/capacity"}
            >>> found = sim.capacity(sim.example(), "network.brokers", **how)
            >>> found.answer
            1
        """
        return self.found.answer.value if self.found.answer else None

    @property
    def table(self) -> pd.DataFrame:
        """A row per tried value: the metric's mean with its confidence interval, and the verdict on the limit.

        Examples:
            >>> how = {"until": "notification_delay < 1h", "stop": 4, "out": "results/capacity"}
            >>> found = sim.capacity(sim.example(), "network.brokers", **how)
            >>> found.table["verdict"].tolist()
            ['met']
        """
        rows = [
            {"value": one.value, **one.interval.as_json(), "verdict": one.verdict, "reason": one.reason}
            for one in self.found.tried
        ]
        return pd.DataFrame(rows)

    @property
    def sentences(self) -> list[str]:
        """The result in sentences, with its assumptions.

        Examples:
            >>> how = {"until": "notification_delay < 1h", "stop": 4, "out": "results/capacity"}
            >>> found = sim.capacity(sim.example(), "network.brokers", **how)
            >>> found.sentences[0]
            '...network.brokers = 1...'
        """
        return capacity_sentences(self.question, self.found)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def tune(
    scenario: str | Path | Raw,
    minimise: Sequence[str] = (),
    maximise: Sequence[str] = (),
    subject_to: Sequence[str] = (),
    vary: Sequence[str] = (),
    trials: int | None = None,
    *,
    variant: str | None = None,
    overrides: Sequence[str] = (),
    workload: str | Path | None = None,
    out: str | Path | None = None,
    progress: Say | None = None,
    **options: Unpack[SearchKeywords],
) -> TunedVariant:
    """Search for the parameters at which metrics are best.

    The search is defined by the scenario's [tune] table, or by arguments, which override it. A point is abandoned after a few
    replications if it is certainly worse than the best. The same call resumes an interrupted search, and more trials continue it.

    Args:
        scenario: a scenario file, or its content; without a sweep.
        minimise: metrics to minimise.
        maximise: metrics to maximise.
        subject_to: limits to meet, such as "load_stddev < 0.5".
        vary: the keys to vary, "KEY=FROM..TO", "KEY=FROM..TO:log" or "KEY=VALUE,VALUE".
        trials: the number of points to try; 50 by default.
        variant: the variant; the first by default.
        overrides: as in `run`.
        workload: as in `run`.
        out: the folder for results; results/NAME-tune by default.
        progress: called with a line after each trial.
        **options: how the runs are performed: `jobs`, `engine` and `master`, as in `run`.

    Returns:
        The trials, and the best of them.

    Raises:
        InputError: where the request is incomplete or impossible.
        Interrupted: where it was interrupted; finished runs are kept.

    Examples:
        >>> tuned = sim.tune(
        ...     sim.example(), minimise=["notification_delay"], vary=["network.brokers=2,4"], trials=2, out="results/tuned"
        ... )
        >>> sorted(tuned.table["network.brokers"])
        [2, 4]
    """
    need_extra("tune", "tune")
    from sim.studies.tune import tune_scenario

    chosen, say = RunOptions.of(options, SearchKeywords), progress or silent
    with _bench(
        "tune", scenario, variant, overrides, workload, out, chosen, (*minimise, *maximise, *subject_to)
    ) as bench:
        wanted = (bench.experiment.tune or Tune()).with_options(minimise, maximise, subject_to, vary, trials)
        tuned = tune_scenario(bench, wanted, lambda tuned: say(_line(tuned, wanted)))
        said = [_options(bench, trial.values) for trial in tuned.best]
        return TunedVariant(bench.experiment.title, bench.variant, bench.store.folder, wanted, tuned, said)


def capacity(
    scenario: str | Path | Raw,
    vary: str,
    until: str,
    start: str | float = "1",
    stop: str | float | None = None,
    step: str | float | None = None,
    *,
    largest: bool = False,
    confidence: float = 0.95,
    max_replications: int = 30,
    variant: str | None = None,
    overrides: Sequence[str] = (),
    workload: str | Path | None = None,
    out: str | Path | None = None,
    retry_failed: bool = False,
    progress: Say | None = None,
    **options: Unpack[SearchKeywords],
) -> FoundCapacity:
    """Find the smallest value of a key at which a limit holds, or the largest.

    Values are doubled until the limit is crossed, then bisected, which assumes that the metric is monotone in the key. At each,
    replications are added until the confidence interval of the metric's mean is on one side of the limit.

    Args:
        scenario: a scenario file, or its content; without a sweep.
        vary: the key whose value to search for, such as "network.brokers".
        until: the limit to meet, such as "notification_delay_p99 < 200ms".
        start: the smallest value to try, in the key's unit; durations may be text such as "10ms".
        stop: the largest value to try; 1,024 times the smallest by default.
        step: the distance between neighbouring values; 1 by default, less where the key takes fractions and the range is short.
        largest: search for the largest value instead.
        confidence: the confidence of each decision, between 0 and 1.
        max_replications: the most replications at a value; still undecided, the limit counts as missed.
        variant: the variant; the first by default.
        overrides: as in `run`.
        workload: as in `run`.
        out: the folder for results; results/NAME-capacity by default.
        retry_failed: as in `run`.
        progress: called with a line for each value.
        **options: how the runs are performed: `jobs`, `engine` and `master`, as in `run`.

    Returns:
        The answer, and all values tried.

    Raises:
        InputError: where the key cannot be searched, or something else is wrong.

    Examples:
        >>> found = sim.capacity(
        ...     sim.example(), vary="network.brokers", until="notification_delay < 1h", stop=4, out="results/capacity"
        ... )
        >>> found.answer
        1
    """
    limit, say = Limit.parse(until), progress or silent
    chosen = replace(RunOptions.of(options, SearchKeywords), retry_failed=retry_failed)
    texts = [None if value is None else str(value) for value in (stop, step)]

    def tell(tried: capacities.Tried) -> None:
        reason = f" ({tried.reason})" if tried.reason else ""
        say(f"{vary} = {question.text(tried.value)}: {limit} {tried.verdict}{reason}")

    with _bench("capacity", scenario, variant, overrides, workload, out, chosen, [until]) as bench:
        unit = bench.unit_of(vary)
        between = capacities.values(str(start), *texts, integer=bench.is_integer(vary), unit=unit)
        question = CapacityQuestion(vary, limit, between, largest, confidence, max_replications, unit)
        found = capacities.capacity_of(bench, question, tell)
        return FoundCapacity(bench.experiment.title, bench.variant, bench.store.folder, question, found)


@contextmanager
def _bench(
    command: str,
    scenario: str | Path | Raw,
    variant: str | None,
    overrides: Sequence[str],
    workload: str | Path | None,
    out: str | Path | None,
    options: RunOptions,
    named: Iterable[str],
) -> Generator[Bench]:
    """The variant, ready to be run, with the users' own metrics that occur at the beginning of `named` texts."""
    begins = {found.group() for text in named if (found := re.search(r"\w+", text))}
    own = [f"metrics.{name}={{}}" for name in own_names() if name in begins]
    source = scenario if isinstance(scenario, Mapping) else Path(scenario)
    folder, prepared = (None if one is None else Path(one) for one in (out, workload))
    with (
        Bench(source, folder, [*overrides, *own], prepared, variant, options, command) as bench,
        keeping(bench.store.folder),
    ):
        yield bench


def _options(bench: Bench, values: Mapping[str, RawValue]) -> str:
    """The options that pass these values to `brokersim run`."""
    pairs = (f"{bench.path(key)}={option_of(value, bench.unit_of(key))}" for key, value in values.items())
    return " ".join(f"--set {shlex.quote(pair)}" for pair in pairs)


def _line(tuned: Tuned, wanted: Tune) -> str:
    """The result of the last trial, and the best so far."""
    last = tuned.trials[-1]
    ended = last.state + (f" ({last.reason})" if last.reason else "")
    front = ", ".join(str(trial.number) for trial in tuned.best) or "none"
    return f"trial {last.number} of {wanted.trials}: {ended}; best: {front}"
