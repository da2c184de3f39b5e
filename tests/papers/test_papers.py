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
from fake_reproduction import CHARTS, SAID, paper, reproduction, table
from hypothesis import given
from hypothesis import strategies as st
from report_numbers import Page, body, rows_of
from scipy import stats

from analysis.formatting import describe
from sim import plugins
from sim.base.errors import InputError
from sim.cli.app import main
from sim.experiments.statistics import Interval, mean_interval
from sim.papers import quantities, shipped
from sim.papers.claims import (
    FALLS,
    RISES,
    Claim,
    ClaimBound,
    ClaimedQuantity,
    ClaimReading,
    Reason,
    Target,
    at_most,
    near,
)
from sim.papers.judging import JudgedReading, claims_summary, judge, judge_claims
from sim.papers.overlays.page import PAPER
from sim.papers.page import render_page, write_page
from sim.papers.paper import Section, find_paper
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
    rows = [" ".join(" ".join(row).split()) for row in Page(page).tables[0][1:]]
    twice = made.claims[0]
    assert (
        [one.reading.name for one in twice.readings] == [one.reading.name for one in twice.shown] == ["strict", "loose"]
    )
    first, second = twice.shown
    assert rows[0] == (
        f"fig. 1 twice as many {SAID} 2 (agrees: 1.7 to 2.3) {' '.join(describe(first.number))} reproduces "
        "strict, the most literal reading: largest old / new, over nodes (2: Nodes are nodes.) as it should"
    )
    assert rows[1].startswith(f"{' '.join(describe(second.number))} reproduces loose: ")
    assert re.search("fewer links .* does not .* there are more nodes$", rows[2])
    assert "not run" in rows[4]
    assert "(ours, not counted)" in rows[5]
    assert claims_summary(made.claims) == [
        "By the most literal reading: of 3 claims 1 reproduces, 1 does not, 1 was not run.",
        "By the best reading: of 3 claims 1 reproduces, 1 does not, 1 was not run; 2 have more than one reading.",
        "Ours, not counted: 1 does not.",
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
    assert ": old 0; new from −" in charts[-1].description  # a line that does not change has one number


def test_two_charts_of_one_metric_have_files_of_their_own() -> None:
    halves = tuple(replace(CHARTS[0], variants=(name,)) for name in ("old", "new"))
    charts = charts_of(paper(), Section("main", "", "", halves), table())
    assert [chart.name for chart in charts] == [f"main-average-degree-{number}" for number in range(4)]


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
    claim = made.paper.claims[0]
    plain = replace(made, paper=replace(made.paper, claims=(replace(claim, readings=claim.readings[:1]),)))
    assert claims_summary(plain.claims) == ["Of 1 claims 1 reproduces."]


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


def judged(values: list[float], target: Target, bound: float | None = None, evidence: bool = False) -> JudgedReading:
    """One claim about runs with these values, whose bound is a number of the same runs."""

    def of(column: str) -> ClaimedQuantity:
        return ClaimedQuantity("all", " %", lambda runs: runs[column])

    runs = pd.DataFrame({"value": values, "bound": [bound] * len(values)})
    reading = ClaimReading(of("value"), bound=None if bound is None else ClaimBound("Nobody has more", of("bound")))
    claim = Claim("s", "", "", SAID, (reading,), target, Reason("It holds.", "It fails."), (of("value"),) * evidence)
    return judge_claims([claim], {"s": runs})[0].literal


def test_the_sentence_beside_a_verdict_follows_from_the_numbers() -> None:
    assert judged([50.0, 51.0], Target("over 40", 40, math.inf)).why == "It holds."
    below, above = (
        f"The interval is {by} percentage points {where} the limit of agreement."
        for by, where in (("20.0", "below"), ("12.0", "above"))
    )
    assert judged([20.0, 20.0], Target("over 40", 40, math.inf)).why == f"{below} It fails."
    assert judged([20.0, 20.0], Target("at most 8", -math.inf, 8)).why == f"{above} It fails."
    assert judged([0.0, 0.0], FALLS).why == "It does not change. It fails."
    assert judged([], FALLS).why == "It needs runs that this scale leaves out, or that have not been made."
    assert judged([39.0, 41.0], Target("over 40", 40, math.inf)).why == (
        "The interval includes 40 %, the limit of agreement: more replications are needed to tell."
    )
    assert judged([-1.0, 1.0], FALLS).why.startswith("The interval includes 0 %,")


def test_a_bound_says_whether_a_claim_is_impossible() -> None:
    over = Target("over 40", 40, math.inf)
    impossible = judged([20.0, 20.0], over, bound=30)
    assert impossible.bound == "Impossible here. Nobody has more: at most 30 %."
    assert (
        impossible.why
        == f"The interval is 20.0 percentage points below the limit of agreement. {impossible.bound} It fails."
    )
    assert judged([20.0, 20.0], over, bound=50).bound == "Nobody has more: at most 50 %."
    assert judged([20.0, 20.0], over, evidence=True).why.endswith("It fails. Measured: all 20 %.")


def test_the_best_reading_is_shown_first_and_counted_apart() -> None:
    def reading(name: str, value: float) -> ClaimReading:
        return ClaimReading(ClaimedQuantity(name, "", lambda runs: pd.Series([value])), name)

    runs = {"s": pd.DataFrame({"x": [1]})}
    claim = Claim("s", "", "", SAID, (reading("as printed", 1), reading("else", 9)), near(9, 0), Reason("", ""))
    found = judge_claims([claim], runs)
    assert [one.reading.name for one in found[0].shown] == ["else", "as printed"]
    assert (found[0].literal.verdict, found[0].best.verdict) == ("does not", "reproduces")
    assert claims_summary(found) == [
        "By the most literal reading: of 1 claims 1 does not.",
        "By the best reading: of 1 claims 1 reproduces; 1 have more than one reading.",
    ]
    assert claims_summary(judge_claims([replace(claim, ours=True)], runs)) == []


@pytest.mark.parametrize("name", ["content", "dynatops", "ods", "overlays"])
def test_every_claim_names_its_section_and_sentence_and_a_reason_for_each_outcome(name: str) -> None:
    paper = find_paper(name)
    assert {claim.section for claim in paper.claims} <= {section.key for section in paper.sections}
    seen = set()
    for claim in paper.claims:
        for sentence in (claim.sentence, *(reading.sentence for reading in claim.readings if reading.sentence)):
            assert re.match(
                r"(Abstract|[A-Z0-9][A-Z0-9.]*(-[A-Z0-9]+)?(, (figure|table) [0-9.]+)?): [A-Zτ0-9]", sentence
            ), sentence
        assert isinstance(claim.reason, Reason)
        assert claim.reason.holds
        assert claim.reason.fails
        names = [reading.name for reading in claim.readings]
        assert len(set(names)) == len(names) >= 1
        assert len(names) == 1 or all(names)
        seen.add((claim.section, claim.statement))
    assert len(seen) == len(paper.claims)


def test_every_misprint_is_shown_by_a_test_that_exists() -> None:
    assert len(PAPER.misprints) >= 5
    for misprint in PAPER.misprints:
        file, _, name = misprint.test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), misprint.test


HEAPS = """
import pandas as pd

from sim.papers.claims import Claim, ClaimReading, Reason, near
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
    sections=(Section("fig-1", "Figure 1", "", tables=(PaperTable("Grains", ("grains",), "variant"),)),),
    claims=(
        Claim(
            "fig-1",
            "1",
            "Seven grains make a heap",
            "1: Seven grains make a heap.",
            (ClaimReading(metric_value("grains", "sand", "one")),),
            near(7, 0),
            Reason("It is one.", "It is none."),
        ),
    ),
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
    assert claims_summary(made.claims) == ["Of 1 claims 1 reproduces."]
    assert "grains of sand" in (tmp_path / "out" / "index.html").read_text()
    with pytest.raises(InputError, match=r"unknown paper 'heap', did you mean 'heaps'\? \(allowed: content, dynatops"):
        ReproductionRequest("heap")
    with pytest.raises(InputError, match=r"brokersim.paper:holes: expected a sim.papers.paper.Paper, found function"):
        ReproductionRequest("holes")


@pytest.mark.usefixtures("heaps")
def test_a_check_compares_with_what_was_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def brokersim(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["brokersim", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    status, _, err = brokersim("reproduce", "heaps", "--check", "--out", str(tmp_path / "out"))
    assert (status, "claims.csv: no such file" in err) == (2, True)
    assert not (tmp_path / "out").exists()
    asked = ("reproduce", "heaps", "--out", str(tmp_path / "out"), "--quiet")
    status, out, _ = brokersim(*asked, "--export", str(tmp_path / "heaps"))
    assert (status, out.splitlines()[-1]) == (0, f"Exported: 3 files in {tmp_path / 'heaps'}")
    status, out, _ = brokersim(*asked, "--check")
    assert (status, out.splitlines()[-1]) == (0, "0 verdicts differ from those shipped, 0 of them unexpectedly.")
    file = tmp_path / "heaps" / "claims.csv"
    file.write_text(file.read_text().replace("reproduces", "does not"))
    status, out, _ = brokersim(*asked, "--check")
    assert status == 1
    assert "Seven grains make a heap: shipped does not, here reproduces, which is not expected" in out
