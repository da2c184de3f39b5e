"""A comparison as a file: all digits for programs, and LaTeX that a strict parser accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from fake_results import grid, write_results, write_sweep

from analysis.collection import collect
from analysis.comparison import compare_table, headline_of
from analysis.exports import export_comparison
from sim.base.errors import ResultsError

RULES = ("toprule", "midrule", "addlinespace", "bottomrule", "centering")


def test_csv_and_parquet_have_every_column_with_all_digits(tmp_path: Path) -> None:
    points = grid(network__brokers=[10, 20], workload__horizon=[86400.0, 0.1])
    results = collect([write_sweep(tmp_path / "r", points, variants=("static", "similarity"), replications=3)])
    expected = compare_table(results, headline_of(results))
    for name in ("c.csv", "c.parquet"):
        export_comparison(results, tmp_path / "new" / name)
    read = pd.read_csv(tmp_path / "new" / "c.csv", float_precision="round_trip", keep_default_na=False, na_values=[""])
    texts = ["test", "verdict"]
    pd.testing.assert_frame_equal(read.fillna(dict.fromkeys(texts, "")), expected, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "new" / "c.parquet"), expected, check_exact=True)
    assert {"point", "network.brokers", "effect", "p", "p_raw"} <= {*expected}


def test_latex_is_taken_by_a_strict_reader_and_says_what_the_terminal_says(tmp_path: Path) -> None:
    evil = ("a_b & 50 % $x$ #1 {~^} <\\>", '[c] µ – | "', "*d--e")
    results = collect(
        [write_results(tmp_path / "r", variants=evil, replications=4)], ["notification_delay", "handovers"]
    )
    export_comparison(results, tmp_path / "c.tex")
    delay, handovers = read_latex((tmp_path / "c.tex").read_text())
    assert delay["caption"].startswith(
        "Notification delay (ms). Means of 4 replications with 95 % confidence intervals; differences to a_b & 50"
    )
    assert [row[0] for row in delay["rows"]] == ["variant", *evil]
    head, first, second, _ = delay["rows"]
    assert head[1:4] == ["n", "mean", "95 % CI"]
    assert first[4:] == [""] * 5
    assert re.fullmatch(r"[+−][\d.]+ % \[[+−][\d.]+, [+−][\d.]+\]", second[4])
    assert second[8] in {"better", "worse"}
    assert handovers["label"] == "tab:handovers"
    assert handovers["caption"].startswith("Handovers. ")


def test_other_endings_are_refused(tmp_path: Path) -> None:
    results = collect([write_results(tmp_path / "r", replications=2)])
    with pytest.raises(ResultsError, match=r"c\.xlsx: a comparison is written as \.csv, \.parquet, \.tex"):
        export_comparison(results, tmp_path / "c.xlsx")


def read_latex(text: str) -> list[dict]:
    """The tables of a document's body; fails at what pdflatex would refuse or print as something else."""
    tables, table, open_, left = [], {}, [], ""
    for line in text.splitlines():
        if line.startswith("%") or not line:
            continue
        if match := re.fullmatch(r"\\(begin|end){(\w+)}(?:{([lr]+)})?", line):
            kind, name, columns = match.groups()
            if kind == "begin":
                open_.append(name)
                left = columns or left
                table = {"rows": []} if name == "table" else table
            else:
                assert open_.pop() == name
                if name == "table":
                    tables.append(table)
        elif match := re.fullmatch(r"\\(caption|label){(.*)}", line):
            table[match[1]] = plain(match[2]) if match[1] == "caption" else match[2]
            assert match[1] == "caption" or re.fullmatch(r"[a-z:-]+", match[2])
        elif line.endswith(r" \\"):
            assert open_ == ["table", "tabular"]
            assert line[0] not in "[*"
            cells = re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
            assert len(cells) == len(left)
            table["rows"].append([plain(cell.strip()) for cell in cells])
        else:
            assert line.removeprefix("\\") in RULES
    assert not open_
    return tables


def plain(text: str) -> str:
    """What a text prints; all characters that are special in LaTeX must be escaped, and all commands known."""
    signs = {
        "textless": "<", "textgreater": ">", "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^",
        "textbar": "|", "textendash": "–", "textmu": "µ", "textdegree": "°", "ldots": "…", "textperiodcentered": "·",
    }  # fmt: skip
    found, rest = "", text.removeprefix("{}").replace("$-$", "−").replace("''", '"')
    assert "--" not in rest
    rest = rest.replace("-{}-", "--")
    while rest:
        if match := re.match(r"\\([&%$#_{}])", rest):
            found += match[1]
        elif match := re.match(r"\\([a-z]+){}", rest):
            found += signs[match[1]]
        else:
            match = re.match(r"[^\\&%$#_{}~^<>|]", rest)
            assert match, f"not escaped: {rest!r}"
            found += match[0]
        rest = rest[match.end() :]
    return found
