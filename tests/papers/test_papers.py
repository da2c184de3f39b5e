"""Papers as data: the rule of verdicts, numbers over the table of runs, and the page with claims and numbers."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_reproduction import CHARTS, READINGS, paper, reproduction, table
from hypothesis import given
from hypothesis import strategies as st
from report_numbers import Page, body, rows_of
from scipy import stats

from analysis.formatting import describe
from sim import plugins
from sim.base.errors import InputError
from sim.experiments.statistics import Interval, mean_interval
from sim.papers import quantities
from sim.papers.claims import FALLS, RISES, Target, at_most, judge, near
from sim.papers.overlays.page import PAPER
from sim.papers.page import claims_summary, render_page, statements, write_page
from sim.papers.paper import Section
from sim.papers.reproduce import ReproductionRequest, reproduce
from sim.papers.views import charts_of

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = st.floats(-1e6, 1e6)


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 5, varies=True)


@given(NUMBERS, st.floats(0, 1e3), st.tuples(NUMBERS, NUMBERS).map(sorted))
def test_the_verdict_is_how_much_of_the_interval_agrees(value: float, tolerance: float, bounds: list[float]) -> None:
    target, (low, high) = near(value, tolerance), bounds
    grid = np.linspace(low, high, 101)
    agree = (grid >= target.low) & (grid <= target.high)
    verdict = judge(between(low, high), target)
    if verdict == "reproduces":
        assert agree.all()
    elif verdict == "does not":
        assert not agree.any()
    else:
        assert not agree.all()
        assert low <= target.high
        assert high >= target.low


@given(NUMBERS, st.floats(0, 1e3), st.tuples(NUMBERS, NUMBERS).map(sorted), st.floats(0, 1e3))
def test_more_tolerance_never_makes_it_worse(value: float, tolerance: float, bounds: list[float], more: float) -> None:
    order = ["does not", "in part", "reproduces"]
    tight, loose = (judge(between(*bounds), near(value, t)) for t in (tolerance, tolerance + more))
    assert order.index(loose) >= order.index(tight)


@pytest.mark.parametrize(
    ("values", "target", "verdict"),
    [
        ([5.0, 5.0], near(5, 0), "reproduces"),  # no variance: the number is its own interval
        ([5.0], near(5.2, 0.1), "does not"),
        ([], near(5, 1), "not run"),
        ([math.nan], near(5, 1), "not run"),
        ([2.3, 2.4, 2.35], at_most(2.3, 0.1), "in part"),
        ([1.0, 1.1, 1.2], at_most(2.3, 0), "reproduces"),
        ([-1.0, -1.1, -1.2], FALLS, "reproduces"),
        ([-1.0, 1.0, 0.5], FALLS, "in part"),
        ([0.0, 0.0], FALLS, "does not"),  # what stays the same neither falls nor rises
        ([0.0, 0.0], RISES, "does not"),
    ],
)
def test_verdicts(values: list[float], target: Target, verdict: str) -> None:
    assert judge(mean_interval(values), target) == verdict


def test_numbers_are_those_of_the_table() -> None:
    runs = table().query("reading == 'loose'")
    wide = runs.pivot(index="replication", columns=["variant", "nodes"], values="average_degree")
    ratios = pd.DataFrame({n: wide["old", n] / wide["new", n] for n in (10, 20, 40)})
    expected = {
        quantities.largest_ratio("average_degree", "old", "new", "nodes"): ratios[ratios.mean().idxmax()],
        quantities.mean_gain("average_degree", "new", "old", "nodes"): (100 * (1 - 1 / ratios)).mean(axis=1),
        quantities.change("average_degree", "new", "nodes"): 100 * (wide["new", 40] / wide["new", 10] - 1),
        quantities.largest("edges", ("old", "new")): runs.groupby("replication")["edges"].max(),
        quantities.metric_value("average_degree", "new", "20 nodes, loose"): wide["new", 20],
        quantities.gain("average_degree", "new", "old", "nodes", 20): 100 * (1 - 1 / ratios[20]),
        quantities.between_variants("average_degree", "old", "new"): (100 * (ratios - 1)).mean(axis=1),
    }
    for quantity, values in expected.items():
        found = quantity.interval(runs)
        low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values)) if values.std() else (None, None)
        assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high)), quantity.name
    steps = [100 * (wide["new", b] / wide["new", a] - 1).mean() for a, b in ((10, 20), (20, 40))]
    for largest, best in ((True, max), (False, min)):
        found = quantities.extreme_step("average_degree", "new", "nodes", largest).interval(runs)
        assert found.mean == pytest.approx(best(steps))


def test_the_page_says_claims_numbers_and_verdicts() -> None:
    made = reproduction()
    page = body(render_page(made))
    claims = {row[1]: row for row in Page(page).tables[0][1:]}
    ratio = made.paper.claims[0].number(made.tables)
    row = " ".join(claims["twice as many (largest old / new, over nodes)"]).split()
    assert " ".join(row).startswith("fig. 1 twice as many (largest old / new, over nodes) 2 (agrees: 1.7 to 2.3)")
    assert " ".join([*describe(ratio), "reproduces"]) in " ".join(row)
    assert row[-3:] == ["as", "it", "should"]
    assert "does not" in " ".join(claims["fewer links (largest change of new from one number of nodes to the next)"])
    assert "not run" in " ".join(claims["seven (edges of new)"])
    assert claims_summary(made) == [
        f"Read as {reading}: of 3 claims 1 reproduces, 1 does not, 1 was not run." for reading in READINGS
    ]
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for said in ("This was not run.", "Read this.", "tests/a.py::test_b", "brokersim reproduce small", "Student"):
        assert said in text
    assert "quick look" not in text
    assert "quick look (--scale 0.5)" in body(render_page(reproduction(scale=0.5)))


def test_the_pages_tables_are_those_of_the_runs() -> None:
    runs = table()
    links = rows_of(body(render_page(reproduction(runs))), 1)
    for variant in ("old", "new"):
        chosen = runs[runs["variant"] == variant]
        gap = 100 * (chosen["edges"] / chosen["lower_bound"] - 1)
        assert links[variant] == [" ".join(describe(mean_interval(values))) for values in (chosen["edges"], gap)]


def test_charts_stand_side_by_side_on_one_scale() -> None:
    charts = charts_of(paper(), Section("main", "", "", CHARTS), table())
    assert [chart.name for chart in charts] == [
        "main-average-degree-0",
        "main-average-degree-1",
        "main-edges-0",
        "main-edges-against-old-0",
    ]
    scales = [str(chart.spec["layer"][1]["encoding"]["y"]["scale"]) for chart in charts]
    assert scales[0] == scales[1]
    (points,) = charts[-1].spec["datasets"].values()
    means = {variant: [p["mean"] for p in points if p["variant"] == variant] for variant in ("old", "new")}
    assert means["old"] == [0, 0, 0]
    assert all(-60 < mean < -40 for mean in means["new"])


def test_a_figure_alone_has_its_sections_and_claims() -> None:
    whole = replace(
        paper(), sections=tuple(Section(key, key, "", CHARTS) for key in ("fig-6a", "fig-6b", "fig-6", "fig-16a"))
    )
    whole = replace(whole, claims=tuple(replace(whole.claims[0], section=s.key) for s in whole.sections))
    for figure, keys in (("6a", ["fig-6a"]), ("6", ["fig-6a", "fig-6b", "fig-6"]), ("16a", ["fig-16a"])):
        part = whole.only(figure)
        assert [section.key for section in part.sections] == [claim.section for claim in part.claims] == keys
    with pytest.raises(InputError, match=r"unknown figure '7' \(allowed: 16a, 6, 6a, 6b\)"):
        whole.only("7")


def test_sections_that_share_runs_show_the_same_ones() -> None:
    made = reproduction()
    shared = replace(made.paper, sections=(*made.paper.sections, Section("fig-9", "Nine", "", runs="main")))
    both = replace(made, paper=shared)
    assert both.tables["fig-9"].equals(both.tables["main"])
    assert "The figure; Nine" in render_page(both)


def test_one_reading_needs_no_name() -> None:
    made = reproduction()
    plain = replace(
        made, paper=replace(made.paper, readings=("",), claims=(replace(made.paper.claims[0], reading=""),))
    )
    assert claims_summary(plain) == ["Of 1 claims 1 reproduces."]


def test_runs_that_failed_are_told_with_their_point() -> None:
    made = reproduction()
    failed = [{"point": 1, "label": "n = 20", "variant": "old", "replication": 2, "reason": "ValueError: no"}]
    page = render_page(replace(made, sections={"main": replace(made.sections["main"], failed=failed)}))
    assert "1 runs failed and are missing below: old at 20 nodes, loose, replication 2: ValueError: no." in page


def test_the_same_runs_give_the_same_page_and_names_cannot_break_out(tmp_path: Path) -> None:
    evil = "</script><script>alert('1')</script>&amp;"
    runs = table().replace({"variant": {"old": evil}})
    pages = [render_page(reproduction(runs, title=evil, text=evil)) for _ in range(2)]
    assert pages[0] == pages[1]
    assert "<script>alert" not in pages[0]
    Page(body(pages[0]))
    write_page(reproduction(), tmp_path / "index.html")
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import""", body((tmp_path / "index.html").read_text()))


@pytest.mark.parametrize("paper", [PAPER, paper()], ids=lambda paper: paper.title)
def test_claims_are_of_sections_that_there_are(paper: object) -> None:
    assert isinstance(paper, type(PAPER))
    assert {claim.section for claim in paper.claims} <= {section.key for section in paper.sections}
    for claims in statements(paper):
        assert tuple(claim.reading for claim in claims) in {paper.readings, ("",)}


def test_every_misprint_is_shown_by_a_test_that_exists() -> None:
    assert len(PAPER.misprints) >= 5
    for misprint in PAPER.misprints:
        file, _, name = misprint.test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), misprint.test


HEAPS = """
import pandas as pd

from sim.papers.claims import Claim, near
from sim.papers.paper import Derived, Paper, PaperTable, Section
from sim.papers.quantities import metric_value
from sim.papers.sweeps import Computed


def heaps():
    row = {"variant": "sand", "point": "one", "replication": 0, "seed": 1, "grains": 7}
    return pd.DataFrame([row])


def sweeps(setting):
    yield Computed("fig-1", "sand.toml", "", heaps)


PAPER = Paper(
    title="Heaps, reproduced",
    source="E. Ubulides: Heaps.",
    text="",
    readings=("",),
    sections=(Section("fig-1", "Figure 1", "", tables=(PaperTable("Grains", ("grains",), "variant"),)),),
    claims=(Claim("fig-1", "1", "Seven grains make a heap", metric_value("grains", "sand", "one"), near(7, 0), "It is one."),),
    misprints=(),
    sweeps=sweeps,
    derived=(Derived("grains", "grains of sand"),),
    scenarios="heaps",
)
"""


@pytest.fixture
def heaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with a paper, and with something that is none."""
    (tmp_path / "heaps").mkdir()
    (tmp_path / "heaps" / "__init__.py").write_text(HEAPS)
    (tmp_path / "heaps-1.dist-info").mkdir()
    (tmp_path / "heaps-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: heaps\nVersion: 1\n")
    (tmp_path / "heaps-1.dist-info" / "entry_points.txt").write_text(
        "[brokersim.paper]\nheaps = heaps:PAPER\nholes = heaps:heaps\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins._entries.cache_clear()
    yield
    plugins._entries.cache_clear()


@pytest.mark.usefixtures("heaps")
def test_another_package_can_bring_a_paper(tmp_path: Path) -> None:
    told: list[str] = []
    made = reproduce(ReproductionRequest("heaps"), tmp_path / "out", say=told.append)
    assert told[0] == "fig-1: table computed as in heaps/sand.toml"
    assert claims_summary(made) == ["Of 1 claims 1 reproduces."]
    assert "grains of sand" in (tmp_path / "out" / "index.html").read_text()
    with pytest.raises(InputError, match=r"unknown paper 'heap', did you mean 'heaps'\? \(allowed: content, dynatops"):
        ReproductionRequest("heap")
    with pytest.raises(InputError, match=r"brokersim.paper:holes: expected a sim.papers.paper.Paper, found function"):
        ReproductionRequest("holes")
