"""What the page of a paper shows: sections of charts and tables over the table of runs, and the claims and misprints."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.papers.claims import Claim, Misprint


@dataclass(frozen=True)
class Chart:
    """A metric (mean and 95 % interval) against a column `x` of the table of runs, a line for each value of `colour`.

    `x_title` is its axis; where `x` is no number, its values stand in the order of the runs. With `by`, there is a chart for each
    value of that column, side by side. With `relative_to`, it shows by how many % the variants differ from this one.
    """

    metric: str
    x: str
    x_title: str
    colour: str = "variant"
    by: str | None = None
    relative_to: str | None = None


@dataclass(frozen=True)
class Table:
    """Means with 95 % intervals: a row for each value of the column `rows`, and the `metrics`.

    Of a single metric the columns are the variants, unless these are the rows; else they are the metrics. With `by`, there is a
    table for each value of that column. With `relative_to`, each number has its paired difference to that variant below it, in %.
    """

    caption: str
    metrics: tuple[str, ...]
    rows: str
    by: str | None = None
    relative_to: str | None = None

    @property
    def columns(self) -> str | None:
        """The column whose values are the table's columns; None where these are the metrics."""
        return "variant" if len(self.metrics) == 1 and self.rows != "variant" else None


@dataclass(frozen=True)
class Section:
    """A figure of the paper, or a question that it leaves open, and what is shown of its runs; `key` names their folder."""

    key: str
    title: str
    text: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper and what is known of it. `readings` are the ways to read it, the one that reproduces it first."""

    name: str
    title: str
    source: str
    text: str
    readings: tuple[str, ...]
    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    misprints: tuple[Misprint, ...]
