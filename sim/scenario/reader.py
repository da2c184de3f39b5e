"""Read scenario files: a base, variants that override its keys, and a sweep whose points override the base.

All mistakes are reported at once, each with its line, what was found, what is allowed, and the closest valid name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ValidationError

from sim.base.errors import InputError, ScenarioError, cut, nearest
from sim.base.naming import Keys, Raw, RawValue
from sim.base.validation import Mistake, Model, dotted, hint, problems, show, validate
from sim.files import toml
from sim.files.inputs import File
from sim.metrics import OURS
from sim.scenario.delivery import WITHOUT_GUARANTEE, without_guarantee
from sim.scenario.experiment import Experiment, Point
from sim.scenario.expressions import Expression, Value
from sim.scenario.fitting import read_scenario
from sim.scenario.keys import is_integer, is_name, is_path
from sim.scenario.kinds import Table
from sim.scenario.mistakes import Mistakes
from sim.scenario.model import DEFAULTS, DETECT, MOST_RUNS, SHARED, Precision, Report, Scenario
from sim.scenario.reading import Reading
from sim.scenario.sweep import GRID, Override, ParsedSweep
from sim.scenario.sweep_reader import leaves, place_of, read_sweep, without
from sim.scenario.tuning import Tune

ASIDE = {"title", "replications", "subscribers", "trace", "metrics", "data_plane"}
"""Keys that do not change what a scenario investigates: names, how much is run, what is recorded, and how it is computed."""
_FEW = 200
"""The number of points checked once mistakes have been found."""
SATISFACTION = ("satisfied_subscribers", "satisfaction")
"""Metrics that a report without a list of metrics also shows if they are measured."""


def load_scenario(
    source: str | Path | Raw, overrides: Sequence[str] = (), workload: str | Path | None = None
) -> Experiment:
    """Read and validate a scenario file, or a dict of the same shape.

    `overrides` are texts `key.path=value` that override the base (`variant.NAME.key=value`: one variant), and are then no longer
    swept; `workload` is a workload folder that replaces the [workload] table. Raises ScenarioError with one line for each mistake.
    """
    reader = _Reader(source)
    if workload is not None:
        reader.override(("workload",), {"kind": "prepared", "path": str(workload)}, f"--workload {workload}")
    for text in overrides:
        reader.set(text)
    aside = ASIDE | {"report", "precision", "tune"}
    keys = {toml.split(text.partition("=")[0].strip())[0] for text in overrides}
    return replace(reader.experiment(), overridden=workload is not None or not keys <= aside)


def _assigned(text: str, said: str) -> tuple[Keys, str]:
    """The keys and the value of `key.path=value`, which messages quote as `said`."""
    path, equals, value = text.partition("=")
    try:
        keys: Keys = toml.split(path.strip())
    except ValueError:
        keys = ()
    if not equals or not keys:
        raise ScenarioError(f"{said}: expected key=value, such as network.brokers=200")
    return keys, value.strip()


class _Reader:
    """Reads one scenario and collects its mistakes, with the place of each key."""

    def __init__(self, source: str | Path | Raw) -> None:
        self.path = None if isinstance(source, Mapping) else Path(source)
        if isinstance(source, Mapping):
            self.raw, lines = toml.checked(source, "scenario"), dict[Keys, int]()
        else:
            self.raw, lines = toml.read(Path(source))
            if not self.raw:
                raise ScenarioError(f"{source}: the file is empty: expected keys and tables such as [workload]")
        self.names: list[str] = []
        self.mistakes = Mistakes(self.path, lines, self.names)
        self.variants: list[Raw] = []
        self.detects = False
        self._swept: list[tuple[Keys, str]] = []  # which keys overrides sweep, and the overrides
        self.reading = Reading()
        self._is_folder = cache(Path.is_dir)
        self._take_variants(self.raw.pop("variant", []))
        if self.path:
            vary = (each for table in ("sweep", "tune") for each in leaves(self.raw.get(table)))
            lists = [(values, keys) for _, keys, values in vary if isinstance(values, list)]
            for table, keys in (*((table, ()) for table in (self.raw, *self.variants)), *lists):
                _resolve_paths(table, self.path.parent, keys)

    def set(self, text: str) -> None:
        """Override a key by `key.path=value`; it is then no longer swept."""
        said = f"--set {cut(text, 300)}"
        keys, value = _assigned(text, said)
        if earlier := next((one for swept, one in self._swept if swept[: len(keys)] == keys), None):
            raise ScenarioError(f"{said}: {earlier} sweeps that: give only one of them, or the sweep last")
        if isinstance(sweep := self.raw.get("sweep"), dict) and keys[0] != "sweep":
            self.raw["sweep"] = without(sweep, keys)  # the last override wins
            if sweep and not self.raw["sweep"]:
                del self.raw["sweep"]
        if keys[0] == "variant":
            if len(keys) < 3 or keys[1] not in self.names:
                raise ScenarioError(
                    f"{said}: expected variant.NAME.key=value{hint(keys[1] if len(keys) > 1 else '', self.names)}"
                )
            if keys[2] in SHARED | {"name"}:
                raise ScenarioError(f"{said}: '{keys[2]}' cannot be set for a single variant")
            keys = ("variant", self.names.index(str(keys[1])), *keys[2:])
        elif keys[0] == "sweep":
            keys = ("sweep", *place_of(self.raw.get("sweep"), keys[1:]))
        found = toml.value(value)
        if keys[0] == "sweep":
            self._swept += [(swept, said) for _, swept, _ in leaves(_nested(keys, found)["sweep"])]
        self.override(keys, found, said)

    def override(self, keys: Keys, value: object, place: str) -> None:
        """Override one value of the base or, if keys start with ("variant", number), of that variant."""
        inner = keys[2:] if keys[0] == "variant" else keys
        over = _nested(inner, value)
        if keys[0] == "variant":
            self.variants[int(keys[1])] = merge(self.variants[int(keys[1])], over)
        else:
            self.raw = merge(self.raw, over)
        self.mistakes.override(keys, place)

    def experiment(self) -> Experiment:
        said = self.raw.setdefault("report", {})
        report, precision = self._take(Report, "report"), self._take(Precision, "precision")
        tune = self._take(Tune, "tune")
        self._add_metrics(report, precision, tune)
        self._take_warm_up()
        sweep = self._take_sweep()
        names = self.names or ["base"]
        baseline = said.get("baseline") if isinstance(said, dict) else None
        if isinstance(baseline, str) and baseline not in names:
            self.mistakes.add(("report", "baseline"), f"no such variant{hint(baseline, names)} (found '{baseline}')")
        points = self._points(sweep)
        if not self.mistakes:
            for keys, text in _too_many_runs(points, precision):
                self.mistakes.add(keys, text)
        variants = [variant for point in points for variant in point.variants.values()]
        for keys in [] if tune else without_guarantee((one.network.delivery, one.brokers.service) for one in variants):
            self.mistakes.add(keys, WITHOUT_GUARANTEE)
        if tune and not self.mistakes:
            self._check_tuned(tune)
        if self.mistakes or report is None:
            raise ScenarioError(str(self.mistakes))
        first = points[0]
        silent = "metrics" not in said and any(variant.measures_satisfaction for variant in first.variants.values())
        shown = {
            "baseline": baseline or names[0],
            "metrics": report.metrics + SATISFACTION if silent else report.metrics,
        }
        report = report.model_copy(update=shown)
        written = sweep.table() if sweep else {}
        return Experiment(first.base.title, points, report, self.path, precision, self.detects, written, tune)

    def _add_metrics(self, report: Report | None, precision: Precision | None, tune: Tune | None) -> None:
        """Add all users' own metrics that the scenario names to the metrics of all runs."""
        named = [*(report.metrics if report else ()), *(tune.metrics if tune else ())]
        own: Raw = {name: {} for name in [*named, *([precision.metric] if precision else [])] if name not in OURS}
        if own and isinstance(said := self.raw.get("metrics", {}), dict):
            self.raw["metrics"] = own | said

    def _take_warm_up(self) -> None:
        """Take `warm_up = "detect"` out of the base."""
        said = self.raw.get("warm_up")
        if said != DETECT and isinstance(said, str) and nearest(said, [DETECT]):
            self.mistakes.add(("warm_up",), f"expected a duration such as '1d', or '{DETECT}', found {show(said)}")
            self.raw["warm_up"] = 0.0
        if said == DETECT:
            self.detects = True
            del self.raw["warm_up"]
        for number, variant in enumerate(self.variants):
            if "warm_up" in variant and (self.detects or variant["warm_up"] == DETECT):
                only = f'warm_up = "{DETECT}" applies to all variants; set it once, above them'
                self.mistakes.add(("variant", number, "warm_up"), only)
                variant["warm_up"] = 0.0

    def _take_sweep(self) -> ParsedSweep | None:
        if "sweep" not in self.raw:
            return None
        table = self.raw.pop("sweep")
        sweep, wrong = read_sweep(table, self._not_swept, is_path, partial(self._is_integer, table))
        for keys, text in wrong:
            self.mistakes.add(("sweep", *keys), text)
        return sweep

    def _is_integer(self, sweep: Raw, keys: Keys) -> bool:
        """Whether a swept key takes only integers, in all variants and with all swept kinds that have it."""
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
            return f"'{key}' is the same for all runs and cannot be swept"
        return f'cannot be swept where warm_up = "{DETECT}"' if key == "warm_up" and self.detects else None

    def _points(self, sweep: ParsedSweep | None) -> list[Point]:
        """All points; if there are mistakes already, only a few points are checked for others."""
        raw = merge({"title": self.path.stem if self.path else "", **DEFAULTS}, self.raw)
        seed = self.raw.get("seed", 1)
        if sweep is None or self.mistakes or not isinstance(seed, int) or seed < 0:
            few = islice(sweep.one_at_a_time(), _FEW) if sweep else [()]
            return [point for laid in few if (point := self._point(raw, laid))]
        points: dict[RawValue, Point] = {}
        for number, laid in enumerate(sweep.points(seed)):
            if point := self._point(raw, laid, sweep.where):
                points.setdefault(tuple(point.values.values()) if sweep.sample == GRID else number, point)
        if not points and not self.mistakes:
            self.mistakes.add(("sweep", "where"), f"no point is left (of {sweep.count:,})")
        return list(points.values())

    def _check_tuned(self, tune: Tune) -> None:
        """Check that some variant has the tuned key and accepts each of its `examples`."""
        base = merge(DEFAULTS, self.raw)
        variants = [merge(base, {key: own[key] for key in own if key != "name"}) for own in self.variants] or [base]
        for key, parameter in tune.vary.items():
            wrong = [self._wrong_there(variant, key, parameter.examples) for variant in variants]
            if all(wrong):
                self.mistakes.add(("tune", key), str(wrong[0]))

    def _wrong_there(self, raw: Raw, key: str, values: Sequence[RawValue]) -> str | None:
        """The mistakes if a key of a scenario is set to some value."""
        for value in values:
            _, wrong = read_scenario(self.reading, merge(raw, _nested(toml.split(key), value)))
            if wrong:
                return f"{dotted(wrong[0][0])}: {wrong[0][1]}" if dotted(wrong[0][0]) != key else wrong[0][1]
        return None

    def _point(self, raw: Raw, laid: tuple[Override, ...], where: Expression | None = None) -> Point | None:
        """The point with these overrides of the base; None where `where` excludes it, or there are mistakes, which are recorded."""
        self.mistakes.laid = laid
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
            name: self._scenario(merge(raw, merge(own, above.get(name, {}))), number, runs=base is not None)
            for number, (name, own) in enumerate(zip(self.names, self.variants, strict=True))
        } or {"base": base and self._scenario(raw, runs=True)}
        read = {name: scenario for name, scenario in variants.items() if scenario}
        if base is None or len(read) < len(variants):
            return None
        return Point({toml.join(one.keys): _value(one, base, read) for one in laid}, base, read)

    def _holds(self, where: Expression, base: Scenario) -> bool:
        try:
            return where.holds(lambda name: _known(base, name))
        except InputError as error:
            self.mistakes.add(("sweep", "where"), str(error))
            return False

    def _scenario(self, raw: Raw, variant: int | None = None, *, runs: bool = False) -> Scenario | None:
        own = raw if variant is None else {key: value for key, value in raw.items() if key != "name"}
        scenario, wrong = read_scenario(self.reading, own, runs)
        for keys, text in wrong:
            self.mistakes.add(keys, text, variant)
        if scenario and (folder := scenario.workload.path) and not self._is_folder(folder):
            self.mistakes.add(("workload", "path"), f"no such folder (found '{folder}')", variant)
        return scenario

    def _take_variants(self, variants: object) -> None:
        if not isinstance(variants, list) or not _tables(*variants):
            self.mistakes.add(("variant",), f"expected tables [[variant]], found {show(variants)}")
            return
        self.variants = variants
        for number, variant in enumerate(variants):
            name = variant.get("name")
            valid = isinstance(name, str) and name != ""
            taken = name in self.names
            self.names.append(name if valid and not taken else f"[{number}]")
            if not valid:
                self.mistakes.add(("variant", number, "name"), f"every variant needs a name (found {show(name)})")
            if taken:
                self.mistakes.add(("variant", number, "name"), f"another variant has the same name (found '{name}')")
            for key in SHARED & variant.keys():
                self.mistakes.add(("variant", number, key), "variants share this key; set it once, above them")

    def _take(self, model: type[Model], table: str) -> Model | None:
        """The model of one of the tables besides the base; None where it is missing or has mistakes."""
        if table not in self.raw:
            return None
        try:
            return validate(model, self.raw.pop(table))
        except ValidationError as error:
            for keys, text in problems(error, model):
                self.mistakes.add((table, *keys), text)
            return None


def _too_many_runs(points: Sequence[Point], precision: Precision | None) -> Iterator[Mistake]:
    """What makes too many runs, which are all planned before the first one."""
    counts: dict[Keys, int] = {("replications",): points[0].base.replications}
    if precision is not None:
        counts["precision", "max_replications"] = precision.max_replications
    each = sum(len(point.variants) for point in points)
    for keys, replications in counts.items():
        if each * replications > MOST_RUNS:
            runs = f"{replications:,} replications of each of {each:,} points and variants"
            yield keys, f"{runs} are {each * replications:,} runs (allowed: {MOST_RUNS:,})"


def merge(below: Raw, above: Raw) -> Raw:
    """`below` overridden by `above`: a table whose kind changes is replaced, others are merged key by key."""
    if "kind" in above and above["kind"] != below.get("kind"):
        return above
    both = {
        key: merge(below[key], above[key]) for key in below.keys() & above.keys() if _tables(below[key], above[key])
    }
    return {**below, **above, **both}


def _nested(keys: Keys, value: RawValue) -> RawValue:
    """Nested tables with the value at a key path."""
    for key in reversed(keys):
        value = {key: value}
    return value


def _tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def _resolve_paths(values: RawValue, folder: Path, keys: Keys = ()) -> None:
    """Resolve all paths in a table, or in a list of a key's values, against the folder."""
    table = isinstance(values, dict)
    for key, value in values.items() if table else enumerate(values):
        place = (*keys, key) if table else keys
        if isinstance(value, dict | list):
            _resolve_paths(value, folder, place)
        elif isinstance(value, str) and is_path(place) and not is_name(place, value):
            values[key] = str(folder / value)


def _found(scenario: Scenario, keys: Keys) -> RawValue:
    """The value of a resolved scenario at a key path; None where there is none."""
    value: RawValue = scenario
    for key in keys:
        if isinstance(value, Table):
            value = value.kind if key == "kind" else vars(value.parameters).get(str(key))
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            value = vars(value).get(str(key)) if isinstance(value, BaseModel) else None
    return value.kind if isinstance(value, Table) else float(value) if isinstance(value, Fraction) else value


def _known(scenario: Scenario, name: str) -> Value:
    """The value of an expression's name."""
    value = _found(scenario, tuple(name.split(".")))
    if isinstance(value, File):
        return value.name
    if isinstance(value, int | float | str):
        return value
    names = [".".join(keys) for keys in _paths(scenario.model_dump(mode="json"))]
    if name in names:
        raise InputError(f"'{name}' is neither a number nor text here")
    raise InputError(f"unknown key{hint(name, names)} (found '{name}')")


def _paths(values: Raw, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield from _paths(value, (*keys, key)) if isinstance(value, dict) else [(*keys, key)]


def _value(laid: Override, base: Scenario, variants: Mapping[str, Scenario]) -> Value:
    """The value of a swept key at a point; as it was written where it is neither number nor text."""
    own = laid.keys[0] == "variant"
    found = _found(variants[str(laid.keys[1])] if own else base, laid.keys[2:] if own else laid.keys)
    return found if isinstance(found, int | float | str) and not isinstance(laid.value, dict) else laid.text
