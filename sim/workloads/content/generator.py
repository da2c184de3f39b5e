"""The generator of content workloads: subscriptions, and publications that match exactly their chosen targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from sim import plugins
from sim.base.errors import suggestion
from sim.base.randomness import Streams
from sim.base.units import SECONDS, PositiveDuration, unit
from sim.base.validation import show
from sim.content.conjunctions import MOST_FIELDS
from sim.content.predicates import Content
from sim.files.parquet import numbers
from sim.workloads.content.designs import Design, Likely, design_grid, design_subsets
from sim.workloads.content.diversity import subset_size
from sim.workloads.content.json_lines import PUBLICATIONS_FILE, SUBSCRIPTIONS, publication_lines, subscription_lines
from sim.workloads.content.routing import route
from sim.workloads.content.sizes import Sizes, constant, poisson, uniform_sizes, weighted_sizes
from sim.workloads.format.traits import Traits
from sim.workloads.format.workload import Publications, SubscriptionEvents, Users, Workload

MOST_VALUES = 1e9
"""The most values of all publications together; that many take four gigabytes."""
MOST_WEIGHT = 1e100
"""The largest weight of a size, so that sums stay finite."""
Weight = Annotated[float, Field(ge=0)]
Distribution = Literal["poisson", "constant", "uniform"]


def _sizes(value: object) -> object:
    """Validate sizes with a single message; pydantic would report one per alternative."""
    names = get_args(Distribution)
    if isinstance(value, list | tuple):
        if all(type(weight) in (int, float) and 0 <= weight <= MOST_WEIGHT for weight in value):
            return tuple(value)
    elif value in names:
        return value
    allowed = f"{', '.join(map(repr, names))} or a list of weights from 0 to {MOST_WEIGHT:g}"
    raise ValueError(f"expected {allowed}, found {show(value)}{suggestion(str(value), names)}")


@dataclass(frozen=True, eq=False)
class _Made:
    """Subscriptions and publications: `targets` (publications, match) are the subscriptions that each publication matches."""

    design: Design
    content: Content
    targets: NDArray[np.int32]


class ContentWorkload:
    """Subscriptions to predicates field = value, and publications that match exactly the given number of them, chosen at random."""

    class Parameters(plugins.Parameters):
        """The design of subscriptions, and the publications."""

        subscriptions: int = Field(100, gt=0, lt=2**31)
        """Number of subscriptions, each a conjunction of predicates."""
        fields: int = Field(11, gt=0, le=MOST_FIELDS)
        """Number of fields of a publication."""
        values: int = Field(100, gt=1, lt=2**31)
        """Number of values that each field can take."""
        size: float = Field(4.0, gt=0)
        """Predicates per subscription: the mean; for "poisson" before zeros are excluded; "uniform" is 1 to 2 size - 1."""
        sizes: Annotated[Distribution | tuple[Weight, ...], BeforeValidator(_sizes)] = "poisson"
        """Distribution of predicates per subscription, by name, or weights of 1, 2, 3, … predicates instead of size."""
        layout: Literal["subsets", "grid"] = "subsets"
        """Successive perfectly compatible subsets, or a grid: predicates that all share, and a private one for each."""
        overlap: int = Field(0, ge=0, lt=2**31)
        """Subscriptions that a subset shares with the previous one; 0 makes subsets disjoint."""
        per_owner: int = Field(1, gt=0, lt=2**31)
        """Subscriptions per user, who receives what matches any of them."""
        publications: int = Field(1000, ge=0, lt=2**31)
        """Number of publications, each by a user and at a time drawn at random."""
        match: int = Field(3, ge=0)
        """Number of subscriptions that each publication matches."""
        likely: Likely = "subsets"
        """What is uniformly distributed when targets are drawn: the subset that they come from, or all targets."""
        repeat: float = Field(0.0, ge=0, le=1)
        """Probability that a publication repeats the targets of the previous one: 0 random, 1 always the same."""
        horizon: PositiveDuration = SECONDS["h"]
        """Length of the workload."""
        payload: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        def traits(self, kind: str) -> Traits:
            return Traits(kind, content=True, bytes=self.payload > 0)

        @model_validator(mode="after")
        def _fits(self) -> ContentWorkload.Parameters:
            if self.layout == "grid" and self.overlap:
                raise ValueError("overlap applies to subsets, a grid has none")
            if isinstance(self.sizes, tuple):
                if "size" in self.model_fields_set:
                    raise ValueError("sizes gives the weight of every size, so size must not be set too")
                if not sum(self.sizes):
                    raise ValueError("sizes has no weight above 0")
                longest: float = len(self.sizes)
            else:
                if self.sizes != "poisson" and self.size != int(self.size):
                    raise ValueError(f'size is {self.size:g}, but "{self.sizes}" sizes need a whole number')
                longest = 2 * self.size - 1 if self.sizes == "uniform" else self.size
            if longest > self.fields:
                raise ValueError(f"fields is {self.fields}, but subscriptions have {longest:g} predicates")
            if self.publications * self.fields >= MOST_VALUES:
                raise ValueError(
                    f"publications and fields give {self.publications * self.fields:.3g} values, "
                    f"allowed: fewer than {MOST_VALUES:.3g}"
                )
            members = subset_size(self.fields, int(self.size))
            if self.sizes == "constant" and 2 * self.overlap > members:
                raise ValueError(
                    f"overlap is {self.overlap}, allowed: at most half of a subset, which has {members} members "
                    f"(fields - size + 1)"
                )
            return self

        @property
        def drawn_sizes(self) -> Sizes:
            """The distribution of sizes."""
            if isinstance(self.sizes, tuple):
                return weighted_sizes(self.sizes)
            if self.sizes == "poisson":
                return poisson(self.size)
            whole = int(self.size)
            return constant(whole) if self.sizes == "constant" else uniform_sizes(1, 2 * whole - 1)

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def generate(self, streams: Streams) -> Workload:
        """The workload; subscriptions, owners, targets, values and times are drawn from separate streams."""
        p = self.parameters
        made = self._make(streams)
        owners = -(-p.subscriptions // p.per_owner)
        topics, interests = route(made.content, owners, p.horizon)
        generator = streams.generator("workload.publications")
        return Workload(
            kind="content",
            horizon=p.horizon,
            topics=topics,
            users=Users.without_places(numbers(owners)),
            interests=interests,
            subscription_events=SubscriptionEvents.none(),
            publications=Publications(
                np.sort(generator.uniform(0, p.horizon, p.publications)),
                np.full(p.publications, -1, np.int32),
                generator.integers(0, owners, p.publications, dtype=np.int32),
                np.full(p.publications, p.payload, np.int32),
            ),
            content=made.content,
            generator={
                "name": "content",
                **p.model_dump(mode="json"),
                "clamped": made.design.clamped,
                "replication": streams.replication,
            },
            seed=streams.seed,
        )

    def lines(self, streams: Streams) -> Mapping[str, Iterable[str]]:
        """The lines of the text files beside this workload's tables, by name."""
        made = self._make(streams)
        return {
            SUBSCRIPTIONS: subscription_lines(made.content.conjunctions),
            PUBLICATIONS_FILE: publication_lines(made.content.values, made.targets),
        }

    def design(self, streams: Streams) -> Design:
        """The subscriptions, each with its own owner, and their known targets."""
        p = self.parameters
        generator = streams.generator("workload.subscriptions")
        if p.layout == "grid":
            return design_grid(p.subscriptions, p.fields, p.values, p.drawn_sizes, generator)
        return design_subsets(p.subscriptions, p.fields, p.values, p.drawn_sizes, generator, p.overlap)

    def _make(self, streams: Streams) -> _Made:
        p, design = self.parameters, self.design(streams)
        targets = design.targets(
            p.match, p.publications, streams.generator("workload.targets"), likely=p.likely, repeat=p.repeat
        )
        values = design.publish(targets, streams.generator("workload.values"))
        owned = design.conjunctions
        if p.per_owner > 1:  # at random, so that an owner's subscriptions are not all from one subset
            owner = streams.generator("workload.owners").permutation(p.subscriptions) // p.per_owner
            owned = replace(owned, owner=owner.astype(np.int32))
        return _Made(design, Content(owned, values), targets)
