"""The outcome of a paper as files, and a later one compared with what is shipped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from fake_reproduction import SAID, reproduction, table

from analysis.formatting import describe
from sim import plugins
from sim.base.errors import InputError
from sim.papers.kept import SECTION_TABLES, keep_section, larger_sections
from sim.papers.shipped import (
    CHARTS,
    CLAIMS,
    SHIPPED,
    TABLES,
    TEXT,
    claims_table,
    export_reproduction,
    shipped_claims,
    unlike_verdicts,
)

COLUMNS = [
    "claim",
    "section",
    "reading",
    "paper",
    "ours",
    "low",
    "high",
    "verdict",
    "counted",
    "bound",
    "reason",
    "scale",
    "version",
]
LARGEST = 100_000
"""Bytes of a shipped chart."""


def test_an_export_has_the_numbers_and_verdicts_of_the_page(tmp_path: Path) -> None:
    made = reproduction()
    written = export_reproduction(made, tmp_path)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in written) == [
        TEXT,
        *(f"{CHARTS}/{name}.svg" for name in ("main-average-degree-0", "main-average-degree-1")),
        *(f"{CHARTS}/{name}.svg" for name in ("main-edges-0", "main-edges-against-old-0")),
        CLAIMS,
        f"{TABLES}/main-0.csv",
    ]
    claims = pd.read_csv(tmp_path / CLAIMS, keep_default_na=False)
    assert list(claims) == COLUMNS
    verdicts = [(one.reading.name, one.verdict, one.why) for judged in made.claims for one in judged.readings]
    assert list(claims[["reading", "verdict", "reason"]].itertuples(index=False, name=None)) == verdicts
    assert claims["counted"].tolist() == [True] * 5 + [False]
    assert claims["section"].tolist() == ["1, fig. 1"] * 4 + ["1, fig. 2", "1, fig. 1"]
    first = claims.iloc[0]
    number = made.claims[0].literal.number
    assert (float(first["ours"]), float(first["low"])) == pytest.approx((number.mean, number.low), rel=1e-5)
    assert set(claims["scale"]) == {1.0}
    assert set(claims["version"]) == {"0.1.0"}
    long = pd.read_csv(tmp_path / TABLES / "main-0.csv")
    runs = table()
    edges = runs.groupby(["variant", "replication"])["edges"].mean().groupby("variant").mean()
    found = long[long["column"].str.startswith("edges")].set_index("row")["mean"]
    assert found.to_dict() == pytest.approx(runs.groupby("variant")["edges"].mean().to_dict(), rel=1e-5)
    assert len(edges) == 2


def test_the_text_names_sentences_and_readings_and_shows_the_charts(tmp_path: Path) -> None:
    made = reproduction(scale=0.5)
    paths = export_reproduction(made, tmp_path)
    text = (tmp_path / TEXT).read_text()
    assert (
        "1, fig. 1 | twice as many. “There are twice as many.” | 2 | strict, the most literal “2: Nodes are nodes.” |"
        in text
    )
    assert "(ours, not counted)" in text
    ratio = made.paper.lessons[0].numbers[0].interval(made.tables["main"])
    assert f"## In short\n\n- The old one has {' '.join(describe(ratio))} as many links.\n\n## What" in text
    assert f"## The figure\n\n> {SAID}\n\nWhat it shows. To play with: `scenarios/small.toml`.\n" in text
    assert "By the most literal reading: of 3 claims" in text
    assert "quick look (--scale 0.5)" in text
    assert text.endswith("```sh\n./brokersim reproduce small\n```\n\nbrokersim 0.1.0, scale 0.5.\n")
    shown = re.findall(r"\]\((.*?\.svg)\)", text)
    assert [tmp_path / name for name in shown] == [path for path in paths if path.suffix == ".svg"]
    assert all((tmp_path / name).read_text().startswith("<svg") for name in shown)
    for line in text.splitlines():
        assert line.count("|") in (0, *range(4, 9)), line


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    one, other = (
        {path.name: path.read_bytes() for path in export_reproduction(reproduction(), tmp_path / n)} for n in "ab"
    )
    assert one == other


def test_figures_of_two_scales_each_say_which_is_theirs(tmp_path: Path) -> None:
    made = reproduction()
    keep_section(made.sections["main"], tmp_path / SECTION_TABLES / "main.parquet")
    larger = larger_sections(tmp_path, 0.1)
    pd.testing.assert_frame_equal(larger["main"].runs, table())
    small = replace(larger["main"], runs=table(nodes=(7,)).assign(point="there"), scale=0.1, version="0.2.0")
    mixed = replace(made, sections={**larger, "more": small}, scale=0.1)
    claims = claims_table(mixed).set_index("claim")
    assert claims["scale"].to_dict() == {"twice as many": 1, "fewer links": 1, "seven": 0.1, "two": 1}
    assert claims.loc["seven", "version"] == "0.2.0"
    export_reproduction(mixed, tmp_path)
    text = (tmp_path / TEXT).read_text()
    assert "Each claim says at which scale its runs were made. more: these are a quick look (--scale 0.1)" in text
    assert text.endswith("brokersim 0.1.0, scale 1.\nbrokersim 0.2.0, scale 0.1.\n")
    for claim, scale in claims["scale"].items():
        assert all(f", scale {scale:g} |" in line for line in text.splitlines() if f"| {claim}. “" in line)
    assert "scale 1, 0.1" not in text
    with pytest.raises(InputError, match="has no figure of scale 1 or larger, in a folder 'tables'"):
        larger_sections(tmp_path / "x", 1.0)


def test_a_check_finds_what_differs_and_whether_that_is_known() -> None:
    made = reproduction()
    shipped = claims_table(made).astype(str)
    assert unlike_verdicts(made, shipped) == []
    changed = shipped.copy()
    changed.loc[0, "verdict"] = "does not"
    changed = changed.drop(index=4)
    known = replace(made, paper=replace(made.paper, differs={"seven": "it takes more nodes"}))
    assert [(d.claim, d.reading, d.shipped, d.found, d.expected) for d in unlike_verdicts(known, changed)] == [
        ("twice as many", "strict", "does not", "reproduces", ""),
        ("seven", "", "absent", "not run", "it takes more nodes"),
    ]
    undecided = shipped.replace({"verdict": {"reproduces": "in part"}})
    found = unlike_verdicts(made, undecided)
    assert {(one.shipped, one.found) for one in found} == {("in part", "reproduces")}
    with patch("sim.papers.shipped.claims_table", lambda _: undecided):
        found += unlike_verdicts(made, shipped)
    assert {(one.shipped, one.found) for one in found} == {("in part", "reproduces"), ("reproduces", "in part")}
    assert all("more replications are needed" in one.expected for one in found)


@pytest.mark.parametrize(
    "name", [name for name in ("content", "dynatops", "ods", "overlays") if (SHIPPED / name).is_dir()]
)
def test_what_is_shipped_is_of_the_claims_that_there_are(name: str) -> None:
    paper = plugins.load_entry("paper", name)
    shipped = shipped_claims(name)
    assert list(shipped) == COLUMNS
    claims = [(claim.statement, reading.name) for claim in paper.claims for reading in claim.readings]
    assert list(shipped[["claim", "reading"]].itertuples(index=False, name=None)) == claims
    assert set(paper.differs) <= set(shipped["claim"])
    text = (SHIPPED / name / TEXT).read_text()
    for chart in re.findall(r"\]\((.*?\.svg)\)", text):
        assert (SHIPPED / name / chart).stat().st_size <= LARGEST, chart
    assert {path.parent.name for path in (SHIPPED / name).rglob("*.*")} <= {name, TABLES, CHARTS}
