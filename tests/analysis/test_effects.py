"""Main effects and interactions of a sweep over all combinations of policies, against differences of means by pandas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_numbers import body
from scipy import stats

from analysis.report import write_report
from analysis.sweeps import page
from analysis.sweeps.effects import design_effects, factors_of, short
from sim.api.runs import run
from sim.experiments.results import Results
from sim.scenario.reader import load_scenario

METRIC = "notification_overhead"
DESIGN = """
title = "A design"
replications = 3
workload = { kind = "poisson", users = 40, topics = 10, topics_per_user = 2, horizon = "3h", publication_rate = 4 }
network.brokers = 8

[sweep]
selection = [{ kind = "static" }, { kind = "similarity", cluster_size = 4 }]
network.geometry = [{ kind = "chord" }, { kind = "tapestry" }, { kind = "star" }]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("design")
    (folder / "s.toml").write_text(DESIGN)
    return run(load_scenario(folder / "s.toml"), folder / "results")


def test_effects_are_differences_of_means_over_the_other_factors(results: Results) -> None:
    runs = results.runs
    kinds = results.points.map(short)
    assert kinds.iloc[0].tolist() == ["static", "chord"]
    runs = runs.assign(**{key: kinds[key].loc[runs["point"]].to_numpy() for key in kinds})
    wide = runs.pivot(index="replication", columns=list(kinds), values=METRIC)
    similarity, static = wide["similarity"], wide["static"]
    expected = {
        ("static → similarity",): (similarity - static).mean(axis=1),
        ("chord → tapestry",): (wide.T.groupby(level=1).mean().T)[["tapestry", "chord"]].diff(-1, axis=1)["tapestry"],
        ("static → similarity", "chord → star"): similarity["star"]
        - similarity["chord"]
        - static["star"]
        + static["chord"],
    }
    found = {
        tuple(f"{before} → {after}" for _, before, after in effect.changes): effect.found
        for effect in design_effects(results, [METRIC])
    }
    assert len(found) == 1 + 2 + 2
    for changes, values in expected.items():
        low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
        assert (found[changes].mean, found[changes].low, found[changes].high) == pytest.approx(
            (values.mean(), low, high)
        )


def test_the_report_shows_them(results: Results, tmp_path: Path) -> None:
    write_report(results, tmp_path / "report.html")
    text = body((tmp_path / "report.html").read_text())
    assert "Main effects and interactions" in text
    assert "selection: static → similarity × network.geometry: chord → star" in text


def test_the_unit_of_an_effect_suits_its_interval(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = next(iter(design_effects(results, ["tree_delay"])))
    wide = replace(effect, found=replace(effect.found, mean=2e-7, low=-0.03, high=0.03))
    monkeypatch.setattr(page, "design_effects", lambda *_: [wide])
    write_report(results, tmp_path / "report.html")
    assert "0 [−30, +30] ms" in body((tmp_path / "report.html").read_text())


def test_a_sweep_over_numbers_is_no_design(results: Results, tmp_path: Path) -> None:
    numbers = DESIGN.replace('[{ kind = "chord" }, { kind = "tapestry" }, { kind = "star" }]', '[{ kind = "chord" }]')
    (tmp_path / "s.toml").write_text(numbers.replace("[sweep]", '[sweep]\n"workload.users" = [20, 30]'))
    small = load_scenario(tmp_path / "s.toml", ["replications=1"])
    assert factors_of(results)
    assert not factors_of(run(small, tmp_path / "results"))
