"""A sweep of 200 runs that is killed repeatedly gives the same tables as an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sweeping import contents

RUNS, KILLS = 200, 50
SCENARIO = f"""\
title = "Killed"
horizon = "30h"
workload = {{ kind = "poisson", users = 40, topics = 60 }}
network = {{ brokers = 6 }}
[sweep]
selection = [{", ".join(f'{{ kind = "logged", number = {number} }}' for number in range(RUNS))}]
"""
PLUGIN = """\
import os
from sim.policies.selection.fixed import StaticSelection
class Logged(StaticSelection):
    '''Static selection that writes down which run has begun.'''
    class Parameters(StaticSelection.Parameters):
        number: int
    def __init__(self, parameters, *arguments):
        super().__init__(parameters, *arguments)
        log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, f"{parameters.number}\\n".encode())
        os.close(log)
"""
HASHES = """\
from sim.experiments.plan import plan
from sim.scenario.reader import load_scenario
for spec in plan(load_scenario("killed.toml"), {}):
    print(spec.hash)
"""


@pytest.mark.long
def test_a_sweep_that_is_killed_again_and_again(tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text(SCENARIO)
    (tmp_path / "logged.py").write_text(PLUGIN)
    about = tmp_path / "logged-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: logged\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[brokersim.selection]\nlogged = logged:Logged\n")
    log = tmp_path / "log"
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "LOG": str(log)}

    def command(code: str, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def run(folder: str) -> subprocess.Popen[str]:
        options = ("--out", folder, "--jobs", "2", "--json", "--quiet")
        return command("from sim.cli.app import main; main()", "run", "killed.toml", *options)

    hashes = command(HASHES).communicate()[0].split()
    assert len(set(hashes)) == RUNS
    began = time.monotonic()
    undisturbed = run("undisturbed")
    assert undisturbed.communicate()[1] == ""
    longest = time.monotonic() - began  # of a life, lest it come to its end too often, or never to a run
    wanted = contents(tmp_path / "undisturbed")
    assert sorted(map(int, log.read_text().split())) == list(range(RUNS))

    draw = np.random.default_rng(8)
    kills = sweeps = again = 0
    while kills < KILLS:
        sweeps += 1
        log.write_text("")
        place = tmp_path / f"r{sweeps}" / "runs"
        while True:
            there = {run for run in hashes if (place / run).is_dir()}
            logged = len(log.read_text().split())
            process = run(f"r{sweeps}")
            try:
                _, error = process.communicate(timeout=draw.uniform(0, longest))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL) if draw.random() < 0.5 else os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                kills, longest = kills + 1, longest * 1.05
            begun = [hashes[int(number)] for number in log.read_text().split()[logged:]]
            assert not there & set(begun), "a run whose result is there was done again"
            if process.returncode == 0:
                assert error == ""
                longest *= 0.6
                break
        again += len(log.read_text().split()) - RUNS
        assert contents(tmp_path / f"r{sweeps}") == wanted
        print(f"{kills} kills in {sweeps} sweeps; {again} runs in flight were done again", flush=True)
