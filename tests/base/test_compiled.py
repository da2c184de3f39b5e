"""Compiled kernels are reused until anything that they depend on changes, in any file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
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


MEANWHILE = """
import sys

import numpy as np

from sim.base.compiled import kernel


@kernel
def doubled(value):
    return value + value


print("ready", flush=True)
kind = getattr(np, sys.stdin.readline().strip())
print(doubled(kind(2)), sum(doubled.stats.cache_misses.values()))
"""


def test_what_another_process_compiles_meanwhile_is_not_compiled_again(tmp_path: Path) -> None:
    """Nor is it mixed up with what that one compiles for other types."""
    (tmp_path / "kernels.py").write_text(MEANWHILE)
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            code = [sys.executable, "-c", "import kernels"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            return stack.enter_context(subprocess.Popen(code, text=True, env=environment, **pipes))

        def shown(kinds: Sequence[str]) -> list[str]:
            processes = [start() for _ in kinds]
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            for process, kind in zip(processes, kinds, strict=True):
                assert process.stdin is not None
                process.stdin.write(f"{kind}\n")
                process.stdin.flush()
            return [process.communicate()[0] for process in processes]

        assert sorted(shown(["int64", "int64", "float64"])) == ["4 0\n", "4 1\n", "4.0 1\n"]
        assert shown(["int64", "float64"]) == ["4 0\n", "4.0 0\n"]
