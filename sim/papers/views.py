"""Charts and tables of a section of a paper's page, drawn from the table of its runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from pandas.api.types import is_numeric_dtype

from analysis.charts import Figure, by_colour, by_dash, rounded, spec_of
from analysis.comparison import label, percent
from analysis.formatting import describe, number
from sim.experiments.statistics import Interval, mean_interval, paired_difference_percent
from sim.papers.paper import Chart, Drawing, Paper, PaperTable, Section


def charts_of(paper: Paper, section: Section, runs: pd.DataFrame) -> list[Figure]:
    """All charts of a section, with those that differ in only one column side by side on one scale, and its drawings."""
    figures: list[Figure] = []
    drawn = Counter[str]()  # by what they show, as a section may have several of the same
    for number_of, chart in enumerate(section.charts):
        if isinstance(chart, Drawing):
            spec = {**chart.draw(runs), "height": chart.height}
            figures.append(Figure(_file(f"{section.key}-{number_of}"), section.key, chart.title, "", chart.text, spec))
        else:
            facets = list(_charts(paper, section.key, chart, runs, drawn[_about(chart)]))
            drawn[_about(chart)] += len(facets)
            figures += facets
    return figures


def _file(name: str) -> str:
    """The name as a file name."""
    return re.sub("[^A-Za-z0-9]+", "-", name)


def _charts(paper: Paper, key: str, chart: Chart, runs: pd.DataFrame, first: int) -> Iterator[Figure]:
    import altair as alt

    values = _relative(chart, runs) if chart.relative_to else runs.assign(value=runs[chart.metric])
    if chart.variants:
        values = values[values["variant"].isin(chart.variants)]
    names = list(dict.fromkeys(values[chart.colour].astype(str)))
    points = _points(chart, values)
    numeric = is_numeric_dtype(values[chart.x])
    order = None if numeric else list(dict.fromkeys(values[chart.x]))
    low, high = (
        float(extreme) for extreme in (points[["mean", "low"]].min().min(), points[["mean", "high"]].max().max())
    )
    title = f"{label(_about(chart))} (%)" if chart.relative_to else paper.named(chart.metric)
    kind = "Q" if numeric else "N"
    x = alt.X(
        f"x:{kind}",
        title=chart.x_title,
        sort=order,
        scale=alt.Scale(zero=False, nice=False) if numeric else alt.Scale(),
    )
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(domain=[min(0.0, low), 1.04 * high], nice=True))
    for number_of, facet in enumerate(dict.fromkeys(points["facet"]), first):
        shown = points[points["facet"] == facet].drop(columns="facet")
        base = alt.Chart(shown).encode(x=x, color=by_colour(names))
        bands = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.18).encode(y="low:Q", y2="high:Q")
        layers = alt.layer(
            *([bands] if shown["low"].notna().any() else []),
            base.mark_line(strokeWidth=1.8, point={"size": 24}).encode(
                y=y,
                strokeDash=by_dash(names),
                tooltip=[
                    "variant:N",
                    alt.Tooltip(f"x:{kind}", title=chart.x_title),
                    alt.Tooltip("mean:Q", title=title),
                ],
            ),
        )
        yield Figure(
            _file(f"{key}-{_about(chart)}-{number_of}"),
            key,
            f"{label(_about(chart))}: {facet}" if facet else label(_about(chart)),
            "",
            f"{title} against {chart.x_title}{f', {facet}' if facet else ''}: {_told(shown)}.",
            {**spec_of(layers), "height": 240},
        )


def _about(chart: Chart) -> str:
    return f"{chart.metric} against {chart.relative_to}" if chart.relative_to else chart.metric


def _relative(chart: Chart, runs: pd.DataFrame) -> pd.DataFrame:
    """The paired differences to a variant, in %; its own are 0."""
    keys = ["point", "replication"]
    baseline = runs[runs["variant"] == chart.relative_to].set_index(keys)[chart.metric].rename("baseline")
    paired = runs.join(baseline, on=keys)
    return paired.assign(value=paired_difference_percent(paired[chart.metric], paired["baseline"]))


def _points(chart: Chart, values: pd.DataFrame) -> pd.DataFrame:
    """Mean and interval of each point of each line."""
    facet = values[chart.by].astype(str) if chart.by else pd.Series("", index=values.index)
    rows = []
    groups = values.groupby([facet.rename("facet"), values[chart.colour].astype(str), chart.x], sort=False)
    for (where, variant, x), chosen in groups["value"]:
        interval = mean_interval(chosen)
        if interval.n:
            rows.append((where, variant, x, interval.mean, interval.low, interval.high))
    points = pd.DataFrame(rows, columns=["facet", "variant", "x", "mean", "low", "high"])
    return points.assign(**{name: rounded(points[name].astype(float)) for name in ("mean", "low", "high")})


def _told(points: pd.DataFrame) -> str:
    means = points.groupby("variant", sort=False)["mean"].agg(["first", "last", "min", "max"]).map(number)
    return "; ".join(
        f"{name} {first}" if least == most else f"{name} from {first} to {last}"
        for name, first, last, least, most in means.itertuples()
    )


@dataclass(frozen=True)
class Cell:
    """A number, and as text its mean, its interval, and its difference to a baseline; "" where there is none."""

    found: Interval
    difference: str = ""

    @property
    def mean(self) -> str:
        """The mean as text."""
        return describe(self.found)[0]

    @property
    def interval(self) -> str:
        """The confidence interval as text."""
        return describe(self.found)[1]


@dataclass(frozen=True)
class View:
    """A table as text."""

    caption: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


def chart_tables(paper: Paper, section: Section, runs: pd.DataFrame) -> list[View]:
    """All tables of a section."""
    return [view for table in section.tables for view in _tables(paper, table, runs)]


def _tables(paper: Paper, table: PaperTable, runs: pd.DataFrame) -> Iterator[View]:
    for value in dict.fromkeys(runs[table.by]) if table.by else [None]:
        chosen = runs if value is None else runs[runs[table.by] == value]
        chosen = chosen[chosen[table.rows].notna()]
        caption = table.caption if value is None else f"{table.caption}: {value}"
        metrics = table.metrics
        if table.columns:
            known = chosen[chosen[metrics[0]].notna()]
            columns = {str(name): (metrics[0], name) for name in dict.fromkeys(known[table.columns])}
        else:
            columns = {paper.named(metric): (metric, None) for metric in metrics}
        rows = []
        for name in dict.fromkeys(chosen[table.rows]):
            row = chosen[chosen[table.rows] == name]
            cells = []
            for metric, column in columns.values():
                cell = row if column is None else row[row[table.columns] == column]
                cells.append(_cell(cell, metric, chosen, table.relative_to))
            rows.append((str(name) if isinstance(name, str) else f"{name:,g}", cells))
        yield View(caption, "" if table.rows in {"variant", "point"} else table.rows, list(columns), rows)


def _cell(cell: pd.DataFrame, metric: str, runs: pd.DataFrame, relative_to: str | None) -> Cell:
    difference = ""
    if relative_to and len(cell) and (cell["variant"] != relative_to).all():
        keys = ["point", "replication"]
        baseline: pd.Series = runs[runs["variant"] == relative_to].set_index(keys)[metric].rename("baseline")
        joined = cell.join(baseline, on=keys)
        found: Interval = mean_interval(paired_difference_percent(joined[metric], joined["baseline"]))
        difference = percent(found) if found.n else ""
    return Cell(mean_interval(cell[metric]), difference)
