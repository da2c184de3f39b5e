"""Results side by side, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.best import Candidate, Ranking, best_for_each
from analysis.charts import save_figures
from analysis.collection import Collection, changes, collect
from analysis.comparison import compare_table, headline_of
from analysis.exports import check_export, export_comparison
from analysis.notebook import notebook_html
from sim.base.errors import InputError
from sim.base.installed import need_extra
from sim.experiments.results import Results
from sim.scenario.expressions import Limit

Folder = str | Path | Results
"""Results: their folder, or what `run` or `load_results` returned."""


@dataclass(frozen=True)
class ComparedResults:
    """Several results, or the variants of one, side by side; a notebook shows its tables, findings and a chart.

    `collection` has the runs of all as one table (`runs`), with the baseline and the metrics in its manifest.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> sim.compare("results/example").collection.manifest["report"]["baseline"]
        'ring'
    """

    collection: Collection = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """A row per metric, point and variant: mean, 95 % confidence interval, difference to the baseline (%), effect, p, verdict.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.compare("results/example", metrics=["publications"]).table["verdict"].tolist()
            ['', '']
        """
        return compare_table(self.collection, headline_of(self.collection))

    @property
    def changes(self) -> pd.DataFrame:
        """The keys in which folders and variants differ: a row per key, a column per folder and variant.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.compare("results/example").changes.loc["network.geometry.kind"].tolist()
            ['chord', 'star']
        """
        return changes(self.collection)

    def export(self, path: str | Path) -> None:
        """Write the table as .csv, .parquet or .tex, by the path's ending. Raises ResultsError for any other.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.compare("results/example").export("compared.csv")
        """
        export_comparison(self.collection, Path(path))

    def page(self, path: str | Path) -> None:
        """Write a page of HTML with tables and charts, which works offline.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.compare("results/example", metrics=["publications"]).page("compared.html")
        """
        need_extra("report", "a page")
        from analysis.comparison_page import draw_comparison, write_comparison

        write_comparison(self.collection, Path(path), draw_comparison(self.collection))

    def figures(self, folder: str | Path, *, paper: bool = False) -> list[Path]:
        """Write every chart as PNG, SVG and PDF to a folder, for a `paper` in black and white; returns the paths.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> paths = sim.compare("results/example", metrics=["publications"]).figures("figures", paper=True)
            >>> sorted({path.suffix for path in paths})
            ['.pdf', '.png', '.svg']
        """
        need_extra("report", "a chart")
        from analysis.comparison_page import draw_comparison

        return save_figures(draw_comparison(self.collection), Path(folder), paper=paper)

    def _repr_html_(self) -> str:
        return notebook_html(self.collection)


def compare(
    results: Folder | Sequence[Folder],
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    vary: str | None = None,
    exports: Sequence[str | Path] = (),
) -> ComparedResults:
    """Compare results: means, tested differences to a baseline, and the keys in which they differ.

    Runs of the same seed, replication and workload are paired; others are compared by Welch's test.

    Args:
        results: one or several folders of results, or results.
        metrics: the metrics to compare; those of the scenarios' reports by default.
        baseline: the variant that the others are compared with; that of the first results by default.
        vary: a key in which the folders differ: each becomes a point along it.
        exports: also write the comparison to these files, .csv, .parquet or .tex.

    Returns:
        The comparison, with its `table`.

    Raises:
        ResultsError: where there are no finished results, or a name does not exist.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> compared = sim.compare("results/example", metrics=["notification_delay"], baseline="star")
        >>> compared.table["variant"].tolist()
        ['ring', 'star']
    """
    paths = [Path(path) for path in exports]
    check_exports(paths)
    compared = ComparedResults(collect(_folders(results), metrics, baseline, vary))
    for path in paths:
        compared.export(path)
    return compared


def check_exports(paths: Sequence[str | Path]) -> None:
    """Raise ResultsError where a comparison cannot be written to one of these files, before anything takes long.

    Examples:
        >>> sim.check_exports(["comparison.csv"])
    """
    for path in paths:
        check_export(Path(path))


@dataclass(frozen=True)
class RankedResults:
    """Points and variants of results, ranked: a ranking for each value of the keys held fixed, or a single one.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> len(sim.best("results/example", minimise="notification_delay").rankings)
        1
    """

    collection: Collection = field(repr=False)
    rankings: Sequence[Ranking] = field(repr=False)

    @property
    def best(self) -> Candidate | None:
        """The first of the first ranking: its `point`, `variant` and `value`; None where none meets the limits.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.best("results/example", minimise="notification_delay").best.variant
            'star'
        """
        return next(iter(self.rankings[0].candidates), None)

    @property
    def table(self) -> pd.DataFrame:
        """A row per candidate, best first: the keys held fixed, point, swept keys, variant, and the mean with its interval.

        Examples:
            >>> _ = sim.run(sim.example(), "results/example")
            >>> sim.best("results/example", maximise="publications").table["rank"].tolist()
            [1, 2]
        """
        points = self.collection.manifest["points"]
        rows = [
            {"rank": rank, "point": one.point, **points[one.point], "variant": one.variant, **one.value.as_json()}
            for ranking in self.rankings
            for rank, one in enumerate(ranking.candidates, 1)
        ]
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def best(
    results: Folder | Sequence[Folder],
    minimise: str | None = None,
    maximise: str | None = None,
    subject_to: Sequence[str] = (),
    for_each: Sequence[str] = (),
) -> RankedResults:
    """Rank the points and variants of results by the mean of one metric, under limits on others.

    Args:
        results: one or several folders of results, or results.
        minimise: rank by this metric, lowest mean first.
        maximise: rank by this metric, highest mean first.
        subject_to: limits that means must meet, such as "load_stddev < 0.5".
        for_each: swept keys to hold fixed: candidates are ranked separately for each of their values.

    Returns:
        The rankings; `best` is the first candidate.

    Raises:
        InputError: where there are no results, not exactly one metric is given, or a name does not exist.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> sim.best("results/example", minimise="notification_delay").best.variant
        'star'
    """
    metric = minimise or maximise
    if metric is None or (minimise and maximise):
        raise InputError("give one of --minimise METRIC and --maximise METRIC")
    limits = [Limit.parse(text) for text in subject_to]
    collection = collect(_folders(results), list(dict.fromkeys([metric, *(limit.metric for limit in limits)])))
    return RankedResults(collection, best_for_each(collection, for_each, metric, maximise is not None, limits))


def _folders(results: Folder | Sequence[Folder]) -> list[Path]:
    several = [results] if isinstance(results, str | Path | Results) else results
    return [one.folder if isinstance(one, Results) else Path(one) for one in several]
