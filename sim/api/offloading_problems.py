"""Offloading problems in JSON, and decisions on them as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Discriminator, Field, PlainValidator, Tag

from sim.api.problem_files import ProblemInstance, wrong_topics
from sim.base.errors import InputError
from sim.base.naming import Keys, Raw, RawValue
from sim.base.units import Quantity
from sim.base.validation import Mistake, dotted
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Decision, Objective, OffloadingProblem
from sim.policies.offloading.process import Capacity, make_problem, parse_capacity

_KINDS = ("(of all)", "(of each)")  # the types that tau is read as


class _Instance(ProblemInstance):
    """A problem: `interests` has the topics of each subscriber, in any order and possibly repeated; topics are named by position.

    `event_rate` and `cost` (None: 1 per notification) are by topic, `tau` is for all subscribers or for each.
    """

    interests: list[list[int]]
    event_rate: list[Quantity]
    cost: list[Quantity] | None = None
    capacity: Annotated[Capacity, PlainValidator(parse_capacity)]
    tau: Annotated[
        Annotated[Quantity, Tag(_KINDS[0])] | Annotated[list[Quantity], Tag(_KINDS[1])],
        Discriminator(lambda tau: _KINDS[isinstance(tau, list)]),
    ]
    seed: int = Field(1, ge=0, lt=2**63)

    def mistakes(self) -> Iterator[Mistake]:
        topics = len(self.event_rate)
        for key, values, length, of in (
            ("cost", self.cost, topics, "event_rate"),
            ("tau", self.tau, len(self.interests), "interests"),
        ):
            if isinstance(values, list) and len(values) != length:
                yield (key,), f"expected {length} entries, as many as {of} has (found {len(values)})"
        yield from wrong_topics("interests", self.interests, topics)
        wanted = set(itertools.chain.from_iterable(self.interests))
        for topic, (cost, rate) in enumerate(zip(self.cost or (), self.event_rate, strict=False)):
            if not cost and rate and topic in wanted:
                yield (
                    ("cost", topic),
                    "expected a value greater than 0, as the topic has subscribers and events (found 0)",
                )

    def problem(self) -> OffloadingProblem:
        """The problem as arrays."""
        rows = [sorted(set(row)) for row in self.interests]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        return make_problem(
            indptr,
            np.fromiter(itertools.chain.from_iterable(rows), np.int32, int(indptr[-1])),
            np.array(self.event_rate, np.float64),
            self.capacity,
            np.array(self.tau) if isinstance(self.tau, list) else self.tau,
            None if self.cost is None else np.array(self.cost, np.float64),
            self.seed,
        )


class KeepAll:
    """The policy that offloads nothing: all topics are kept, whatever they cost."""

    objective: Objective = "satisfied"

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """All topics."""
        return Decision(np.arange(problem.topics, dtype=np.int32))


def solution(problem: OffloadingProblem, decision: Decision, objective: Objective, bounds: bool = False) -> Raw:
    """The evaluation of a decision as JSON; `upper_bounds` is empty without `bounds`."""
    found = outcome(problem, decision.topics)
    proven = {}
    if bounds:
        from sim.policies.offloading.bounds import upper_bounds

        proven = upper_bounds(problem, objective, decision.topics)
    return {
        "topics": decision.topics.tolist(),
        "capacity": _plain(problem.capacity),
        "cost": _plain(found.cost),
        "satisfied": found.satisfied,
        "subscribers": problem.subscribers,
        "free": found.free,
        "satisfaction": found.satisfaction,
        "value": _plain(found.value_of(objective)),
        "upper_bounds": proven,
    }


def _plain(number: float) -> float | int:
    """Whole numbers as integers, up to the limit of exact float64."""
    return int(number) if number < 2**53 and float(number).is_integer() else float(number)


def read_problem(content: RawValue, place: Keys = ()) -> OffloadingProblem:
    """The problem of a JSON object. Raises InputError for the first mistake; `place` is the object's position."""
    instance = _Instance.read(content, place)
    try:
        return instance.problem()
    except InputError as error:
        raise InputError(f"{dotted(place)}: {error}" if place else str(error)) from None


def bytes_needed(subscribers: int, topics: int, interests: int) -> float:
    """The memory of a decision: interests by subscriber, by topic and by rate, and some numbers per subscriber and topic."""
    return 12.0 * interests + 40.0 * subscribers + 80.0 * topics
