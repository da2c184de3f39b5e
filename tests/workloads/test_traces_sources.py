"""Which files an input names, and what is said when it names none."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from sim.errors import WorkloadError
from sim.workloads.traces.sources import Source, find_sources, link_sources
from sim.workloads.traces.workshop import check_room, workshop


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
        (["2010"], "2010: a folder; name its files, or a pattern such as '{folder}/2010/*.gz'"),
        (["empty"], "empty: the file is empty"),
    ],
)
def test_what_is_no_input_is_told_in_one_sentence(folder: Path, inputs: list[str], message: str) -> None:
    (folder / "empty").touch()
    with pytest.raises(WorkloadError) as raised:
        find_sources([str(folder / name) for name in inputs])
    assert message.format(folder=folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pipe_is_told_apart_from_what_is_not_there(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(WorkloadError, match=r"pipe: a pipe or a device; name a file, plain or gzip"):
        find_sources([folder / "pipe"])


def test_links_tell_gzip_by_content_not_by_name(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_text("x\n")
    (tmp_path / "packed.tsv").write_bytes(gzip.compress(b"x\n"))
    link_sources(find_sources([tmp_path / "plain.gz", tmp_path / "packed.tsv"]), tmp_path / "links")
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == ["000000.txt", "000001.gz"]


def test_what_a_killed_process_left_is_cleared_and_what_is_worked_in_stays(tmp_path: Path) -> None:
    for name in (".w.dead.unfinished", ".w.unfinished", ".v.dead.unfinished"):
        (tmp_path / name / "parsed").mkdir(parents=True)
    with workshop(tmp_path / "w") as one, workshop(tmp_path / "w") as other:
        assert set(tmp_path.iterdir()) == {one, other, tmp_path / ".w.unfinished", tmp_path / ".v.dead.unfinished"}
    assert not one.exists()
    assert not other.exists()


def test_a_name_that_no_folder_can_have_is_told(tmp_path: Path) -> None:
    def work() -> None:
        check_room(tmp_path / ("w" * 300))
        with workshop(tmp_path / ("w" * 300)):
            raise AssertionError

    with pytest.raises(WorkloadError, match=r"cannot be written \(File name too long\)"):
        work()
