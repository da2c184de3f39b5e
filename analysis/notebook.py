"""Results and comparisons as a notebook shows them: a table for each metric, the findings, and one chart."""

from __future__ import annotations

from markupsafe import Markup

from analysis.charts import svg_of
from analysis.compared import MetricTable, comparison_tables
from analysis.comparison import headline_of, method
from analysis.headlines import headlines
from sim.base.escaping import printable
from sim.base.installed import missing
from sim.experiments.results import Results

_ROWS = 20
"""The most rows of a table that are shown."""


def notebook_html(results: Results) -> str:
    """The HTML of results: static, safe whatever names it contains, and without any script."""
    if results.runs.empty:
        return _element("p", f"{results.manifest['title']}: no run finished, {len(results.failed)} failed.")
    said = headlines(results)
    return Markup("").join(
        [
            _element("h4", results.manifest["title"]),
            *map(_table, comparison_tables(results)),
            _element("p", method(results)),
            *(_element("p", str(sentence)) for sentence in said.sentences),
            *(_element("p", f"Note: {note}") for note in said.notes),
            Markup("") if missing("report") else _chart(results),
        ]
    )


def _chart(results: Results) -> Markup:
    """The first chart of the points, or else of the first metric."""
    from analysis.figures import intervals
    from analysis.sweeps.figures import sweep_figures

    charts = sweep_figures(results) or intervals(results, headline_of(results)[:1])
    return Markup("").join(Markup(svg_of(chart)) for chart in charts[:1])  # noqa: S704 - drawn by Vega, which escapes text


def _table(table: MetricTable) -> Markup:
    heads = Markup("").join(_element("th", head) for head in table.heads)
    rows = [Markup("").join(_element("td", cell) for cell in row.cells) for row in table.rows[:_ROWS]]
    body = Markup("").join(_element("tr", row) for row in (heads, *rows))
    more = len(table.rows) - _ROWS
    left = _element("p", f"and {more} more rows: compare(…) has them all") if more > 0 else Markup("")
    return _element("h5", table.title) + _element("table", body) + left


def _element(name: str, content: str | Markup) -> Markup:
    text = content if isinstance(content, Markup) else printable(content)
    return Markup("<{0}>{1}</{0}>").format(Markup(name), text)  # noqa: S704 - names are ours
