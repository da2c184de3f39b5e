"""How a chart is embedded in a page: its data in columns, which variants it hides, and what it exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.charts import Figure
from analysis.specs import parts_of
from sim.base.naming import Raw, RawValue

HIDDEN = "hidden"
"""The parameter of all charts with the variants that are not picked."""
_TEXTS = 3
"""Texts that occur this often on average are indices into a list of the distinct ones."""


def embedded(chart: Figure) -> Raw:
    """The specification for a page, whose script unpacks `datasets`; `usermeta` is the main dataset and the titles of its columns."""
    spec = chart.sized()
    datasets: dict[str, list[Raw]] = spec.pop("datasets", {})
    varied = {name for name, rows in datasets.items() if rows and "variant" in rows[0]}
    for unit in [unit for unit in parts_of(spec) if unit.get("data", {}).get("name") in varied]:
        unit["transform"] = [{"filter": f"indexof({HIDDEN}, datum.variant) < 0"}, *unit.get("transform", [])]
    if varied:
        spec["params"] = [*spec.get("params", []), {"name": HIDDEN, "value": []}]
    main = max(datasets, key=lambda name: len(datasets[name][0]) if datasets[name] else 0, default=None)
    titles = {field: title for unit in parts_of(spec) for field, title in _titled(unit.get("encoding", {}))}
    packed = {name: _columns(rows) for name, rows in datasets.items()}
    return {**spec, "usermeta": {"data": main, "titles": titles}, "datasets": packed}


def _titled(encoding: Raw) -> Iterator[tuple[str, str]]:
    """The fields of an encoding with their titles."""
    for channel in encoding.values():
        for one in channel if isinstance(channel, list) else [channel]:
            if isinstance(one, dict) and one.get("field") and one.get("title"):
                yield one["field"], one["title"]


def _columns(rows: Sequence[Raw]) -> Raw:
    """Rows with the same keys as columns; texts that repeat are indices `at` into the distinct ones, `of`."""
    return {key: _packed([row.get(key) for row in rows]) for key in (rows[0] if rows else ())}


def _packed(values: list[RawValue]) -> RawValue:
    if not all(isinstance(value, str) for value in values):
        return [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    distinct = {value: place for place, value in enumerate(dict.fromkeys(values))}
    if _TEXTS * len(distinct) > len(values):
        return values
    return {"of": list(distinct), "at": [distinct[value] for value in values]}
