"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from commands import status_of
from depth import tried
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import engine, providers
from reader import Reader

# Tests keep much in memory and leave few cycles: looking for these more rarely takes a fourth off collecting tests, and 7 % off
# compiling kernels. And the many processes that tests start need not each compile the sources again.
gc.set_threshold(200_000, 50, 100)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine and the first call of a compiled kernel take longer than any sensible deadline; a property that fails says so
# within half a minute, and of one fault.
settings.register_profile(
    "brokersim",
    max_examples=tried(100),
    deadline=None,
    report_multiple_bugs=False,
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.load_profile("brokersim")
engine.MAX_SHRINKING_SECONDS = 15
# Hypothesis also draws constants that stand in the modules loaded so far, which depend on the tests that ran before in the same
# process: without these, a test has the same cases wherever it runs.
providers._get_local_constants = lambda: providers._local_constants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Tests that share Spark run first, then those that share the demo too: one process runs them all, and others take over the rest.

    Meanwhile, others compile the kernels that the demo and the pages need; those on Spark need few.
    """
    items.sort(key=lambda item: 2 if "spark" not in item.fixturenames else 1 if "reader" in item.fixturenames else 0)


@pytest.fixture
def brokersim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in an empty folder, `tmp_path`; gives its exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        return status_of(*arguments), *capsys.readouterr()

    return command


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces beside the checkout; tests that need it are skipped if it is missing."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder with real traces (../shared/data) is not here")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of all tests; commands that run in this process use it too. Starting it takes seconds."""
    from sim.spark import spark_session

    with spark_session("local[2]", short=True) as session:
        yield session


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Reader:
    """A reader of the pages in whose folder `brokersim demo` has been run: takes most of a minute, once."""
    made = Reader(tmp_path_factory.mktemp("reader"))
    assert made.demo
    return made
