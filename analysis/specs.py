"""Specifications of charts: their parts, and how they look in a paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sim.base.naming import Raw, RawValue

COLUMN = 252
"""The width of a column in points, 3.5 inches."""
_GREYS = ["#000000", "#666666", "#999999", "#333333"]
_DASHES = [[1, 0], [4, 2], [1, 2], [6, 2, 1, 2], [8, 3], [2, 4]]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
_FONT = "'Times New Roman', 'Nimbus Roman', 'Liberation Serif', 'DejaVu Serif', serif"
_TYPE = {
    "font": _FONT,
    "axis": {"labelFontSize": 7, "titleFontSize": 8, "gridColor": "#dddddd"},
    "legend": {"labelFontSize": 7, "titleFontSize": 8},
    "title": {"fontSize": 8},
}


def parts_of(spec: Raw) -> Iterator[Raw]:
    """The specification and all that it is composed of."""
    yield spec
    for part in ("layer", "concat", "hconcat", "vconcat"):
        for inner in spec.get(part, []):
            yield from parts_of(inner)
    if isinstance(spec.get("spec"), dict):
        yield from parts_of(spec["spec"])


def in_paper_style(spec: Raw) -> Raw:
    """A specification without colours, with type of 7 and 8 points; variants differ by greys, dashes and shapes."""
    for unit in parts_of(spec):
        encoding, mark = unit.get("encoding", {}), unit.get("mark")
        for channel in ("color", "fill"):
            scale = (encoding.get(channel) or {}).get("scale")
            if isinstance(scale, dict) and encoding[channel].get("field") == "variant":
                _by_variant(unit, encoding, scale["domain"], mark)
                scale["range"] = _cycled(_GREYS, scale["domain"])
            elif isinstance(scale, dict) and "scheme" in scale:
                scale |= {"scheme": "greys", "reverse": False}
    config = {
        name: {**spec["config"].get(name, {}), **own} if isinstance(own, dict) else own for name, own in _TYPE.items()
    }
    grey: Raw = _greyed({**spec, "config": {**spec["config"], **config}})
    return grey


def _by_variant(unit: Raw, encoding: Raw, names: list[str], mark: object) -> None:
    """Distinguish variants by the dashes of lines and the shapes of marks."""
    kind = mark.get("type") if isinstance(mark, dict) else mark
    if kind == "line":
        scale = {"domain": names, "range": _cycled(_DASHES, names)}
        encoding["strokeDash"] = {
            "field": "variant",
            "type": "nominal",
            **encoding.get("strokeDash", {}),
            "scale": scale,
        }
    elif kind in ("circle", "point"):
        unit["mark"] = {**(mark if isinstance(mark, dict) else {}), "type": "point", "filled": True}
        scale = {"domain": names, "range": _cycled(_SHAPES, names)}
        encoding["shape"] = {"field": "variant", "type": "nominal", "scale": scale, "legend": None}


def _cycled(values: Sequence[RawValue], names: Sequence[str]) -> list[RawValue]:
    return [values[place % len(values)] for place in range(len(names))]


def _greyed(value: RawValue) -> RawValue:
    """The same specification, with each colour replaced by the grey of its brightness."""
    if isinstance(value, dict):
        return {key: item if key == "datasets" else _greyed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_greyed(item) for item in value]
    if isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{6}", value):
        red, green, blue = (int(value[place : place + 2], 16) for place in (1, 3, 5))
        return "#" + 3 * f"{round(0.299 * red + 0.587 * green + 0.114 * blue):02x}"
    return value
