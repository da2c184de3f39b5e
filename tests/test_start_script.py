"""The start script, run by all installed shells, with stubs of Python and pip."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "brokersim"
TOOLS = "awk basename cat cksum cp date df dirname grep mkdir mv readlink rm rmdir sh sleep tail"
SHELLS = ["dash", "busybox sh", "bash --posix"]

# Stands for Python and, copied into the virtual environment, for pip, pytest and the installed command as well.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$RECORD"
case "$*" in
  *version_info*) echo "${STUB_VERSION:-3 11}" ;;
  *'import venv'*) [ -z "${STUB_NO_VENV-}" ] || exit 1 ;;
  '-m venv '*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  '-m pip '*)
    echo "Collecting numpy"
    [ -z "${STUB_PIP_WAITS-}" ] || sleep "$STUB_PIP_WAITS"
    [ -z "${STUB_PIP_FAILS-}" ] || { echo "ERROR: $STUB_PIP_FAILS"; exit 1; }
    cp "$0" "$(dirname "$0")/brokersim" ;;
  *) echo "in $(pwd)"; for argument do echo "<$argument>"; done; exit "${STUB_STATUS:-0}" ;;
esac
"""


class Project:
    """A folder with the start script, on a PATH that has a pretended Python and a few tools, nothing else."""

    def __init__(self, place: Path, shell: list[str]) -> None:
        self.shell = [str(shutil.which(shell[0])), *shell[1:]]
        self.home = place / "the project"
        self.home.mkdir()
        shutil.copy(SCRIPT, self.home)
        (self.home / "requirements.lock").write_text("numpy==2.4.6\n")
        (self.home / "pyproject.toml").write_text("[project]\n")
        self.tools = place / "tools"
        self.tools.mkdir()
        for tool in TOOLS.split():
            (self.tools / tool).symlink_to(str(shutil.which(tool)))
        self.record = place / "record"
        self.record.touch()
        self.fake("python3", STUB)
        self.environment = {"PATH": str(self.tools), "RECORD": str(self.record)}

    def fake(self, name: str, text: str) -> None:
        (self.tools / name).unlink(missing_ok=True)
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def popen(
        self, *arguments: str, script: Path | None = None, cwd: Path | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.shell, str(script or self.home / "brokersim"), *arguments],
            cwd=cwd or self.home,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(
        self, *arguments: str, script: Path | None = None, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        process = self.popen(*arguments, script=script, cwd=cwd, **environment)
        out, err = process.communicate(timeout=30)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def ready(self) -> Project:
        assert self.start().returncode == 0
        self.record.write_text("")
        return self

    @property
    def installs(self) -> int:
        return self.record.read_text().count("-m pip install")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, ["sh"])


@pytest.fixture(params=SHELLS)
def any_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    command = request.param.split()
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not here")
    return Project(tmp_path, command)


def test_first_start_installs_pinned_versions_and_later_ones_do_not(any_shell: Project) -> None:
    first = any_shell.start("policies")
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[1:] == ["<policies>"]
    assert "first start" in first.stderr
    assert "minutes" in first.stderr
    assert "-m pip install" in any_shell.record.read_text()
    assert "-c requirements.lock -e .[dev]" in any_shell.record.read_text()
    assert not (any_shell.home / ".venv.lock").exists()

    second = any_shell.start("policies")
    assert second.stderr == ""
    assert any_shell.installs == 1


def test_arguments_and_status_are_handed_on_unmodified(any_shell: Project) -> None:
    arguments = ["run", "a b", "", "*", "--set", "x='1'", "-", "--", "$HOME", "two\nlines", "test"]
    found = any_shell.ready().start(*arguments, STUB_STATUS="7")
    assert found.stdout.split("\n", 1)[1] == "".join(f"<{argument}>\n" for argument in arguments)
    assert (found.returncode, found.stderr) == (7, "")


def test_called_through_symlinks_from_elsewhere(any_shell: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "first").symlink_to("../the project/brokersim")
    (elsewhere / "second").symlink_to(elsewhere / "first")
    found = any_shell.start("x", script=Path("second"), cwd=elsewhere)
    assert found.stdout.splitlines() == [f"in {elsewhere}", "<x>"], found.stderr
    assert (any_shell.home / ".venv").is_dir()


def test_missing_python(project: Project) -> None:
    (project.tools / "python3").unlink()
    found = project.start()
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == ("brokersim: Python 3.11 or newer with the module venv is needed: found none on the PATH\n")


def test_too_old_python_is_named(any_shell: Project) -> None:
    found = any_shell.start(STUB_VERSION="3 9")
    assert found.returncode == 2
    assert "found only Python 3.9" in found.stderr
    assert not (any_shell.home / ".venv").exists()


def test_missing_venv_module_names_the_package(project: Project) -> None:
    found = project.start(STUB_NO_VENV="1")
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "apt-get install python3.11-venv" in found.stderr


def test_a_shim_that_fails_is_passed_over(project: Project) -> None:
    project.fake("python3.13", "#!/bin/sh\necho 'python3.13: command not found' >&2\nexit 127\n")
    found = project.start()
    assert found.returncode == 0
    assert "with Python 3.11 " in found.stderr
    assert "not found" not in found.stderr


def test_a_python_that_is_named_is_taken_before_newer_ones(any_shell: Project) -> None:
    for name in ("python3.12", "python3.13"):
        any_shell.fake(name, STUB)
    assert any_shell.start(BROKERSIM_PYTHON="python3.12").returncode == 0
    assert "python3.12 -m venv" in any_shell.record.read_text()
    assert "python3.13" not in any_shell.record.read_text()


def test_a_python_that_is_named_and_not_there_is_no_other(project: Project) -> None:
    found = project.start(BROKERSIM_PYTHON="python3.99")
    assert found.returncode == 2
    assert "found none on the PATH" in found.stderr


def test_too_little_disk_space(project: Project) -> None:
    project.fake(
        "df",
        "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho /dev/x 9 9 51200 9% /a b\n",
    )
    found = project.start()
    assert found.returncode == 2
    assert "too little disk space" in found.stderr
    assert "50 MiB are free" in found.stderr
    assert not (project.home / ".venv").exists()


def test_no_right_to_write(project: Project) -> None:
    project.fake("mkdir", "#!/bin/sh\nexit 1\n")
    found = project.start()
    assert found.returncode == 2
    assert f"no permission to write to {project.home}" in found.stderr


@pytest.mark.parametrize(
    ("said", "explained"),
    [
        ("NewConnectionError(...): Failed to establish a new connection", "the package index cannot be reached"),
        ("[Errno 28] No space left on device", "the disk is full"),
        ("something else", "installing the packages failed;"),
    ],
)
def test_failed_install_shows_why_and_is_redone(project: Project, said: str, explained: str) -> None:
    failed = project.start("x", STUB_PIP_FAILS=said)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert f"ERROR: {said}" in failed.stderr
    assert explained in failed.stderr
    assert str(project.home / ".venv" / "set-up.log") in failed.stderr

    again = project.start("x")
    assert again.returncode == 0
    assert "was not finished" in again.stderr


def test_killed_set_up_is_redone_not_believed(project: Project) -> None:
    killed = project.popen("x", STUB_PIP_WAITS="2")
    while project.installs == 0:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (project.home / ".venv" / "rest").touch()

    again = project.start("x")
    assert again.returncode == 0
    assert "another start is setting up" in again.stderr  # the orphaned pip still writes into the folder
    assert "was not finished" in again.stderr
    assert not (project.home / ".venv" / "rest").exists()
    assert project.installs == 2


def test_interrupted_set_up_ends_at_once_and_leaves_no_lock(any_shell: Project) -> None:
    process = any_shell.popen("x", STUB_PIP_WAITS="1")
    while any_shell.installs == 0:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=5) == 143
    process.communicate()
    assert not (any_shell.home / ".venv.lock").exists()
    assert not (any_shell.home / ".venv" / "set-up").exists()


def test_lock_of_a_dead_process_is_taken_over(project: Project) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (project.home / ".venv.lock").mkdir()
    (project.home / ".venv.lock" / "processes").write_text(f"{dead.pid}\n")
    assert project.start().returncode == 0
    assert not (project.home / ".venv.lock").exists()


def test_two_starts_at_once_install_once(project: Project) -> None:
    both = [project.popen("x", STUB_PIP_WAITS="1") for _ in range(2)]
    results = [process.communicate(timeout=30) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert project.installs == 1


def test_changed_versions_are_noticed(project: Project) -> None:
    project.ready()
    (project.home / "requirements.lock").write_text("numpy==2.4.7\n")
    found = project.start("x")
    assert found.returncode == 0
    assert "requirements.lock or pyproject.toml has changed" in found.stderr
    assert project.installs == 1
    assert project.start("x").stderr == ""


def test_moved_project_is_noticed(project: Project, tmp_path: Path) -> None:
    project.ready()
    project.home = project.home.rename(tmp_path / "moved")
    found = project.start("x")
    assert found.returncode == 0
    assert "was moved" in found.stderr
    assert project.start("x").stderr == ""


def test_vanished_python_is_noticed(project: Project) -> None:
    project.ready()
    (project.home / ".venv" / "bin" / "python").unlink()
    found = project.start("x")
    assert found.returncode == 0
    assert "the Python of the last set-up is gone" in found.stderr


def test_settings_for_other_installs_do_not_lead_pip_astray(project: Project) -> None:
    project.fake("python3", STUB.replace('echo "Collecting numpy"', 'echo "target ${PIP_TARGET-none}" >>"$RECORD"'))
    assert project.start(PIP_TARGET="/elsewhere").returncode == 0
    assert "target none" in project.record.read_text()


def test_runs_pytest_in_the_project_with_paths_relative_to_the_caller(any_shell: Project) -> None:
    any_shell.ready()
    tests = any_shell.home / "tests"
    tests.mkdir()
    (tests / "test_one.py").touch()
    (tests / "long").touch()
    found = any_shell.start("test", "-m", "long", "-k", "a or b", "test_one.py::test_x", "-q", cwd=tests)
    assert found.stdout.splitlines() == [
        f"in {any_shell.home}",
        *(f"<{a}>" for a in ("-m", "pytest", "-m", "long", "-k", "a or b", f"{tests}/test_one.py::test_x", "-q")),
    ]
    assert any_shell.start("test", "tests/test_one.py").stdout.splitlines()[1:] == [
        "<-m>",
        "<pytest>",
        "<tests/test_one.py>",
    ]


def test_the_script_is_executable_and_parses_everywhere() -> None:
    assert os.access(SCRIPT, os.X_OK)
    assert SCRIPT.read_text().startswith("#!/bin/sh\n")
