"""Offloading: CPU time of greedy decisions against the same algorithms in plain C++, which must pick the same topics in the same order.

The reference, `offloading_reference.cpp`, is built with the system's compiler; where there is none, the rows say so.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim import plugins
from sim.base.randomness import Streams
from sim.policies.offloading import greedy
from sim.policies.offloading.greedy import GreedyEngine
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Decision, Objective, OffloadingPolicy, OffloadingProblem

SHARE = 0.1
"""The capacity, as a share of what all topics cost."""
INSTANCES = 300
By = Literal["ratio", "gain"]


@dataclass(frozen=True)
class Algorithm:
    """A greedy algorithm, and how many times the reference's CPU time it may take."""

    objective: Objective
    engine: GreedyEngine
    bar: float


ALGORITHMS = {
    "b3m": Algorithm("satisfied", "delta", 1.5),
    "fb3m-delta": Algorithm("satisfaction", "delta", 1.5),
    "fb3m-lazy": Algorithm("satisfaction", "lazy", 2.0),
}
"""By the reference's names."""


def spotify(shape: str, scale: float, tau: int, seed: int = 1) -> OffloadingProblem:
    """The problem of a workload as `brokersim generate` makes it."""
    kind = plugins.load("workload", f"spotify-{shape}")
    workload = kind(kind.Parameters(scale=scale)).generate(Streams(seed))
    interests = workload.interests
    given = OffloadingProblem.of(interests.indptr, interests.indices, workload.topics.event_rate, 0.0, tau)
    return replace(given, capacity=SHARE * float(given.cost.sum()))


def policy(name: str) -> OffloadingPolicy:
    """An offloading policy with its default parameters."""
    found = plugins.load("offloading", name)
    made: OffloadingPolicy = found(found.Parameters())
    return made


class Reference:
    """The program in C++, and a folder through which it gets problems and gives picks."""

    def __init__(self, compiler: str, folder: Path) -> None:
        self._program, self._folder = folder / "reference", folder
        source = Path(__file__).with_name("offloading_reference.cpp")
        subprocess.run([compiler, "-std=c++20", "-O3", "-o", str(self._program), str(source)], check=True)

    def give(self, problem: OffloadingProblem) -> None:
        """Write a problem for the program."""
        for name, values in (
            ("indptr", problem.indptr),
            ("indices", problem.indices),
            ("rate", problem.event_rate),
            ("cost", problem.cost),
            ("threshold", np.broadcast_to(np.int64(problem.threshold), problem.subscribers)),
            ("capacity", np.array([problem.capacity])),
        ):
            values.tofile(self._folder / name)

    def decide(self, algorithm: str, by: By = "ratio") -> tuple[NDArray[np.int32], float, int, float, float]:
        """Picks, cost, satisfied subscribers, sum of satisfaction and CPU time (s, without reading) for the problem that was given."""
        command = [str(self._program), str(self._folder), algorithm, by]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        picks = np.fromfile(self._folder / "picks", np.int32)
        assert len(picks) == int(shown[0])
        return picks, float(shown[1]), int(shown[2]), float(shown[3]), float(shown[4])


@contextmanager
def reference() -> Iterator[Reference | None]:
    """The reference while it is needed; None without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    with tempfile.TemporaryDirectory() as folder:
        yield Reference(compiler, Path(folder)) if compiler else None


def decide(problem: OffloadingProblem, algorithm: str, by: By = "ratio") -> Decision:
    """Decide from the interests on, without cached values of other decisions."""
    chosen = ALGORITHMS[algorithm]
    return greedy.run_greedy(replace(problem), chosen.objective, by, engine=chosen.engine)


def figures() -> Iterator[Figure]:
    """The same picks on small problems of all kinds; CPU times at 1/50 of the size; the slow engine."""
    with reference() as plain:
        yield _equal(plain)
        for tau in (27, 2763):
            yield from beside(plain, "dense, 1/50", spotify("dense", 0.02, tau), tau)
    yield _slow()


def beside(
    plain: Reference | None, size: str, problem: OffloadingProblem, tau: int, rounds: int = 3
) -> Iterator[Figure]:
    """CPU times from the interests to picks of type R, beside the reference's in turn. The picks, and what they come to, are equal."""
    if plain:
        plain.give(problem)
    for name, algorithm in ALGORITHMS.items():
        what = f"{name}, {size}, τ = {tau:,}: CPU time, of C++'s"
        bar = f"≤ {algorithm.bar:g} ×"
        if not plain:
            seconds = cpu_seconds(partial(decide, problem, name))
            yield Figure(what, f"{seconds:.2f} s; no C++ compiler here", bar, None)
            continue
        taken: list[Decision] = []

        ours, theirs = partial(_ours, problem, name, taken), partial(_theirs, plain, problem, name, taken)
        mine, other, ratio = alternate(ours, theirs, rounds)
        yield Figure(what, f"{ratio:.2f} × ({mine:.2f} s against {other:.2f} s)", bar, ratio <= algorithm.bar)


def _ours(problem: OffloadingProblem, algorithm: str, taken: list[Decision]) -> float:
    return cpu_seconds(lambda: taken.append(decide(problem, algorithm)))


def _theirs(plain: Reference, problem: OffloadingProblem, algorithm: str, taken: list[Decision]) -> float:
    picks, cost, satisfied, total, seconds = plain.decide(algorithm)
    same(picks, taken[-1], algorithm)
    found = outcome(problem, picks)
    assert (cost, satisfied) == (found.cost, found.satisfied)
    assert abs(total - found.total) <= 1e-12 * found.total
    return seconds


def same(picks: NDArray[np.int32], decision: Decision, what: str) -> None:
    """Stop where a decision's picks differ from the reference's, as times of different work are not comparable."""
    if not np.array_equal(picks, decision.topics):
        raise SystemExit(f"{what}: the picks differ from the reference's")


def _equal(plain: Reference | None) -> Figure:
    """Small problems with many ties and with few, one threshold or many, any cost vector and capacity."""
    decisions = 0
    what = f"picks of {INSTANCES} small problems, types R and G: those that differ from C++'s"
    for seed in range(INSTANCES) if plain else ():
        assert plain
        given = _small(np.random.default_rng(seed))
        plain.give(given)
        for name in ALGORITHMS:
            for by in ("ratio", "gain"):
                same(plain.decide(name, by)[0], decide(given, name, by), f"{what}; seed {seed}, {name} by {by}")
                decisions += 1
    return Figure(what, f"0 of {decisions:,}" if plain else "no C++ compiler here", "0", True if plain else None)


def _small(random: np.random.Generator) -> OffloadingProblem:
    subscribers, topics = random.integers(1, 60), random.integers(1, 40)
    wanted = random.random((subscribers, topics)) < random.uniform(0.02, 0.5)
    most = random.choice([2, 10, 1000, 1_000_000])
    each = random.integers(0, most, subscribers)
    costs = (None, random.integers(1, 9, topics).astype(np.float64), random.uniform(0.1, 9, topics))
    given = OffloadingProblem.of(
        np.concatenate([[0], np.cumsum(wanted.sum(axis=1))]),
        np.nonzero(wanted)[1].astype(np.int32),
        random.integers(0, most, topics),
        0.0,
        each if random.random() < 0.5 else int(each[0]),
        costs[random.integers(3)],
    )
    return replace(given, capacity=random.uniform(0, 1) * float(given.cost.sum()))


def _slow() -> Figure:
    """The whole of fb3m, types G and R, beside the version that recomputes all topics that share a subscriber with a pick."""
    problem = spotify("dense", 0.01, 27)
    fast, slow = policy("fb3m"), policy("fb3m-slow")
    assert np.array_equal(fast.decide(problem).topics, slow.decide(problem).topics)
    theirs, ours, ratio = alternate(
        lambda: cpu_seconds(lambda: slow.decide(replace(problem))),
        lambda: cpu_seconds(lambda: fast.decide(replace(problem))),
        1,
    )
    text = f"{ratio:,.0f} times faster ({ours:.2f} s against {theirs:.0f} s)"
    return Figure("fb3m, dense, 1/100, τ = 27: beside fb3m-slow, the same picks", text, "≥ 100 times", ratio >= 100)
