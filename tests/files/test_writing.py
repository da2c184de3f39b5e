"""Files are written completely or not at all."""

import os
from pathlib import Path

import pytest

from sim.base.errors import InputError, ResultsError
from sim.files.atomic import whole_file


def test_a_file_is_replaced_once_the_new_one_is_whole(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text("old")
    with whole_file(page) as unfinished:
        unfinished.write_text("new")
        assert page.read_text() == "old"
    assert page.read_text() == "new"
    assert list(tmp_path.iterdir()) == [page]


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with whole_file(tmp_path / "page") as unfinished:
            unfinished.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    with whole_file(tmp_path / "link") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_pipes_devices_and_folders_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # as /dev/null and /dev/stdout may be named
    (tmp_path / "folder").mkdir()
    with pytest.raises(ResultsError, match="pipe: a pipe or a device"), whole_file(tmp_path / "pipe", ResultsError):
        raise AssertionError
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(InputError, match=r"folder: cannot be written \(Is a directory\)"):
        _write(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


@pytest.mark.parametrize("name", ["no/page", "x" * 300])
def test_where_no_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be written \((No such file or directory|File name too long)\)"):
        _write(tmp_path / name)


def _write(path: Path) -> None:
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
