"""`brokersim compare` as typed: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from fake_results import grid, write_results, write_sweep
from report_numbers import body, rows_of

Brokersim = Callable[..., tuple[int, str, str]]
TWENTY = {"network": {"brokers": 20, "geometry": {"kind": "chord", "bits": 32}}}


def test_two_folders_side_by_side(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "old", variants=("static", "similarity"))
    write_results(tmp_path / "new", variants=("static", "similarity"), slower=0.9, version="0.2.0", changed=TWENTY)
    status, out, err = brokersim("compare", "old", "new", "--metric", "notification_delay")
    assert (status, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == OLD_AND_NEW.splitlines()


def test_the_hottest_of_each_variant_where_they_are_asked_for(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "old", variants=("static",))
    write_results(tmp_path / "new", variants=("similarity",), slower=0.9)
    asked = ("compare", "old", "new", "--metric", "notification_delay")
    status, out, err = brokersim(*asked, "--hottest")
    assert (status, err) == (0, "")
    for what in ("topics", "brokers", "links"):
        assert f"hottest {what}: old: static" in out
        assert f"hottest {what}: new: similarity" in out
    assert out.count("│ b6 ") == 4  # a broker, and a link that begins there
    assert "hottest" not in brokersim(*asked)[1]


def test_a_sweep_has_a_row_for_each_point_and_variant(brokersim: Brokersim, tmp_path: Path) -> None:
    points = grid(network__brokers=[10, 100], horizon=[3600.0, 86400.0])
    write_sweep(tmp_path / "r", points, variants=("static", "similarity", "location"), replications=3)
    status, out, err = brokersim("compare", "r", "--metric", "notification_delay", "--baseline", "location")
    assert (status, err) == (0, "")
    assert out.startswith(SWEPT)
    assert out.count("│ location   │ 3 │") == 4
    said = " ".join(out.split())
    assert (
        "similarity against location: notification delay +136 % [+133, +140], significant at 4 of 4 points (worse)"
        in said
    )
    assert "Note: 3 replications are few: " in said
    assert (
        "significant means p ≤ 0.05 after Holm's correction for 2 comparisons at each point (by chance alone up to"
        in said
    )


def test_page_exports_and_charts_are_written(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "old", variants=("static", "similarity"))
    write_results(tmp_path / "new", variants=("static",), slower=0.9, version="0.2.0")
    options = (
        "--out",
        "p/page.html",
        "--export",
        "c.csv",
        "--export",
        "c.tex",
        "--export",
        "c.parquet",
        "--figures",
        "f",
    )
    status, out, err = brokersim("compare", "old", "new", "--metric", "notification_delay", *options)
    assert (status, err) == (0, "")
    page = (tmp_path / "p" / "page.html").read_text()
    changed, delay = rows_of(body(page)), rows_of(body(page), 1)
    assert changed["version"] == ["0.1.0", "0.1.0", "0.2.0"]
    assert delay["new: static"][3] == "−10.00 %"
    assert all(cell in out for cell in delay["old: similarity"])
    assert (
        "<strong>new: static:</strong> better than old: static in every replication in notification delay −10.00"
        in page
    )
    assert "after Holm&#39;s correction for 2 comparisons" in page
    assert {path.name for path in (tmp_path / "f").iterdir()} == {
        f"interval-notification_delay.{x}" for x in ("svg", "png", "pdf")
    }
    assert len(pd.read_csv(tmp_path / "c.csv")) == len(pd.read_parquet(tmp_path / "c.parquet")) == 3
    assert r"\toprule" in (tmp_path / "c.tex").read_text()


def test_the_page_of_a_sweep_has_its_charts(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "twelve", variants=("a", "b"), replications=2)
    write_results(tmp_path / "twenty", variants=("a", "b"), replications=2, slower=2, changed=TWENTY)
    status, _, _ = brokersim("compare", "twelve", "twenty", "--vary", "network.brokers", "--out", "page.html")
    assert status == 0
    page = (tmp_path / "page.html").read_text()
    assert 'data-chart="chart-line-notification_delay-network-brokers"' in page
    assert list(rows_of(body(page), 1)) == ["network.brokers", "12", "20"]


def test_json_has_the_tests_and_what_changed(brokersim: Brokersim, tmp_path: Path) -> None:
    write_results(tmp_path / "one", variants=("a",))
    write_results(tmp_path / "two", variants=("a",), seed=8)
    status, out, _ = brokersim("compare", "one", "two", "--json")
    told = json.loads(out)
    assert status == 0
    assert (told["results"], told["baseline"], told["variants"]) == (["one", "two"], "one", ["one", "two"])
    assert len(told["headlines"]["sentences"]) == 1
    assert told["headlines"]["notes"] == []
    assert told["changes"] == {"seed": {"one": "7", "two": "8"}}
    first, second = told["metrics"][:2]
    assert (first["test"], first["p"], second["test"]) == ("", None, "welch")
    assert 0 < second["p"] == second["p_raw"] < 1


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with results that are whole, unfinished, and of another version."""
    folder = tmp_path_factory.mktemp("damaged")
    for name, change in {"r": {}, "unfinished": {"complete": False}, "version": {"format_version": 9}}.items():
        path = write_results(folder / name, variants=("static",), replications=2) / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: not a folder of results (it has no manifest.json of `brokersim run`)"),
        (["unfinished"], "unfinished: the runs were not finished; the same `brokersim run` completes them"),
        (["r", "version"], "version: results of format version 9, this version reads "),
        (
            ["r", "--metric", "notification_dlay"],
            "unknown metric 'notification_dlay', did you mean 'notification_delay'?",
        ),
        (["r", "--baseline", "statc"], "baseline: unknown variant 'statc', did you mean 'static'?"),
        (["r", "--export", "c.xls"], "c.xls: a comparison is written as .csv, .parquet, .tex"),
        (["r", "r"], "r: given twice; name every folder once"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(
    brokersim: Brokersim, damaged: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(damaged)
    status, out, err = brokersim("compare", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"brokersim: error: {said}")
    assert len(err.splitlines()) == 1


def test_importing_the_commands_loads_nothing_heavy() -> None:
    heavy = "{'pandas', 'altair', 'scipy', 'jinja2', 'numpy', 'rich.table'}"
    code = (
        f"import sim.cli.compare, sim.cli.best, sys; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OLD_AND_NEW = """\
Three ways to choose a broker

notification delay (ms)
┏━━━━━━━━━━━━━━━━━┳━━━┳━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┓
┃                 ┃   ┃      ┃          ┃    difference to ┃        ┃         ┃         ┃         ┃
┃ variant         ┃ n ┃ mean ┃  95 % CI ┃      old: static ┃ effect ┃       p ┃   raw p ┃ verdict ┃
┡━━━━━━━━━━━━━━━━━╇━━━╇━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━┩
│ old: static     │ 5 │   39 │ [33, 45] │                  │        │         │         │         │
│ old: similarity │ 5 │   68 │ [57, 80] │ +76 % [+73, +78] │ +27.91 │ < 0.001 │ < 0.001 │ ✗ worse │
│ new: static     │ 5 │   35 │ [29, 41] │         −10.00 % │        │         │         │         │
│ new: similarity │ 5 │   62 │ [52, 72] │ +58 % [+56, +60] │ +23.81 │ < 0.001 │ < 0.001 │ ✗ worse │
└─────────────────┴───┴──────┴──────────┴──────────────────┴────────┴─────────┴─────────┴─────────┘
Means of 5 replications with 95 % confidence intervals; differences to old: static in %, paired; significant means p ≤ 0.05 after Holm's
correction for 3 comparisons. p is after Holm's correction, raw p before it.
old: similarity: worse than old: static in notification delay +76 % [+73, +78].
new: static: better than old: static in every replication in notification delay −10.00 %.
new: similarity: worse than old: static in notification delay +58 % [+56, +60].

What changed
┏━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━┓
┃ variant         ┃ network.brokers ┃ selection.kind ┃ version ┃
┡━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━┩
│ old: static     │ 12              │ static         │ 0.1.0   │
│ old: similarity │ 12              │ similarity     │ 0.1.0   │
│ new: static     │ 20              │ static         │ 0.2.0   │
│ new: similarity │ 20              │ similarity     │ 0.2.0   │
└─────────────────┴─────────────────┴────────────────┴─────────┘
"""
SWEPT = """\
Three ways to choose a broker

notification delay (ms)
┏━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━┳━━━┳━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┓
┃ network. ┃         ┃            ┃   ┃      ┃            ┃       difference to ┃        ┃         ┃         ┃         ┃
┃ brokers  ┃ horizon ┃ variant    ┃ n ┃ mean ┃    95 % CI ┃            location ┃ effect ┃       p ┃   raw p ┃ verdict ┃
┡━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━╇━━━╇━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━┩
│ 10       │ 1 h     │ static     │ 3 │   90 │  [50, 130] │    +34 % [+32, +36] │ +20.55 │ < 0.001 │ < 0.001 │ ✗ worse │
│ 10       │ 1 h     │ similarity │ 3 │  160 │  [90, 230] │ +136 % [+133, +140] │ +60.18 │ < 0.001 │ < 0.001 │ ✗ worse │
│ 10       │ 1 h     │ location   │ 3 │   70 │  [40, 100] │                     │        │         │         │         │
├──────────┼─────────┼────────────┼───┼──────┼────────────┼─────────────────────┼────────┼─────────┼─────────┼─────────┤
"""
