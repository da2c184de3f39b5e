"""An experiment as read from a scenario file: points and variants, each a complete scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sim.base.naming import Raw
from sim.files import toml
from sim.scenario.expressions import Value
from sim.scenario.keys import text_of, unit_at
from sim.scenario.model import Precision, Report, Scenario
from sim.scenario.tuning import Tune


@dataclass(frozen=True)
class Point:
    """A point of a sweep: the values of the swept keys, the base with these values, and all resolved variants in the file's order.

    Values are numbers in the key's unit (seconds for durations), or text.
    """

    values: Mapping[str, Value]
    base: Scenario
    variants: Mapping[str, Scenario]

    @cached_property
    def label(self) -> str:
        """The point as shown to users: `network.brokers = 20, selection.cluster_size = 5`; "" without a sweep."""
        return ", ".join(f"{key} = {text}" for key, text in self.texts.items())

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The values of the swept keys with their units."""
        return {key: text_of(value, unit_of(key, self.base, self.variants)) for key, value in self.values.items()}


@dataclass(frozen=True)
class Experiment:
    """A scenario file as read: one point, or the points of its sweep; `path` is None for a dict.

    `precision` is None where the number of replications is fixed. Where `detects_warm_up`, the scenarios' own warm-up is 0, as it
    is not known yet. `sweep` is the [sweep] table as written, {} without one; `tune` is the [tune] table, if any.
    """

    title: str
    points: Sequence[Point]
    report: Report
    path: Path | None = None
    precision: Precision | None = None
    detects_warm_up: bool = False
    sweep: Raw = field(default_factory=dict)
    tune: Tune | None = None
    overridden: bool = False

    @property
    def base(self) -> Scenario:
        """The base at the first point; at others, only swept keys differ."""
        return self.points[0].base

    @property
    def variants(self) -> Mapping[str, Scenario]:
        """The variants at the first point."""
        return self.points[0].variants

    @property
    def scenarios(self) -> Iterator[Scenario]:
        """Every variant at every point."""
        return (scenario for point in self.points for scenario in point.variants.values())

    @property
    def parameters(self) -> list[str]:
        """The key paths that are swept."""
        return list(self.points[0].values)


def unit_of(key: str, base: object, variants: Mapping[str, object]) -> str:
    """The unit of a key path, "" where it has none; looked up with the kinds of the base and the variants."""
    first, *rest = toml.split(key)
    if first == "variant":
        return unit_at(Scenario, tuple(rest[1:]), variants.get(str(rest[0])))
    return unit_at(Scenario, (first, *rest), base)
