"""How charts stand in a page: what its script unpacks is what was drawn, without the variants that are not picked."""

from __future__ import annotations

from typing import Any

import pytest
from fake_results import write_results

from analysis.charts import Figure
from analysis.embedding import embedded
from analysis.figures import figures
from sim.experiments.results import load_results


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    results = load_results(write_results(tmp_path_factory.mktemp("results"), variants=("a", "b"), replications=3))
    return {chart.name: chart for chart in figures(results)}


def unpacked(columns: dict[str, Any]) -> list[dict[str, Any]]:
    lists = {name: [it["of"][n] for n in it["at"]] if isinstance(it, dict) else it for name, it in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def test_data_in_columns_are_the_rows_that_a_picture_shows(charts: dict[str, Figure]) -> None:
    for chart in charts.values():
        found = {name: unpacked(columns) for name, columns in embedded(chart)["datasets"].items()}
        assert found == chart.sized()["datasets"]


def test_what_is_exported_has_the_titles_of_the_axes(charts: dict[str, Figure]) -> None:
    chart = embedded(charts["time-notification_delay"])
    about = chart["usermeta"]
    assert {*chart["datasets"][about["data"]]} == {"variant", "time", "mean", "low", "high"}
    assert (about["titles"]["mean"], about["titles"]["time"]) == ("notification delay (ms)", "time (h)")


def test_variants_can_be_hidden_where_a_chart_has_several(charts: dict[str, Figure]) -> None:
    filtered = {"filter": "indexof(hidden, datum.variant) < 0"}
    chart = embedded(charts["time-notification_delay"])
    assert {"name": "hidden", "value": []} in chart["params"]
    assert [filtered in layer.get("transform", []) for layer in chart["layer"]] == [
        False,
        True,
        True,
    ]  # the warm-up stays
    assert "params" not in embedded(charts["hot-queue_length-0"])
    assert charts["hot-queue_length-0"].variant == "a"
