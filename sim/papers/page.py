"""The page of a paper: its claims beside our numbers, verdicts with reasons, charts of each figure, misprints, and how it was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.charts import write_atomically
from analysis.formatting import describe, number
from analysis.page import render
from sim.base.naming import Raw
from sim.papers.claims import LESS, VERDICTS, Claim, Target, judge
from sim.papers.paper import Paper
from sim.papers.views import chart_tables, charts_of

MARKS = {"reproduces": "better", "in part": "unclear", "does not": "worse", "not run": "unclear"}
"""How verdicts are coloured."""


@dataclass(frozen=True)
class SectionRuns:
    """The table of a section's runs (columns of `runs.parquet`, `point`, and the values of points) and what was run."""

    runs: pd.DataFrame
    scenario: str
    points: Sequence[str]
    replications: int
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

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of runs, with derived numbers, by section of the paper."""
        return {
            section.key: self.paper.with_derived(self.sections[section.source].runs)
            for section in self.paper.sections
            if section.source in self.sections
        }


def write_page(reproduction: Reproduction, path: Path) -> None:
    """Write the page to `path` atomically."""
    write_atomically(path, render_page(reproduction).encode())


def render_page(reproduction: Reproduction) -> str:
    """The page as HTML; the same text for the same runs."""
    paper = reproduction.paper
    sections, charts = [], []
    for section in paper.sections:
        run = reproduction.sections.get(section.source)
        runs = paper.with_derived(run.runs) if run and len(run.runs) else None
        drawn = [] if runs is None else charts_of(paper, section, runs)
        charts += drawn
        sections.append(
            {
                "id": section.key,
                "title": section.title,
                "text": section.text,
                "notes": list(run.notes) if run else ["This was not run."],
                "figures": drawn,
                "tables": [] if runs is None else chart_tables(paper, section, runs),
            }
        )
    return render(
        "paper.html.jinja",
        charts,
        title=paper.title,
        paper=paper,
        version=reproduction.version,
        notes=list(_notes(reproduction)),
        sentences=[sentence.partition(":") for sentence in claims_summary(reproduction)],
        claims=[_claim(claims, reproduction) for claims in statements(paper)],
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


def statements(paper: Paper) -> list[list[Claim]]:
    """The claims, grouped by statement across readings."""
    groups: dict[tuple[str, str, str], list[Claim]] = {}
    for claim in paper.claims:
        groups.setdefault((claim.section, claim.place, claim.statement), []).append(claim)
    return list(groups.values())


def claims_summary(reproduction: Reproduction) -> list[str]:
    """The number of each verdict, in a sentence for each reading."""
    paper, tables = reproduction.paper, reproduction.tables
    sentences = []
    for reading in paper.readings:
        claims = [claim for claim in paper.claims if claim.reading in ("", reading)]
        if not claims:  # a single figure without claims
            continue
        counts = Counter(judge(claim.number(tables), claim.target) for claim in claims)
        words = [f"{counts[verdict]} {_many(verdict, counts[verdict])}" for verdict in VERDICTS if counts[verdict]]
        start = f"Read as {reading}: of" if reading else "Of"
        sentences.append(f"{start} {len(claims)} claims {', '.join(words)}.")
    return sentences


def _many(verdict: str, count: int) -> str:
    plural = {"reproduces": "reproduce", "in part": "in part", "does not": "do not", "not run": "were not run"}
    return verdict.replace("not run", "was not run") if count == 1 else plural[verdict]


def _claim(claims: Sequence[Claim], reproduction: Reproduction) -> Raw:
    first = claims[0]
    cells = []
    for claim in claims:
        found = claim.number(reproduction.tables)
        verdict = judge(found, claim.target)
        mean, interval = describe(found, signed=claim.target.signed)
        unit = claim.quantity.unit if found.n else ""
        cells.append({"mean": mean + unit, "interval": interval, "verdict": verdict, "mark": MARKS[verdict]})
    return {
        "place": first.place,
        "statement": first.statement,
        "quantity": first.quantity.name,
        "paper": first.target.text,
        "agrees": _agrees(first.target),
        "cells": cells,
        "reason": first.reason,
    }


def _agrees(target: Target) -> str:
    """The values that agree, where the text does not imply them."""
    if target.signed or target == LESS or target.low == target.high or target.high == float("inf"):
        return ""
    return f"up to {target.high:,g}" if target.low == float("-inf") else f"{target.low:,g} to {target.high:,g}"


def _notes(reproduction: Reproduction) -> Iterator[str]:
    if reproduction.scale < 1:
        yield (
            f"This is a quick look (--scale {reproduction.scale:g}): {reproduction.paper.smaller}, so verdicts may differ from those "
            "at full scale."
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
    yield "scale", f"{reproduction.scale:g}"
    yield "runs", number(sum(len(section.runs) for section in reproduction.sections.values()))
