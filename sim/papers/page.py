"""The page of a paper: its claims beside our numbers, verdicts with reasons, charts of each figure, misprints, and how it was run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from analysis.charts import Figure, write_atomically
from analysis.formatting import describe, number
from analysis.page import render
from sim.base.naming import Raw
from sim.papers.claims import LESS, Target
from sim.papers.judging import JudgedClaim, JudgedReading, claims_summary, judge_claims, lessons_learnt
from sim.papers.paper import Paper
from sim.papers.views import View, chart_tables, charts_of

MARKS = {"reproduces": "better", "in part": "unclear", "does not": "worse", "not run": "unclear"}
"""How verdicts are coloured."""


@dataclass(frozen=True)
class SectionRuns:
    """The table of a section's runs (columns of `runs.parquet`, `point`, and the values of points) and what was run."""

    runs: pd.DataFrame
    scenario: str
    points: Sequence[str]
    replications: int
    scale: float
    version: str
    notes: Sequence[str] = ()
    failed: Sequence[Raw] = ()


@dataclass(frozen=True)
class Reproduction:
    """All runs for a paper; `sections` are keyed by the folders of their runs."""

    paper: Paper
    sections: Mapping[str, SectionRuns]
    command: str
    version: str
    scale: float

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of runs, with derived numbers, by section of the paper."""
        return {
            section.key: self.paper.with_derived(self.sections[section.source].runs)
            for section in self.paper.sections
            if section.source in self.sections
        }

    @cached_property
    def _by_key(self) -> dict[str, SectionRuns]:
        """The runs of the paper's sections, by their keys."""
        sources = ((section.key, section.source) for section in self.paper.sections)
        return {key: self.sections[source] for key, source in sources if source in self.sections}

    @property
    def scales(self) -> list[float]:
        """The scales of all sections, ascending."""
        return sorted({section.scale for section in self.sections.values()} or {self.scale})

    def made_of(self, judged: JudgedClaim, one: JudgedReading) -> tuple[float, str]:
        """The scale and the version of the runs that a reading is about."""
        section = self._by_key.get(one.reading.section or judged.claim.section)
        return (section.scale, section.version) if section else (self.scale, self.version)

    @cached_property
    def claims(self) -> list[JudgedClaim]:
        """The outcomes of all claims."""
        return judge_claims(self.paper.claims, self.tables)


def write_page(reproduction: Reproduction, path: Path) -> None:
    """Write the page to `path` atomically."""
    write_atomically(path, render_page(reproduction).encode())


@dataclass(frozen=True)
class ShownSection:
    """What the page shows of a section: what the paper says, `sentences`, and the scenario file to try variations of it."""

    key: str
    title: str
    text: str
    sentences: Sequence[str]
    scenario: str
    notes: Sequence[str]
    figures: Sequence[Figure]
    tables: Sequence[View]


def sections_of(reproduction: Reproduction) -> Iterator[ShownSection]:
    """All sections, with the charts and tables of their runs."""
    paper = reproduction.paper
    for section in paper.sections:
        run, runs = reproduction.sections.get(section.source), reproduction.tables.get(section.key, pd.DataFrame())
        yield ShownSection(
            section.key,
            section.title,
            section.text,
            list(dict.fromkeys(claim.sentence for claim in paper.claims if claim.section == section.key)),
            run.scenario if run else "",
            list(run.notes) if run else ["This was not run."],
            charts_of(paper, section, runs) if len(runs) else [],
            chart_tables(paper, section, runs) if len(runs) else [],
        )


def render_page(reproduction: Reproduction) -> str:
    """The page as HTML; the same text for the same runs."""
    paper, sections = reproduction.paper, list(sections_of(reproduction))
    return render(
        "paper.html.jinja",
        [chart for section in sections for chart in section.figures],
        title=paper.title,
        paper=paper,
        version=reproduction.version,
        notes=list(notes_of(reproduction)),
        sentences=[sentence.partition(":") for sentence in claims_summary(reproduction.claims)],
        lessons=list(lessons_learnt(paper.lessons, reproduction.tables)),
        claims=[_claim(reproduction, judged) for judged in reproduction.claims],
        sections=sections,
        facts=list(_facts(reproduction)),
        command=reproduction.command,
        sweeps=[
            (title, run.scenario, number(len(run.points)), number(run.replications), number(len(run.runs)))
            for title, run in _shared(reproduction)
        ],
    )


def _shared(reproduction: Reproduction) -> Iterator[tuple[str, SectionRuns]]:
    """Runs, with the titles of all sections that show them."""
    titles: dict[str, list[str]] = {}
    for section in reproduction.paper.sections:
        titles.setdefault(section.source, []).append(section.title)
    for source, names in titles.items():
        if source in reproduction.sections:
            yield "; ".join(names), reproduction.sections[source]


def scale_note(reproduction: Reproduction, judged: JudgedClaim, one: JudgedReading) -> str:
    """The scale of the runs that a reading is about, where not all scales are the same."""
    return f"scale {reproduction.made_of(judged, one)[0]:g}" if len(reproduction.scales) > 1 and one.number.n else ""


def _claim(reproduction: Reproduction, judged: JudgedClaim) -> Raw:
    claim = judged.claim
    readings = []
    for one in judged.shown:
        mean, interval = describe(one.number, signed=claim.target.signed)
        readings.append(
            {
                "name": one.reading.name,
                "sentence": one.reading.sentence,
                "literal": one is judged.literal and len(judged.readings) > 1,
                "quantity": one.reading.quantity.name,
                "mean": mean + (one.reading.quantity.unit if one.number.n else ""),
                "interval": interval,
                "verdict": one.verdict,
                "mark": MARKS[one.verdict],
                "scale": scale_note(reproduction, judged, one),
                "why": one.why,
            }
        )
    return {
        "place": claim.place,
        "statement": claim.statement,
        "sentence": claim.sentence,
        "ours": claim.ours,
        "paper": claim.target.text,
        "agrees": _agrees(claim.target),
        "readings": readings,
    }


def _agrees(target: Target) -> str:
    """The values that agree, where the text does not imply them."""
    if target.signed or target == LESS or target.low == target.high or target.high == float("inf"):
        return ""
    return f"up to {target.high:,g}" if target.low == float("-inf") else f"{target.low:,g} to {target.high:,g}"


def notes_of(reproduction: Reproduction) -> Iterator[str]:
    """What a reader must know of all numbers: the scale, and the runs that failed."""
    smallest, *larger = reproduction.scales
    if smallest < 1:
        of = "This is"
        if larger:
            runs, sections = reproduction.sections, reproduction.paper.sections
            small = [each.figure for each in sections if each.source in runs and runs[each.source].scale == smallest]
            of = f"Each claim says at which scale its runs were made. {', '.join(small)}: these are"
        yield (
            f"{of} a quick look (--scale {smallest:g}): {reproduction.paper.smaller}, so verdicts may differ from those at full scale."
        )
    failed = [
        f"{run['variant']} at {section.points[run['point']]}, replication {run['replication']}: {run['reason']}"
        for section in reproduction.sections.values()
        for run in section.failed
    ]
    if failed:
        reasons = "; ".join(failed)
        yield f"{len(failed)} runs failed and are missing below: {reasons}."


def _facts(reproduction: Reproduction) -> Iterator[tuple[str, str]]:
    yield "version", f"brokersim {reproduction.version}"
    yield (
        "seed",
        ", ".join(sorted({str(seed) for runs in reproduction.tables.values() if len(runs) for seed in runs["seed"]})),
    )
    yield "scale", ", ".join(f"{scale:g}" for scale in reproduction.scales)
    yield "runs", number(sum(len(section.runs) for section in reproduction.sections.values()))
