"""Logs of which every second row is odd: each row is kept or in quarantine, or the command ends in one sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fuzzing import EXTREMES, INTEGERS, LOGS, mutated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Brokersim = Callable[..., tuple[int, str, str]]

ROWS = 80
"""Rows of a file."""
FIELDS = (
    (
        "2026-03-01T08:00:00Z",
        "2026-03-01T08:00:01Z",
        "1772352000",
        "9999-12-31T23:59:59Z",
        "0001-01-01",
        "-1",
        "2026-02-30",
        *EXTREMES,
    ),
    (
        "connect",
        "subscribe",
        "publish",
        "publish",
        "deliver",
        "disconnect",
        "unsubscribe",
        "PUBLISH",
        "",
        "x",
        *EXTREMES,
    ),
    ("a", "b", "c", "", *EXTREMES),
    ("t", "t/u", "t/+", "#", "$SYS/x", "$share/g/t", "", *EXTREMES),
    ("100", "0", "", "-1", "1e3", *INTEGERS, *EXTREMES),
    ("a", "b", "", *EXTREMES),
)


def odd_rows(rng: random.Random) -> str:
    """Events in order of time, of which every second one has an odd field or two."""
    lines = []
    for i in range(ROWS):
        fields = [
            f"2026-03-01T08:{i % 60:02}:00Z",
            rng.choice(FIELDS[1][:6]),
            *(rng.choice(row[:3]) for row in FIELDS[2:]),
        ]
        for _ in range(i % 2 * rng.choice((1, 1, 2))):
            at = rng.randrange(6)
            fields[at] = rng.choice(FIELDS[at])
        lines.append(",".join(fields).replace("\n", " "))
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.parametrize("number", range(LOGS))
def test_every_odd_row_of_a_log_is_kept_or_in_quarantine(
    brokersim: Brokersim, spark: SparkSession, tmp_path: Path, number: int
) -> None:
    rng = random.Random(f"rows {number}")
    text = odd_rows(rng)
    (tmp_path / "log.csv").write_bytes(mutated(rng, text) if number % 3 == 2 else text.encode("utf-8", "surrogatepass"))
    columns = ("--format", "csv", "--columns", "time,action,client,topic,size,publisher")
    status, _, err = brokersim("prepare", "events", "log.csv", "--out", "w", "--quiet", *columns)
    assert status in (0, 2)
    expected = "brokersim: error: " if status else "brokersim: warning: "  # of times far from the others
    assert all(line.startswith(expected) for line in err.splitlines())
    if status == 0:
        rows = json.loads((tmp_path / "w" / "manifest.json").read_text())["rows"]
        assert rows["read"] == rows["kept"] + sum(rows["quarantined"].values())
        assert rows["read"] >= ROWS or number % 3 == 2
        assert brokersim("describe", "w")[0] == 0
