"""Available memory: the least that the machine, its container and the process allow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import memory
from sim.base.errors import InputError


def test_what_fits_and_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1.5e9)
    memory.need(1.5e9, "this")
    with pytest.raises(InputError, match=r"^this: this needs about 1,234\.6 GB of memory, available: 1\.5 GB$"):
        memory.need(1.2346e12, "this")
    monkeypatch.setattr(memory, "available", lambda: 2e6)
    with pytest.raises(InputError, match=r"^w: this needs about 10 MB of memory, available: 2 MB$"):
        memory.need(1e7, "w")


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "5000\n", "memory.current": "3000\n", "memory.stat": "anon 9\ninactive_file 700\n"}, 2700),
        ({"memory.max": "max\n", "memory.current": "3000\n", "memory.stat": ""}, float("inf")),
        ({"memory/memory.limit_in_bytes": "5000", "memory/memory.usage_in_bytes": "6000", "memory/memory.stat": ""}, 0),
        ({"memory.max": "5000"}, float("inf")),
    ],
)
def test_the_limit_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: float
) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    machine = memory.available()
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    assert 1e8 < machine < float("inf")
    assert memory.available() == pytest.approx(min(left, machine), rel=0.5)


def test_the_limit_of_a_process() -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, -1))"
    ask = f"from sim.base import memory; {limit}; print(memory.available())"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert 0 < float(said) < 1 << 30
