"""`brokersim run`: its output, its files, and its exit status."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from analysis.report import render_report
from sim.api import progress as displays
from sim.experiments import perform as performing
from sim.experiments.plan import plan
from sim.experiments.results import load_results
from sim.metrics import METRICS
from sim.scenario.reader import load_scenario
from sim.simulation import simulate

Brokersim = Callable[..., tuple[int, str, str]]

TINY = """\
title = "Tiny"
replications = 2
warm_up = "1h"
horizon = "6h"
workload = { kind = "poisson", users = 30, topics = 10, change_rate = 0.5 }
network = { brokers = 4 }
[[variant]]
name = "static"
[[variant]]
name = "similarity"
selection = { kind = "similarity", update_period = "1h", cluster_size = 4 }
[report]
metrics = ["handovers", "queue_wait"]
"""


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)


def test_a_run_prints_a_summary_and_where_the_results_are(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, err = brokersim("run", "tiny.toml", "--jobs", "1")
    assert status == 0
    assert out.splitlines()[:9] == [
        "Tiny",
        "┏━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━┓",
        "┃ metric     ┃ unit  ┃ static ┃   similarity ┃",
        "┡━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━┩",
        out.splitlines()[4],
        out.splitlines()[5],
        "│            │       │        │ from 0 to 20 │",
        "├────────────┼───────┼────────┼──────────────┤",
        "│ queue wait │ s     │      – │            – │",
    ]
    assert out.splitlines()[4].startswith("│ handovers  │ count │      0 │")
    assert (
        "Means of 2 replications with 95 % confidence intervals; differences to static in %, paired; significant means p ≤ 0.05."
        in " ".join(out.split())
    )
    assert "\nsimilarity: no significant difference in handovers.\nNote: 2 replications are few: " in out
    assert out.endswith("\nResults: results/tiny\n")
    lines = err.splitlines()
    assert lines[0].startswith("brokersim: 1 of 4 runs done (static, replication 1 of 2), about ")
    assert lines[3] == "brokersim: 4 of 4 runs done (similarity, replication 2 of 2)"
    assert load_results(tmp_path / "results" / "tiny").failed == []


def test_a_wide_summary_becomes_several_tables_in_which_no_word_is_cut(brokersim: Brokersim, tmp_path: Path) -> None:
    names = [
        "retransmissions",
        "acknowledgements",
        "remembered_identities",
        "user_notification_delay_p99",
        "handovers",
        "user_unavailability",
    ]
    (tmp_path / "tiny.toml").write_text(
        TINY.replace('"handovers", "queue_wait"', ", ".join(f'"{name}"' for name in names))
        + '[sweep]\n"network.brokers" = [3, 4]\n'
    )
    status, out, _ = brokersim("run", "tiny.toml", "--jobs", "1")
    assert status == 0
    heads = [re.findall(r"[\w-]+", line) for line in out.splitlines() if line.startswith("┃")]
    assert sum(words.count("variant") for words in heads) > 1
    shown = [word for words in heads for word in words]
    assert all(shown.count(word) >= 1 for name in names for word in name.split("_"))
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 100
    assert sum(line.startswith("│ 3") and "static" in line for line in out.splitlines()) == sum(
        words.count("variant") for words in heads
    )


def test_what_is_to_be_known_of_a_measured_latency_is_noted_once(brokersim: Brokersim, tmp_path: Path) -> None:
    """Hosts 1 and 2 were not measured: four runs in two processes warn of it, and the scenario in the report names the files."""
    files = {
        "brokers.csv": "broker,latitude,longitude,region\na,0,0,x\nb,0,1,x\nc,0,2,y\n",
        "rtt.csv": "source,destination,avg\n0,1,5\n0,2,9\n9,0,1\n",
        "hosts.csv": "id,latitude,longitude\n0,0,0\n1,0,1\n2,0,2\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    latency = 'latency = { kind = "matrix", file = "rtt.csv", hosts_file = "hosts.csv" }'
    (tmp_path / "m.toml").write_text(TINY.replace("brokers = 4", f'brokers = "brokers.csv", {latency}'))
    status, out, err = brokersim("run", "m.toml", "--jobs", "2", "--json", "-q")
    assert status == 0
    left, missing, stand = [line.removeprefix("note: ") for line in err.splitlines()]
    assert left == "rtt.csv: 1 of 4 hosts have no row in hosts.csv and are left out: 9"
    assert missing.startswith(
        "rtt.csv: 1 of 3 pairs (33.33%) of hosts have no round-trip time, such as 1 and 2; 1 of them"
    )
    assert json.loads(out)["notes"] == load_results(tmp_path / "results" / "m").notes == [left, missing, stand]
    status, out, err = brokersim("run", "m.toml", "--jobs", "2")
    assert err.splitlines()[-3:] == [f"note: {note}" for note in (left, missing, stand)]
    page = render_report(load_results(tmp_path / "results" / "m"), [])
    assert missing in page
    assert (
        f'network.latency.file = "rtt.csv"  # SHA-256 {hashlib.sha256(files["rtt.csv"].encode()).hexdigest()}'
        in html.unescape(page)
    )


def test_names_are_shown_as_they_are_and_never_read_as_markup(
    brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = (
        TINY.replace('"Tiny"', '"Tiny [/b]"').replace('"static"', '"x [/y]"', 1).replace('"similarity"', '"[red]z"', 1)
    )
    (tmp_path / "named.toml").write_text(named)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    status, out, err = brokersim("run", "named.toml", "--jobs", "1")
    assert status == 0
    assert out.startswith("Tiny [/b]\n")
    assert "x [/y]" in out.splitlines()[2]
    assert "[red]z" in out.splitlines()[2]
    assert "[red]z" in err


def test_quiet_says_nothing_but_the_result(brokersim: Brokersim) -> None:
    status, out, err = brokersim("run", "tiny.toml", "--quiet", "--jobs", "1", "--out", "r")
    assert (status, err) == (0, "")
    assert out.endswith("Results: r\n")


def test_json_has_every_metric_of_every_variant(brokersim: Brokersim) -> None:
    status, out, _ = brokersim("run", "tiny.toml", "--json", "--jobs", "1", "--out", "r", "--set", "replications=3")
    told = json.loads(out)
    assert status == 0
    assert (told["results"], told["title"], told["baseline"], told["replications"]) == ("r", "Tiny", "static", 3)
    assert told["failed"] == []
    rows = {(row["metric"], row["variant"]): row for row in told["metrics"]}
    assert {row["unit"] for (name, _), row in rows.items() if name == "notification_delay"} == {"s"}
    assert {name for name, _ in rows} <= set(METRICS)
    moved = rows["handovers", "similarity"]
    results = load_results("r").runs.query("variant == 'similarity'")
    assert moved["mean"] == pytest.approx(results["handovers"].mean())
    assert moved["low"] < moved["mean"] < moved["high"]
    assert rows["handovers", "static"]["low"] is None  # no variance


def test_a_failed_run_is_told_and_ends_with_status_1(brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scenario: Any, workload: Any, replication: int, progress: Any) -> Any:
        if scenario.selection.kind == "similarity" and replication == 1:
            raise ZeroDivisionError("by nothing")
        return simulate(scenario, workload, replication, progress)

    monkeypatch.setattr(performing, "simulate", fails)
    status, out, err = brokersim("run", "tiny.toml", "--quiet", "--jobs", "1", "--json")
    assert status == 1
    assert json.loads(out)["failed"] == [
        {"variant": "similarity", "replication": 1, "reason": "ZeroDivisionError: by nothing"}
    ]
    assert err.startswith("Traceback (most recent call last):")
    assert err.splitlines()[-2:] == [
        "brokersim: variant similarity, replication 1 failed: ZeroDivisionError: by nothing",
        "brokersim: 1 of 4 runs failed; --retry-failed repeats them",
    ]


def test_an_interrupted_run_says_how_to_go_on(brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(performing, "simulate", interrupted)
    status, out, err = brokersim("run", "tiny.toml", "--quiet", "--jobs", "1")
    assert (status, out) == (130, "")
    assert err == "brokersim: interrupted; finished runs are kept in results/tiny, the same command resumes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["none.toml"],
            "none.toml: no such file; brokersim new none.toml writes a scenario to begin with, brokersim scenarios lists those that "
            "are shipped",
        ),
        (["."], ".: cannot be read: Is a directory"),
        (
            ["tiny.toml", "--workload", "w"],
            "--workload w: no such folder; brokersim generate KIND --out w or brokersim prepare writes one",
        ),
        (
            ["tiny.toml", "--workload", "empty"],
            "empty: not a workload folder, or an unfinished one (it has no manifest.json)",
        ),
        (["tiny.toml", "--out", "full"], "full: contains something other than results; give an empty or new folder"),
        (["tiny.toml", "--out", "tiny.toml"], "tiny.toml: this folder cannot be created (File exists)"),
        (["tiny.toml", "--set", "seed=x"], "--set seed=x: seed: expected a valid integer (found 'x')"),
        (["tiny.toml", "--set", "seed"], "--set seed: expected key=value, such as network.brokers=200"),
        (
            ["tiny.toml", "--set", "workload.change_rate=nan"],
            "--set workload.change_rate=nan: workload.change_rate: expected a finite number (found NaN)",
        ),
        (
            ["tiny.toml", "--set", "workload.change_rate=-1"],
            "--set workload.change_rate=-1: workload.change_rate: expected a value greater than or equal to 0 (found -1)",
        ),
    ],
)
def test_what_is_wrong_is_one_message_and_status_2(
    brokersim: Brokersim, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("do not touch")
    assert brokersim("run", *arguments) == (2, "", f"brokersim: error: {message}\n")
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_what_only_a_run_can_judge_leaves_no_folder(brokersim: Brokersim, tmp_path: Path) -> None:
    more = (
        "--set",
        "workload={ kind = 'mobility', users = 12 }",
        "--set",
        "network.brokers=999",
    )  # than cells, which are drawn
    status, out, err = brokersim("run", "tiny.toml", "--out", "r", *more)
    assert (status, out) == (2, "")
    assert "cells" in err
    assert not (tmp_path / "r").exists()
    (tmp_path / "x").mkdir()
    assert brokersim("report", "x")[2].startswith("brokersim: error: x: not a folder of results")


def test_bars_count_the_runs_of_each_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = load_scenario(tmp_path / "tiny.toml")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with displays.display(experiment) as tell:
        specs = plan(experiment, {})
        for spec in specs:
            tell(spec, 0.0)
        for spec in specs[:3]:
            tell(spec, 0.5)
            tell(spec, 1.0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", capsys.readouterr().err)
    assert re.findall(r"(static|similarity) .*?(\d of \d runs)", shown)[-2:] == [
        ("static", "2 of 2 runs"),
        ("similarity", "1 of 2 runs"),
    ]


def test_the_display_is_used_for_the_runs(brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    @contextmanager
    def shown(_experiment: object, quiet: bool) -> Generator[displays.Display]:
        assert not quiet
        display = displays.Display()
        display.show = lambda spec, fraction: told.append(fraction)  # type: ignore[method-assign]
        yield display

    monkeypatch.setattr(displays, "display", shown)
    assert brokersim("run", "tiny.toml", "--jobs", "1")[0] == 0
    assert told.count(1.0) == 4


def test_what_was_found_of_precision_and_warm_up_is_told(brokersim: Brokersim, tmp_path: Path) -> None:
    precise = 'precision = { metric = "notification_delay", relative = 0.0001, max_replications = 3 }\n'
    (tmp_path / "tiny.toml").write_text(precise + TINY.replace('"1h"', '"detect"', 1))
    status, out, _ = brokersim("run", "tiny.toml", "--jobs", "1")
    said = " ".join(out.split())
    assert status == 0
    assert "Precision: notification delay to within 0.01 % with 95 % confidence, or 3 replications: not reached" in said
    assert "Warm-up: 3 h, half of the run, as MSER-5 found no end of it." in said
    status, out, _ = brokersim("run", "tiny.toml", "--jobs", "1", "--json")
    told = json.loads(out)
    assert told["precision"]["points"] == [{"replications": 3, "reached": False}]
    assert told["warm_up"] == [{"seconds": 10800.0, "detected": False}]


def test_what_is_done_too_often_in_a_prepared_workload_is_refused_before_any_run(
    brokersim: Brokersim, tmp_path: Path
) -> None:
    assert brokersim("generate", "poisson", "--out", "w", "--users=5", "--topics=9", "--horizon=1h")[0] == 0
    too_often = ("--set", "variant.similarity.selection.update_period=1us", "--set", "horizon=1d")
    assert brokersim("validate", "tiny.toml", *too_often)[0] == 2
    text = (tmp_path / "tiny.toml").read_text().replace('horizon = "6h"\n', "").replace('warm_up = "1h"\n', "")
    (tmp_path / "open.toml").write_text(text)
    prepared = ("open.toml", "--workload", "w", *too_often[:2])
    assert brokersim("validate", *prepared)[0] == 0  # the file alone does not know how long it takes
    status, out, err = brokersim("run", *prepared)
    assert (status, out) == (2, "")
    assert re.fullmatch(
        r"brokersim: error: open\.toml: variant similarity: selection\.update_period: 1,000,000 periods at most, "
        r"so 0\.0036 s or more up to 3600 s, found 1e-06 s\n",
        err,
    )
    assert not (tmp_path / "results").exists()


def test_a_sweep_in_which_every_run_fails_ends_in_sentences(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'replications = 2\nhorizon = "1h"\n[workload]\nkind = "mobility"\nusers = 12\n[sweep]\n'
        '"network.brokers" = [998, 999]\n'
    )
    status, out, err = brokersim("run", "s.toml", "--quiet", "--jobs", "1")
    assert status == 1
    assert "There are no runs." in out
    assert "nan" not in out
    assert err.endswith("brokersim: 4 of 4 runs failed; --retry-failed repeats them\n")
    nothing = (2, "", "brokersim: error: results/s: there is nothing to show, as all 4 runs failed\n")
    assert brokersim("report", "results/s") == brokersim("compare", "results/s") == nothing
