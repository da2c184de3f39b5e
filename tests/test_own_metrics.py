"""Users' own metrics: declared in their package, they appear wherever built-in ones do, and a broken one is refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import status_of

import sim
from analysis.best import best
from analysis.report import render_report
from analysis.tables import over_time
from sim import plugins
from sim.base.errors import InputError, MetricError, PluginError, ScenarioError
from sim.experiments.plan import plan
from sim.experiments.results import load_results
from sim.metrics import METRICS, OURS, Metric, Ratio, declared_metrics
from sim.own_metrics import Tables
from sim.scenario.reader import load_scenario
from sim.scenario.schema import json_schema
from sim.studies.capacity import CapacityQuestion, SearchRange, capacity_of
from sim.studies.search import Bench

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "docs" / "example-plugin"
EACH = """
import json, sys
from commands import status_of
for command in json.loads(sys.argv[1]):
    assert status_of(*command) == 0
    print(end="\\0")
"""
SCENARIO: dict[str, Any] = {
    "title": "A small network",
    "replications": 2,
    "warm_up": "90min",
    "workload": {
        "kind": "poisson",
        "users": 30,
        "topics": 8,
        "horizon": "6h",
        "publication_rate": 5.0,
        "change_rate": 0.5,
    },
    "network": {"brokers": 6, "latency": {"kind": "unit", "rtt": "1s"}},
}


class Late:
    """Deliveries later than a limit, and other things that an own metric may be."""

    class Parameters(plugins.Parameters):
        limit: float = 1.0
        """The delay (s) above which a delivery is late."""

    metric = Metric("late", "–", "share of late deliveries", got_through=True, windows=Ratio("late_sum", "delivered"))

    def __init__(self, parameters: Parameters) -> None:
        self._limit = parameters.limit

    def compute(self, tables: Any) -> Any:
        delays, windows = tables["delays"], len(tables["timeseries"]["start"])
        late = delays["lower"] >= self._limit
        return np.bincount(delays["window"][late], delays["brokers"][late], windows)


class Busiest(Late):
    metric = Metric("busiest", "messages", "most messages that a broker received")

    def compute(self, tables: Any) -> Any:
        return tables["brokers"]["received"].max()


class Sent(Late):
    metric = Metric("sent", "messages", "messages of all kinds", windows="sum")

    def compute(self, tables: Any) -> Any:
        series = tables["timeseries"]
        return series["notification_overhead"] + series["uplink_messages"]


class Spread(Late):
    metric = Metric("spread", "–", "the load's standard deviation again", windows="average")

    def compute(self, tables: Any) -> Any:
        return tables["timeseries"]["load_stddev"] * 1.0


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Register classes as if installed from another package, each under the name of its metric."""
    known, found = plugins._entries, dict[str, EntryPoint]()

    def add(*kinds: Any, name: str | None = None) -> None:
        for kind in kinds:
            own = name or kind.metric.name
            found[own] = EntryPoint(own, f"{__name__}:{kind.__name__}", "brokersim.metric")
            monkeypatch.setitem(globals(), kind.__name__, kind)

    monkeypatch.setattr(plugins, "_entries", lambda group: known(group) | (found if group == "metric" else {}))
    plugins.load.cache_clear()
    yield add
    plugins.load.cache_clear()


def test_the_example_of_the_page_is_installed_from_its_own_package_and_its_metric_goes_where_ours_go(
    tmp_path: Path,
) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    (purelib,) = home.glob("lib/python*/site-packages")
    (purelib / "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    source = tmp_path / "package"
    source.mkdir()
    for file in ("pyproject.toml", "two_choices.py", "on_time.py"):
        (source / file).write_bytes((PLUGIN / file).read_bytes())

    def run(*commands: list[str]) -> list[str]:
        """What each command prints; all of them run in one process of that environment."""
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [str(home / "bin" / "python"), "-c", EACH, json.dumps(commands)],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\0")

    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--no-index", "--quiet"]
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", str(source)], check=True, timeout=600)
    said = f"{PLUGIN / 'comparison.toml'} --set metrics.on_time.limit=2s --set replications=2 --set workload.users=40".split()
    _, told, _, kinds, _ = run(
        ["run", *said, "--set", 'report.metrics=["on_time"]', "--jobs", "1", "--out", "r"],
        ["best", "r", "--maximise", "on_time"],
        ["report", "r"],
        ["policies"],
    )
    results = load_results(tmp_path / "r")
    series = results.table(results.runs["run"][0], "timeseries").query("not warm_up")
    shares = results.runs["on_time"]
    assert shares[0] == pytest.approx(series["on_time_sum"].sum() / series["delivered"].sum())
    assert 0 < shares.min() <= shares.max() < 1
    assert "on time" in told
    page = (tmp_path / "r" / "report.html").read_text()
    assert "share of delivered pairs that are not late" in page
    assert "on time over time" in page
    assert "on_time (–): share of delivered pairs that are not late" in kinds
    # without the package its values are still there, and a note says why they are not shown
    assert results.notes[-1] == "on_time: the plug-in of this metric is not installed; its values are in runs.parquet"


def test_sums_averages_ratios_and_numbers_are_those_of_all_windows_after_the_warm_up(
    install: Callable[..., None], tmp_path: Path
) -> None:
    install(Late, Busiest, Sent, Spread)
    names = ["late", "busiest", "sent", "spread"]
    results = sim.run({**SCENARIO, "report": {"metrics": names}}, tmp_path / "r")
    assert list(results.runs.columns) == [*("run", "point", "variant", "replication", "seed"), *OURS, *sorted(names)]
    for _, run in results.runs.iterrows():
        series = results.table(run["run"], "timeseries").query("not warm_up")
        assert run["sent"] == run["notification_overhead"] + run["uplink_messages"] == series["sent"].sum()
        assert run["spread"] == pytest.approx(run["load_stddev"])
        assert run["late"] == pytest.approx(series["late_sum"].sum() / series["delivered"].sum())
        assert run["busiest"] == results.table(run["run"], "brokers")["received"].max()
    drawn = over_time(results, names, points=1).query("not warm_up").set_index("metric")["mean"]
    means = results.runs[names].mean()
    assert drawn.to_dict() == pytest.approx(
        {"late": means["late"], "sent": means["sent"] / 4.5, "spread": means["spread"]}
    )
    assert "share of late deliveries" in render_report(results)
    assert best(results, "late").candidates[0].value.mean == pytest.approx(means["late"])


def test_searches_and_precision_ask_for_it_by_name(install: Callable[..., None], tmp_path: Path) -> None:
    install(Late)
    precise = {**SCENARIO, "precision": {"metric": "late", "relative": 0.5, "max_replications": 3}}
    assert sim.run(precise, tmp_path / "p").runs["late"].notna().all()
    file = tmp_path / "s.toml"
    file.write_text(
        'warm_up = "90min"\nworkload = { kind = "poisson", users = 30, topics = 8, horizon = "6h" }\n'
        'network = { brokers = 2, latency = { kind = "unit", rtt = "1s" } }\n[tune]\nminimise = "late"\n'
    )
    with Bench(file, tmp_path / "c") as bench:
        (limit,) = load_scenario({**SCENARIO, "tune": {"subject_to": "late < 0.9"}}).tune.subject_to  # type: ignore[union-attr]
        found = capacity_of(bench, CapacityQuestion("network.brokers", limit, SearchRange(2, 4), max_replications=3))  # type: ignore[arg-type]
    assert found.tried[0].interval.n >= 2


def test_capacity_and_tune_take_it_by_name(
    install: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(Late)
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(
        'warm_up = "90min"\nreplications = 2\nnetwork = { brokers = 2, latency = { kind = "unit", rtt = "1s" } }\n'
        'workload = { kind = "poisson", users = 30, topics = 8, horizon = "6h", publication_rate = 5.0 }\n'
    )

    def found(*arguments: str) -> Any:
        assert status_of(*arguments, "--jobs", "1", "--quiet", "--json", "--out", arguments[0]) == 0
        return json.loads(capsys.readouterr().out)

    asked = ("--vary", "network.brokers", "--from", "2", "--to", "8", "--max-replications", "3")
    capacity = found("capacity", "s.toml", *asked, "--until", "late < 0.5", "--largest")
    runs = load_results(tmp_path / "capacity").runs
    means = runs.groupby("network.brokers")["late"].mean()
    assert 0 < means.max() < 1
    for tried in capacity["tried"]:
        assert tried["mean"] == pytest.approx(means[tried["value"]])
        assert (tried["verdict"] == "met") <= (tried["mean"] < 0.5)

    tuned = found("tune", "s.toml", "--minimise", "late", "--vary", "network.brokers=2,4,8")
    means = load_results(tmp_path / "tune").runs.groupby("network.brokers")["late"].mean()
    assert tuned["best"][0]["set"] == f"--set network.brokers={means.idxmin()}"
    assert sorted(trial["late"] for trial in tuned["trials"]) == pytest.approx(sorted(means))


def test_a_run_is_another_with_a_metric_of_ones_own_and_the_schema_knows_it(install: Callable[..., None]) -> None:
    install(Late)
    tables: list[dict[str, Any]] = [{}, {"metrics": {"late": {}}}, {"metrics": {"late": {"limit": 2.0}}}]
    experiments = [load_scenario({**SCENARIO, **table}) for table in tables]
    without, plain, strict = (experiment.base.identity() for experiment in experiments)
    assert "metrics" not in without
    assert plain["metrics"] == {"late": {"limit": 1.0}}
    assert strict != plain
    assert len({plan(experiment, {})[0].hash for experiment in experiments}) == 3
    schema = json_schema()["properties"]
    assert schema["metrics"]["properties"]["late"]["properties"]["limit"]["type"] == "number"


@pytest.mark.parametrize(
    ("metrics", "wrong"),
    [
        ({"lost": {}}, "metrics.lost: a built-in metric, which every run has; leave it out"),
        ({"lat": {}}, "metrics.lat: unknown metric of your own, did you mean 'late'? (allowed: late)"),
        ({"late": {"limt": 1}}, "metrics.late.limt: unknown key, did you mean 'limit'?"),
        (["late"], "metrics: expected a table of metrics of your own, such as { mine = {} }"),
    ],
)
def test_what_is_wrong_in_the_table_is_told(install: Callable[..., None], metrics: Any, wrong: str) -> None:
    install(Late)
    with pytest.raises(ScenarioError) as error:
        load_scenario({**SCENARIO, "metrics": metrics})
    assert wrong in str(error.value)


class Raises(Late):
    def compute(self, tables: Any) -> Any:
        return tables["trace"]["kind"]


class Text(Late):
    metric = Metric("late", "–", "a text")

    def compute(self, tables: Any) -> Any:
        return "many"


class Short(Late):
    def compute(self, tables: Any) -> Any:
        return np.zeros(2)


class Undefined(Late):
    def compute(self, tables: Any) -> Any:
        return np.full(len(tables["timeseries"]["start"]), np.nan)


class Writes(Late):
    def compute(self, tables: Any) -> Any:
        tables["timeseries"]["delivered"][0] = 1
        return tables["timeseries"]["delivered"]


class Taken(Late):
    metric = Metric("late", "–", "", windows=Ratio("due", "delivered"))


class Nowhere(Late):
    metric = Metric("late", "–", "", windows=Ratio("late_sum", "deliverd"))


class Nameless(Late):
    metric = Metric("early", "–", "")


class Column(Late):
    metric = Metric("seed", "–", "")


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Raises, "compute raised KeyError: \"this run has no table 'trace' (it has: timeseries,"),
        (Text, "compute returned 'many', expected a finite number or None"),
        (Short, "compute returned array([0., 0.]), expected a finite number for each of 7 windows"),
        (Undefined, "expected a finite number for each of 7 windows"),
        (Writes, "compute raised ValueError: assignment destination is read-only"),
        (Taken, "the time series already has a column 'due'"),
        (Nowhere, "the time series has no column 'deliverd' (it has: window,"),
        (Nameless, "expected metric = Metric('late', …), found Metric(name='early'"),
        (Column, "a metric cannot be called 'seed'"),
    ],
)
def test_a_metric_that_is_none_ends_in_a_sentence_with_its_class(
    install: Callable[..., None], tmp_path: Path, kind: Any, wrong: str
) -> None:
    name = "seed" if kind is Column else "late"
    install(kind, name=name)
    with pytest.raises(PluginError) as error:
        sim.run({**SCENARIO, "replications": 1, "metrics": {name: {}}}, tmp_path / "r")
    assert f"plug-in {kind.__name__} ({__name__}): " in str(error.value)
    assert wrong in str(error.value)
    assert isinstance(error.value, InputError)
    assert "\n" not in str(error.value)


def test_tables_are_as_files_have_them_and_read_only() -> None:
    tables = Tables({"t": {"a": [1, 2], "b": [None, 0.5], "c": ["x", "y"]}})
    frame = pd.DataFrame(dict(tables["t"]))
    assert frame["a"].tolist() == [1, 2]
    assert np.isnan(frame["b"][0])
    assert not any(values.flags.writeable for values in tables["t"].values())
    assert list(tables) == ["t"]


def test_a_metric_that_nobody_declares_or_computes_is_a_fault_of_ours() -> None:
    found = dict.fromkeys(OURS, 1)
    assert list(declared_metrics(found)) == list(OURS) == [name for name in METRICS if name in OURS]
    with pytest.raises(MetricError, match=r"sim/metrics/declared.py: unheard_of: computed, but not declared"):
        declared_metrics({**found, "unheard_of": 1})
    del found["lost"]
    with pytest.raises(MetricError, match=r"sim/metrics/declared.py: lost: declared, but not computed"):
        declared_metrics(found)
