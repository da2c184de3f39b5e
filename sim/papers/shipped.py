"""A reproduction as files: claims as CSV, tables as Markdown and CSV, charts as SVG; and a later one compared with them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.charts import save_figure, write_atomically
from analysis.formatting import describe
from sim.base.errors import ResultsError
from sim.base.escaping import csv_cell
from sim.papers.judging import JudgedClaim, JudgedReading, claims_summary, lessons_learnt
from sim.papers.page import Reproduction, notes_of, scale_note, sections_of
from sim.papers.views import Cell, View

CLAIMS, TEXT, TABLES, CHARTS = "claims.csv", "README.md", "tables", "charts"
"""The files and folders of an export."""
SHIPPED = Path(__file__).parents[2] / "docs" / "reproductions"
"""A folder for each paper with its outcome; only in a source checkout."""
_WIDTH = 560  # pixels
_DIGITS = 6


def claims_table(made: Reproduction) -> pd.DataFrame:
    """A row for each claim and reading, the most literal first; `ours` is the mean, `low` and `high` its 95 % confidence interval."""
    rows = [
        {
            "claim": judged.claim.statement,
            "section": _section(judged),
            "reading": one.reading.name,
            "paper": judged.claim.target.text,
            "ours": _digits(one.number.mean if one.number.n else None),
            "low": _digits(one.number.low),
            "high": _digits(one.number.high),
            "verdict": one.verdict,
            "counted": not judged.claim.ours,
            "bound": one.bound,
            "reason": one.why,
            **dict(zip(("scale", "version"), made.made_of(judged, one), strict=True)),
        }
        for judged in made.claims
        for one in judged.readings
    ]
    return pd.DataFrame(rows)


def _section(judged: JudgedClaim) -> str:
    """The section of the paper, and the figure or table."""
    section = judged.claim.sentence.partition(": ")[0]
    return section if judged.claim.place in section else f"{section}, {judged.claim.place}"


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def export_reproduction(made: Reproduction, folder: Path) -> list[Path]:
    """Write the outcome to a folder; returns the paths. Raises ResultsError where a file cannot be written.

    `claims.csv` is `claims_table`, `README.md` the page as Markdown, `tables` has a CSV for each table of the page, with means and
    confidence intervals, and `charts` an SVG for each chart.
    """
    texts = {CLAIMS: _csv(claims_table(made)), TEXT: "\n".join(_markdown(made)) + "\n"}
    for section in sections_of(made):
        for number, view in enumerate(section.tables):
            texts[f"{TABLES}/{_name(section.key, number)}.csv"] = _csv(_long(view))
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    charts = [chart for section in sections_of(made) for chart in section.figures]
    for chart in charts:
        save_figure(chart, folder / CHARTS / f"{chart.name}.svg", _WIDTH)
    return [*(folder / name for name in texts), *(folder / CHARTS / f"{chart.name}.svg" for chart in charts)]


def _name(key: str, number: int) -> str:
    return f"{re.sub('[^A-Za-z0-9]+', '-', key)}-{number}"


def _csv(table: pd.DataFrame) -> str:
    text = io.StringIO()
    table.map(csv_cell).to_csv(text, index=False, lineterminator="\n")
    return text.getvalue()


def _long(view: View) -> pd.DataFrame:
    """A table of the page with a row for each of its numbers."""
    return pd.DataFrame(
        [
            {
                "table": view.caption,
                "row": name,
                "column": column,
                "mean": _digits(cell.found.mean),
                "low": _digits(cell.found.low),
                "high": _digits(cell.found.high),
                "replications": cell.found.n,
            }
            for name, cells in view.rows
            for column, cell in zip(view.columns, cells, strict=True)
            if cell.found.n
        ],
        columns=["table", "row", "column", "mean", "low", "high", "replications"],
    )


def _markdown(made: Reproduction) -> Iterator[str]:
    yield from (f"# {made.paper.title}", "", made.paper.source, "")
    for note in notes_of(made):
        yield from (f"**{note}**", "")
    yield from (f"- {sentence}" for sentence in claims_summary(made.claims))
    yield from ("", made.paper.text, "")
    if lessons := list(lessons_learnt(made.paper.lessons, made.tables)):
        yield from ("## In short", "", *(f"- {lesson}" for lesson in lessons), "")
    yield from ("## What the paper claims, and what came out", "")
    yield from _rows(["where", "claim", "paper", "reading", "ours", "verdict", "why"], map(list, _claims(made)))
    for section in sections_of(made):
        yield from ("", f"## {section.title}", "")
        for sentence in section.sentences:
            yield from (f"> {sentence}", "")
        yield section.text + (f" To play with: `{section.scenario}`." if section.scenario else "")
        for note in section.notes:
            yield from ("", note)
        for chart in section.figures:
            yield from ("", f"![{chart.description}]({CHARTS}/{chart.name}.svg)", "", f"*{chart.title}*")
        for view in section.tables:
            yield from ("", f"**{view.caption}**", "")
            cells = [[name, *(" ".join(filter(None, _texts(cell))) for cell in of)] for name, of in view.rows]
            yield from _rows([view.corner, *view.columns], cells)
    yield from ("", "## How it was run", "", "```sh", f"./{made.command}", "```", "")
    runs = list(made.sections.values())
    for scale, by in dict.fromkeys((run.scale, run.version) for run in runs) or {(made.scale, made.version): None}:
        yield f"brokersim {by}, scale {scale:g}."


def _texts(cell: Cell) -> tuple[str, str, str]:
    return cell.mean, cell.interval, cell.difference


def _claims(made: Reproduction) -> Iterator[tuple[str, ...]]:
    """Rows of claims; a sentence is quoted where it first stands."""
    quoted = ""
    for judged in made.claims:
        sentence = judged.claim.sentence
        for one in judged.shown:
            yield (
                _section(judged) + (" (ours, not counted)" if judged.claim.ours else ""),
                judged.claim.statement + ("" if sentence == quoted else f". “{sentence.partition(': ')[2]}”"),
                judged.claim.target.text,
                _reading(judged, one),
                ", ".join(filter(None, (_ours(judged, one), scale_note(made, judged, one)))),
                f"**{one.verdict}**",
                one.why,
            )
            quoted = sentence


def _reading(judged: JudgedClaim, one: JudgedReading) -> str:
    literal = ", the most literal" if one is judged.literal and len(judged.readings) > 1 else ""
    said = f" “{one.reading.sentence}”" if one.reading.sentence else ""
    return f"{one.reading.name}{literal}{said}"


def _ours(judged: JudgedClaim, one: JudgedReading) -> str:
    mean, interval = describe(one.number, signed=judged.claim.target.signed)
    return f"{mean}{one.reading.quantity.unit if one.number.n else ''} {interval}".rstrip()


def _rows(heads: Sequence[str], rows: Iterator[list[str]] | Sequence[list[str]]) -> Iterator[str]:
    """A table in Markdown."""
    for cells in (list(heads), ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), ' ') for cell in cells)} |"


@dataclass(frozen=True)
class Difference:
    """A verdict unlike the shipped one; `expected` says why it may differ at the quick scale, "" where it should not."""

    claim: str
    reading: str
    shipped: str
    found: str
    expected: str


def shipped_claims(name: str) -> pd.DataFrame:
    """The claims of a paper as they were shipped. Raises ResultsError where there are none."""
    path = SHIPPED / name / CLAIMS
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; the outcome of a paper is shipped in a source checkout only")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


_UNDECIDED = "no contradiction, as more replications are needed to decide"


def unlike_verdicts(made: Reproduction, shipped: pd.DataFrame) -> list[Difference]:
    """The readings whose verdicts are not the shipped ones, if they were run for these, and those that are on one side only.

    "in part" contradicts no verdict: the confidence interval includes the limit of agreement.
    """
    before, now = _verdicts(shipped), _verdicts(claims_table(made))
    known = made.paper.differs
    return [
        Difference(claim, reading, old, new, known.get(claim, _UNDECIDED if "in part" in (old, new) else ""))
        for claim, section, reading in dict.fromkeys([*now, *before])
        for old, new in [
            (before.get((claim, section, reading), "absent"), now.get((claim, section, reading), "absent"))
        ]
        if old != new and old != "not run"
    ]


def _verdicts(claims: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Verdicts by claim, section and reading."""
    keys = zip(claims["claim"], claims["section"], claims["reading"], strict=True)
    return dict(zip(keys, claims["verdict"], strict=True))
