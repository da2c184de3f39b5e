"""Sweeps: one scenario at many points as one experiment, and the table of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.api.runs import run
from sim.experiments.engines.in_process import InProcess
from sim.experiments.options import DEFAULT_OPTIONS
from sim.experiments.outcomes import Progress, RunOutcome
from sim.experiments.plan import RunSpec
from sim.experiments.run import run_experiment
from sim.papers.sweeps import PaperPoint, PaperSweep, SweepSetting, thinned

SCENARIO = """
workload = { kind = "interests", users = 6, topics = 4, per_user = 2 }
network.brokers = 6

[[variant]]
name = "gm"
network.geometry = { kind = "topic-connected", design = "gm" }

[[variant]]
name = "gm at 5"
network.geometry = { kind = "topic-connected", design = "cd-oda" }
"""


def test_every_variant_at_every_point(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    points = tuple(PaperPoint(f"{n}", {"topics": n}, {"workload.topics": n, "horizon": f"{n}h"}) for n in (4, 5, 15))
    sweep = PaperSweep("s", "s.toml", points, 2, {"workload.users": 5})
    experiment = sweep.experiment(tmp_path / "s.toml")
    assert [list(point.variants) for point in experiment.points] == 3 * [["gm", "gm at 5"]]
    assert experiment.points[2].variants["gm"].model_dump(mode="json")["workload"]["topics"] == 15
    assert [point.base.horizon for point in experiment.points] == [14400, 18000, 54000]
    assert experiment.base.model_dump(mode="json")["workload"]["users"] == 5
    table = sweep.table(run(experiment, tmp_path / "results"))
    assert len(table) == 3 * 2 * 2
    assert table.groupby(["point", "topics"]).size().to_dict() == {("4", 4): 4, ("5", 5): 4, ("15", 15): 4}
    assert set(table["variant"]) == {"gm", "gm at 5"}


def test_runs_that_another_figure_has_made_are_taken_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a damaged one is made again."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    experiment = PaperSweep("s", "s.toml", (PaperPoint("5", {}, {"horizon": "5h"}),), 2).experiment(tmp_path / "s.toml")
    first = run_experiment(experiment, tmp_path / "a", DEFAULT_OPTIONS)
    damaged = first.runs["run"].iloc[0]
    (tmp_path / "a" / "runs" / damaged / "timeseries.parquet").write_bytes(b"")
    made = list[str]()
    perform = InProcess.perform

    def watched(
        engine: InProcess, specs: Sequence[RunSpec], progress: Progress
    ) -> Iterator[tuple[RunSpec, RunOutcome]]:
        made.extend(spec.hash for spec in specs)
        return perform(engine, specs, progress)

    monkeypatch.setattr(InProcess, "perform", watched)
    (tmp_path / "c").mkdir()
    again = run_experiment(experiment, tmp_path / "b", DEFAULT_OPTIONS, others=[tmp_path / "c", tmp_path / "a"])
    assert made == [damaged]
    pd.testing.assert_frame_equal(again.runs, first.runs)
    assert sorted(path.name for path in (tmp_path / "b" / "runs").iterdir() if path.is_dir()) == sorted(
        first.runs["run"]
    )


@given(st.lists(st.integers(), min_size=2, max_size=20, unique=True), st.floats(0.01, 1))
def test_thinning_keeps_the_ends_and_the_order(values: Sequence[int], scale: float) -> None:
    kept = thinned(values, scale)
    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert len(kept) == max(2, round(len(values) * scale))
    places = [values.index(value) for value in kept]
    assert places == sorted(set(places))
    assert thinned(values, 1) == list(values)


def test_sizes_follow_the_scale_down_to_a_least(tmp_path: Path) -> None:
    full, quick, least = (SweepSetting(scale, tmp_path, tmp_path, None) for scale in (1, 0.2, 0.01))
    assert [setting.replications(20) for setting in (full, quick, least)] == [20, 4, 2]
    assert [setting.sized(1000) for setting in (full, quick, least)] == [1000, 200, 50]
    assert least.sized(30) == 30
