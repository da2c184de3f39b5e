"""Workloads: generated, loaded, and summarised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Any: parameters of whichever generator is asked for.
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sim import plugins
from sim.base.errors import InputError
from sim.base.naming import Raw, RawValue
from sim.base.randomness import Streams
from sim.base.validation import dotted, problems, validate
from sim.workloads.format import folder
from sim.workloads.format.summary import summarise_workload
from sim.workloads.format.workload import Workload
from sim.workloads.promises import WorkloadPromises
from sim.workloads.synthetic.checkins import write_checkins

if TYPE_CHECKING:
    from pydantic import BaseModel

    Parameters = Mapping[str, RawValue] | BaseModel


def generate(
    kind: str,
    parameters: Parameters | None = None,
    out: str | Path | None = None,
    *,
    seed: int = 1,
    replication: int = 0,
) -> Workload:
    """Generate a synthetic workload, without a trace and without Spark.

    Args:
        kind: a generator by its name, such as "poisson", "mobility" or "content".
        parameters: its parameters, as in a scenario's [workload] table; `brokersim generate KIND --help` lists them.
        out: also write the workload to this folder; one that is already there is replaced.
        seed: the seed of all random draws.
        replication: which of the seed's independent replications to generate.

    Returns:
        The workload.

    Raises:
        InputError: where there is no such generator, or with a line for each wrong parameter.

    Examples:
        >>> len(sim.generate("poisson", {"users": 20, "topics": 10, "horizon": "1h"}, "poisson").users)
        20
    """
    generator, streams = _generator(kind, parameters), Streams(seed, replication)
    workload: Workload = generator.generate(streams)
    if out is not None:
        lines = generator.lines(streams) if hasattr(generator, "lines") else None
        folder.write_workload(workload, Path(out), lines=lines)
    return workload


def generate_checkins(
    path: str | Path, parameters: Parameters | None = None, *, seed: int = 1, replication: int = 0, dirt: float = 0.0
) -> dict[str, int]:
    """Generate the raw check-ins of a "mobility" workload, as input for `prepare_checkins` in the layout "gowalla".

    Args:
        path: the file to write; gzip if it ends in .gz.
        parameters: as for `generate`.
        seed: the seed of all random draws.
        replication: which of the seed's independent replications to generate.
        dirt: the share of the rows to make unusable, from 0 to 0.49.

    Returns:
        The number of rows of each kind: "good", and those that are not.

    Raises:
        InputError: with a line for each wrong parameter, or where the file cannot be written.

    Examples:
        >>> sim.generate_checkins("checkins.tsv", {"users": 20, "horizon": "7d", "cities": 3})["good"] > 20
        True
    """
    streams = Streams(seed, replication)
    rows = _generator("mobility", parameters).checkins(streams)
    return dict(write_checkins(Path(path), rows, dirt, streams.generator("workload.dirt")))


def load_workload(path: str | Path) -> Workload:
    """Load and check a workload folder, prepared or generated.

    Args:
        path: the folder.

    Returns:
        The workload: users, topics, interests and what happens when, as arrays. Times are seconds from its `origin`.

    Raises:
        WorkloadError: where it is not a workload, or damaged.

    Examples:
        >>> _ = sim.generate("poisson", {"users": 20, "topics": 10, "horizon": "1h"}, "poisson")
        >>> sim.load_workload("poisson").horizon
        3600.0
    """
    return folder.load_workload(Path(path))


def describe(workload: str | Path | Workload) -> Raw:
    """Summarise a workload: counts, rates, distributions, time span, and what became of a trace's rows.

    Args:
        workload: a workload, or its folder.

    Returns:
        The summary, as `brokersim describe --json` prints it.

    Raises:
        WorkloadError: where the folder is not a workload, or damaged.

    Examples:
        >>> sim.describe(sim.generate("poisson", {"users": 20, "topics": 10, "horizon": "1h"}))["counts"]["users"]
        20
    """
    return summarise_workload(workload if isinstance(workload, Workload) else load_workload(workload))


def _generator(kind: str, parameters: Parameters | None) -> Any:
    found = plugins.load("workload", kind)
    model = found.Parameters
    if parameters is None or isinstance(parameters, Mapping):
        try:
            parameters = validate(model, dict(parameters or {}))
        except ValidationError as error:
            lines = (f"{dotted(keys)}: {text}" if keys else text for keys, text in problems(error, model))
            raise InputError("\n".join(lines)) from None
    return plugins.make(WorkloadPromises, kind, parameters)
