"""Pages: the report of results, the reproduction of a paper, and the demo."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sim.api.console import Say, silent
from sim.api.interruption import keeping
from sim.api.results import ExperimentResults
from sim.base.installed import need_extra
from sim.base.naming import Raw
from sim.experiments.options import RunOptions, SearchKeywords
from sim.experiments.results import Results, load_runs

if TYPE_CHECKING:
    import pandas as pd

    from sim.papers.page import Reproduction

_TRADE_OFF = "notification_delay,notification_overhead"


@dataclass(frozen=True)
class ReproducedPaper:
    """A paper's figures, reproduced: the page that shows them, and the claims, tables and failed runs in `reproduction`.

    Examples:
        >>> paper = sim.reproduce("overlays", figure="2", scale=0.01)
        >>> paper.page.is_file()
        True
    """

    reproduction: Reproduction = field(repr=False)
    page: Path

    @property
    def table(self) -> pd.DataFrame:
        """A row per claim and reading, the best first, indexed by the claim's number: where, claim, reading, paper, ours, verdict.

        Examples:
            >>> paper = sim.reproduce("overlays", figure="2", scale=0.01)
            >>> len(paper.table) > 0
            True
        """
        import pandas as pd

        from analysis.formatting import describe

        rows, numbers = [], []
        for number, judged in enumerate(self.reproduction.claims):
            claim = judged.claim
            for one in judged.shown:
                mean, interval = describe(one.number, signed=claim.target.signed)
                ours = f"{mean}{one.reading.quantity.unit if one.number.n else ''} {interval}".rstrip()
                where = claim.place + (" (ours)" if claim.ours else "")
                rows.append((where, claim.statement, one.reading.name, claim.target.text, ours, one.verdict))
                numbers.append(number)
        return pd.DataFrame(rows, numbers, ["where", "claim", "reading", "paper", "ours", "verdict"])

    @property
    def sentences(self) -> list[str]:
        """How many claims have which verdict.

        Examples:
            >>> paper = sim.reproduce("overlays", figure="2", scale=0.01)
            >>> len(paper.sentences) > 0
            True
        """
        from sim.papers.judging import claims_summary

        return list(claims_summary(self.reproduction.claims))

    @property
    def failed(self) -> list[Raw]:
        """The runs that failed.

        Examples:
            >>> paper = sim.reproduce("overlays", figure="2", scale=0.01)
            >>> paper.failed
            []
        """
        return [failure for section in self.reproduction.sections.values() for failure in section.failed]

    def export(self, folder: str | Path) -> list[Path]:
        """Write claims.csv, the page as README.md, its tables as CSV and its charts as SVG to a folder; returns the paths.

        Examples:
            >>> paper = sim.reproduce("overlays", figure="2", scale=0.01)
            >>> sorted({path.suffix for path in paper.export("exported")})
            ['.csv', '.md', '.svg']
        """
        from sim.papers.shipped import export_reproduction

        return export_reproduction(self.reproduction, Path(folder))

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def report(
    results: str | Path | Results,
    out: str | Path | None = None,
    figures: str | Path | None = None,
    point: int | None = None,
    pareto: str = _TRADE_OFF,
    *,
    paper: bool = False,
    progress: Say | None = None,
) -> Path:
    """Write a report: one HTML file with tables and charts that works offline.

    Args:
        results: a folder of results, or results.
        out: the page to write, by default report.html in the folder of results.
        figures: also write every chart as PNG, SVG and PDF to this folder.
        point: the point of a sweep to show in detail; the first by default.
        pareto: two metrics, separated by a comma, whose trade-off a sweep's report shows.
        paper: make those pictures for a paper, 3.5 inches wide, in serif type, in black and white.
        progress: called with lines about the progress.

    Returns:
        The path of the page.

    Raises:
        ResultsError: where there are no results, or the page cannot be written.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> sim.report("results/example").name
        'report.html'
    """
    need_extra("report", "a report")
    from analysis.charts import save_figures
    from analysis.report import draw, write_report
    from analysis.sweeps.pareto import trade_off

    say = progress or silent
    folder = results.folder if isinstance(results, Results) else Path(results)
    page, loaded = Path(out) if out is not None else folder / "report.html", load_runs(folder)
    say(f"Reading {len(loaded.manifest['runs'])} runs of '{loaded.manifest['title']}'")
    charts = draw(loaded, point, trade_off(pareto))
    write_report(loaded, page, charts, point)
    if figures is not None:
        say(f"Drawing {len(charts)} charts into {figures}")
        save_figures(charts, Path(figures), paper=paper)
    return page


def reproduce(
    paper: str,
    figure: str = "",
    out: str | Path | None = None,
    scale: float = 1.0,
    data: str | Path | None = None,
    progress: Say | None = None,
    *,
    larger: str | Path | None = None,
    **options: Unpack[SearchKeywords],
) -> ReproducedPaper:
    """Reproduce a paper's figures: a page with its claims, our results, and verdicts with reasons.

    Runs that are already in the folder are not repeated.

    Args:
        paper: the paper by its name, as `brokersim reproduce --help` lists them.
        figure: a single figure, such as "1a"; all by default.
        out: the folder to write; reproductions/PAPER by default.
        scale: below 1, a quick look: fewer points and replications, fewer users, less time.
        data: the folder of real data that some figures need.
        progress: called with each step.
        larger: the folder of another reproduction, whose figures of this scale or a larger one are taken unchanged.
        **options: how the runs are performed: `jobs`, `engine` and `master`, as in `run`.

    Returns:
        The page, and a `table` of claims with verdicts.

    Raises:
        InputError: where there is no such paper or figure, or the folder holds something else.

    Examples:
        >>> sim.reproduce("overlays", figure="2", scale=0.01).table.columns.tolist()
        ['where', 'claim', 'reading', 'paper', 'ours', 'verdict']
    """
    need_extra("report", "a paper's page")
    from sim.papers import reproduce as study

    folders = [None if folder is None else Path(folder) for folder in (data, larger)]
    request = study.ReproductionRequest(paper, scale, folders[0], figure, folders[1])
    folder = Path(out) if out is not None else Path("reproductions") / paper
    with keeping(folder):
        made = study.reproduce(request, folder, RunOptions.of(options, SearchKeywords), progress or silent)
    return ReproducedPaper(made, folder / request.page)


def demo(out: str | Path = "demo", *, jobs: int = 1, progress: bool = False) -> ExperimentResults:
    """Try it: generate check-ins, prepare them with Spark, compare three policies, write a report. Takes 1 to 3 minutes.

    Args:
        out: the folder to write; runs that it already holds are not repeated.
        jobs: the number of processes.
        progress: print the steps, and show the progress of runs.

    Returns:
        The results; the report is report.html in the folder.

    Raises:
        InputError: where the folder holds something else.

    Examples:
        >>> sim.demo("scenarios")
        Traceback (most recent call last):
        ...
        sim.base.errors.InputError: ...
    """
    from sim.api import progress as bars
    from sim.api.console import speaker

    need_extra("report,spark", "the demo")
    from sim.studies import demo as study

    results = study.demo(
        Path(out), RunOptions(jobs), speaker(not progress), lambda experiment: bars.display(experiment, not progress)
    )
    return ExperimentResults.of(results)
