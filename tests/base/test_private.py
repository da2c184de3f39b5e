"""Folders in the system's temporary directory: no other user's code is run from them, and killed processes leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.base.private import claimed_folder, temporary_folder, temporary_home, user_cache

STRANGER = 12345


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that other users write to, too."""
    place = tmp_path / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_folder_of_ones_own_is_used_again_and_closed_to_others(temporary: Path) -> None:
    assert temporary_home() == temporary_home() == temporary / f"brokersim-{os.getuid()}"
    assert temporary_home().stat().st_mode & 0o777 == 0o700


def open_to_all(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)


def elsewhere(home: Path) -> Path:
    folder = home.with_name("theirs")
    folder.mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize(
    "prepare",
    [
        open_to_all,
        lambda home: home.symlink_to(elsewhere(home)),
        lambda home: home.symlink_to("nowhere"),
        lambda home: home.touch(),
    ],
    ids=["open to all", "a link", "a link to nowhere", "a file"],
)
def test_a_name_that_was_guessed_and_prepared_is_not_used(temporary: Path, prepare: Callable[[Path], None]) -> None:
    prepare(temporary / f"brokersim-{os.getuid()}")
    home = temporary_home()
    assert home.parent == temporary
    assert home.name.endswith(".scratch")
    assert home.stat().st_mode & 0o777 == 0o700


def test_somebody_elses_folder_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / f"brokersim-{STRANGER}").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    assert temporary_home().name.endswith(".scratch")


def test_a_users_cache_is_used_only_where_it_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    assert user_cache() == tmp_path / "home" / "cache"
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o1777)  # such as /tmp as home: anybody may make `cache` first
    assert user_cache() is None
    (tmp_path / "home").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: STRANGER)
        assert user_cache() is None
    (tmp_path / "home" / "cache").touch()
    assert user_cache() is None


# Stands for a package folder and a home without the right to write: root has it everywhere.
INSTALLED_BY_ROOT = """
import os, sys
os.access = lambda *_: False
import sim.base.compiled
print(os.environ["NUMBA_CACHE_DIR"], oct(os.stat(os.path.dirname(os.environ["NUMBA_CACHE_DIR"])).st_mode & 0o777))
"""


@pytest.mark.parametrize("attacked", [False, True])
def test_compiled_code_is_not_taken_from_a_folder_that_somebody_else_prepared(temporary: Path, attacked: bool) -> None:
    home = temporary / f"brokersim-{os.getuid()}"
    if attacked:
        open_to_all(home)
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", INSTALLED_BY_ROOT]
    said = subprocess.run(
        command, env=environment | {"TMPDIR": str(temporary)}, capture_output=True, text=True, check=True
    ).stdout
    folder, mode = said.split()
    assert mode == "0o700"
    assert (Path(folder).parent == home) != attacked
    assert [path.name for path in temporary.iterdir()] == [home.name]  # one's own went with its process


WORKING = """
import sys, time
from sim.base.private import temporary_folder
with temporary_folder() as folder:
    (folder / "much").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def working(temporary: Path, code: str = WORKING) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_cleared_away_at_the_next_start_and_what_is_in_use_stays(temporary: Path) -> None:
    killed, left = working(temporary)
    alive, used = working(temporary)
    try:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert (left / "much").exists()
        with temporary_folder() as folder:
            assert not left.exists()
            assert (used / "much").exists()
        assert not folder.exists()
    finally:
        alive.kill()
        alive.communicate()


def test_what_only_looks_like_a_leftover_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "mine").mkdir()
    (temporary / "brokersim-link.scratch").symlink_to(temporary / "mine")
    (temporary / "brokersim-theirs.scratch").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    with claimed_folder(temporary, "brokersim-", ".scratch"):
        pass
    assert sorted(path.name for path in temporary.iterdir()) == [
        "brokersim-link.scratch",
        "brokersim-theirs.scratch",
        "mine",
    ]


SPARK = """
import time
from sim.spark import spark_session
with spark_session("local[1]") as session:
    session.range(1000).repartition(4).count()
    print(session.conf.get("spark.local.dir"), flush=True)
    time.sleep(600)
"""


@pytest.mark.long
def test_sparks_folders_of_a_killed_command_are_cleared_away_at_the_next_start(temporary: Path) -> None:
    process, left = working(temporary, SPARK)
    process.kill()
    process.communicate()
    assert left.is_dir()
    with temporary_folder():
        assert not left.exists()
