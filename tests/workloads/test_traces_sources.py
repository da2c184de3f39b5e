"""The files that an input names, and messages if it names none."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import random
import re
import socket
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sim.base.errors import WorkloadError
from sim.files.directories import on_disk
from sim.workloads.traces.output_room import check_room, folder_beside
from sim.workloads.traces.sources import Source, find_sources, link_sources, readable
from sim.workloads.traces.spark_tasks import unseen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.tsv", "a.tsv", "2010/a.tsv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name}\n")
    return tmp_path


def names(sources: list[Source]) -> list[str]:
    return [source.name for source in sources]


def test_inputs_keep_their_order_and_the_matches_of_a_pattern_are_sorted(folder: Path) -> None:
    (folder / "c.txt").write_text("c\n")
    assert names(find_sources([folder / "c.txt", str(folder / "*.tsv")])) == ["c.txt", "a.tsv", "b.tsv"]


def test_a_file_named_twice_counts_once(folder: Path) -> None:
    twice = [folder / "b.tsv", str(folder / "*.tsv"), folder / "2010" / ".." / "a.tsv"]
    assert names(find_sources(twice)) == ["b.tsv", "a.tsv"]


def test_files_of_one_name_are_told_apart_by_their_folders(folder: Path) -> None:
    assert names(find_sources([str(folder / "**" / "a.tsv")])) == ["2010/a.tsv", "a.tsv"]


def test_a_source_is_identified_by_its_bytes(folder: Path) -> None:
    (source,) = find_sources([folder / "a.tsv"])
    assert (source.bytes, source.sha256) == (6, hashlib.sha256(b"a.tsv\n").hexdigest())


def test_a_file_whose_name_holds_the_signs_of_a_pattern_is_found(folder: Path) -> None:
    (folder / "odd[1]*.tsv").write_text("x\n")
    assert names(find_sources([folder / "odd[1]*.tsv"])) == ["odd[1]*.tsv"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "no input file"),
        (["a.tvs"], "a.tvs: no such file, did you mean '{folder}/a.tsv'?"),
        (["nowhere/a.tsv"], "nowhere/a.tsv: no such file"),
        (["*.csv"], r"*.csv: no file matches this pattern"),
        (["nothing"], "nothing: a folder without files of data"),
        (
            ["delta"],
            "delta: a table in Delta format, whose folder may hold files that it no longer uses; export it as Parquet",
        ),
        (["empty"], "empty: the file is empty"),
    ],
)
def test_what_is_no_input_is_told_in_one_sentence(folder: Path, inputs: list[str], message: str) -> None:
    (folder / "empty").touch()
    (folder / "delta" / "_delta_log").mkdir(parents=True)
    (folder / "nothing").mkdir()
    (folder / "nothing" / "_SUCCESS").write_text("x")
    with pytest.raises(WorkloadError) as raised:
        find_sources([str(folder / name) for name in inputs])
    assert message.format(folder=folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pipe_is_told_apart_from_what_is_not_there(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(WorkloadError, match=r"pipe: a pipe or a device; name a file, plain, gzip, bzip2, xz or zstd"):
        find_sources([folder / "pipe"])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04" + bytes(20), "zip"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(20), "7z"),
        (b"a.tsv".ljust(257, b"\0") + b"ustar\x0000" + bytes(247), "tar"),
        (gzip.compress(b"a.tsv".ljust(257, b"\0") + b"ustar  \0" + bytes(247)), "tar"),
    ],
    ids=["zip", "7z", "tar", "tar in gzip"],
)
def test_an_archive_of_files_is_refused_by_its_kind(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(
        WorkloadError, match=rf"a\.tsv: a {kind} archive; unpack it and name the files in it, plain, gzip"
    ):
        find_sources([tmp_path / "a.tsv"])


def test_text_that_looks_a_little_like_a_packed_file_is_text(tmp_path: Path) -> None:
    for number, text in enumerate((b"BZh,1,2\n", b"BZh9\n", b"x" * 257 + b"ustard\n", b"PKx\n")):
        (tmp_path / f"{number}").write_bytes(text)
    link_sources(find_sources([str(tmp_path / "*")]), tmp_path / "links")
    assert {path.suffix for path in (tmp_path / "links").iterdir()} == {".txt"}


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def test_a_folder_stands_for_its_part_files(tmp_path: Path) -> None:
    parts = (
        "day=1/part-00001",
        "day=1/part-00000",
        "day=2/part-00000",
        "_SUCCESS",
        "day=1/.part-00000.crc",
        "_temporary/0/p",
    )
    for part in parts:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_text(part)
    wanted = ["day=1/part-00000", "day=1/part-00001", "day=2/part-00000"]
    assert names(find_sources([tmp_path])) == wanted
    assert names(find_sources([f"file://{tmp_path}/day%3D1/part-00000"])) == ["part-00000"]


@pytest.mark.parametrize(
    "url", ["webhdfs://host/rows", "kafka://host/topic", "https://host/a.csv", "jdbc:mysql:x", "file://host/a"]
)
def test_a_place_that_is_no_file_is_told_with_what_to_do(url: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        find_sources([url])
    assert str(raised.value).startswith(f"{url}: only files are read, by paths or URLs of s3, s3a, gs, hdfs or file")


def test_a_machine_that_does_not_see_the_files_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "seen.tsv").write_text("x\n")
    known, folder = {tmp_path / "seen.tsv": 2}, on_disk(tmp_path)
    assert unseen(spark, known, folder) is None
    elsewhere = Path("/elsewhere.tsv")
    assert unseen(spark, known | {elsewhere: 7}, folder) == f"{socket.gethostname()} does not see {elsewhere}"
    assert "does not see" in str(unseen(spark, dict.fromkeys(known, 3), folder))


@pytest.mark.parametrize("codec", PACKED)
def test_what_spark_does_not_unpack_is_unpacked_piece_by_piece(tmp_path: Path, codec: str) -> None:
    """Far less memory than the file needs, in two members or frames, however it is called."""
    half = bytes(range(10)) * (2 << 20)
    (tmp_path / "in.txt").write_bytes(PACKED[codec](half) * 2)
    link_sources(find_sources([tmp_path / "in.txt"]), tmp_path / "links")
    (link,) = (tmp_path / "links").iterdir()
    tracemalloc.start()
    path = readable(link)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    if codec == "gz":  # as Spark does
        assert path == link
        assert link.suffix == ".gz"
    else:
        assert path.read_bytes() == half * 2


def read_whole(path: Path, folder: Path) -> None:
    """What a pipeline does with a file before Spark, or after it has failed, reads it."""
    (source,) = find_sources([path])
    link_sources([source], folder)
    readable(*folder.iterdir())
    if damage := source.damage():
        raise WorkloadError(f"{source.path}: {damage}")


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_or_changed_compressed_file_or_one_with_more_behind_it_is_named(tmp_path: Path, codec: str) -> None:
    whole = PACKED[codec](random.Random(1).randbytes(3 << 20))
    kind = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd"}.get(codec, codec)
    middle = len(whole) // 2
    cut = whole[:-3], whole[:middle], whole[:14], whole + b"more"
    changed = whole[:middle] + b"xxxx" + whole[middle + 4 :]
    for number, content in enumerate((*cut, *([changed] if codec != "zst" else ()))):  # zstd need not have checksums
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content)
        with pytest.raises(WorkloadError) as raised:
            read_whole(path, tmp_path / f"links{number}")
        assert re.fullmatch(rf"{path}: damaged {kind} file \(.+\)", str(raised.value))


def test_links_tell_gzip_by_content_not_by_name(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_text("x\n")
    (tmp_path / "packed.tsv").write_bytes(gzip.compress(b"x\n"))
    link_sources(find_sources([tmp_path / "plain.gz", tmp_path / "packed.tsv"]), tmp_path / "links")
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == ["000000.txt", "000001.gz"]


def test_what_a_killed_process_left_is_cleared_and_what_is_worked_in_stays(tmp_path: Path) -> None:
    for name in (".w.dead.unfinished", ".w.unfinished", ".v.dead.unfinished"):
        (tmp_path / name / "parsed").mkdir(parents=True)
    with folder_beside(tmp_path / "w") as one, folder_beside(tmp_path / "w") as other:
        assert set(tmp_path.iterdir()) == {one, other, tmp_path / ".w.unfinished", tmp_path / ".v.dead.unfinished"}
    assert not one.exists()
    assert not other.exists()


def test_a_name_that_no_folder_can_have_is_told(tmp_path: Path) -> None:
    def work() -> None:
        check_room(tmp_path / ("w" * 300))
        with folder_beside(tmp_path / ("w" * 300)):
            raise AssertionError

    with pytest.raises(WorkloadError, match=r"cannot be written \(File name too long\)"):
        work()
