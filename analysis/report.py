"""The report: one self-contained HTML file that works offline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeGuard

from analysis.charts import Figure, colour_of, write_atomically
from analysis.comparison import (
    Comparison,
    baseline_of,
    compare,
    headline_of,
    label,
    metrics_of,
    significance,
    texts,
    variants_of,
)
from analysis.figures import figures
from analysis.formatting import number, quantity
from analysis.headlines import headlines, of_point
from analysis.hottest import hottest
from analysis.page import render, section
from analysis.recovery import fault_tables
from analysis.replications import precision_said, replications_of, warm_up_said
from analysis.sweeps.figures import sweep_figures
from analysis.sweeps.page import point_said, sweep_page
from analysis.sweeps.pareto import DEFAULT
from sim import plugins
from sim.base.errors import ResultsError
from sim.base.naming import Raw, RawValue
from sim.base.units import format_duration
from sim.experiments.results import Results, read_run
from sim.experiments.statistics import Interval
from sim.files import toml
from sim.metrics import METRICS, OURS

_TRACE_UNITS = {"bounding_box": "°", "size": "bytes"}
_LISTED = 10
"""The most failed runs that are listed."""


def draw(results: Results, point: int | None = None, trade_off: tuple[str, str] = DEFAULT) -> list[Figure]:
    """All charts of a report: for a sweep those over its points, then those of one point (by default the first with a run)."""
    return [*sweep_figures(results, trade_off), *figures(_shown(results, point)[1])]


def write_report(
    results: Results, path: Path, charts: Sequence[Figure] | None = None, point: int | None = None
) -> None:
    """Write the report of the results to `path` atomically; `charts` if they are already drawn."""
    write_atomically(path, render_report(results, charts, point).encode())


def render_report(results: Results, charts: Sequence[Figure] | None = None, point: int | None = None) -> str:
    """The report of the results as HTML; the same text for the same results. For a sweep, one point is shown in detail.

    Raises ResultsError where no run finished.
    """
    number_, one = _shown(results, point)
    charts = draw(results, number_) if charts is None else charts
    manifest, workload, names = results.manifest, _workload_of(one), variants_of(results)
    headline = headline_of(results)
    defined = metrics_of(one)
    further = [name for name in defined if name not in headline]
    shown = {*headline, *defined}
    replications = replications_of(manifest, number_)
    said, failed = headlines(results), manifest["failed"]
    notes = said.notes
    if failed:
        runs = len(failed) + len(results.runs)
        notes = [f"{len(failed)} of {runs} runs failed and are missing below: {_listed(failed)}.", *notes]
    variants = [
        {"name": name, "colour": colour_of(name, names), "baseline": len(names) > 1 and name == baseline_of(results)}
        for name in names
    ]
    return render(
        "report.html.jinja",
        list(charts),
        picker=variants,
        title=manifest["title"],
        version=manifest["version"],
        seals=[manifest["seal"]] if "seal" in manifest else [],
        sentences=said.sentences,
        sweep=_sweep(results, number_, charts),
        notes=notes,
        explanation=_explanation(baseline_of(results), len(names), replications),
        variants=variants,
        headline=[_row(row, replications) for row in compare(one, headline)],
        further=[_row(row, replications) for row in compare(one, further)],
        sections=list(_sections(charts)),
        faults=fault_tables(one),
        failing=section("failing", charts),
        hottest=[(name, table) for name in names for table in hottest(one, name)],
        experiment=list(_experiment(results, number_)),
        workload=list(_workload(workload)),
        rows=list(_rows(workload.get("rows") or {})),
        sources=[source | {"size": quantity(source["bytes"], "bytes")} for source in workload.get("sources") or ()],
        **_reproduction(results),
        undefined=[label(name) for name in METRICS if (name in OURS or name in results.runs) and name not in shown],
        definitions=[METRICS[name] for name in METRICS if name in shown],
    )


def _shown(results: Results, point: int | None) -> tuple[int, Results]:
    """The point to show in detail, and its results. Raises ResultsError where it has no run."""
    manifest, runs = results.manifest, results.runs
    if runs.empty:
        raise ResultsError(
            f"{results.folder}: no run finished, so there is nothing to report ({_listed(manifest['failed'])})"
        )
    if point is None:
        point = int(runs["point"].min())
    if not 0 <= point < len(manifest["points"]):
        raise ResultsError(f"--point: expected 0 to {len(manifest['points']) - 1}, found {point}")
    one = results.at(point)
    if one.runs.empty:
        failed = [run for run in manifest["failed"] if run.get("point", 0) == point]
        raise ResultsError(f"{results.folder}: no run of point {point} finished ({_listed(failed)})")
    return point, one


def _sweep(results: Results, point: int, charts: Sequence[Figure]) -> Raw | None:
    """The page's values about a sweep; None for results without one."""
    last = len(results.manifest["points"]) - 1
    if last == 0:
        return None
    return {
        **sweep_page(results, charts),
        "point": point,
        "last": last,
        "label": point_said(results, point),
        "at_point": of_point(results.at(point)),
    }


def _listed(failed: Sequence[Raw]) -> str:
    shown = [
        ", ".join(
            filter(None, (run.get("label"), run["variant"], f"replication {run['replication']}: {run['reason']}"))
        )
        for run in failed[:_LISTED]
    ]
    return "; ".join([*shown, f"and {len(failed) - _LISTED} more"] if len(failed) > _LISTED else shown)


def _explanation(baseline: str, variants: int, replications: int) -> str:
    if replications == 1:
        means = "Each number is the value of a single replication."
    else:
        means = f"Each number is the mean over {replications} replications, with its 95\u00a0% confidence interval (Student's t)."
    if variants == 1:
        return means
    differences = f"Below it is the difference to {baseline} in\u00a0%, taken replication by replication on the same random numbers"
    if replications == 1:
        return f"{means} {differences}."
    condition = (
        "where its confidence interval excludes 0"
        if variants == 2
        else f"where {significance(variants - 1)}".replace(" %", "\u00a0%")
    )
    return f"{means} {differences}; it is marked as better or worse {condition}."


def _row(row: Comparison, replications: int) -> Raw:
    cells = [_cell(row, variant, replications) for variant in row.outcomes]
    return {"name": row.metric.name, "label": label(row.metric.name), "unit": row.scale[1], "cells": cells}


def _cell(row: Comparison, variant: str, replications: int) -> dict[str, str]:
    outcome = row.outcomes[variant]
    mean, interval, difference = texts(row, variant)
    if outcome.difference is not None:
        difference += _without_interval(outcome.difference, replications, " ")
    return {
        "mean": mean,
        "interval": interval + _without_interval(outcome.value, replications),
        "difference": difference,
        "verdict": outcome.verdict or "unclear",
        "mark": {"better": "✓ better", "worse": "✗ worse"}.get(outcome.verdict, outcome.verdict),
    }


def _without_interval(value: Interval, replications: int, space: str = "") -> str:
    """Explain why a number has no confidence interval, or one from fewer replications than there are."""
    if value.n == 0:
        return f"{space}undefined"
    said = f"{space}no variance" if value.n > 1 and not value.varies else ""
    return f"{said} ({value.n} of {replications} replications)" if value.n < replications else said


def _sections(charts: Sequence[Figure]) -> Iterator[Raw]:
    for name in ("intervals", "convergence", "time", "delay", "load", "hot", "topics", "overlay", "tree"):
        shown = section(name, charts)
        if shown["figures"]:
            yield shown
        elif "without" in shown:
            yield {**shown, "text": shown["without"]}


def _experiment(results: Results, point: int) -> Iterator[tuple[str, str]]:
    manifest = results.manifest
    scenario = {**manifest["scenario"], **manifest["points"][point]}
    yield "title", manifest["title"]
    yield "variants", ", ".join(variants_of(results))
    yield "baseline", baseline_of(results)
    yield "replications", number(replications_of(manifest, point))
    if precision := precision_said(manifest, point):
        yield "precision", precision
    yield "seed", str(manifest["seed"])
    yield "runs", number(len(results.runs))
    detected = warm_up_said(manifest, point)
    for key in ("horizon", "warm_up", "window"):
        if isinstance(scenario.get(key), (int, float)):
            yield key.replace("_", "-"), (key == "warm_up" and detected) or format_duration(scenario[key])
    yield from (("note", note) for note in results.notes)
    yield "version", f"brokersim {manifest['version']}"


def _workload_of(one: Results) -> Raw:
    """The workload of the runs of one point."""
    run = None
    if any(key.partition(".")[0] == "workload" for key in one.manifest["parameters"]):
        run = read_run(one.folder, one.runs["run"].iloc[0])
    found: Raw = (run or one.manifest)["workload"]
    return found


def _workload(workload: Raw) -> Iterator[tuple[str, str]]:
    yield "kind", str(workload["kind"])
    yield "origin", str(workload["origin"])
    yield "horizon", format_duration(workload["horizon"])
    for name, count in workload["counts"].items():
        yield name.replace("_", " "), number(count)
    if workload.get("cell") is not None:
        yield "cell", f"{workload['cell']:g}°"
    if workload.get("seed") is not None:
        yield "seed", str(workload["seed"])
    generator = dict(workload.get("generator") or {})
    maker = str(generator.pop("name", "unknown"))
    yield "generator", maker
    units = _TRACE_UNITS | plugins.units("workload", maker)
    for name, value in generator.items():
        if value is not None:
            yield f"generator: {label(name)}", _parameter(value, units.get(name))
    yield "hash", workload.get("hash") or "none (generated for each replication)"


def _rows(rows: Raw) -> Iterator[tuple[str, str]]:
    for name in ("read", "kept"):
        if name in rows:
            yield name, number(rows[name])
    quarantined = rows.get("quarantined") or {}
    for reason, count in quarantined.items():
        yield f"quarantined: {reason}", number(count)
    if rows and not quarantined:
        yield "quarantined", "0"


def _reproduction(results: Results) -> dict[str, str]:
    manifest = results.manifest
    prepared = (manifest["scenario"].get("workload") or {}).get("kind") == "prepared"
    again = (
        "Save the scenario below as scenario.toml; the same version gives the same bytes on the same kind of machine."
    )
    if prepared:
        again += f" WORKLOAD is the folder whose manifest.json has the SHA-256 {manifest['workload']['hash']}."
    workload = " --workload WORKLOAD" if prepared else ""
    command = f"brokersim run scenario.toml{workload} --out RESULTS\nbrokersim report RESULTS"
    return {"again": again, "command": command, "scenario": _scenario(results)}


def _scenario(results: Results) -> str:
    """The resolved scenario as TOML: the base, and what each variant changes in it."""
    manifest = results.manifest
    detects = {"warm_up": "detect"} if manifest.get("warm_up") else {}
    base, variants = {**manifest["scenario"], **detects}, manifest["variants"]
    precision, sweep = dict(manifest.get("precision") or {}), manifest.get("sweep") or {}
    if precision:
        del precision["points"]
    rules = {
        "report": manifest["report"],
        **({"precision": precision} if precision else {}),
        **({"sweep": sweep} if sweep else {}),
    }
    lines = list(_assignments({**base, **rules}))
    if list(variants) != ["base"]:
        for name, variant in variants.items():
            changes = _changes(base, {**variant, **detects})
            for keys in _own(results, name):
                changes = _with(changes, variant, keys)
            lines += ["", "[[variant]]", f"name = {_toml(name)}", *_assignments(changes)]
    return "\n".join(lines)


def _own(results: Results, variant: str) -> Iterator[tuple[str, ...]]:
    """Swept keys, as paths, that a variant sets itself, so that its runs are the same at all their values."""
    runs, parameters = results.runs[results.runs["variant"] == variant], results.manifest["parameters"]
    for key in parameters:
        others = [*(other for other in parameters if other != key), "replication"]
        groups = runs.groupby(others)[[key, "run"]].nunique()
        several = groups[groups[key] > 1]
        if len(several) and (several["run"] == 1).all():
            yield tuple(map(str, toml.split(key)))


def _with(changes: Raw, variant: Raw, keys: tuple[str, ...]) -> Raw:
    """The changes, plus the variant's value at a key path, if any."""
    key, *rest = keys
    if key not in variant:
        return dict(changes)
    inner = _with(changes.get(key, {}), variant[key], tuple(rest)) if rest else variant[key]
    return {**changes, key: inner}


def _changes(base: Raw, variant: Raw) -> Raw:
    """The keys in which a variant differs, with all keys of a table whose kind changes."""
    changed = {}
    for key, value in variant.items():
        before = base.get(key)
        if _is_table(value) and _is_table(before) and value.get("kind") == before.get("kind"):
            value = _changes(before, value)
            if value:
                changed[key] = value
        elif value != before:
            changed[key] = value
    return changed


def _is_table(value: object) -> TypeGuard[Raw]:
    return isinstance(value, dict) and not _is_file(value)


def _is_file(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"name", "sha256"}


def _assignments(values: Raw, prefix: str = "", inline: bool = False) -> Iterator[str]:
    """A line for each key; `inline` they stand in braces, where no comment can."""
    for key, value in values.items():
        path = prefix + (key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key))
        if _is_file(value):
            yield f"{path} = {_toml(value['name'])}" + ("" if inline else f"  # SHA-256 {value['sha256']}")
        elif isinstance(value, dict):
            yield from _assignments(value, f"{path}.", inline)
        elif value is not None:
            yield f"{path} = {_toml(value)}"


def _toml(value: RawValue) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(_assignments(value, inline=True)) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _parameter(value: RawValue, unit: str | None) -> str:
    if unit == "s":
        return format_duration(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text} {unit}" if unit else text
