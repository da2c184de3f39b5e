"""Compiled kernels are reused until anything that they depend on changes, in any file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
from typing import NamedTuple

import numpy as np

from sim.base.compiled import kernel


class {name}(NamedTuple):
    values: np.ndarray


@kernel
def total(record):
    return record.values.sum()


print(total({name}(np.arange(4.0))))
"""


def test_a_record_renamed_since_a_kernel_was_cached_costs_compiling_alone(tmp_path: Path) -> None:
    for name in ("Before", "After"):
        (tmp_path / "kernels.py").write_text(SOURCE.format(name=name))
        root = Path(__file__).resolve().parents[2]
        environment = {"PYTHONPATH": f"{tmp_path}:{root}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        code = [sys.executable, "-c", "import kernels"]
        ran = subprocess.run(code, capture_output=True, text=True, env=environment, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "6.0\n", "")


KERNEL = "from sim.base.compiled import kernel\nfrom sim.{}\n\n\n@kernel\ndef {}():\n    return {}\n"
MODULES = {
    "sim/__init__.py": "",
    "sim/rows.py": "LOST = 3\n",
    "sim/other.py": "NOTHING = 0\n",
    "sim/inner.py": KERNEL.format("rows import (\n    LOST,\n)", "row", "LOST"),
    "sim/outer.py": KERNEL.format("inner import row", "twice", "2 * row()"),
}
SHOW = "import sim.outer, sim.other; print(sim.outer.twice(), sum(sim.outer.twice.stats.cache_hits.values()))"


def test_a_constant_two_files_away_is_never_that_of_before(tmp_path: Path) -> None:
    for name, text in MODULES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "sim" / "base").symlink_to(ROOT / "sim" / "base")

    def shown() -> str:
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True; {SHOW}"
        return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout

    assert (shown(), shown()) == ("6 0\n", "6 1\n")  # compiled once, and then taken from disk
    (tmp_path / "sim" / "other.py").write_text("NOTHING = 1\n")
    os.utime(tmp_path / "sim" / "outer.py", (0, 0))
    assert shown() == "6 1\n"
    (tmp_path / "sim" / "rows.py").write_text("LOST = 4\n")
    assert shown() == "8 0\n"
