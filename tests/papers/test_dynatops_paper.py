"""DYNATOPS as data: all claims and charts are about runs of its scenarios, and computed numbers are right."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import scenarios
from sim.base.errors import InputError
from sim.metrics import METRICS
from sim.papers.claims import ClaimedQuantity
from sim.papers.dynatops import runs as dynatops
from sim.papers.dynatops.page import PAPER
from sim.papers.paper import Section
from sim.papers.reproduce import ReproductionRequest, reproduce
from sim.papers.sweeps import Computed, PaperSweep, SweepSetting

SCENARIOS = Path(scenarios.__file__).parent
GOLDEN = [
    [73.98, 11.865, 3.328, 0.395, 0.507, 0.193],
    [75.908, 13.94, 3.695, 0.348, 0.539, 0.17],
    [75.605, 12.685, 3.408, 0.378, 0.528, 0.18],
]
"""Of 400 users, in each replication: check-ins, visits and pairs per user, single visits, stays under a day and over a week."""
FIGURES = [
    *("5a", "5b", "6a", "6b", "6c", "6d", "6e", "6f", "7a", "7b", "7c", "7d", "8a", "8b", "9a", "9b", "9c", "9d"),
    *("10a", "10b", "modes", "table-2"),
]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PaperSweep | Computed]:
    setting = SweepSetting(1, SCENARIOS, tmp_path_factory.mktemp("folder"), None)
    return {sweep.section: sweep for sweep in dynatops.sweeps(setting)}


def asked_of(quantity: ClaimedQuantity) -> dict[str, object]:
    """What a number looks for in the table of runs: the arguments of the function that made it."""
    found = dict(inspect.getclosurevars(quantity.of).nonlocals)
    return {**found, **found.get("given", {})}


def test_every_figure_of_the_paper_can_be_asked_for(planned: dict[str, PaperSweep | Computed]) -> None:
    figures = [section.figure for section in PAPER.sections]
    assert figures[: len(FIGURES)] == FIGURES
    assert {section.source for section in PAPER.sections} == set(planned)
    for figure in FIGURES:
        assert [section.figure for section in PAPER.only(figure).sections] == [figure]
    assert [section.figure for section in PAPER.only("6").sections] == FIGURES[2:8]
    assert {f"{name.removeprefix('fig-')}" for name in planned} >= {"5", "6abf", "6cde", "7", "8", "9ab", "9cd", "10"}
    with pytest.raises(InputError, match=r"unknown figure .6g. \(allowed: 10a, 10b, 5a,"):
        PAPER.only("6g")


def test_claims_and_charts_are_of_variants_and_points_that_are_run(planned: dict[str, PaperSweep | Computed]) -> None:
    """Each scenario is read, at every point, so a mistake in one is told here."""
    sources = {section.key: section.source for section in PAPER.sections}
    numbers = [
        (claim.statement, sources[reading.section or claim.section], quantity)
        for claim in PAPER.claims
        for reading in claim.readings
        for quantity in (reading.quantity, *claim.evidence, *([reading.bound.quantity] if reading.bound else []))
    ]
    numbers += [(lesson.text, sources[lesson.section], number) for lesson in PAPER.lessons for number in lesson.numbers]
    for source, sweep in planned.items():
        if isinstance(sweep, Computed):
            assert (SCENARIOS / sweep.scenario).is_file()
            continue
        experiment = sweep.experiment(SCENARIOS / sweep.scenario)
        variants = {name.removesuffix(f" at {point.name}") for name in experiment.variants for point in sweep.points}
        columns = {"point", "variant"}.union(*(point.values for point in sweep.points))
        values = {(column, value) for point in sweep.points for column, value in point.values.items()}
        values |= {("point", point.name) for point in sweep.points}
        for statement, asked in [(said, asked_of(quantity)) for said, of, quantity in numbers if of == source]:
            assert {asked[key] for key in ("variant", "baseline") if key in asked} <= variants, statement
            assert asked.get("metric", "tree_delay") in METRICS, statement
            assert asked.get("by", "point") in columns, statement
            if "point" in asked:
                assert (asked.get("by", "point"), asked["point"]) in values, statement
        for section in (s for s in PAPER.sections if s.source == source):
            for wanted in _wanted(section):
                assert wanted in variants | columns | set(METRICS), (section.key, wanted)


def _wanted(section: Section) -> Iterator[str]:
    for chart in section.charts:
        yield from (chart.metric, chart.x, *chart.variants)
        yield from (name for name in (chart.by, chart.relative_to) if name)
    for table in section.tables:
        yield from (*table.metrics, table.rows)
        yield from (name for name in (table.by, table.relative_to) if name)


def test_reconfiguration_in_the_location_model_at_a_tiny_scale(tmp_path: Path) -> None:
    made = reproduce(ReproductionRequest("dynatops", 0.002, figure="9a"), tmp_path)
    runs = made.sections["fig-9ab"].runs
    assert len(runs) == len(dynatops.FREE_DAYS) * 3
    assert not made.sections["fig-9ab"].failed
    assert runs["reconfigurations"].notna().all()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["9a.html", "fig-9ab", "tables"]
    page = (tmp_path / "9a.html").read_text()
    assert "brokersim reproduce dynatops 9a --scale 0.002" in page
    assert "Figure 9(b)" not in page


def test_what_is_computed_is_kept(tmp_path: Path) -> None:
    asked = ReproductionRequest("dynatops", 0.01, figure="5")
    made = reproduce(asked, tmp_path)
    table = made.sections["fig-5"].runs
    ours = table[table["variant"] == "mobility generator"]
    shares = ours.groupby("replication")[list(dynatops.PAPER_SHARES)].mean().round(3)
    assert shares.to_numpy()[: len(GOLDEN)].tolist() == GOLDEN
    assert len(shares) == dynatops.TRACES
    assert ours.groupby("days")["share_of_stays"].mean().is_monotonic_increasing
    assert ours.groupby("times")["share_of_pairs"].mean().is_monotonic_increasing
    at_once = ours[ours["times"] == 1].set_index("replication")["share_of_pairs"]
    pd.testing.assert_series_equal(
        at_once, ours.groupby("replication")["single_visits"].mean(), check_names=False, check_exact=True
    )
    told: list[str] = []
    again = reproduce(asked, tmp_path, say=told.append)
    assert not [line for line in told if "computed" in line]
    assert (tmp_path / "5.html").exists()
    pd.testing.assert_frame_equal(again.sections["fig-5"].runs, table)


def test_policies_save_what_they_say(tmp_path: Path) -> None:
    made = reproduce(ReproductionRequest("dynatops", 0.05, figure="table-2"), tmp_path)
    runs = made.sections["table-2"].runs
    assert not runs[["cost_saved", "overhead_saved", "delay_saved"]].isna().any(axis=None)
    mean = runs[runs["point"] == "100 brokers, 100 topics"].groupby("variant")["cost_saved"].mean()
    assert mean["ours: anneal"] > mean["ours: lsap-sweep"] > mean["DYNATOPS-Greedy"] > 0
    assert (runs["milliseconds"] >= 0).all()
