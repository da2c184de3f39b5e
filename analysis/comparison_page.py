"""The page of a comparison: what differs, a table for each metric, and the charts, in one HTML file for a browser without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.charts import Figure, write_atomically
from analysis.collection import Collection, changes
from analysis.compared import tables
from analysis.comparison import baseline_of, headline_of, method, sentences, variants_of
from analysis.figures import intervals
from analysis.page import render
from analysis.sweeps.figures import sweep_figures
from analysis.sweeps.page import outcome
from sim.metrics import METRICS

ROWS = 300
"""Rows of a table, at most."""
_INTERVALS = {
    "id": "intervals",
    "title": "Means and intervals",
    "text": "Points are means, bars 95\u00a0% intervals, faint marks the single replications.",
}


def draw_comparison(collection: Collection) -> list[Figure]:
    """The charts of a comparison: over the points of a sweep, or the means of the one point."""
    return sweep_figures(collection) or intervals(collection, headline_of(collection))


def write_comparison(collection: Collection, path: Path, charts: Sequence[Figure]) -> None:
    """Write the page to `path`, in full or not at all; `charts` are those of `draw_comparison`."""
    write_atomically(path, render_comparison(collection, charts).encode())


def render_comparison(collection: Collection, charts: Sequence[Figure]) -> str:
    """The page as HTML; the same text for the same results."""
    changed = changes(collection)
    return render(
        "comparison.html.jinja",
        list(charts),
        title=collection.manifest["title"],
        version=collection.manifest["version"],
        folders=list(dict.fromkeys(source.results.folder.name for source in collection.sources)),
        failed=len(collection.failed),
        explanation=method(collection).replace(" %", "\u00a0%"),
        changed={"columns": list(changed), "rows": list(changed.itertuples(name=None))},
        tables=tables(collection),
        most=ROWS,
        definitions=[METRICS[name] for name in headline_of(collection)],
        **_said(collection, charts),
    )


def _said(collection: Collection, charts: Sequence[Figure]) -> dict[str, Any]:
    """What came out in words, and the sections of charts."""
    if len(collection.manifest["points"]) > 1:
        return outcome(collection, charts)
    names, baseline = variants_of(collection), baseline_of(collection)
    told = [name for name in names if name != baseline] or names
    said = [
        (name, ":", sentence.removeprefix(f"{name}:").replace(" %", "\u00a0%"))
        for name, sentence in zip(told, sentences(collection), strict=True)
    ]
    return {"sentences": said, "sections": [{**_INTERVALS, "figures": charts}] if charts else []}
