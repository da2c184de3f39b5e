"""The scenario: what a run is made of, read from TOML, validated, with every default filled in.

A file holds one base and any number of variants, each of which overrides keys of it; a sweep lays its points over the base,
one after another. Mistakes are reported all at once, each with its line, what was found, what is allowed, and the nearest right
name.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from sim import toml
from sim.errors import ScenarioError
from sim.files import File, InputFile, NoSuchFile
from sim.kinds import Kinds, Table
from sim.metrics import METRICS
from sim.overlay.sites import Sites, parse_sites
from sim.plugins import Parameters
from sim.toml import Keys
from sim.units import Duration, PositiveDuration
from sim.validation import Model, Problem, dotted, hint, nested, problems, show, validate

Raw = dict[str, Any]
SHARED = {"title", "seed", "replications", "report", "variant"}
"""Keys that variants may not override: their runs are paired by seed and replication."""
MORE = ("variant", "report")
SATISFACTION = ("satisfied_subscribers", "satisfaction")
"""Metrics that a report shows, too, where it says none and they are measured."""
PATHS = {("workload", "path"), ("network", "brokers")}
"""Keys whose texts are paths, beside those named `file` or `*_file`."""


class Prepared(Parameters):
    """A workload folder, written by `brokersim prepare` or `brokersim generate`."""

    path: Path | None = None
    """The workload's folder, relative to the scenario file; or give it by `--workload`."""
    resample_users: bool = False
    """Draw the users with replacement, anew in each replication."""

    @field_serializer("path")
    def _name(self, path: Path | None) -> str | None:
        return path.name if path else None  # where a folder stands is no part of a result


class Nothing(Parameters):
    """No parameters."""


class Unlimited(Parameters):
    """The back end keeps all topics, whatever that takes."""

    tau: Annotated[float, Field(ge=0)] | None = None
    """The notifications per period that satisfy a user; satisfaction is measured where this is given."""
    period: PositiveDuration = 86400.0
    """Satisfaction is measured over each period."""


class WorkloadTable(Table):
    """The [workload] table: a prepared workload's folder, or a generator and its parameters."""

    @property
    def path(self) -> Path | None:
        """The folder of a prepared workload, else None."""
        return self.parameters.path if isinstance(self.parameters, Prepared) else None

    @property
    def resample_users(self) -> bool:
        """Whether each replication of a prepared workload draws its users from those that it has."""
        return isinstance(self.parameters, Prepared) and self.parameters.resample_users


WORKLOAD = Kinds("prepared", "workload", {"prepared": Prepared}, WorkloadTable)
GEOMETRY = Kinds("chord", "geometry")
LATENCY = Kinds("unit", "latency")
SELECTION = Kinds("static", "selection")
RECONFIGURATION = Kinds("none", "reconfiguration", {"none": Nothing})
OFFLOADING = Kinds("none", "offloading", {"none": Unlimited})
DEFAULTS: Raw = {
    "workload": {"kind": WORKLOAD.default},
    "network": {"geometry": {"kind": GEOMETRY.default}, "latency": {"kind": LATENCY.default}},
    "brokers": {"service": {"kind": "none"}},
    "selection": {"kind": SELECTION.default},
}
"""The kinds that hold where a file says none, so that every table has one when another is laid over it."""


BROKERS_FILE = InputFile(parse_sites)


def _brokers(value: object) -> int | str | File[Sites]:
    if value == "cells" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    allowed = "a number of brokers (1 or more), 'cells' (one per visited cell) or a CSV file"
    if not isinstance(value, str | File):
        raise ValueError(f"expected {allowed}, found {show(value)}")
    try:
        return BROKERS_FILE.read(value)
    except NoSuchFile as error:
        raise ValueError(f"{error} (allowed: {allowed})") from None


def _bound(value: object) -> int | None:
    if value is None or value == "unbounded":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"expected a number of messages (0 or more) or 'unbounded', found {show(value)}")


BrokerSites = Annotated[
    int | Literal["cells"] | File[Sites],
    PlainValidator(_brokers),
    PlainSerializer(lambda brokers: brokers.dump() if isinstance(brokers, File) else brokers),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "cells"}, {"type": "string"}]}),
]
Bound = Annotated[
    int | None,
    PlainValidator(_bound),
    PlainSerializer(lambda bound: "unbounded" if bound is None else bound),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"const": "unbounded"}]}),
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Network(_Section):
    """How many brokers there are, and how messages get from one to another."""

    brokers: BrokerSites = "cells"
    """A number, "cells": one per visited cell, at its centre, or a CSV file. A number takes the centres of the busiest cells."""
    geometry: Annotated[Table, GEOMETRY] = Field(default_factory=GEOMETRY.default_table)
    """The overlay that routes between the brokers' nodes."""
    latency: Annotated[Table, LATENCY] = Field(default_factory=LATENCY.default_table)
    """Round-trip times between brokers."""
    hop_cost: Literal["one_way", "rtt"] = "one_way"
    """What a hop costs: half of the round-trip time, or all of it."""
    join: Literal["instant", "message"] = "instant"
    """When a broker's join or leave changes a tree: at once, or when the answer of the root has travelled back."""
    control_count: Literal["hops", "requests"] = "hops"
    """What a join or leave counts as: the hops to the root and back, or two messages."""
    data_plane: Literal["auto", "messages", "folded"] = "auto"
    """How publications travel: "messages" makes every hop an event, "folded" computes a publication's whole way at once, to the same
    bits, where nothing contends; "auto" takes the fastest that is exact."""


class Service(_Section):
    """The time that a broker needs for a message."""

    kind: Literal["none", "deterministic", "exponential"] = "none"
    """No time at all, always the same, or drawn for each message."""
    time: Duration = 0.0
    """The (mean) service time of a message."""
    matching: Duration = 0.0
    """What matching adds to it for every counter that a broker moves; of workloads with content only."""

    @model_validator(mode="after")
    def _time_where_needed(self) -> Service:
        if (self.kind == "none") != (self.time == 0 and self.matching == 0):
            raise ValueError(f"kind '{self.kind}' {'takes no' if self.kind == 'none' else 'needs a'} time above 0")
        return self


class Brokers(_Section):
    """What a broker does with a message."""

    service: Service = Service()
    """The service time."""
    queue: Bound = Field(default=None, json_schema_extra={"default": "unbounded"})
    """How many messages may wait at a broker."""


class Scenario(_Section):
    """One variant of a scenario, resolved: every default filled in, durations in seconds."""

    title: str = ""
    """What the comparison is about; the file's name by default."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """The seed from which all randomness follows."""
    replications: int = Field(default=1, ge=1)
    """How often every variant is run, with every random stream drawn anew."""
    horizon: PositiveDuration | None = None
    """When a run ends; where the workload ends by default."""
    warm_up: Duration = 0.0
    """What is published and sent before this time counts for nothing."""
    window: PositiveDuration = 3600.0
    """Width of the windows of time series."""
    trace: bool = False
    """Also write one row per message hop."""
    subscribers: bool = False
    """Also write how much each user received on each topic."""
    workload: Annotated[WorkloadTable, WORKLOAD] = Field(default_factory=WORKLOAD.default_table)
    """What happens to the network from outside."""
    network: Network = Field(default_factory=Network)
    """The overlay network."""
    brokers: Brokers = Brokers()
    """The brokers."""
    selection: Annotated[Table, SELECTION] = Field(default_factory=SELECTION.default_table)
    """Which broker hosts a user."""
    reconfiguration: Annotated[Table, RECONFIGURATION] = Field(default_factory=RECONFIGURATION.default_table)
    """Which broker stands on which overlay node."""
    offloading: Annotated[Table, OFFLOADING] = Field(default_factory=OFFLOADING.default_table)
    """Which topics the back end keeps."""

    @field_validator("warm_up")
    @classmethod
    def _ends_before_the_horizon(cls, warm_up: float, info: ValidationInfo) -> float:
        horizon = info.data.get("horizon")
        if horizon is not None and warm_up >= horizon:
            raise ValueError(f"expected less than the horizon ({horizon:g} s), found {warm_up:g} s")
        return warm_up

    @property
    def measures_satisfaction(self) -> bool:
        """Whether it is counted whom the back end satisfies."""
        return getattr(self.offloading.parameters, "tau", None) is not None

    def identity(self) -> Raw:
        """What tells one run from another: all but the title, how many runs there are, and where a workload stands."""
        values = self.model_dump(mode="json", exclude={"title", "replications"})
        values["workload"].pop("path", None)
        return values


def _metrics(names: object) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)) or not names:
        raise ValueError(f"expected a list of metrics, found {show(names)}")
    wrong: list[Problem] = [
        ((i,), f"unknown metric{hint(name, list(METRICS))} (got {show(name)})")
        for i, name in enumerate(names)
        if name not in METRICS
    ]
    if wrong:
        raise nested(wrong)
    return tuple(names)


def _metric(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"unknown metric{hint(name, list(METRICS))} (got {show(name)})")
    return name


class Report(_Section):
    """What the report shows first."""

    baseline: str | None = None
    """The variant that the others are compared with; the first by default."""
    metrics: Annotated[
        tuple[str, ...],
        BeforeValidator(_metrics),
        WithJsonSchema({"type": "array", "items": {"enum": list(METRICS)}, "minItems": 1}),
    ] = ("broker_subscription_changes", "subscription_overhead", "notification_delay", "notification_overhead")
    """The metrics that are shown with intervals, differences and charts."""


class Precision(_Section):
    """How narrow intervals have to be: replications are added until they are."""

    metric: Annotated[str, AfterValidator(_metric)] = "notification_delay"
    """The metric whose mean is to be known."""
    relative: float = Field(default=0.02, gt=0, lt=1)
    """The half-width of its interval at most, relative to the mean."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """The confidence of the interval."""
    max_replications: int = Field(default=50, ge=2)
    """No more replications than these."""


Value = int | float | str | bool
"""What a swept key is at a point: a number in the key's unit (seconds for durations), or text."""


@dataclass(frozen=True)
class Point:
    """A point of a sweep: the values of the swept keys, the base with them, and each variant resolved, in the file's order."""

    values: Mapping[str, Value]
    base: Scenario
    variants: Mapping[str, Scenario]

    @cached_property
    def label(self) -> str:
        """The point as people read it: `network.brokers = 20, selection.cluster_size = 5`; "" without a sweep."""
        return ", ".join(
            f"{key} = {f'{value:g}' if isinstance(value, float) else value}" for key, value in self.values.items()
        )


@dataclass(frozen=True)
class Experiment:
    """A scenario file as read: a point, or those of its sweep; `path` is None for a dict.

    `precision` is None where the number of replications is fixed. Where `detects_warm_up`, the scenarios' own warm-up is 0 and means
    that it is not known yet. `sweep` is that table as it was written, {} without one.
    """

    title: str
    points: Sequence[Point]
    report: Report
    path: Path | None = None
    precision: Precision | None = None
    detects_warm_up: bool = False
    sweep: Raw = field(default_factory=dict)

    @property
    def base(self) -> Scenario:
        """The base of the first point, and so of all in whatever is not swept."""
        return self.points[0].base

    @property
    def variants(self) -> Mapping[str, Scenario]:
        """The variants at the first point."""
        return self.points[0].variants

    @property
    def parameters(self) -> list[str]:
        """The key paths that are swept."""
        return list(self.points[0].values)


def load_scenario(
    source: str | Path | Mapping[str, Any], overrides: Sequence[str] = (), workload: str | Path | None = None
) -> Experiment:
    """Read and validate a scenario file, or a dict of the same shape.

    `overrides` are texts `key.path=value` laid over the base (`variant.NAME.key=value`: over one variant); `workload` is a
    workload folder that takes the place of the [workload] table. Raises ScenarioError with one line for each mistake.
    """
    reader = _Reader(source)
    if workload is not None:
        reader.override(("workload",), {"kind": "prepared", "path": str(workload)}, f"--workload {workload}")
    for text in overrides:
        reader.set(text)
    return reader.experiment()


def merge(below: Raw, above: Raw) -> Raw:
    """`above` laid over `below`: a table whose kind changes is replaced, the keys of others merge."""
    if "kind" in above and above["kind"] != below.get("kind"):
        return above
    both = {
        key: merge(below[key], above[key]) for key in below.keys() & above.keys() if _tables(below[key], above[key])
    }
    return {**below, **above, **both}


def _tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def _resolve_paths(table: Raw, folder: Path, keys: Keys = ()) -> None:
    """What a scenario file names in its keys `file`, `*_file`, workload.path and network.brokers is relative to its folder."""
    for key, value in table.items():
        place = (*keys, key)
        if isinstance(value, dict):
            _resolve_paths(value, folder, place)
        elif isinstance(value, str) and (key == "file" or key.endswith("_file") or place in PATHS) and value != "cells":
            table[key] = str(folder / value)


def json_schema() -> Raw:
    """The JSON Schema of a scenario file, with the parameters of every plug-in that is installed."""
    schema = Scenario.model_json_schema()
    keys = {key: _partial(value, schema["$defs"]) for key, value in schema["properties"].items() if key not in SHARED}
    variant = {
        "type": "object",
        "description": "A variant: its name, and the keys in which it differs from the base.",
        "properties": {"name": {"type": "string", "minLength": 1}, **keys},
        "required": ["name"],
        "additionalProperties": False,
    }
    schema["properties"] |= {"variant": {"type": "array", "items": variant}, "report": Report.model_json_schema()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "brokersim scenario"}


def _partial(schema: Any, definitions: Raw) -> Any:
    """The schema of what may be laid over values of another: nothing is required, and a table may leave its kind out."""
    if isinstance(schema, list):
        return [_partial(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _partial(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    rest = {"anyOf" if key == "oneOf" else key: value for key, value in schema.items() if key != "required"}
    return {
        key: {name: _partial(inner, definitions) for name, inner in value.items()}
        if key == "properties"
        else _partial(value, definitions)
        for key, value in rest.items()
    }


class _Reader:
    """Reads one scenario; collects the mistakes and knows where each key was said."""

    def __init__(self, source: str | Path | Mapping[str, Any]) -> None:
        self.path = None if isinstance(source, Mapping) else Path(source)
        self.places: dict[Keys, tuple[int, str]] = {}  # line and text, for each key that was said anywhere
        self.mistakes: set[tuple[int, str]] = set()
        if isinstance(source, Mapping):
            self.raw = copy.deepcopy(dict(source))
        else:
            self.raw, lines = toml.read(Path(source))
            if not self.raw:
                raise ScenarioError(f"{source}: the file is empty: expected keys and tables such as [workload]")
            self.places = {keys: (line, f"{source}:{line}") for keys, line in lines.items()}
        self.names: list[str] = []
        self.variants: list[Raw] = []
        self._take_variants(self.raw.pop("variant", []))
        for table in (self.raw, *self.variants):
            if self.path:
                _resolve_paths(table, self.path.parent)

    def set(self, text: str) -> None:
        """Lay `key.path=value` over the scenario."""
        path, equals, value = text.partition("=")
        try:
            keys = toml.split(path.strip())
        except ValueError:
            keys = ()
        if not equals or not keys:
            raise ScenarioError(f"--set {text}: expected key=value, such as network.brokers=200")
        if keys[0] == "variant":
            if len(keys) < 3 or keys[1] not in self.names:
                raise ScenarioError(
                    f"--set {text}: expected variant.NAME.key=value{hint(keys[1] if len(keys) > 1 else '', self.names)}"
                )
            if keys[2] in SHARED | {"name"}:
                raise ScenarioError(f"--set {text}: '{keys[2]}' cannot be said of a single variant")
            keys = ("variant", self.names.index(str(keys[1])), *keys[2:])
        self.override(keys, toml.value(value.strip()), f"--set {text}")

    def override(self, keys: Keys, value: object, place: str) -> None:
        """Lay one value over the base or, where keys start with ("variant", number), over that variant."""
        inner = keys[2:] if keys[0] == "variant" else keys
        over: Any = value
        for key in reversed(inner):
            over = {key: over}
        if keys[0] == "variant":
            self.variants[int(keys[1])] = merge(self.variants[int(keys[1])], over)
        else:
            self.raw = merge(self.raw, over)
        self.places = {known: at for known, at in self.places.items() if known[: len(keys)] != keys}
        for length in range(1, len(keys)):
            self.places.setdefault(keys[:length], (sys.maxsize, place))
        self.places[keys] = sys.maxsize, place

    def experiment(self) -> Experiment:
        said = self.raw.pop("report", {})
        report = self._read(Report, said, root=("report",))
        raw = merge({"title": self.path.stem if self.path else "", **DEFAULTS}, self.raw)
        base = self._read(Scenario, raw, more=MORE)
        variants = {
            name: self._read(Scenario, merge(raw, {key: over[key] for key in over if key != "name"}), number, more=MORE)
            for number, (name, over) in enumerate(zip(self.names, self.variants, strict=True))
        }
        names = self.names or ["base"]
        baseline = said.get("baseline") if isinstance(said, dict) else None
        if isinstance(baseline, str) and baseline not in names:
            self._mistake(("report", "baseline"), f"no such variant{hint(baseline, names)} (got '{baseline}')")
        if self.mistakes or base is None or report is None:
            raise ScenarioError("\n".join(text for _, text in sorted(self.mistakes)))
        resolved = {name: scenario for name, scenario in variants.items() if scenario} or {"base": base}
        silent = "metrics" not in said and any(scenario.measures_satisfaction for scenario in resolved.values())
        shown = {
            "baseline": baseline or names[0],
            "metrics": report.metrics + SATISFACTION if silent else report.metrics,
        }
        point = Point({}, base, resolved)
        return Experiment(base.title, [point], report.model_copy(update=shown), self.path)

    def _take_variants(self, variants: object) -> None:
        if not isinstance(variants, list) or not _tables(*variants):
            self._mistake(("variant",), f"expected tables [[variant]], found {show(variants)}")
            return
        self.variants = variants
        for number, variant in enumerate(variants):
            name = variant.get("name")
            valid = isinstance(name, str) and name != ""
            taken = name in self.names
            self.names.append(name if valid and not taken else f"[{number}]")
            if not valid:
                self._mistake(("variant", number, "name"), f"every variant needs a name (got {show(name)})")
            if taken:
                self._mistake(("variant", number, "name"), f"another variant has this name (got '{name}')")
            for key in SHARED & variant.keys():
                self._mistake(("variant", number, key), "variants share this key; say it once, above them")

    def _read(
        self, model: type[Model], raw: object, variant: int | None = None, root: Keys = (), more: Sequence[str] = ()
    ) -> Model | None:
        try:
            read = validate(model, raw)
        except ValidationError as error:
            for keys, text in problems(error, model, more):
                self._mistake((*root, *keys), text, variant)
            return None
        if isinstance(read, Scenario) and (folder := read.workload.path) and not folder.is_dir():
            self._mistake(("workload", "path"), f"no such folder (got '{folder}')", variant)
        return read

    def _mistake(self, keys: Keys, text: str, variant: int | None = None) -> None:
        """Keep a mistake, with the place of the longest part of its key path that was said anywhere."""
        line, place = 0, str(self.path or "scenario")
        for length in range(len(keys), 0, -1):
            own: Keys = ("variant", variant, *keys[:length]) if variant is not None else ()
            if own in self.places:
                (line, place), keys = self.places[own], (*own, *keys[length:])
                break
            if keys[:length] in self.places:
                line, place = self.places[keys[:length]]
                break
        self.mistakes.add((line, f"{place}: {self._dotted(keys)}: {text}"))

    def _dotted(self, keys: Keys) -> str:
        if keys[0] == "variant" and len(keys) > 1:
            keys = ("variant", self.names[int(keys[1])], *keys[2:])
        return dotted(keys)
