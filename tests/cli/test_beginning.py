"""The first ten minutes: a scenario to begin with, what its keys mean, and what the machine is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reader import ROOT

import sim

Brokersim = Callable[..., tuple[int, str, str]]


def test_a_new_scenario_runs_as_it_is_and_is_not_replaced(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, _ = brokersim(
        "new", "mine.toml", "--brokers", "4", "--compare", "static, similarity", "--geometry", "star"
    )
    assert (status, out) == (0, "mine.toml: run it with brokersim run mine.toml\n")
    text = (tmp_path / "mine.toml").read_text()
    assert text.startswith("# Compares static, similarity, with 4 brokers.")
    assert brokersim("validate", "mine.toml") == (0, "mine.toml: valid, 2 variants × 5 replications = 10 runs\n", "")
    uncommented = (
        text.replace("# [", "[").replace('# "', '"').replace("# service", "service").replace("# latency", "latency")
    )
    (tmp_path / "all.toml").write_text(uncommented.replace("# warm_up", "warm_up"))
    assert brokersim("validate", "all.toml")[1].startswith("all.toml: valid, 2 points")
    assert "is there already" in brokersim("new", "mine.toml")[2]
    status, _, err = brokersim("new", "other.toml", "--compare", "static,simlarity")
    assert (status, "did you mean 'similarity'?" in err) == (2, True)
    assert not (tmp_path / "other.toml").exists()


class Terminal(io.StringIO):
    """Answers that are typed."""

    def isatty(self) -> bool:
        return True


def test_five_questions_are_asked_until_the_answers_are_allowed(
    brokersim: Brokersim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["poison", "", "0", "12", "similarity", "star", "static,simlarity", "static, similarity", "many", "3"]
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{answer}\n" for answer in answers)))
    status, out, err = brokersim("new", "mine.toml")
    asked = out + err
    assert status == 0
    assert "workload 'poison': no such folder, did you mean 'poisson'?" in asked
    assert "'0': expected a whole number of at least 1" in asked
    assert "unknown kind of geometry 'similarity' (allowed: broadcast," in asked
    assert "did you mean 'similarity'?" in asked
    first = sim.load_scenario(tmp_path / "mine.toml")
    assert (first.base.network.brokers, first.base.replications, len(first.variants)) == (12, 3, 2)


def test_a_new_scenario_of_a_workload_names_its_folder(brokersim: Brokersim, tmp_path: Path) -> None:
    for kind, keys in (("mobility", {"users": 300}), ("interests", {"users": 200})):
        brokersim("new", f"{kind}.toml", "--workload", kind)
        assert sim.load_scenario(tmp_path / f"{kind}.toml").base.workload.parameters.users == keys["users"]
    sim.generate("poisson", {"users": 5, "topics": 9, "horizon": "1h"}, tmp_path / "w")
    (tmp_path / "s").mkdir()
    assert brokersim("new", "s/own.toml", "--workload", "w")[0] == 0
    assert 'path = "../w"' in (tmp_path / "s" / "own.toml").read_text()


def test_options_override_seed_and_replications(brokersim: Brokersim) -> None:
    brokersim("new", "mine.toml")
    status, out, _ = brokersim(
        "validate", "mine.toml", "--set", "seed=3", "--seed", "7", "--replications", "2", "--json"
    )
    first = json.loads(out)["static"]
    assert (status, first["seed"], first["replications"]) == (0, 7, 2)


def test_every_metric_and_key_is_explained(brokersim: Brokersim) -> None:
    status, out, _ = brokersim("explain")
    names = out.split()
    assert status == 0
    assert {"handovers", "network.brokers", "network.geometry.chord.bits", "faults.crash.at"} <= set(names)
    assert all(sim.explain(name) for name in names)
    about = {key.key: key.kind for key in sim.scenario_keys()}
    assert brokersim("explain", "network.brokers")[1].startswith(
        'network.brokers: key, integer (at least 1) or "cells" or string, by default "cells"\n'
    )
    assert about["faults.crash.brokers"] == "integer (at least 0) or string or a list of these, required"
    assert (about["tune.minimise"], about["network.qos"]) == ("metric or a list of these", "table, optional")
    assert not [key for key, kind in about.items() if "any value" in kind]
    assert sim.explain("Notification delay") == sim.explain("notification_delay")
    assert sim.explain("network.geometry.bits") == sim.explain("network.geometry.chord.bits")
    assert "faults.crash.at: " in sim.explain("faults.at")
    assert brokersim("explain", "brokrs") == (
        2,
        "",
        "brokersim: error: no metric or key 'brokrs', did you mean 'brokers'? (brokersim explain lists all of them)\n",
    )


def test_shipped_scenarios_are_listed_and_copied_with_their_files(brokersim: Brokersim, tmp_path: Path) -> None:
    status, out, _ = brokersim("scenarios")
    assert status == 0
    assert {path.stem for path in (ROOT / "scenarios").rglob("*.toml")} <= {name.split("/")[-1] for name in out.split()}
    assert brokersim("scenarios", "copy", "what-if/mesh-degree", "mine")[1].splitlines()[0] == "mine/mesh-degree.toml"
    assert brokersim("validate", "mine/mesh-degree.toml")[0] == 0
    assert "is there already" in brokersim("scenarios", "copy", "what-if/mesh-degree", "mine")[2]
    assert "did you mean 'quickstart'?" in brokersim("scenarios", "copy", "quickstar")[2]
    (tmp_path / "full").touch()
    assert brokersim("scenarios", "copy", "quickstart", "full")[2].endswith("cannot be written (File exists)\n")


def test_a_file_that_is_missing_comes_with_the_command_that_writes_it(brokersim: Brokersim) -> None:
    assert "brokersim new none.toml writes a scenario to begin with" in brokersim("plan", "none.toml")[2]
    assert brokersim("run", "quickstart")[2].endswith(
        "no such file; it is shipped: brokersim scenarios copy quickstart\n"
    )
    brokersim("new", "mine.toml")
    assert brokersim("run", "min.tml")[2].endswith("min.tml: no such file, did you mean 'mine.toml'?\n")
    assert "brokersim generate KIND --out w or" in brokersim("run", "mine.toml", "--workload", "w")[2]


def test_the_doctor_names_what_may_cause_trouble(brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.api.diagnosis.available", lambda: 1e9)
    status, out, _ = brokersim("doctor")
    assert status == 0
    assert "memory                  1.0 GB free  ! less than 2 GB\n" in out
    assert json.loads(brokersim("doctor", "--json")[1])["brokersim"] == sim.__version__


def test_a_shell_completes_commands() -> None:
    words = {"_BROKERSIM_COMPLETE": "complete_bash", "COMP_WORDS": "brokersim re", "COMP_CWORD": "1"}
    shown = subprocess.run(
        [sys.executable, "-m", "brokersim"],
        env=os.environ | words,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert shown.stdout.split() == ["report", "reproduce"]
