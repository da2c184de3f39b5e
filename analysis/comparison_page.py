"""The page of a comparison: what differs, a table for each metric, and the charts, in one HTML file that works offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.charts import Figure, colour_of, write_atomically
from analysis.collection import Collection, changes
from analysis.compared import PROBABILITIES, comparison_tables
from analysis.comparison import headline_of, method, variants_of
from analysis.figures import intervals
from analysis.headlines import headlines
from analysis.page import render, section
from analysis.sweeps.figures import sweep_figures
from analysis.sweeps.page import sections
from sim.base.naming import Raw
from sim.metrics import METRICS

_ROWS = 300
"""The most rows of a table."""


def draw_comparison(collection: Collection) -> list[Figure]:
    """The charts of a comparison: over the points of a sweep, or the means at the single point."""
    return sweep_figures(collection) or intervals(collection, headline_of(collection))


def write_comparison(collection: Collection, path: Path, charts: Sequence[Figure]) -> None:
    """Write the page to `path` atomically; `charts` are those of `draw_comparison`."""
    write_atomically(path, render_comparison(collection, charts).encode())


def render_comparison(collection: Collection, charts: Sequence[Figure]) -> str:
    """The page as HTML; the same text for the same results."""
    changed, said, names = changes(collection), headlines(collection), variants_of(collection)
    return render(
        "comparison.html.jinja",
        list(charts),
        picker=[{"name": name, "colour": colour_of(name, names)} for name in names],
        title=collection.manifest["title"],
        version=collection.manifest["version"],
        seals=collection.seals,
        folders=list(dict.fromkeys(source.results.folder.name for source in collection.sources)),
        failed=len(collection.failed),
        notes=said.notes,
        sentences=said.sentences,
        explanation=method(collection).replace(" %", "\u00a0%"),
        changed={"columns": list(changed), "rows": list(changed.itertuples(name=None))},
        probabilities=PROBABILITIES,
        tables=comparison_tables(collection),
        most=_ROWS,
        definitions=[METRICS[name] for name in headline_of(collection)],
        sections=_sections(collection, charts),
    )


def _sections(collection: Collection, charts: Sequence[Figure]) -> list[Raw]:
    """The sections of charts."""
    if len(collection.manifest["points"]) > 1:
        return sections(collection, charts)
    return [section("intervals", charts)] if charts else []
