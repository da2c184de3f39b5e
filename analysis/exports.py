"""A comparison as a file for other programs: CSV and Parquet with all digits, LaTeX as printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from analysis.charts import write_atomically
from analysis.compared import PROBABILITIES, MetricTable, comparison_tables
from analysis.comparison import compare_table, headline_of, method
from sim.base.errors import ResultsError
from sim.base.escaping import csv_cell, printable
from sim.experiments.results import Results
from sim.files.atomic import whole_file
from sim.files.parquet import write_table

_TEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "−": "$-$",
        "–": r"\textendash{}",
        "µ": r"\textmu{}",
        "°": r"\textdegree{}",
        "·": r"\textperiodcentered{}",
        "…": r"\ldots{}",
        "×": r"$\times$",
    }
)


def export_comparison(results: Results, path: Path) -> None:
    """Write the comparison of the headline metrics atomically, in the format of the path's ending.

    .csv and .parquet have the columns of `compare_table`, with text in .csv escaped by `sim.base.escaping.csv_cell`; .tex has a
    booktabs table for each metric. Raises ResultsError where the path ends with anything else, or cannot be written.
    """
    _writer(path)(results, path)


def check_export(path: Path) -> None:
    """Raise ResultsError where a comparison cannot be written in the format of a path's ending."""
    _writer(path)


def _writer(path: Path) -> Callable[[Results, Path], None]:
    writers = {".csv": _csv, ".parquet": _parquet, ".tex": _latex}
    if path.suffix not in writers:
        raise ResultsError(f"{path}: a comparison is written as {', '.join(writers)}")
    return writers[path.suffix]


def _csv(results: Results, path: Path) -> None:
    table = compare_table(results, headline_of(results)).rename(columns=csv_cell)
    text = table.map(csv_cell).to_csv(index=False, lineterminator="\n")
    write_atomically(path, text.encode())


def _parquet(results: Results, path: Path) -> None:
    table = compare_table(results, headline_of(results))
    mixed = {name: str for name in table if table[name].map(type).nunique() > 1}
    with whole_file(path, ResultsError) as unfinished:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        write_table(unfinished, pa.Table.from_pandas(table.astype(mixed), preserve_index=False))


def _latex(results: Results, path: Path) -> None:
    lines = ["% \\usepackage{booktabs} goes before \\begin{document}"]
    for table in comparison_tables(results):
        said = f"{method(results)} {PROBABILITIES}" if "p" in table.heads else method(results)
        lines += ["", *_table(table, said)]
    write_atomically(path, "\n".join([*lines, ""]).encode())


def _table(table: MetricTable, said: str) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{_tex(f'{table.title[0].upper()}{table.title[1:]}. {said}')}}}"
    yield rf"\label{{tab:{table.metric.replace('_', '-')}}}"
    yield rf"\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.heads) - table.left)}}}"
    yield r"\toprule"
    yield _line(table.heads)
    yield r"\midrule"
    for row in table.rows:
        if row.begins:
            yield r"\addlinespace"
        yield _line(row.cells)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(map(_tex, cells)) + r" \\"
    return "{}" + line if line[0] in "[*" else line  # after the end of a row they would be read as its options


def _tex(text: str) -> str:
    """Text for LaTeX: special characters are escaped, and characters missing from its fonts are left out."""
    plain = " ".join(printable(text).replace("✓", "").replace("✗", "").split())
    return plain.translate(_TEX).replace("--", "-{}-")
