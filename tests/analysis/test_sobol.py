"""Sobol indices of a function whose indices are known, and sentences where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_results import write_sweep
from SALib.sample import sobol

from analysis.sweeps.figures import sweep_figures
from analysis.sweeps.sobol import FIRST, TOTAL, sensitivity
from sim.experiments.results import load_results

DELAY, OVERHEAD = "notification_delay", "notification_overhead"
KEYS = ["a.x", "b.x", "c.x"]
ONE = {"report": {"metrics": [DELAY, OVERHEAD]}, "replications": 2, "brokers": 2, "windows": 2, "warm_up": 0}
KNOWN = {FIRST: [0.314, 0.442, 0.0], TOTAL: [0.558, 0.442, 0.244]}


def ishigami(values: dict[str, float], variant: str) -> dict[str, float]:
    """Ishigami & Homma (1990) with a = 7, b = 0.1, lifted above 0; of another variant, constant."""
    x, y, z = values.values()
    value = 20 + np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)
    return {DELAY: value if variant == "static" else 1.0}


def write(folder: Path, samples: int, **case: Any) -> Path:
    problem = {"num_vars": 3, "names": KEYS, "bounds": [[-np.pi, np.pi]] * 3}
    points = [dict(zip(KEYS, map(float, row), strict=True)) for row in sobol.sample(problem, samples, seed=7)]
    sweep = {"sample": "saltelli", "samples": samples}
    return write_sweep(folder, points, ishigami, (), sweep, **{**ONE, "variants": ("static",), **case})


def test_a_function_whose_indices_are_known(tmp_path: Path) -> None:
    results = load_results(write(tmp_path, 1024))
    indices, missing = sensitivity(results, [DELAY])
    assert missing == []
    for order, known in KNOWN.items():
        own = indices[indices["order"] == order].set_index("key").loc[KEYS]
        assert own["index"].tolist() == pytest.approx(known, abs=0.03)
        assert (own["low"] - 0.01 <= known).all()
        assert (own["high"] + 0.01 >= known).all()
        assert (own["high"] - own["low"] < 0.3).all()
    again, _ = sensitivity(results, [DELAY])
    pd.testing.assert_frame_equal(indices, again)


def test_the_chart_says_what_it_shows(tmp_path: Path) -> None:
    results = load_results(write(tmp_path, 64))
    (chart,) = [chart for chart in sweep_figures(results) if chart.section == "sobol"]
    assert chart.name == f"sobol-{DELAY}-0-static"
    own = sensitivity(results, [DELAY])[0].query("key == 'b.x'").set_index("order")["index"]
    assert f" static. b.x: {own[FIRST]:.2f} alone, {own[TOTAL]:.2f} in all; a.x: " in chart.description


def test_what_has_no_index_is_said(tmp_path: Path) -> None:
    folder = write(tmp_path, 8, variants=("static", "location"), overrides={OVERHEAD: None})
    runs = pd.read_parquet(folder / "runs.parquet")
    runs[~((runs["variant"] == "static") & runs["point"].isin([3, 60]))].to_parquet(folder / "runs.parquet")
    indices, missing = sensitivity(load_results(folder), [DELAY, OVERHEAD])
    assert indices.empty
    assert [sentence.partition(":")[0] for sentence in missing] == [
        f"No index of notification {metric} of {variant}"
        for metric in ("delay", "overhead")
        for variant in ("static", "location")
    ]
    assert "2 of 64 points have no value (3, 60)" in missing[0]
    assert "the same at all points" in missing[1]
    assert "64 of 64 points have no value (0, 1, 2, 3, 4, …)" in missing[2]


@pytest.mark.parametrize("point", [0, 63])
def test_one_point_without_a_value_is_enough_for_no_index(tmp_path: Path, point: int) -> None:
    folder = write(tmp_path, 8)
    runs = pd.read_parquet(folder / "runs.parquet")
    runs[runs["point"] != point].to_parquet(folder / "runs.parquet")
    indices, (sentence,) = sensitivity(load_results(folder), [DELAY])
    assert indices.empty
    assert f"1 of 64 points have no value ({point})" in sentence


@pytest.mark.parametrize("samples", [4, 16])
def test_another_number_of_points_than_samples_call_for_is_no_sample(tmp_path: Path, samples: int) -> None:
    """Eight samples of three keys are 8 × (2 · 3 + 2) points."""
    results = load_results(write(tmp_path, 8))
    assert len(results.manifest["points"]) == 64
    assert sensitivity(results, [DELAY])[1] == []
    results.manifest["sweep"]["samples"] = samples
    indices, (sentence,) = sensitivity(results, [DELAY])
    assert indices.empty
    assert sentence.endswith("the sample's 64 points are not all those that the estimator needs.")


def test_keys_that_are_zipped_are_one_dimension(tmp_path: Path) -> None:
    folder = write(tmp_path, 8)
    results = load_results(folder)
    results.manifest["sweep"]["zip"] = [["a.x", "c.x"]]
    _, missing = sensitivity(results, [DELAY])
    assert missing == [
        "No index of notification delay of static: the sample's 64 points are not all those that the estimator needs."
    ]
    results.manifest["sweep"]["samples"] = 32 // 3
    results.manifest["points"] = results.manifest["points"][:60]
    indices, _ = sensitivity(results, [DELAY])
    assert set(indices["key"]) == {"a.x, c.x", "b.x"}
