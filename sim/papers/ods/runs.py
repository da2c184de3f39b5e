"""The computations for "Maximizing the Number of Satisfied Subscribers": decisions on workloads of three shapes, and upper bounds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim import plugins
from sim.base.naming import Raw
from sim.base.randomness import Streams
from sim.files import toml
from sim.papers.ods.claims import B3M, BEST, BOUND, FB3M, PORTFOLIO, RATIOS, READINGS, SLOW
from sim.papers.sweeps import Computed, SweepSetting
from sim.policies.offloading.bounds import thresholds, upper_bounds
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Objective, OffloadingPolicy, OffloadingProblem
from sim.policies.offloading.process import OffloadingParameters, make_problem
from sim.scenario.reader import load_scenario

SCENARIO = "ods/capacity.toml"
TAUS = tuple(RATIOS)
SHAPES: dict[str, Raw] = {
    "sparse": {"kind": "spotify-sparse"},
    "dense": {"kind": "spotify-dense"},
    "fitted": {
        "kind": "spotify-dense",
        "popularity_exponent": 0.9,
        "topics_per_user": 2.06,
        "topics_sigma": 0.91,
        "rate_sigma": 1.375,
        "rate_correlation": -0.62,
    },
}
"""The workload of each shape. The fitted one has GreedyB3M's ratios of the paper, by a search at scale 0.02 with seeds 1 and 5."""
CAPACITY, STEPS, APART = 10, 20, 5
"""The scenario's capacity (% of all notifications), the steps up to it, and the steps between separate decisions."""
CONTROL = "control"
ONE_RUN = {B3M: f"{B3M}, one run", FB3M: f"{FB3M}, one run"}
PAPER = "paper"
PAPER_RATIOS = {B3M: RATIOS, FB3M: {2763: 0.9}}
PAPER_TRACE = {"topics": 1.1e6, "subscribers": 4.9e6, "event_rate": 2763.0, "lowest_tau": 0.1, "highest_tau": 100.0}
LARGE = 0.1
"""Above this scale what takes longest is left out: our portfolio, and the best proven bounds of a part of the capacity."""
LARGE_NOTES = (
    f"Above scale {LARGE:g}, {PORTFOLIO} is not asked, and the best proven bound is that of the whole capacity.",
)
SLOWLY, LEAST, TINY = 0.01, 0.001, 0.0001
"""The share of the scale at which the slow policy is asked, the minimum scale, and a tiny one for compiling."""


def sweeps(setting: SweepSetting) -> Iterator[Computed]:
    """All that the page shows, by the folders of its tables; decisions take long at full size, and are kept in parts."""
    path, scale = setting.scenarios / SCENARIO, setting.scale
    replications = range(min(3, int(1 / scale)))  # as many as are together no larger than full size
    yield Computed("trace", SCENARIO, f"{scale}", partial(_trace, path, scale, replications))
    notes = LARGE_NOTES if scale > LARGE else ()
    for replication, shape, tau in itertools.product(replications, READINGS, TAUS):
        table = partial(_decisions, path, scale, shape, replication, tau)
        yield Computed("decisions", SCENARIO, f"{scale}", table, notes, f"{shape}-{replication}-{tau}")
    small = min(scale, max(SLOWLY * scale, LEAST))
    notes = (f"At scale {small:g}.",)
    yield Computed("slow", SCENARIO, f"{scale}", partial(_slow, path, small, replications), notes)


@dataclass(frozen=True)
class _Case:
    """The scenario's policies by its variants, and the problem of a workload; `of` has the columns common to all rows about it."""

    policies: Mapping[str, OffloadingPolicy]
    problem: OffloadingProblem
    of: Raw

    def at(self, tau: int) -> Raw:
        """The columns common to all rows about one threshold."""
        return {**self.of, "tau": tau, "threshold": f"{tau:,}", "panel": f"{self.of['reading']}, τ = {tau:,}"}


def _case(path: Path, scale: float, shape: str, replication: int) -> _Case:
    """Create a case with the workload of `brokersim generate`, whose seed is the scenario's plus the replication."""
    asked = {**SHAPES[shape], "scale": scale, "publications": "none"}
    experiment = load_scenario(path, [f"workload={toml.text(asked)}"])
    tables = {variant: scenario.offloading for variant, scenario in experiment.variants.items()}
    policies = {name: plugins.load("offloading", table.kind)(table.parameters) for name, table in tables.items()}
    table, chosen = experiment.base.workload, experiment.base.offloading.parameters
    assert isinstance(chosen, OffloadingParameters)
    seed = experiment.base.seed + replication
    workload = plugins.load("workload", table.kind)(table.parameters).generate(Streams(seed))
    interests, rates = workload.interests, workload.topics.event_rate
    problem = make_problem(interests.indptr, interests.indices, rates, chosen.capacity, chosen.tau, seed=seed)
    return _Case(policies, problem, {"reading": shape, "replication": replication, "seed": seed})


def _trace(path: Path, scale: float, replications: Iterable[int]) -> pd.DataFrame:
    """Published figures of the paper's trace, and those of the workloads; topics and subscribers are those at scale 1."""
    rows: list[Raw] = []
    for replication, shape in itertools.product(replications, READINGS):
        case = _case(path, scale, shape, replication)
        problem = case.problem
        mean = float(problem.event_rate.mean()) / problem.scale
        rows.append(
            {
                **case.of,
                "variant": shape,
                "topics": problem.topics / scale,
                "subscribers": problem.subscribers / scale,
                "event_rate": mean,
                "lowest_tau": 100 * TAUS[0] / mean,
                "highest_tau": 100 * TAUS[-1] / mean,
                "topics_per_subscriber": len(problem.indices) / problem.subscribers,
            }
        )
    rows.append({**PAPER_TRACE, "variant": PAPER, "reading": PAPER, "replication": 0, "seed": rows[0]["seed"]})
    return pd.DataFrame(rows).assign(point=f"scale {scale:g}")


def _decisions(path: Path, scale: float, shape: str, replication: int, tau: int) -> pd.DataFrame:
    """The values that policies reach at a threshold, with the whole capacity, parts of it, and during one run."""
    _compile(path)
    case, large = _case(path, scale, shape, replication), scale > LARGE
    left_out = (SLOW, PORTFOLIO) if large else (SLOW,)
    rows: list[Raw] = []
    for objective in get_args(Objective):
        question = _Question(replace(case.problem, threshold=tau), objective, large)
        for variant, policy in case.policies.items():
            if policy.objective == objective and variant not in left_out:
                question.ask(variant, policy)
        of = {**case.at(tau), "scale": scale}
        rows += [{**of, **row} for row in question.rows()]
    rows += [
        {**case.at(tau), "variant": f"{PAPER}: {variant}", "capacity": CAPACITY, "ratio": printed[tau]}
        for variant, printed in PAPER_RATIOS.items()
        if tau in printed
    ]
    table = pd.DataFrame(rows)
    parts = [f", {capacity:g} %" if capacity < CAPACITY else "" for capacity in table["capacity"]]
    return table.assign(point="τ = " + table["threshold"] + parts)


@dataclass
class _Question:
    """One of the two problems at one threshold: the values of variants by steps of the capacity, and upper bounds."""

    problem: OffloadingProblem
    objective: Objective
    large: bool
    reached: dict[str, dict[int, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    best: dict[int, tuple[float, NDArray[np.int32]]] = field(default_factory=dict)

    def _at(self, step: int) -> OffloadingProblem:
        return self.problem.with_capacity(self.problem.capacity * step / STEPS)

    def ask(self, variant: str, policy: OffloadingPolicy) -> None:
        """Let a policy decide; baselines only at the whole capacity."""
        topics, self.seconds[variant] = _decide(policy, self.problem)
        self._note(variant, STEPS, topics)
        if not variant.startswith(CONTROL):
            for step in (STEPS // 2,) if self.large else range(APART, STEPS, APART):
                self._note(variant, step, policy.decide(self._at(step)).topics)
        if variant in ONE_RUN:
            spent = np.cumsum(self.problem.cost[topics])
            for step in range(1, STEPS + 1):
                picked = np.searchsorted(spent, self._at(step).capacity, side="right")
                self._note(ONE_RUN[variant], step, topics[:picked])

    def _note(self, variant: str, step: int, topics: NDArray[np.int32]) -> None:
        value = outcome(self.problem, topics).value_of(self.objective)
        self.reached.setdefault(variant, {})[step] = value
        if value > self.best.get(step, (-1.0,))[0]:
            self.best[step] = value, topics

    def rows(self) -> Iterator[Raw]:
        """A row for each number, `capacity` in % of all notifications, shares in % of all subscribers in need."""
        bounds = self._bounds()
        everybody = np.count_nonzero(self.problem.need)
        for variant, steps in {**self.reached, **bounds}.items():
            for step, value in sorted(steps.items()):
                row = {
                    "variant": variant,
                    "capacity": CAPACITY * step / STEPS,
                    self.objective: 100 * value / everybody,
                    "gap": 100 * (bounds[BOUND][step] - value) / everybody,
                }
                if variant in ONE_RUN and step in (run := self.reached[ONE_RUN[variant]]):
                    row["ahead"] = value - run[step]
                if step == STEPS:
                    row[f"{self.objective}_at_capacity"] = row[self.objective]
                if step == STEPS and variant in self.seconds:
                    row["ratio"] = value / bounds[BOUND][step]
                    row["proven"] = value / bounds[BEST][step]
                    row["seconds"] = self.seconds[variant]
                yield row

    def _bounds(self) -> dict[str, dict[int, float]]:
        steps = range(1, STEPS + 1)
        capacities = (self._at(step).capacity for step in steps)
        printed = dict(zip(steps, thresholds(self.problem, self.objective, capacities), strict=True))
        proven = {
            step: min(upper_bounds(self._at(step), self.objective, self.best[step][1]).values())
            for step in ((STEPS,) if self.large else range(APART, STEPS + 1, APART))
        }
        return {BOUND: printed, BEST: proven}


def _slow(path: Path, scale: float, replications: Iterable[int]) -> pd.DataFrame:
    """F-B3M and its slow version: CPU times, their ratio, and the number of different picks."""
    _compile(path)
    rows: list[Raw] = []
    for replication, shape in itertools.product(replications, READINGS):
        case = _case(path, scale, shape, replication)
        for tau in TAUS:
            problem = replace(case.problem, threshold=tau)
            picks, seconds = _decide(case.policies[FB3M], problem)
            same, longer = _decide(case.policies[SLOW], problem)
            of = {**case.at(tau), "point": f"τ = {tau:,}"}
            rows.append({**of, "variant": FB3M, "milliseconds": 1000 * seconds})
            slow = {"milliseconds": 1000 * longer, "times": longer / seconds, "differing": float((picks != same).sum())}
            rows.append({**of, "variant": SLOW, **slow})
    return pd.DataFrame(rows)


def _decide(policy: OffloadingPolicy, problem: OffloadingProblem) -> tuple[NDArray[np.int32], float]:
    """The picks, and the CPU time (s) from the interests on."""
    fresh = replace(problem)  # without cached values
    began = time.process_time()
    topics = policy.decide(fresh).topics
    return topics, time.process_time() - began


def _compile(path: Path) -> None:
    """Let all policies decide once, so that no measured time includes compiling."""
    case = _case(path, TINY, next(iter(READINGS)), 0)
    for policy in case.policies.values():
        policy.decide(case.problem)
