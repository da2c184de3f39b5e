"""Rows that a pipeline cannot use: why, how many, and where they stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sim.workloads.tables import strings

# A row's reason is the first of these that applies.
REASONS = ("unparsable", "bad_time", "bad_position", "null_island", "outside_box", "outside_window", "duplicate")
# These tell that a file is not in the layout it is read in; the others only tell what is in it.
FORM = REASONS[:3]

_TYPES = {"source": pa.string(), "line": pa.int64(), "raw": pa.string(), "reason": pa.string()}


def load_quarantine(folder: Path, names: Sequence[str]) -> pa.Table:
    """The typed Parquet of unusable rows as source (one of `names`), line, raw, reason, ordered by (source, line)."""
    schema = pa.schema(_TYPES)
    if not folder.is_dir():
        return schema.empty_table()
    table = ds.dataset(folder, format="parquet").to_table(columns=list(_TYPES))
    table = table.sort_by([("source", "ascending"), ("line", "ascending")])
    return table.set_column(0, "source", strings(names).take(table["source"].combine_chunks())).cast(schema)


def count_rows(quarantine: pa.Table, kept: int) -> dict[str, Any]:
    """The manifest's `rows`: read = kept + all quarantined; reasons in their order, those that never applied left out."""
    found = Counter(quarantine["reason"].to_pylist())
    quarantined = {reason: found[reason] for reason in REASONS if found[reason]}
    return {"read": kept + len(quarantine), "kept": kept, "quarantined": quarantined}


def describe(rows: Mapping[str, Any]) -> str:
    """The quarantined `rows` of a manifest in words: `duplicate 8`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in rows["quarantined"].items())
