"""Scenarios written in code instead of a file, and what they would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from sim.base.errors import ScenarioError
from sim.base.naming import Raw, RawValue
from sim.experiments.outlook import Outlook, outlook
from sim.experiments.question import default_folder
from sim.files import toml
from sim.files.atomic import whole_file
from sim.scenario import reader
from sim.scenario.experiment import Experiment

ScenarioSource = str | Path | Raw | Experiment
"""A scenario: the path of a file, its content (a `Scenario` or any dict), or what `load_scenario` returned."""


class Scenario(dict[str, RawValue]):
    """The content of a scenario file, built in code: keys and tables as in docs/formats.md.

    It is a dict, and every function that takes a scenario file takes it too. Durations and other values with units are text, as in
    the file ("5min"), or numbers in the key's unit. Paths are relative to the current folder; once written, to that of the file.

    Examples:
        >>> scenario = sim.Scenario(horizon="2h", workload={"kind": "poisson", "users": 20, "topics": 10}, network={"brokers": 4})
        >>> scenario = scenario.variant("ring", network={"geometry": {"kind": "chord"}})
        >>> scenario = scenario.variant("star", network={"geometry": {"kind": "star"}})
        >>> list(sim.load_scenario(scenario).variants)
        ['ring', 'star']
    """

    def variant(self, name: str, **tables: RawValue) -> Self:
        """The same scenario with one more variant, in which these keys differ from the base.

        Examples:
            >>> sim.Scenario(seed=7).variant("fast", network={"hop_cost": "one_way"})["variant"]
            [{'name': 'fast', 'network': {'hop_cost': 'one_way'}}]
        """
        return type(self)({**self, "variant": [*self.get("variant", ()), {"name": name, **tables}]})

    def sweep(self, values: Mapping[str, RawValue]) -> Self:
        """The same scenario at each combination of these values, by key path; a path that is swept already is replaced.

        Examples:
            >>> sim.Scenario(seed=7).sweep({"network.brokers": [4, 8]})["sweep"]
            {'network.brokers': [4, 8]}
        """
        return type(self)({**self, "sweep": {**self.get("sweep", {}), **values}})

    def toml(self) -> str:
        """The scenario as the text of a file. Raises ScenarioError where TOML cannot represent a value.

        Examples:
            >>> print(sim.Scenario(seed=7).sweep({"network.brokers": [4, 8]}).toml())
            seed = 7
            <BLANKLINE>
            [sweep]
            "network.brokers" = [4, 8]
            <BLANKLINE>
        """
        return toml.document(toml.checked(self, "scenario"))

    def write(self, path: str | Path) -> Path:
        r"""Write the scenario to a file, and return its path. Raises ScenarioError where that is not possible.

        Examples:
            >>> sim.Scenario(seed=7).write("seven.toml").read_text()
            'seed = 7\n'
        """
        with whole_file(Path(path), ScenarioError) as unfinished:
            unfinished.write_text(self.toml(), encoding="utf-8")
        return Path(path)


def example() -> Scenario:
    """A small scenario that runs in a second: 20 users, 4 brokers on a ring or as a star, 2 replications.

    Examples:
        >>> [variant["name"] for variant in sim.example()["variant"]]
        ['ring', 'star']
    """
    poisson = {"kind": "poisson", "users": 20, "topics": 10}
    base = Scenario(title="Example", replications=2, horizon="6h", workload=poisson, network={"brokers": 4})
    ring, star = ({"geometry": {"kind": kind}} for kind in ("chord", "star"))
    return base.variant("ring", network=ring).variant("star", network=star)


def load_scenario(
    source: ScenarioSource, overrides: Sequence[str] = (), workload: str | Path | None = None
) -> Experiment:
    """Read and validate a scenario, without running it.

    Args:
        source: a scenario file (TOML), or its content (a `Scenario` or any dict); a loaded one is returned as it is.
        overrides: texts `key.path=value` that override the base (`variant.NAME.key=value`: one variant), and are then no longer swept.
        workload: a workload folder that replaces the [workload] table.

    Returns:
        The points and variants, each a complete scenario.

    Raises:
        ScenarioError: with one line for each mistake.

    Examples:
        >>> sim.load_scenario(sim.example(), ["seed=7"]).base.seed
        7
    """
    if not isinstance(source, Experiment):
        return reader.load_scenario(source, overrides, workload)
    if workload is not None or overrides:
        raise ScenarioError("give workload and overrides to load_scenario, as this scenario is already loaded")
    return source


def plan(
    source: ScenarioSource,
    out: str | Path | None = None,
    workload: str | Path | None = None,
    overrides: Sequence[str] = (),
    *,
    jobs: int = 1,
) -> Outlook:
    """Count the runs that a scenario needs, and estimate their time, without running anything.

    Args:
        source: a scenario file, its content, or a loaded one.
        out: the folder for results, by default that of `run`; runs in it are not repeated.
        workload: a workload folder, instead of the one named in the scenario.
        overrides: texts `key.path=value` that override keys.
        jobs: the number of processes that would perform the runs.

    Returns:
        The numbers of runs, and `seconds`, estimated from runs that exist; None without any.

    Raises:
        InputError: where the scenario, its workload or the folder cannot be used.

    Examples:
        >>> sim.plan(sim.example().sweep({"network.brokers": [2, 4, 8]})).to_do
        12
    """
    experiment = load_scenario(source, overrides, workload)
    return outlook(experiment, results_folder(experiment, out), jobs)


def results_folder(source: ScenarioSource, out: str | Path | None = None) -> Path:
    """The folder in which `run` keeps the results of a scenario: `out`, or by default results/NAME.

    Examples:
        >>> sim.results_folder(sim.load_scenario("scenarios/quickstart.toml")).as_posix()
        'results/quickstart'
    """
    return Path(out) if out is not None else default_folder(load_scenario(source))
