"""Several results folders as one: their variants side by side, and the differences between them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from analysis.comparison import headline_of, metrics_of
from sim.base.errors import ResultsError, unknown, unknown_of_many
from sim.base.naming import Raw, RawValue
from sim.base.units import parse_duration, write_duration
from sim.experiments.results import Manifest, Results, load_runs, read_run
from sim.files import toml
from sim.metrics import METRICS
from sim.scenario.experiment import unit_of

_Values = tuple[RawValue, ...]
"""The swept keys' values at a point."""
MISSING = "–"
"""Shown for a key that a scenario does not have."""
_LISTED = 6
"""The most values of a swept key that are listed one by one."""


@dataclass(frozen=True)
class VariantSource:
    """A variant in one of the folders: `name` is unique, `shown` is the variant of the collection that it is part of.

    The two differ where a varied key distinguishes the folders. `points` are the collection's numbers of the folder's points.
    """

    results: Results
    variant: str
    name: str
    shown: str
    points: Sequence[int]


@dataclass(frozen=True)
class Collection(Results):
    """Results of one or several folders, with the interface of the results of one; `folder` is the first.

    With several, runs have a column `workload`, the hash of the prepared workload ("" where it was generated): runs of
    two variants share their random numbers where point, workload, seed and replication are the same.
    """

    sources: Sequence[VariantSource]
    frame: pd.DataFrame = field(repr=False)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run, as for one folder."""
        return self.frame

    @property
    def seals(self) -> list[str]:
        """The distinct seals of the folders' manifests."""
        return list(dict.fromkeys(s.results.manifest["seal"] for s in self.sources if "seal" in s.results.manifest))

    def table(self, run: str, name: str) -> pd.DataFrame:
        """A table of one run. Raises ResultsError if absent."""
        return self._of(run).table(run, name)

    def has_table(self, run: str, name: str) -> bool:
        """Whether a run has a table; runs of earlier versions may lack some."""
        return self._of(run).has_table(run, name)

    def _of(self, run: str) -> Results:
        return next(source.results for source in self.sources if run in source.results.manifest["runs"])


def collect(
    folders: Sequence[Path], metrics: Sequence[str] = (), baseline: str | None = None, vary: str | None = None
) -> Collection:
    """Collect the results in folders as one.

    Variants are called "label: variant", or just "label" where all folders have one variant of the same name; labels are the
    folders' names, made distinct. Points are merged where all swept keys have equal values; a folder that does not sweep a key has
    its own value of it. `vary` names the key to put first among the swept ones; if no folder sweeps it, folders that differ in it
    become points of one sweep, and variants keep their names. `metrics` are the metrics to show, by default those of the folders'
    reports that are defined in all folders. `baseline` is a variant, by default that of the first folder.

    Raises ResultsError where a folder has no finished results, or a name does not exist.
    """
    parts = [_load(folder) for folder in folders]
    labels = _labels(folders)
    keys = list(dict.fromkeys(key for part in parts for key in part.manifest["parameters"]))
    merged = vary is not None and vary not in keys
    if vary is not None:
        keys = [vary, *(key for key in keys if key != vary)]
        if merged:
            _check_varied(vary, parts, labels)
    values = [_values(part, keys) for part in parts]
    if several := len(parts) > 1:
        points = list(dict.fromkeys(value for part in values for value in part))
        number = {point: n for n, point in enumerate(points)}
        places: list[Sequence[int]] = [[number[value] for value in part] for part in values]
    else:
        points, places = values[0], [range(len(values[0]))]  # points of a sample may coincide, and each counts
    sources = _sources(parts, labels, places, merged)
    manifest = {
        **_merged([part.manifest for part in parts]),
        "variants": {source.shown: source.results.manifest["variants"][source.variant] for source in sources},
        "parameters": keys,
        "points": [dict(zip(keys, point, strict=True)) for point in points],
        "report": {"baseline": _baseline(sources, baseline), "metrics": _metrics(parts, labels, metrics)},
        "failed": [failure for source in sources for failure in _failed(source)],
    }
    frames = [_runs(source, manifest, several) for source in sources]
    runs = pd.concat(frames).sort_values(["point", "order", "replication"], ignore_index=True, kind="stable")
    return Collection(parts[0].folder, manifest, sources, runs.drop(columns="order"))


def _load(folder: Path) -> Results:
    results = load_runs(folder)
    if results.runs.empty:
        raise ResultsError(f"{folder}: no run finished, so there is nothing to compare")
    return results


def _labels(folders: Sequence[Path]) -> list[str]:
    """The folders' names, preceded by as many parent folders as make them distinct."""
    paths = [folder.resolve().parts for folder in folders]
    if twice := [str(folder) for n, folder in enumerate(folders) if paths[n] in paths[:n]]:
        raise ResultsError(f"{twice[0]}: given twice; name every folder once")
    depth = next(n for n in range(1, max(map(len, paths)) + 1) if len({path[-n:] for path in paths}) == len(paths))
    return ["/".join(path[-depth:]) for path in paths]


def _sources(
    parts: Sequence[Results], labels: Sequence[str], points: Sequence[Sequence[int]], merged: bool
) -> list[VariantSource]:
    """All variants of all folders; when merged, variants of the same name at different points are one variant."""
    lists = [list(part.manifest["variants"]) for part in parts]
    alone = len(parts) > 1 and len({tuple(names) for names in lists}) == 1 and len(lists[0]) == 1
    places = [(name, point) for names, at in zip(lists, points, strict=True) for name in names for point in at]
    keeps = merged and len(set(places)) == len(places)
    found = []
    for part, label, names, at in zip(parts, labels, lists, points, strict=True):
        for name in names:
            full = label if alone else f"{label}: {name}" if len(parts) > 1 else name
            found.append(VariantSource(part, name, full, name if keeps else full, at))
    return found


def _runs(source: VariantSource, manifest: Manifest, several: bool) -> pd.DataFrame:
    """A variant's runs, renamed and renumbered for the collection; `order` is its position among the variants."""
    table = source.results.runs
    runs = table[table["variant"] == source.variant].reset_index(drop=True)
    own = [key for key in source.results.manifest["parameters"] if key in runs]
    point = runs["point"].map(dict(enumerate(source.points)))
    columns: Raw = {"point": point, "variant": source.shown}
    if several:
        first = runs.groupby("point")["run"].first()
        columns["workload"] = runs["point"].map({at: _workload(source.results, run) for at, run in first.items()})
    values = pd.DataFrame(manifest["points"], columns=manifest["parameters"]).loc[point].reset_index(drop=True)
    order = list(manifest["variants"]).index(source.shown)
    found = pd.concat([runs.drop(columns=own).assign(**columns, order=order), values], axis=1)
    return found.drop_duplicates(["point", "run"])


def _workload(results: Results, run: str) -> str:
    """The hash of a run's prepared workload; that in the manifest where the run's folder was not kept."""
    kept = (results.folder / "runs" / run).is_dir()
    manifest = read_run(results.folder, run) if kept else results.manifest
    return str((manifest.get("workload") or {}).get("hash") or "")


def _merged(manifests: Sequence[Manifest]) -> Manifest:
    """The manifest of the collection, merged from the folders' manifests."""
    first = manifests[0]
    return {
        **first,
        "title": " · ".join(dict.fromkeys(manifest["title"] for manifest in manifests)),
        "sweep": first.get("sweep", {})
        if len(manifests) == 1
        else {},  # the points of a sample cannot be joined with others
        "replications": max(manifest["replications"] for manifest in manifests),
        "notes": list(dict.fromkeys(note for manifest in manifests for note in manifest["notes"])),
        "runs": list(dict.fromkeys(run for manifest in manifests for run in manifest["runs"])),
    }


def _failed(source: VariantSource) -> Iterator[Raw]:
    for failure in source.results.failed:
        if failure["variant"] == source.variant:
            yield {**failure, "variant": source.shown, "point": source.points[failure.get("point", 0)]}


def _baseline(sources: Sequence[VariantSource], name: str | None) -> str:
    shown = list(dict.fromkeys(source.shown for source in sources))
    if name is None:
        first = sources[0].results.manifest["report"]["baseline"]
        return next(source.shown for source in sources if source.variant == first)
    if name not in shown:
        raise ResultsError(f"baseline: {unknown('variant', name, shown)}")
    return name


def _metrics(parts: Sequence[Results], labels: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The metrics to show. Raises ResultsError where one does not exist or is undefined in all runs of a folder."""
    defined = [set(metrics_of(part)) for part in parts]
    for name in wanted:
        if name not in METRICS:
            raise ResultsError(unknown_of_many("metric", name, list(METRICS)))
        for label, names in zip(labels, defined, strict=True):
            if name not in names:
                raise ResultsError(
                    f"metric '{name}' is undefined in all runs of {label} (defined: {', '.join(sorted(names))})"
                )
    shown = wanted or [name for part in parts for name in headline_of(part) if all(name in names for names in defined)]
    if not shown:
        common = [name for name in METRICS if all(name in names for names in defined)]
        hint = f"; name one of those that are: {', '.join(common)}" if common else ""
        raise ResultsError(f"no metric of the reports is defined in all of {', '.join(labels)}{hint}")
    return list(dict.fromkeys(shown))


def _values(results: Results, keys: Sequence[str]) -> list[_Values]:
    """The keys' values at each point of one folder."""
    return [
        tuple(point[key] if key in point else _value(results, key) for key in keys)
        for point in results.manifest["points"]
    ]


def _value(results: Results, key: str) -> RawValue:
    """A key's value in a folder that does not sweep it: the common value of all variants, otherwise the base's."""
    variants = results.manifest["variants"]
    keys = toml.split(key)
    if keys[0] == "variant":
        return _simple(toml.at(variants, keys[1:]))
    values = {_simple(toml.at(scenario, keys)) for scenario in variants.values()}
    return values.pop() if len(values) == 1 else _simple(toml.at(results.manifest["scenario"], keys))


def _simple(value: RawValue) -> RawValue:
    """A value in the form recorded for swept keys: a table as its kind, a file as its name."""
    if value is None:
        return MISSING
    if isinstance(value, dict):
        return value.get("kind") or value.get("name") or json.dumps(value)
    return json.dumps(value) if isinstance(value, list) else value


def _check_varied(key: str, parts: Sequence[Results], labels: Sequence[str]) -> None:
    """Raise ResultsError where a varied key is neither swept nor different between the folders."""
    scenarios = [list(part.manifest["variants"].values()) for part in parts]
    known = sorted({name for part in scenarios for scenario in part for name in toml.flat(scenario)})
    if not any(name == key or name.startswith(f"{key}.") for name in known):
        raise ResultsError(f"vary: {unknown_of_many('key', key, known)}")
    keys = toml.split(key)
    values = [{_simple(toml.at(scenario, keys)) for scenario in part} for part in scenarios]
    for label, found in zip(labels, values, strict=True):
        if len(found) > 1:
            differing = ", ".join(sorted(map(_text, found)))
            raise ResultsError(
                f"vary: variants of {label} differ in {key} ({differing}); only folders, or the points of a sweep, may"
            )
    if len(set.union(*values)) == 1:
        raise ResultsError(f"vary: {key} is {_text(values[0].pop())} in all results; name a key in which they differ")


def changes(collection: Collection) -> pd.DataFrame:
    """The keys in which folders and variants differ: a row per key (dotted), a column per folder and variant, values as text.

    Besides the scenarios' keys: `version`, and `workload` (the hash of a prepared one). `MISSING` stands for missing keys.
    """
    columns = {source.name: _described(source) for source in collection.sources}
    keys = dict.fromkeys(key for described in columns.values() for key in described)
    differ = [key for key in keys if len({repr(described.get(key)) for described in columns.values()}) > 1]
    texts = {
        source.name: [_shown_value(key, columns[source.name].get(key), source) for key in differ]
        for source in collection.sources
    }
    return pd.DataFrame(texts, pd.Index(differ, name="key"))


def _described(source: VariantSource) -> Raw:
    """A variant's settings by dotted key; a swept key has the tuple of its values unless the variant sets it."""
    manifest = source.results.manifest
    scenario, base = manifest["variants"][source.variant], manifest["scenario"]
    found = toml.flat({**scenario, "title": None, "precision": manifest.get("precision")})
    for key in manifest["parameters"]:
        own = toml.split(key)
        if own[0] == "variant":
            if own[1] != source.variant:
                continue
            own = own[2:]
        elif toml.at(scenario, own) != toml.at(base, own):
            continue
        path = ".".join(map(str, own))
        found = {name: value for name, value in found.items() if name != path and not name.startswith(f"{path}.")}
        found[path] = tuple(dict.fromkeys(point[key] for point in manifest["points"]))
    runs = source.results.runs
    run = next(iter(runs.loc[runs["variant"] == source.variant, "run"]), None)
    workload = _workload(source.results, run)[:12] if run else ""
    return {**found, "workload": workload or None, "version": manifest["version"]}


def _shown_value(key: str, value: RawValue, source: VariantSource) -> str:
    if value is None:
        return MISSING
    unit = unit_of(key, source.results.manifest["variants"][source.variant], {})
    if not isinstance(value, tuple):
        return _text(value, unit)
    texts = [_text(one, unit) for one in value]
    return ", ".join(texts) if len(texts) <= _LISTED else f"{texts[0]} … {texts[-1]} ({len(texts)} values)"


def _text(value: RawValue, unit: str = "") -> str:
    """A value with its unit, and all its digits."""
    if unit == "s" and isinstance(value, int | float):
        text = write_duration(value)
        return text if math.isclose(parse_duration(text), value, rel_tol=1e-12) else f"{value:.12g} s"
    text = f"{value:.12g}" if isinstance(value, float) else toml.text(value)
    return f"{text} {unit}".rstrip()
