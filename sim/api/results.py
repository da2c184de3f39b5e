"""Results in Python: their tables in the library of your choice, and what a notebook shows of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

# Any: tables of libraries that may not be installed.
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.experiments import results as stored
from sim.experiments.results import Results

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class ExperimentResults(Results):
    """The results of an experiment: what `run` returns and `load_results` reads; a notebook shows its tables and a chart.

    `folder` is where they are, `manifest` what was run, `runs` a pandas table with a row per run and a column per metric (units:
    docs/formats.md), `points` the points of a sweep, `failed` the runs that failed, `notes` sentences about them.

    Examples:
        >>> results = sim.run(sim.example(), "results/example")
        >>> results.runs.groupby("variant")["delivery_ratio"].mean().tolist()
        [1.0, 1.0]
    """

    @classmethod
    def of(cls, results: Results) -> ExperimentResults:
        """The same results, with what was read of them already.

        Examples:
            >>> results = sim.run(sim.example(), "results/example")
            >>> type(results).of(results).folder == results.folder
            True
        """
        view = cls(results.folder, results.manifest)
        view.__dict__.update(results.__dict__)
        return view

    def tables(self, name: str) -> pd.DataFrame:
        """One table of all runs, such as "brokers" or "timeseries", after columns run, point, variant and replication.

        Raises:
            ResultsError: where a run does not have the table, or it has changed since it was written.

        Examples:
            >>> results = sim.run(sim.example(), "results/example")
            >>> results.tables("brokers").groupby("variant")["users"].sum().round().tolist()  # two replications
            [40.0, 40.0]
        """
        import pandas as pd

        columns = ["run", "point", "variant", "replication"]
        keyed = ((tuple(row), self.table(row[0], name)) for row in self.runs[columns].itertuples(index=False))
        return pd.concat(dict(keyed), names=columns).reset_index(level=columns).reset_index(drop=True)

    def arrow(self, name: str = "runs") -> pa.Table:
        """The table of runs, or one of all runs as in `tables`, as an Arrow table; numbers are not copied where Arrow allows it.

        Examples:
            >>> sim.run(sim.example(), "results/example").arrow().num_rows
            4
        """
        import pyarrow as pa

        return pa.Table.from_pandas(self.runs if name == "runs" else self.tables(name), preserve_index=False)

    def polars(self, name: str = "runs") -> Any:
        """As `arrow`, as a Polars frame on the same memory. Raises InputError where Polars is not installed.

        Examples:
            >>> sim.run(sim.example(), "results/example").polars().height
            4
        """
        return _installed("polars").from_arrow(self.arrow(name))

    def duckdb(self, name: str = "runs") -> Any:
        """As `arrow`, as a DuckDB relation on the same memory. Raises InputError where DuckDB is not installed.

        Examples:
            >>> sim.run(sim.example(), "results/example").duckdb().count("run").fetchall()
            [(4,)]
        """
        return _installed("duckdb").from_arrow(self.arrow(name))

    def _repr_html_(self) -> str:
        from analysis.notebook import notebook_html

        return notebook_html(self)


def _installed(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError:
        raise InputError(f"{library} is not installed: pip install {library}") from None


def load_results(folder: str | Path) -> ExperimentResults:
    """Load the results in a folder that `run` has written; nothing is run.

    Args:
        folder: the folder of results.

    Returns:
        The results; tables are read when they are asked for.

    Raises:
        ResultsError: where there are none, or they are unfinished or damaged.

    Examples:
        >>> _ = sim.run(sim.example(), "results/example")
        >>> sim.load_results("results/example").runs["variant"].tolist()
        ['ring', 'ring', 'star', 'star']
    """
    return ExperimentResults.of(stored.load_results(folder))
