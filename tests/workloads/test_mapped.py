"""A workload in a file that processes map into memory: the same values, read-only, without copies."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tiny

from sim.base.randomness import Streams
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.mapped import open_mapped, write_mapped
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.mobility import MobilityWorkload


def columns(table: Any, name: str = "") -> dict[str, Any]:
    """Every column of every table of a workload, and whatever else it tells."""
    if not is_dataclass(table):
        return {name: table}
    parts = [columns(getattr(table, field.name), f"{name}.{field.name}") for field in fields(table)]
    return dict(chain.from_iterable(part.items() for part in parts))


def mapped_addresses(path: Path) -> list[tuple[int, int]]:
    """Where in this process the file is mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    ranges = [line.split()[0].split("-") for line in lines if line.endswith(f" {path}")]
    return [(int(start, 16), int(end, 16)) for start, end in ranges]


@pytest.mark.parametrize(
    "workload",
    [
        MobilityWorkload(MobilityWorkload.Parameters(users=40, horizon=5 * 86400.0)).generate(Streams(3)),
        tiny.workload([(0, 1), (), (1,)], [(1.0, 0, -1, 7)], topics=2),
        tiny.workload([], topics=0),
        tiny.content([(0, {0: 1}), (1, {0: 2, 1: 0})], [(1.0, -1, 7, (1, 0))], users=2, fields=2),
    ],
    ids=["mobility", "tiny", "empty", "content"],
)
def test_what_is_mapped_is_what_was_written(workload: Workload, tmp_path: Path) -> None:
    path = tmp_path / "shared"
    write_mapped(workload, path)
    before, after = columns(workload), columns(open_mapped(path))
    assert before.keys() == after.keys()
    for name, column in before.items():
        found = after[name]
        if isinstance(column, np.ndarray):
            assert type(found) is np.ndarray
            assert found.dtype == column.dtype, name
            np.testing.assert_array_equal(found, column, name)
        elif isinstance(column, pa.Array):
            assert found.equals(column), name
        else:
            assert found == column, name


@pytest.mark.skipif(not Path("/proc/self/maps").is_file(), reason="looks for the mapping in /proc")
def test_no_column_is_a_copy_and_none_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    made = tiny.workload([(0, 1), (1,)], [(1.0, 0, -1, 7)], [(2.0, 1, 0, 1)], [(3.0, 0, 4.0, 5.0)], topics=2)
    write_workload(made, tmp_path / "w")
    write_mapped(load_workload(tmp_path / "w"), path)
    workload = open_mapped(path)
    ranges = mapped_addresses(path)
    for name, column in columns(workload).items():
        if isinstance(column, np.ndarray | pa.Array) and len(column):
            address = column.ctypes.data if isinstance(column, np.ndarray) else column.buffers()[2].address
            assert any(start <= address < end for start, end in ranges), name
        if isinstance(column, np.ndarray):
            assert not len(column) or not column.flags.writeable, name
    with pytest.raises(ValueError, match="read-only"):
        workload.publications.time[0] = 2.0
