"""A paper as data: its runs, claims and misprints, and the charts and tables of its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from analysis.charts import axis_title
from analysis.comparison import label
from sim import plugins
from sim.base.errors import InputError, PluginError, unknown
from sim.base.naming import Raw
from sim.base.validation import dotted
from sim.files import toml
from sim.metrics import METRICS
from sim.papers.claims import Claim, Lesson, Misprint, Reason
from sim.papers.sweeps import Computed, PaperSweep, SweepSetting


@dataclass(frozen=True)
class Chart:
    """A metric (mean and 95 % confidence interval) against a column `x` of the table of runs, a line for each value of `colour`.

    `x_title` is its axis; values of `x` that are not numbers are in the order of the runs. With `by`, there is a chart for each
    value of that column, side by side. With `relative_to`, it shows the variants' differences from this one in %. With `variants`,
    it shows only these.
    """

    metric: str
    x: str
    x_title: str
    colour: str = "variant"
    by: str | None = None
    relative_to: str | None = None
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A specification that a function of the paper makes of the table of runs, `height` pixels high; `text` describes it."""

    title: str
    text: str
    draw: Callable[[pd.DataFrame], Raw]
    height: int = 170


@dataclass(frozen=True)
class PaperTable:
    """Means with 95 % confidence intervals: a row for each value of the column `rows`, and the `metrics`.

    For a single metric the columns are the variants, unless these are the rows; otherwise they are the metrics. With `by`, there is a
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
class Derived:
    """A number in addition to the metrics of a run, and its name in words with its unit.

    A computed table has it as a column; otherwise `of` computes it from a table that has `columns`.
    """

    name: str
    title: str
    columns: tuple[str, ...] = ()
    of: Callable[[pd.DataFrame], pd.Series] | None = None


@dataclass(frozen=True)
class Section:
    """A figure of the paper, or an open question, and the charts and tables of its runs.

    `runs` names their folder; by default the section's key, if it does not share them with another.
    """

    key: str
    title: str
    text: str
    charts: tuple[Chart | Drawing, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    runs: str = ""

    @property
    def source(self) -> str:
        """The folder of its runs."""
        return self.runs or self.key

    @property
    def figure(self) -> str:
        """Its name on the command line: `1a` for figure 1(a)."""
        return self.key.removeprefix("fig-")


@dataclass(frozen=True)
class Paper:
    """A paper to reproduce.

    Plug-in group `brokersim.paper`: `brokersim reproduce` takes its name. `sweeps` returns its runs and computations, from scenario
    files in the package `scenarios`. `smaller` describes what a quick look reduces, at the scale `quick` by default; `differs` has the
    claims, by their statements, whose verdicts may differ there from those at full size, and why. `lessons` are the page's summary.
    """

    title: str
    source: str
    text: str
    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    misprints: tuple[Misprint, ...]
    sweeps: Callable[[SweepSetting], Iterable[PaperSweep | Computed]]
    derived: tuple[Derived, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    smaller: str = "fewer points, fewer replications, fewer users and less time than the paper has"
    quick: float = 0.1
    differs: Mapping[str, str] = field(default_factory=dict)
    scenarios: str = "scenarios"

    def with_derived(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The table of runs with the derived numbers that its columns allow."""
        known = {derived.name: derived.of for derived in self.derived if set(derived.columns) <= set(runs.columns)}
        return runs.assign(**{name: of for name, of in known.items() if of})

    def named(self, metric: str) -> str:
        """A metric, or a derived number, in words with its unit."""
        titles = {derived.name: derived.title for derived in self.derived}
        if metric in titles:
            return titles[metric]
        return axis_title(label(metric), METRICS[metric].unit.replace("count", ""))

    def only(self, figure: str) -> Paper:
        """The paper with only one figure, or all panels of one, and the claims about it. Raises InputError where there is none."""
        panel = re.compile(re.escape(figure) + "[a-z]?")
        sections = tuple(section for section in self.sections if panel.fullmatch(section.figure))
        if not sections:
            raise InputError(unknown("figure", figure, [section.figure for section in self.sections]))
        keys = {section.key for section in sections}
        claims = tuple(claim for claim in self.claims if claim.section in keys)
        lessons = tuple(lesson for lesson in self.lessons if lesson.section in keys)
        return replace(self, sections=sections, claims=claims, lessons=lessons)


def read_paper(
    folder: Path,
    claims: Iterable[Claim],
    sweeps: Callable[[SweepSetting], Iterable[PaperSweep | Computed]],
    derived: Sequence[Derived] = (),
    drawings: Mapping[str, tuple[Drawing, ...]] = MappingProxyType({}),
    by_section: bool = True,
    lessons: Iterable[Lesson] = (),
) -> Paper:
    """Read the paper whose texts, sections and misprints are in `page.toml` of this folder.

    Besides the fields of `Paper` the file has `reasons`, each with the texts `holds` and `fails`, and `sentences` of the paper, both by
    the names that claims use for them. A chart there may have several `metrics`, which makes as many charts. `derived` are numbers in
    addition to those in the file; `drawings` belong to sections, by key. Claims are in the order of the sections if `by_section`.
    Raises PluginError where the file does not describe a paper.
    """
    file = folder / "page.toml"
    page, _ = toml.read(file)
    reasons, sentences, titles = (page.pop(name, {}) for name in ("reasons", "sentences", "derived"))
    for section in page["sections"]:
        charts = [{**chart, "metric": metric} for chart in section.get("charts", ()) for metric in chart.pop("metrics")]
        section["charts"] = [*charts, *drawings.get(section["key"], ())]
    keys = [section["key"] for section in page["sections"]]
    explained = [_explained(claim, reasons, sentences, file) for claim in claims]
    page["claims"] = sorted(explained, key=lambda claim: keys.index(claim.section) if by_section else 0)
    page["derived"] = [*(Derived(name, title) for name, title in titles.items()), *derived]
    try:
        return TypeAdapter(Paper).validate_python({**page, "sweeps": sweeps, "lessons": tuple(lessons)})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise PluginError(f"{file}: {dotted(wrong['loc'])}: {wrong['msg']}") from None


def _explained(claim: Claim, reasons: Mapping[str, Raw], sentences: Mapping[str, str], file: Path) -> Claim:
    """A claim with the texts whose names it has."""
    said = {claim.sentence, *(reading.sentence for reading in claim.readings if reading.sentence)}
    for name, known in ((claim.reason, reasons), *((sentence, sentences) for sentence in said)):
        if isinstance(name, str) and name not in known:
            raise PluginError(f"{file}: {claim.statement}: {unknown('text', name, [*known])}")
    readings = tuple(
        replace(reading, sentence=sentences[reading.sentence]) if reading.sentence else reading
        for reading in claim.readings
    )
    reason = claim.reason if isinstance(claim.reason, Reason) else Reason(**reasons[claim.reason])
    return replace(claim, sentence=sentences[claim.sentence], readings=readings, reason=reason)


def find_paper(name: str) -> Paper:
    """The paper of this name. Raises InputError where there is none, PluginError where the plug-in of this name is not a paper."""
    if name not in (known := plugins.names("paper")):
        raise InputError(unknown("paper", name, known))
    found = plugins.load_entry("paper", name)
    if not isinstance(found, Paper):
        raise PluginError(
            f"plug-in brokersim.paper:{name}: expected a sim.papers.paper.Paper, found {type(found).__name__}"
        )
    return found
