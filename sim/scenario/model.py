"""The scenario: what a run is made of, read from TOML, validated, with every default filled in.

A file holds one base and any number of variants, each of which overrides keys of it; a sweep lays its points over the base,
one after another. Mistakes are reported all at once, each with its line, what was found, what is allowed, and the nearest right
name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import islice
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

from sim.base.errors import InputError, ScenarioError, cut, nearest
from sim.base.naming import Keys
from sim.base.units import Duration, Period, PositiveDuration, Quantity, Repeats
from sim.base.validation import UNKNOWN, Model, Problem, dotted, hint, nested, problems, show, validate
from sim.files import toml
from sim.files.inputs import File, InputFile, NoSuchFile
from sim.metrics import METRICS
from sim.overlay.sites import Sites, parse_sites
from sim.plugins import Parameters
from sim.scenario.expressions import Expression, Value
from sim.scenario.keys import is_integer, text_of, unit_at
from sim.scenario.kinds import Kinds, Table
from sim.scenario.reading import Reading, tables_of
from sim.scenario.sweep import GRID, Laid, Sweep, leaves, place_of, read_sweep, sweep_schema, without
from sim.scenario.tuning import Tune

Raw = dict[str, Any]
MORE = ("variant", "report", "precision", "sweep", "tune")
SHARED = {"title", "seed", "replications", *MORE}
"""Keys that variants may not override, and no sweep has: runs are paired by seed and replication."""
ASIDE = {"title", "replications", "subscribers", "trace", "data_plane"}
"""Keys that make no other question of a scenario: names, how much is run, what is recorded, and how it is computed."""
MOST_STEPS = 1_000_000
"""Windows, periods of decisions and the like up to the horizon, at most: as many take a minute and a gigabyte."""
MOST_RUNS = 1_000_000
"""Runs of an experiment at most: as many take a gigabyte to plan, before any is done."""
MOST_BROKERS = 2**31
"""The numbers of brokers are below it."""
FEW = 200
"""Points at which mistakes are looked for where there are some already."""
DETECT = "detect"
"""What `warm_up` says where it is to be found out."""
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

    tau: Quantity | None = None
    """The notifications per period that satisfy a user; satisfaction is measured where this is given."""
    period: Period = 86400.0
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
    if value == "cells":
        return "cells"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        if value >= MOST_BROKERS:
            raise ValueError(f"expected fewer than {MOST_BROKERS:,} brokers, found {value:,}")
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
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "exclusiveMaximum": MOST_BROKERS},
                {"const": "cells"},
                {"type": "string"},
            ]
        }
    ),
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
    replications: int = Field(default=1, ge=1, le=MOST_RUNS)
    """How often every variant is run, with every random stream drawn anew."""
    horizon: PositiveDuration | None = None
    """When a run ends; where the workload ends by default."""
    warm_up: Duration = 0.0
    """What is published and sent before this time counts for nothing."""
    window: Annotated[PositiveDuration, Repeats("windows")] = 3600.0
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

    @model_validator(mode="after")
    def _has_few_steps(self) -> Scenario:
        horizon = self.horizon or getattr(self.workload.parameters, "horizon", None)
        if isinstance(horizon, float) and (wrong := self.steps_wrong(horizon)):
            raise nested(wrong)
        return self

    def steps_wrong(self, horizon: float) -> list[Problem]:
        """What is done too often up to a horizon (s): the keys whose values are `Repeats`, and what they may be."""
        return [
            (
                keys,
                f"{MOST_STEPS:,} {what} at most, so {horizon / MOST_STEPS:g} s or more up to {horizon:g} s, found {value:g} s",
            )
            for keys, what, value in _repeats(self)
            if horizon / value > MOST_STEPS
        ]

    @property
    def measures_satisfaction(self) -> bool:
        """Whether it is counted whom the back end satisfies."""
        return getattr(self.offloading.parameters, "tau", None) is not None

    def identity(self) -> Raw:
        """What tells one run from another: all but the title, how many runs there are, and where a workload stands."""
        values: Raw = json.loads(self.identity_text({}))
        return values

    def identity_text(self, told: dict[int, str]) -> str:
        """The identity as JSON. `told` keeps what tables come to, by their ids, for other scenarios that share them."""
        tables, others = [], {}
        for name, value in vars(self).items():
            if name in tables_of(Scenario):
                if id(value) not in told:
                    table = value.dump() if isinstance(value, Table) else value.model_dump(mode="json")
                    if name == "workload":
                        table.pop("path", None)
                    told[id(value)] = json.dumps(table, sort_keys=True)
                tables.append(f'"{name}": {told[id(value)]}')
            elif name not in ("title", "replications"):
                others[name] = value
        return ", ".join([json.dumps(others)[:-1], *tables]) + "}"


def _repeats(model: BaseModel, keys: Keys = ()) -> Iterator[tuple[Keys, str, float]]:
    """Each value in a model and its tables that is the time (s) from one step to the next, and what these steps are."""
    for name, info in type(model).model_fields.items():
        value = vars(model)[name]
        inner = value.parameters if isinstance(value, Table) else value
        if isinstance(inner, BaseModel):
            yield from _repeats(inner, (*keys, name))
        else:
            yield from (((*keys, name), mark.what, value) for mark in info.metadata if isinstance(mark, Repeats))


def _metrics(names: object) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)) or not names:
        raise ValueError(f"expected a list of metrics, found {show(names)}")
    wrong: list[Problem] = [
        ((i,), f"unknown metric{hint(name, list(METRICS))} (got {show(name)})")
        for i, name in enumerate(names)
        if not (isinstance(name, str) and name in METRICS)
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

    metric: Annotated[str, AfterValidator(_metric), WithJsonSchema({"enum": list(METRICS)})] = "notification_delay"
    """The metric whose mean is to be known."""
    relative: float = Field(default=0.02, gt=0, lt=1)
    """The half-width of its interval at most, relative to the mean."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """The confidence of the interval."""
    max_replications: int = Field(default=50, ge=2, le=MOST_RUNS)
    """No more replications than these."""


@dataclass(frozen=True)
class Point:
    """A point of a sweep: the values of the swept keys, the base with them, and each variant resolved, in the file's order.

    Values are numbers in the key's unit (seconds for durations), or text.
    """

    values: Mapping[str, Value]
    base: Scenario
    variants: Mapping[str, Scenario]

    @cached_property
    def label(self) -> str:
        """The point as people read it: `network.brokers = 20, selection.cluster_size = 5`; "" without a sweep."""
        return ", ".join(f"{key} = {text}" for key, text in self.texts.items())

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The values of the swept keys with their units."""
        return {key: text_of(value, unit_of(key, self.base, self.variants)) for key, value in self.values.items()}


@dataclass(frozen=True)
class Experiment:
    """A scenario file as read: a point, or those of its sweep; `path` is None for a dict.

    `precision` is None where the number of replications is fixed. Where `detects_warm_up`, the scenarios' own warm-up is 0 and means
    that it is not known yet. `sweep` is that table as it was written, {} without one; `tune` says what is tuned, if the file does.
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

    `overrides` are texts `key.path=value` laid over the base (`variant.NAME.key=value`: over one variant), where a key that is swept
    is so no more; `workload` is a workload folder that takes the place of the [workload] table. Raises ScenarioError with one line
    for each mistake.
    """
    reader = _Reader(source)
    if workload is not None:
        reader.override(("workload",), {"kind": "prepared", "path": str(workload)}, f"--workload {workload}")
    for text in overrides:
        reader.set(text)
    aside = ASIDE | {"report", "precision", "tune"}
    keys = {toml.split(text.partition("=")[0].strip())[0] for text in overrides}
    return replace(reader.experiment(), overridden=workload is not None or not keys <= aside)


def merge(below: Raw, above: Raw) -> Raw:
    """`above` laid over `below`: a table whose kind changes is replaced, the keys of others merge."""
    if "kind" in above and above["kind"] != below.get("kind"):
        return above
    both = {
        key: merge(below[key], above[key]) for key in below.keys() & above.keys() if _tables(below[key], above[key])
    }
    return {**below, **above, **both}


def _nested(keys: Keys, value: Any) -> Any:
    """Tables in tables, with the value at a key path."""
    for key in reversed(keys):
        value = {key: value}
    return value


def _tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def unit_of(key: str, base: object, variants: Mapping[str, object]) -> str:
    """The unit of a key path of a scenario, "" where it has none; the base and its variants, or the tables of them, have the kinds."""
    first, *rest = toml.split(key)
    if first == "variant":
        return unit_at(Scenario, tuple(rest[1:]), variants.get(str(rest[0])))
    return unit_at(Scenario, (first, *rest), base)


def _is_path(keys: Keys) -> bool:
    """Whether texts at a key path of a scenario file are paths, which are relative to its folder."""
    own = keys[2:] if keys[:1] == ("variant",) else keys
    return own in PATHS or (own != () and (own[-1] == "file" or str(own[-1]).endswith("_file")))


def _resolve_paths(values: Any, folder: Path, keys: Keys = ()) -> None:
    """Lays the folder before all paths, but "cells", in a table, or in a list of what a key may be."""
    table = isinstance(values, dict)
    for key, value in values.items() if table else enumerate(values):
        place = (*keys, key) if table else keys
        if isinstance(value, dict):
            _resolve_paths(value, folder, place)
        elif isinstance(value, str) and _is_path(place) and value != "cells":
            values[key] = str(folder / value)


def _found(scenario: Scenario, keys: Keys) -> Any:
    """What a resolved scenario has at a key path; None where it has nothing."""
    value: Any = scenario
    for key in keys:
        if isinstance(value, Table):
            value = value.kind if key == "kind" else vars(value.parameters).get(str(key))
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            value = vars(value).get(str(key)) if isinstance(value, BaseModel) else None
    return value.kind if isinstance(value, Table) else float(value) if isinstance(value, Fraction) else value


def _known(scenario: Scenario, name: str) -> Value:
    """What an expression's name stands for."""
    value = _found(scenario, tuple(name.split(".")))
    if isinstance(value, File):
        return value.name
    if isinstance(value, int | float | str):
        return value
    names = [".".join(keys) for keys in _paths(scenario.model_dump(mode="json"))]
    if name in names:
        raise InputError(f"'{name}' is neither a number nor text here")
    raise InputError(f"unknown key{hint(name, names)} (got '{name}')")


def _paths(values: Raw, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield from _paths(value, (*keys, key)) if isinstance(value, dict) else [(*keys, key)]


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
    warm_up = schema["properties"]["warm_up"]
    schema["properties"] |= {
        "warm_up": warm_up | {"anyOf": [*warm_up["anyOf"], {"const": DETECT}]},
        "variant": {"type": "array", "items": variant},
        "report": Report.model_json_schema(),
        "precision": Precision.model_json_schema(),
        "sweep": sweep_schema(),
        "tune": Tune.model_json_schema(),
    }
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
            self.raw = toml.checked(source, "scenario")
        else:
            self.raw, lines = toml.read(Path(source))
            if not self.raw:
                raise ScenarioError(f"{source}: the file is empty: expected keys and tables such as [workload]")
            self.places = {keys: (line, f"{source}:{line}") for keys, line in lines.items()}
        self.names: list[str] = []
        self.variants: list[Raw] = []
        self.detects = False
        self.laid: tuple[Laid, ...] = ()  # what the sweep lays over the base at the point that is being read
        self.reading = Reading()
        self._is_folder = cache(Path.is_dir)
        self._take_variants(self.raw.pop("variant", []))
        if self.path:
            vary = (each for table in ("sweep", "tune") for each in leaves(self.raw.get(table)))
            lists = [(values, keys) for _, keys, values in vary if isinstance(values, list)]
            for table, keys in (*((table, ()) for table in (self.raw, *self.variants)), *lists):
                _resolve_paths(table, self.path.parent, keys)

    def set(self, text: str) -> None:
        """Lay `key.path=value` over the scenario; a key that is swept is so no more."""
        path, equals, value = text.partition("=")
        said = f"--set {cut(text, 300)}"
        try:
            keys = toml.split(path.strip())
        except ValueError:
            keys = ()
        if not equals or not keys:
            raise ScenarioError(f"{said}: expected key=value, such as network.brokers=200")
        if isinstance(sweep := self.raw.get("sweep"), dict) and keys[0] != "sweep":
            self.raw["sweep"] = without(sweep, keys)  # what is said last holds
            if sweep and not self.raw["sweep"]:
                del self.raw["sweep"]
        if keys[0] == "variant":
            if len(keys) < 3 or keys[1] not in self.names:
                raise ScenarioError(
                    f"{said}: expected variant.NAME.key=value{hint(keys[1] if len(keys) > 1 else '', self.names)}"
                )
            if keys[2] in SHARED | {"name"}:
                raise ScenarioError(f"{said}: '{keys[2]}' cannot be said of a single variant")
            keys = ("variant", self.names.index(str(keys[1])), *keys[2:])
        elif keys[0] == "sweep":
            keys = ("sweep", *place_of(self.raw.get("sweep"), keys[1:]))
        self.override(keys, toml.value(value.strip()), said)

    def override(self, keys: Keys, value: object, place: str) -> None:
        """Lay one value over the base or, where keys start with ("variant", number), over that variant."""
        inner = keys[2:] if keys[0] == "variant" else keys
        over = _nested(inner, value)
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
        report = self._read(Report, said, ("report",))
        precise = self.raw.pop("precision", None)
        precision = self._read(Precision, precise, ("precision",)) if precise is not None else None
        tuned = self.raw.pop("tune", None)
        tune = self._read(Tune, tuned, ("tune",)) if tuned is not None else None
        self._take_warm_up()
        sweep = self._take_sweep()
        names = self.names or ["base"]
        baseline = said.get("baseline") if isinstance(said, dict) else None
        if isinstance(baseline, str) and baseline not in names:
            self._mistake(("report", "baseline"), f"no such variant{hint(baseline, names)} (got '{baseline}')")
        points = self._points(sweep)
        self._check_runs(points, precision)
        if tune and not self.mistakes:
            self._check_tuned(tune)
        if self.mistakes or report is None:
            raise ScenarioError("\n".join(text for _, text in sorted(self.mistakes)))
        first = points[0]
        silent = "metrics" not in said and any(variant.measures_satisfaction for variant in first.variants.values())
        shown = {
            "baseline": baseline or names[0],
            "metrics": report.metrics + SATISFACTION if silent else report.metrics,
        }
        report = report.model_copy(update=shown)
        written = sweep.table() if sweep else {}
        return Experiment(first.base.title, points, report, self.path, precision, self.detects, written, tune)

    def _take_warm_up(self) -> None:
        """Takes `warm_up = "detect"` out of the base, where it is said for all."""
        said = self.raw.get("warm_up")
        if said != DETECT and isinstance(said, str) and nearest(said, [DETECT]):
            self._mistake(("warm_up",), f"expected a duration such as '1d', or '{DETECT}', found {show(said)}")
            self.raw["warm_up"] = 0.0
        if said == DETECT:
            self.detects = True
            del self.raw["warm_up"]
        for number, variant in enumerate(self.variants):
            if "warm_up" in variant and (self.detects or variant["warm_up"] == DETECT):
                only = f'warm_up = "{DETECT}" holds for all variants; say it once, above them, and no other'
                self._mistake(("variant", number, "warm_up"), only)
                variant["warm_up"] = 0.0

    def _take_sweep(self) -> Sweep | None:
        if "sweep" not in self.raw:
            return None
        table = self.raw.pop("sweep")
        sweep, wrong = read_sweep(table, self._not_swept, _is_path, partial(self._is_integer, table))
        for keys, text in wrong:
            self._mistake(("sweep", *keys), text)
        return sweep

    def _is_integer(self, sweep: Raw, keys: Keys) -> bool:
        """Whether a swept key takes integers only in all variants, and with all kinds that are swept, that know it."""
        name, own = (keys[1], keys[2:]) if keys[0] == "variant" else (None, keys)
        known = [merge(self.raw, variant) for variant in self.variants if name in (None, variant.get("name"))]
        kinds = [
            _nested(path[2:] if path[0] == "variant" else path, kind)
            for _, path, values in leaves(sweep)
            if path[-1:] == ("kind",) and isinstance(values, list)
            for kind in values
        ]
        tables = [merge(table, kind) for table in (known or [self.raw]) for kind in [{}, *kinds]]
        found = {is_integer(Scenario, own, merge(DEFAULTS, table)) for table in tables}
        return False not in found

    def _not_swept(self, keys: Keys) -> str | None:
        key = keys[0]
        if key == "variant":
            if len(keys) < 3 or keys[1] not in self.names:
                return f"expected variant.NAME.key{hint(keys[1] if len(keys) > 1 else '', self.names)}"
            key = keys[2]
        if key in SHARED | {"name"}:
            return f"'{key}' is one for all runs and cannot be swept"
        return f'cannot be swept where warm_up = "{DETECT}"' if key == "warm_up" and self.detects else None

    def _points(self, sweep: Sweep | None) -> list[Point]:
        """All points; where something is wrong by now, what else is wrong is looked for at a few of them."""
        raw = merge({"title": self.path.stem if self.path else "", **DEFAULTS}, self.raw)
        seed = self.raw.get("seed", 1)
        if sweep is None or self.mistakes or not isinstance(seed, int) or seed < 0:
            few = islice(sweep.one_at_a_time(), FEW) if sweep else [()]
            return [point for laid in few if (point := self._point(raw, laid))]
        points: dict[Any, Point] = {}
        for number, laid in enumerate(sweep.points(seed)):
            if point := self._point(raw, laid, sweep.where):
                points.setdefault(tuple(point.values.values()) if sweep.sample == GRID else number, point)
        if not points and not self.mistakes:
            self._mistake(("sweep", "where"), f"no point is left (of {sweep.count:,})")
        return list(points.values())

    def _check_runs(self, points: Sequence[Point], precision: Precision | None) -> None:
        """Runs are all listed before the first is done."""
        if not points or self.mistakes:
            return
        told: dict[Keys, int] = {("replications",): points[0].base.replications}
        if precision is not None:
            told["precision", "max_replications"] = precision.max_replications
        each = sum(len(point.variants) for point in points)
        for keys, replications in told.items():
            if each * replications > MOST_RUNS:
                runs = f"{replications:,} replications of each of {each:,} points and variants"
                self._mistake(keys, f"{runs} are {each * replications:,} runs (allowed: {MOST_RUNS:,})")

    def _check_tuned(self, tune: Tune) -> None:
        """A key that is tuned has to be one of some variant, which may have any of its values that are `examples`."""
        base = merge(DEFAULTS, self.raw)
        variants = [merge(base, {key: own[key] for key in own if key != "name"}) for own in self.variants] or [base]
        for key, parameter in tune.vary.items():
            wrong = [self._wrong_there(variant, key, parameter.examples) for variant in variants]
            if all(wrong):
                self._mistake(("tune", key), str(wrong[0]))

    def _wrong_there(self, raw: Raw, key: str, values: Sequence[Any]) -> str | None:
        """What is wrong with some value of a key, laid over a scenario."""
        for value in values:
            _, wrong = self.reading.read(Scenario, merge(raw, _nested(toml.split(key), value)), MORE)
            if wrong:
                return f"{dotted(wrong[0][0])}: {wrong[0][1]}" if dotted(wrong[0][0]) != key else wrong[0][1]
        return None

    def _point(self, raw: Raw, laid: tuple[Laid, ...], where: Expression | None = None) -> Point | None:
        """The point at which this is laid over the base; None where `where` leaves it out or something is wrong, which is kept."""
        self.laid = laid
        over: Raw = {}
        for one in laid:
            table = over
            for key in one.keys[:-1]:
                table = table.setdefault(str(key), {})
            table[str(one.keys[-1])] = one.value
        above = over.pop("variant", {})
        raw = merge(raw, over)
        base = self._scenario(raw)
        if base and where and not self._holds(where, base):
            return None
        variants = {
            name: self._scenario(merge(raw, merge(own, above.get(name, {}))), number)
            for number, (name, own) in enumerate(zip(self.names, self.variants, strict=True))
        } or {"base": base}
        read = {name: scenario for name, scenario in variants.items() if scenario}
        if base is None or len(read) < len(variants):
            return None
        return Point({toml.join(one.keys): _value(one, base, read) for one in laid}, base, read)

    def _holds(self, where: Expression, base: Scenario) -> bool:
        try:
            return where.holds(lambda name: _known(base, name))
        except InputError as error:
            self._mistake(("sweep", "where"), str(error))
            return False

    def _scenario(self, raw: Raw, variant: int | None = None) -> Scenario | None:
        own = {key: value for key, value in raw.items() if key != "name"} if variant is not None else raw
        scenario, wrong = self.reading.read(Scenario, own, MORE)
        for keys, text in wrong:
            self._mistake(keys, text, variant)
        if scenario and (folder := scenario.workload.path) and not self._is_folder(folder):
            self._mistake(("workload", "path"), f"no such folder (got '{folder}')", variant)
        return scenario

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

    def _read(self, model: type[Model], raw: object, root: Keys) -> Model | None:
        try:
            return validate(model, raw)
        except ValidationError as error:
            for keys, text in problems(error, model):
                self._mistake((*root, *keys), text)
            return None

    def _mistake(self, keys: Keys, text: str, variant: int | None = None) -> None:
        """Keep a mistake, with the place of the longest part of its key path that was said anywhere."""
        swept = {one.keys: one.place for one in self.laid}
        for length in range(len(keys), 0, -1):
            known, rest = keys[:length], keys[length:]
            named: Keys = ("variant", self.names[variant], *known) if variant is not None else ()
            own: Keys = ("variant", variant, *known) if variant is not None else ()
            if place := swept.get(named) or swept.get(known):
                keys, text = self._told_once(place, text) if not rest else (place, text)
                keys = ("sweep", *keys, *rest)
                break
            if own in self.places or known in self.places:
                keys = (*(own if own in self.places else known), *rest)
                break
            if around := next((one.place for one in self.laid if one.keys[:length] in (named, known)), None):
                keys, text = self._told_once(around, text)
                keys, text = ("sweep", *keys), f"{dotted(known)}: {text}"
                break
        found = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in self.places), ())
        line, at = self.places[found] if found else (0, str(self.path or "scenario"))
        self.mistakes.add((line, f"{at}: {self._dotted(keys)}: {text}"))

    @staticmethod
    def _told_once(place: Keys, text: str) -> tuple[Keys, str]:
        """The same of a key that nobody knows, whatever its values are."""
        if not text.startswith(UNKNOWN):
            return place, text
        return place[:-1] if isinstance(place[-1], int) else place, text.rpartition(" (got ")[0]

    def _dotted(self, keys: Keys) -> str:
        if keys[0] == "variant" and len(keys) > 1:
            keys = ("variant", self.names[int(keys[1])], *keys[2:])
        return dotted(keys)


def _value(laid: Laid, base: Scenario, variants: Mapping[str, Scenario]) -> Value:
    """What a swept key comes to at a point; of what is neither number nor text, how it was written."""
    own = laid.keys[0] == "variant"
    found = _found(variants[str(laid.keys[1])] if own else base, laid.keys[2:] if own else laid.keys)
    return found if isinstance(found, int | float | str) and not isinstance(laid.value, dict) else laid.text
