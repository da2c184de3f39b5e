"""A paper reproduced at a small scale: every section is run, the page shows it, and a second time nothing is run again."""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import CHROMIUM, show
from report_numbers import Page, body

from analysis.formatting import describe
from sim.base.errors import InputError
from sim.experiments import perform as performing
from sim.experiments.options import RunOptions
from sim.papers.page import Reproduction
from sim.papers.reproduce import PAGE, ReproductionRequest, reproduce

SCALE = 0.06
Brokersim = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dozen listeners of a few artists; nobody trusts anybody."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "music").mkdir()
    with gzip.open(folder / "music" / "user_artists.dat.gz", "wt") as file:
        file.write("userID\tartistID\tweight\r\n")
        file.writelines(f"{100 - user}\t{7 * (user * k % 11)}\t5\r\n" for user in range(24) for k in range(5))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, data: Path) -> tuple[Reproduction, Path]:
    folder = tmp_path_factory.mktemp("reproduction")
    return reproduce(ReproductionRequest("overlays", SCALE, data), folder), folder


def test_every_section_is_run_at_the_scale(made: tuple[Reproduction, Path]) -> None:
    sections = made[0].sections
    assert {key: (len(section.points), section.replications) for key, section in sections.items()} == {
        "fig-1a": (4, 2),
        "fig-1b": (4, 2),
        "fig-2": (4, 2),
        "examples": (8, 1),
        "k-sweep": (2, 2),
        "real": (1, 1),
        "drift": (2, 2),
        "rendezvous": (1, 2),
    }
    for key, section in sections.items():
        variants = section.runs["variant"].nunique()
        assert len(section.runs) == len(section.points) * section.replications * variants, key
        assert not section.failed
        assert section.runs["edges"].notna().all()


def test_verdicts_follow_from_the_runs(made: tuple[Reproduction, Path]) -> None:
    reproduction, folder = made
    page = (folder / PAGE).read_text()
    rows = [" ".join(" ".join(row).split()) for row in Page(body(page)).tables[0][1:]]
    for judged in reproduction.claims:
        for one in judged.readings:
            mean, interval = describe(one.number, signed=judged.claim.target.signed)
            shown = f"{mean}{one.reading.quantity.unit} {interval} {one.verdict} {one.reading.name}"
            assert any(" ".join(shown.split()) in row for row in rows), judged.claim.statement
    counts = {judged.claim.statement: judged.literal.number.mean for judged in reproduction.claims}
    lemma = [counts[f"MinMax-ODA makes n(n − 2)/2 + 1 links on the lemma's example, n = {n}"] for n in (4, 6, 8, 10)]
    assert lemma == [5, 11, 21, 31]
    assert counts["The topic diameter of CD-ODA and both new designs is always"] == 2


def test_the_page_says_what_was_left_out_and_how_it_was_run(made: tuple[Reproduction, Path]) -> None:
    text = html.unescape(re.sub(r"<[^>]+>", " ", body((made[1] / PAGE).read_text())))
    text = " ".join(text.split())
    for said in (
        "quick look (--scale 0.06)",
        "Last.fm (user_artists.dat.gz): 24 nodes,",
        "CiaoDVD was not run:",
        "brokersim reproduce overlays --scale 0.06 --data DIR",
        "scenarios/overlays/rendezvous.toml",
        "By the most literal reading: of 39 claims",
        "By the best reading: of 39 claims",
    ):
        assert said in text
    assert "nan" not in text.lower().split()


def test_trees_relay_and_overlays_do_not(made: tuple[Reproduction, Path]) -> None:
    runs = made[0].sections["rendezvous"].runs.set_index(["variant", "replication"])
    assert (runs.loc["chord", "external_overhead"] > 0).all()
    for variant in ("gm", "low-oda", "minmax-oda", "cd-oda-ii"):
        assert (runs.loc[variant, "external_overhead"] == 0).all()
        assert (runs.loc[variant, "duplicates"] == 0).all()
    assert (runs.loc["low-oda, flooded", "duplicates"] > 0).all()
    assert (runs.loc["cd-oda-ii", "tree_hops"] < runs.loc["chord", "tree_hops"]).all()


def test_a_second_time_nothing_is_run_and_the_command_prints_the_same_verdicts(
    made: tuple[Reproduction, Path], data: Path, brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(*_arguments: object) -> None:
        raise AssertionError("a run that is there was run again")

    monkeypatch.setattr(performing, "simulate", no_more)
    page = (made[1] / PAGE).read_text()
    options = ("--scale", str(SCALE), "--data", str(data), "--jobs", "1")
    status, out, err = brokersim("reproduce", "overlays", "--out", str(made[1]), *options)
    assert (made[1] / PAGE).read_text() == page
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100 + len(str(made[1]))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "Publish-Subscribe Overlay Network Design, reproduced"
    assert lines[2] == "where claim paper ours verdict"
    for line in (
        "fig. 1(a) The topic diameter of CD-ODA and 2 2 reproduces",
        "fig. 4(a) CD-ODA makes 2n − 4 links on 42 42 reproduces",
        "lemma 3.1 MinMax-ODA makes n(n − 2)/2 + 1 25 21 does not",
        f"Page: {made[1] / PAGE}",
    ):
        assert line in lines
    told = err.splitlines()
    assert told[0] == "fig-1a: 4 points, 32 runs of scenarios/overlays/interests.toml"
    assert re.fullmatch(r"210 runs, \d+\.\d s", told[-1])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1280, 480])
def test_every_chart_is_drawn_without_a_network(made: tuple[Reproduction, Path], width: int, tmp_path: Path) -> None:
    page = made[1] / PAGE
    shown = show(page, width, tmp_path)
    assert len(shown.charts) == page.read_text().count('type="application/json"') == 3 * 2 * 3 + 3 + 4
    assert (shown.undrawn, shown.console) == ([], [])
    assert shown.scroll <= shown.inner == width


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("overlay",),
            "unknown paper 'overlay', did you mean 'overlays'? (allowed: content, dynatops, ods, overlays)",
        ),
        (("overlays", "--scale", "0"), "--scale 0: allowed: above 0, up to 1"),
        (("overlays", "--scale", "1.5"), "--scale 1.5: allowed: above 0, up to 1"),
        (
            ("overlays", "--engine", "sprak"),
            "unknown engine 'sprak', did you mean 'spark'? (allowed: auto, in-process, pool, spark)",
        ),
        (
            ("overlays", "--engine", "pool", "--master", "spark://localhost:7077"),
            "master: only the engine 'spark' uses a cluster (found 'pool')",
        ),
        (("overlays", "--data", "nowhere"), "--data nowhere: no such folder"),
        (("overlays", "--data", "broken"), "broken/trusts.txt: line 2: expected two numbers, found '1;2'"),
        (
            ("overlays", "--out", "."),
            ".: contains 'broken', which no reproduction has written; give an empty or new folder",
        ),
    ],
)
def test_one_message_tells_what_is_wrong(
    brokersim: Brokersim, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "trusts.txt").write_text("1,2,1\n1;2\n")
    assert brokersim("reproduce", *arguments) == (2, "", f"brokersim: error: {message}\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["broken"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="is a file"):
        reproduce(ReproductionRequest("overlays"), tmp_path / "thesis.tex")


@pytest.mark.long
def test_the_paper_at_full_scale(shared_data: Path, tmp_path: Path) -> None:
    """The bars: largest ratios 2.33, 1.90, 1.88 within 0.06, mean gains 1.8, 5.9, 17.2 % within 1, 1, 2 points."""
    made = reproduce(ReproductionRequest("overlays", data=shared_data), tmp_path, RunOptions(jobs=2), print)
    found = {
        (judged.claim.section, judged.claim.statement): one.number.mean
        for judged in made.claims
        for one in judged.readings
        if one.reading.name == "coin flips"
    }
    for section, ratio, gain, tolerance in (
        ("fig-1a", 2.33, 1.8, 1),
        ("fig-1b", 1.90, 5.9, 1),
        ("fig-2", 1.88, 17.2, 2),
    ):
        assert found[section, "CD-ODA-II needs at most this many times the links of GM"] == pytest.approx(
            ratio, abs=0.06
        )
        assert found[section, "CD-ODA-II improves on CD-ODA on average by"] == pytest.approx(gain, abs=tolerance)
    assert not any(section.failed for section in made.sections.values())
    assert {"Last.fm", "CiaoDVD"} == set(made.sections["real"].runs["data"])
