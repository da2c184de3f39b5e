"""Common parts of all charts: the Vega-Lite specification, colours and axes, and picture files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Any: the library that draws charts has no types.
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from analysis.specs import COLUMN, in_paper_style, parts_of
from sim.base.errors import ResultsError
from sim.base.escaping import all_printable
from sim.base.installed import need_extra
from sim.base.naming import Raw, RawValue
from sim.files.atomic import whole_file

if TYPE_CHECKING:
    import altair as alt

CHART_ROWS = 4500
"""The most rows of a chart; Altair refuses more than 5,000."""
_DECADES = 4
_FEW = 10
"""The most steps between whole numbers that are all labelled."""
PICTURES = (".svg", ".png", ".pdf")

# Okabe and Ito's colours, distinguishable with any colour vision, without the yellow that fades on white; dashes
# distinguish a second round of seven from the first.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
INK = "#222222"
_CONFIG = {
    "background": "#ffffff",
    "font": "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif",
    "axis": {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "gridColor": "#e4e4e4"},
    "axisX": {"labelOverlap": "greedy", "labelSeparation": 8, "tickCount": 6},
    "legend": {"labelColor": INK, "title": None, "orient": "top", "columns": 2, "labelLimit": 150, "symbolLimit": 40},
    "view": {"stroke": None},
}


def vega() -> Any:
    """The library that draws charts. Raises InputError where it is not installed."""
    need_extra("report", "a chart")
    import vl_convert

    return vl_convert


def vega_lite() -> str:
    """The version of Vega-Lite that the specifications are written in."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


@dataclass(frozen=True)
class Figure:
    """One chart: `name` is its file name's stem, `section` that of the page, `spec` its Vega-Lite specification without a width.

    `width` is in pixels, None for all available width. `caption` may be "". `description` is the text for readers who cannot see
    the chart. `variant` is the only one that the chart shows, None where there are several.
    """

    name: str
    section: str
    title: str
    caption: str
    description: str
    spec: Raw
    width: int | None = None
    variant: str | None = None

    def sized(self, width: int | None = None) -> Raw:
        """The specification with a width: "container" for a page, or pixels for a picture."""
        composed = "vconcat" in self.spec  # its parts have widths of their own
        fixed = {} if composed else {"width": self.width or width or "container"}
        spec = {**self.spec, "description": self.description, **fixed, "config": _CONFIG}
        shown: Raw = all_printable(spec)  # XML cannot hold all characters of names
        return shown


def save_figures(charts: Sequence[Figure], folder: Path, width: int = 720, paper: bool = False) -> list[Path]:
    """Write each chart as NAME.svg, NAME.png (twice the pixels) and NAME.pdf to the folder; returns the paths.

    For a `paper` they are as wide as a column, in its type, and in black and white, whatever the width.
    """
    paths = []
    for chart in charts:
        spec = in_paper_style(chart.sized(COLUMN)) if paper else chart.sized(width)
        svg = vega().vegalite_to_svg(spec, vl_version=vega_lite())
        for suffix in PICTURES:
            path = folder / f"{chart.name}{suffix}"
            write_atomically(path, _picture(svg, suffix))
            paths.append(path)
    return paths


def picture(path: Path) -> str:
    """The kind of picture from a path's ending: .svg, .png, .pdf or .html. Raises ResultsError for any other."""
    if path.suffix not in {*PICTURES, ".html"}:
        raise ResultsError(f"{path}: a chart is written as .svg, .png, .pdf or .html")
    return path.suffix


def save_figure(chart: Figure, path: Path, width: int = 720) -> None:
    """Write one chart in the format of its path's ending: .svg, .png (twice the pixels), .pdf, or .html, a page that works offline."""
    kind = picture(path)
    content = _html(chart.sized(width)).encode() if kind == ".html" else _picture(svg_of(chart, width), kind)
    write_atomically(path, content)


def _html(spec: Raw) -> str:
    """A page of one chart, whose specification is in a script element that names must not close."""
    placeholder = '"the specification"'
    page: str = vega().vegalite_to_html({"description": placeholder[1:-1]}, vl_version=vega_lite(), bundle=True)
    before, after = page.split(f'{{"description":{placeholder}}}')
    return f"{before}{script(spec)}{after}"


def script(value: RawValue) -> Markup:
    """JSON that is safe in a script element, whatever text it contains."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 - no tag can end or begin


def svg_of(chart: Figure, width: int = 720) -> str:
    """A chart as SVG, `width` pixels wide."""
    svg: str = vega().vegalite_to_svg(chart.sized(width), vl_version=vega_lite())
    return svg


def _picture(svg: str, suffix: str) -> bytes:
    if suffix == ".svg":
        return svg.encode()
    content: bytes = vega().svg_to_png(svg, scale=2) if suffix == ".png" else vega().svg_to_pdf(svg)
    return content


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically, and create its folder: it exists completely or not at all.

    Raises ResultsError where it cannot be written.
    """
    with whole_file(path, ResultsError) as unfinished:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)


def colour_of(variant: str, names: Sequence[str]) -> str:
    """The colour of a variant in all charts and tables."""
    return _COLOURS[names.index(variant) % len(_COLOURS)]


def by_colour(names: Sequence[str], legend: bool = True) -> alt.Color:
    """The encoding of variants by colour."""
    import altair as alt

    colours = [colour_of(name, names) for name in names]
    shown = _legend() if legend and len(names) > 1 else None
    return alt.Color("variant:N", scale=alt.Scale(domain=list(names), range=colours), legend=shown)


def _legend() -> alt.Legend:
    import altair as alt

    return alt.Legend(symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2.5, symbolSize=150)


def by_dash(names: Sequence[str]) -> alt.StrokeDash:
    """The encoding of variants by dashes, to distinguish more of them than there are colours."""
    import altair as alt

    dashes = [_DASHES[i // len(_COLOURS) % len(_DASHES)] for i in range(len(names))]
    shown = _legend() if len(names) > 1 else None
    return alt.StrokeDash("variant:N", scale=alt.Scale(domain=list(names), range=dashes), legend=shown)


def spec_of(chart: alt.TopLevelMixin) -> Raw:
    """The specification of a chart that adapts to the available width."""
    spec: Raw = chart.to_dict()
    spec.pop("config", None)
    for part in parts_of(spec):
        if "layer" in part:
            part["layer"] = [one for one in part["layer"] if not _is_empty(one, part, spec)] or part["layer"]
    return {**spec, "autosize": {"type": "fit-x", "contains": "padding"}}


def _is_empty(layer: Raw, above: Raw, spec: Raw) -> bool:
    """Whether a layer shows fields that no row has, such as the intervals of a single replication; Vega would warn of it."""
    filters = " ".join(str(one.get("filter", "")) for one in layer.get("transform", ()))
    placed = [layer.get("encoding", {}).get(channel, {}).get("field") for channel in ("x", "y", "x2", "y2")]
    data: Raw = next((one["data"] for one in (layer, above, spec) if "data" in one), {})
    rows = spec.get("datasets", {}).get(data.get("name"), ())
    shown = {*re.findall(r"isValid\(datum\.(\w+)\)", filters), *placed}
    return any(all(row.get(field) is None for row in rows) for field in shown if rows and field in rows[0])


def axis_title(text: str, unit: str) -> str:
    """The title of an axis, with its unit where it has one."""
    return text if unit in {"–", ""} else f"{text} ({unit})"


def log_ticks(low: float, high: float) -> list[float]:
    """Where a logarithmic axis has labels: at multiples of powers of ten, the fewer the wider the range is."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    steps = range(1, 10) if decades < 1 else (1, 2, 5) if decades <= _DECADES else (1,)
    ticks = [float(f"{step * 10.0**power:.6g}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high] or [low, high]


def whole_axis(low: int, high: int) -> alt.Axis:
    """An axis with labels at whole numbers only."""
    import altair as alt

    # with few steps Vega has labels between them, whatever the least step
    return alt.Axis(format=",d", **({"values": [*range(low, high + 1)]} if high - low <= _FEW else {"tickMinStep": 1}))


def rounded(values: pd.Series) -> pd.Series:
    """The values with six significant digits: more than a chart can show, and half the text of a float."""
    return values.map(lambda value: float(f"{value:.6g}"))
