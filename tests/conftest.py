"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from reader import Reader

# A busy machine and the first call of a compiled kernel take longer than any sensible deadline.
settings.register_profile("brokersim", deadline=None)
settings.load_profile("brokersim")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces that stands beside the checkout; tests that need it are skipped where it is missing."""
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
    return Reader(tmp_path_factory.mktemp("reader"))
