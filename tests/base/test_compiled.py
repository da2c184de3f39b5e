"""Compiled kernels: what was compiled before is used again, and what an older version left is no obstacle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
