"""A report's tables as text, and the figures in them recomputed from the result files by pandas and scipy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
from scipy import stats

from analysis.formatting import describe
from sim.experiments.statistics import Interval

SHOWN = {"ms": 1e-3}  # metrics are in base units in the files


class Page(HTMLParser):
    """Tables of a page as lists of rows of texts; and whether its elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.open: list[str] = []
        self.cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"meta", "br", "img", "input"}:
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"th", "td"}:
            assert tag == "td" or dict(attrs).get("scope") in {"row", "col"}
            self.tables[-1][-1].append("")
        elif tag == "span" and "td" in self.open:
            self.tables[-1][-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def rows_of(page: str, table: int = 0) -> dict[str, list[str]]:
    return {row[0]: [" ".join(cell.split()) for cell in row[1:]] for row in Page(page).tables[table]}


def body(page: str) -> str:
    """The page without its scripts."""
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def interval(values: pd.Series) -> Interval:
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return Interval(float(values.mean()), float(low), float(high), len(values), varies=True)


def assert_numbers_of_files(page: str, results: Path, baseline: str, metrics: Sequence[str]) -> None:
    """Assert that the page has the means, intervals and paired differences of these metrics computed from `runs.parquet`."""
    runs = pd.read_parquet(results / "runs.parquet")
    rows = {**rows_of(body(page), 1), **rows_of(body(page))}
    variants = list(dict.fromkeys(runs["variant"]))
    for metric in metrics:
        unit, *cells = rows[metric.replace("_", " ")]
        values = runs.pivot(index="replication", columns="variant", values=metric)
        for variant, cell in zip(variants, cells, strict=True):
            expected = " ".join(describe(interval(values[variant]), SHOWN.get(unit, 1)))
            if variant != baseline:
                mean, bounds = describe(interval(100 * (values[variant] / values[baseline] - 1)), signed=True)
                expected += f" {mean} % {bounds}"
            assert re.sub(r" (✓ better|✗ worse|higher|lower)$", "", cell) == expected, (metric, variant)
