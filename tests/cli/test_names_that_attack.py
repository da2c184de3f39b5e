"""Names with escape sequences, formulas and scripts: none has any effect in terminals, tables, graphs and pages."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.charts import Figure, save_figure

Brokersim = Callable[..., tuple[int, str, str]]

TITLE = "title\x1b[31m \u202e</script><script>alert(1)</script>"
FORMULA = '=HYPERLINK("http://x","y")'
WINDOW = "b\x1b]0;owned\x07<img src=x>"
BROKERS = ["a\x1b[2J\x00", "b\x9b1m\x0c!"]
SCENARIO = f"""\
title = {json.dumps(TITLE)}
replications = 2
horizon = "3h"
workload = {{ kind = "poisson", users = 10, topics = 6, topics_per_user = 2 }}
network = {{ brokers = "brokers.csv", geometry = {{ kind = "star" }} }}
[[variant]]
name = {json.dumps(FORMULA)}
[[variant]]
name = {json.dumps(WINDOW)}
selection = {{ kind = "similarity" }}
"""
CONTROLS = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E)}


@pytest.fixture
def attack(tmp_path: Path) -> Path:
    (tmp_path / "attack.toml").write_text(SCENARIO)
    rows = "".join(f'"{name}",{i},{i}\n' for i, name in enumerate(BROKERS))
    (tmp_path / "brokers.csv").write_text("broker,latitude,longitude\n" + rows, newline="")
    return tmp_path


def test_nothing_that_is_printed_controls_the_terminal(brokersim: Brokersim, attack: Path) -> None:
    for command in (
        ("run", "attack.toml", "--out", "r"),
        ("compare", "r"),
        ("compare", "r", "--json"),
        ("plan", "attack.toml"),
        ("report", "r"),
        ("validate", "attack.toml", "--resolved"),
        ("run", "no\x1b[31mfile"),
        ("run", "attack.toml", "--no\x1b[31moption"),
        ("export", "attack.toml", "--graphml", "g.graphml", "--variant", "\x1b[31m"),
        ("describe", "\udcff\x1b"),
    ):
        _, out, err = brokersim(*command)
        assert not CONTROLS & set(out + err), command
        assert out + err
        if "--json" in command:
            assert json.loads(out)["title"] == TITLE


FAULT = r"""
import sim.scenario.reader

def fault(*_):
    raise RuntimeError("\x1b[31m\u202e")

sim.scenario.reader.load_scenario = fault
from sim.cli.app import main
main()
"""


def test_a_fault_of_ours_is_told_without_controls_too(attack: Path) -> None:
    command = [sys.executable, "-c", FAULT, "validate", "attack.toml"]
    done = subprocess.run(command, cwd=attack, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("RuntimeError: \\u001b[31m\\u202e\n")


def test_on_a_terminal_styles_are_ours_and_names_are_shown(attack: Path) -> None:
    ours, theirs = pty.openpty()
    code = "from sim.cli.app import main; main()"
    command = [sys.executable, "-c", code, "run", "attack.toml", "--out", "r", "--jobs", "1"]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "250"}
    process = subprocess.Popen(command, cwd=attack, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # it has ended
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    assert b"\x1b[1m" in shown  # a title is bold
    assert b"\\u001b]0;owned\\u0007" in shown
    assert b"\x1b]0;" not in shown
    assert b"\x1b[31m \xe2\x80\xae" not in shown
    assert TITLE.partition("\x1b")[0].encode() + b"\\u001b[31m" in shown


def test_exports_compute_nothing_and_parse(brokersim: Brokersim, attack: Path) -> None:
    brokersim("run", "attack.toml", "--out", "r")
    assert brokersim("compare", "r", "--export", "c.csv", "--export", "c.tex")[0] == 0
    with (attack / "c.csv").open(newline="") as file:
        variants = {row["variant"] for row in csv.DictReader(file)}
    assert variants == {f"'{FORMULA}", "b\\u001b]0;owned\\u0007<img src=x>"}
    assert not CONTROLS & set((attack / "c.tex").read_text())
    assert brokersim("export", "attack.toml", "--graphml", "g.graphml")[0] == 0
    names = [data.text for data in ElementTree.parse(attack / "g.graphml").iter() if data.get("key") == "d1"]
    assert names == ["a\\u001b[2J\\u0000", "b\x9b1m\\u000c!"]


def test_pages_and_pictures_show_names_and_run_nothing(brokersim: Brokersim, attack: Path) -> None:
    brokersim("run", "attack.toml", "--out", "r")
    status, _, err = brokersim("report", "r", "--figures", "f")
    assert status == 0, err
    page = (attack / "r" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert not CONTROLS & set(page)
    chart = Figure("c", "s", "t", "", "", {"title": TITLE, "mark": "bar"})
    save_figure(chart, attack / "chart.html")
    page = (attack / "chart.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    save_figure(replace(chart, spec={"mark": "bar"}), attack / "plain.html")
    assert (attack / "plain.html").read_text().count("<script") == page.count("<script")
    assert '"title":"title\\\\u001b[31m \\\\u202e\\u003c/script>' in page
    pictures = list((attack / "f").glob("*.svg"))
    assert pictures
    for picture in pictures:
        ElementTree.parse(picture)
