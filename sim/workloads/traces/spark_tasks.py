"""Validation in Spark's tasks: of ranges of files, or of rows that Spark's expressions have validated, to write them alike.

The code goes to the executors with each job, so that machines need Python with numpy and pyarrow, and not this package.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

# Any: tasks tell values of many types.
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

import sim
from sim.files.columns import valid
from sim.files.directories import Directory
from sim.files.parquet import arrow
from sim.files.readable import ReadableFile
from sim.spark import sql
from sim.workloads.traces.shelves import Piece, PieceWriter

if TYPE_CHECKING:
    from pyspark import Accumulator

TaskItem = TypeVar("TaskItem")
TaskResult = dict[str, Any]
"""What a task returns about its item, without types of ours, as executors may not have this package."""
TaskWork = Callable[[TaskItem], tuple[int, TaskResult]]
"""A task: the number of rows that it went through, and what it found."""

_NO_TYPE = ("source", "block", "reason", "column", "found")


def in_tasks(
    spark: sql.SparkSession,
    work: TaskWork[TaskItem],
    items: Sequence[TaskItem],
    rows: Accumulator[int],
) -> list[TaskResult]:
    """What is found in each item, each by a task of its own that adds its rows to `rows`.

    Work whose `compiled` is true needs several kernels, which processes of this machine have on disk.
    """

    def task(number: int) -> bytes:
        done, found = work(items[number])
        rows.add(done)
        return pickle.dumps(found)

    with _known(spark) if getattr(work, "compiled", False) and is_local(spark) else _shipped():
        numbers = spark.sparkContext.parallelize(range(len(items)), len(items))
        found = numbers.map(task).collect()
    return [pickle.loads(one) for one in found]  # noqa: S301 - from our own executors


def file_in_tasks(
    judged: sql.DataFrame, folder: Directory, header: bool, numbered: bool, rows: Accumulator[int]
) -> list[Piece]:
    """The pieces of rows with source, block, row, raw, reason, column, found, and what they are typed as.

    A `header` is no row of a source; `row` ascends in a block or, if `numbered`, is that of the source. Tasks add their rows to
    `rows`.
    """

    def file(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = list(_pieces(batches, folder, header, numbered))
        rows.add(sum(piece.lines for piece in pieces))
        yield pa.record_batch({"piece": pa.array([pickle.dumps(vars(piece)) for piece in pieces], pa.binary())})

    with _shipped():
        found = judged.mapInArrow(file, "piece binary").collect()
    pieces = [Piece(**pickle.loads(row["piece"])) for row in found]  # noqa: S301 - from our own executors
    return sorted(pieces, key=lambda piece: (piece.source, piece.start))


def unseen(spark: sql.SparkSession, files: Mapping[ReadableFile, int], folder: Directory) -> str | None:
    """What a machine of the cluster does not see of these files, by their sizes (bytes), or of a folder; None if all see it all."""
    with folder.output("seen") as token:
        token.write(b"by the command\n")

    def look(number: int) -> list[str]:
        missing = [str(path) for path, size in files.items() if not _has_size(path, size)]
        try:
            if not folder.has("seen"):
                missing.append(folder.path)
            with folder.output(f"seen-{number}") as token:
                token.write(b"by a machine\n")
        except OSError:
            missing.append(folder.path)
        return [f"{socket.gethostname()} does not see {path}" for path in missing[:1]]

    tasks = 2 * spark.sparkContext.defaultParallelism
    with _shipped():
        found = spark.sparkContext.parallelize(range(tasks), tasks).flatMap(look).collect()
    return min(found, default=None)


def _has_size(path: ReadableFile, size: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.seek(0, os.SEEK_END) == size
    except OSError:
        return False


def is_local(spark: sql.SparkSession) -> bool:
    """Whether tasks are processes of this machine, beside the command."""
    master = str(spark.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")


@contextmanager
def _known(spark: sql.SparkSession) -> Iterator[None]:
    """Let executors find our functions by name while the body runs, as they have the same files."""
    environment = spark.sparkContext.environment
    environment["PYTHONPATH"] = str(Path(sim.__file__).parents[1])
    try:
        yield
    finally:
        del environment["PYTHONPATH"]


@contextmanager
def _shipped() -> Iterator[None]:
    """Send our functions to executors by value, not by name, while the body runs."""
    from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

    register_pickle_by_value(sim)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        unregister_pickle_by_value(sim)  # type: ignore[no-untyped-call]


def _pieces(batches: Iterator[pa.RecordBatch], folder: Directory, header: bool, numbered: bool) -> Iterator[Piece]:
    """File the rows of batches, in which the rows of a piece stand together."""
    place: tuple[int, int] | None = None
    first = following = 0
    writer: PieceWriter | None = None
    for batch in batches:
        source, block, row = (batch[name].to_numpy() for name in ("source", "block", "row"))
        new = np.ones(len(batch), np.bool_)
        new[1:] = (np.diff(source) != 0) | (np.diff(block) != 0) | (numbered & (np.diff(row) != 1))
        starts = [*np.flatnonzero(new), len(batch)]
        for start, stop in pairwise(starts):
            here = int(source[start]), int(block[start])
            if writer is None or here != place or (numbered and row[start] != following):
                if writer is not None:
                    writer.close()
                    yield writer.piece
                place, first = here, int(row[start])
                writer = PieceWriter(folder, Piece(here[0], first if numbered else here[1], numbered))
            following = int(row[stop - 1]) + 1
            part = batch.slice(start, stop - start)
            _file(part, row[start:stop] - first, writer, header and here[1] == 0)
    if writer is not None:
        writer.close()
        yield writer.piece


def _file(rows: pa.RecordBatch, number: np.ndarray, writer: PieceWriter, header: bool) -> None:
    """File rows with these numbers in their piece."""
    piece = writer.piece
    good = ~valid(rows["reason"])
    true = ~((number == 0) & header)
    usable = rows.drop_columns([*_NO_TYPE, "row"]).add_column(0, "row", arrow(number)).filter(arrow(good & true))
    bad = (
        rows.select(["raw", "reason", "column", "found"])
        .add_column(0, "row", arrow(number))
        .filter(arrow(~good & true))
    )
    piece.count((None, None), len(usable))
    for row, raw, reason, column, found in zip(*(part.to_pylist() for part in bad.columns), strict=True):
        piece.count((reason, column), 1, (row, raw, found))
    piece.lines += len(rows)
    writer.write(usable, bad.select(["row", "raw", "reason"]))
