"""The first scenario: one that is shipped, or a new one, with comments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from sim import plugins
from sim.base.errors import InputError, suggestion, unknown
from sim.base.naming import RawValue
from sim.files import toml
from sim.files.atomic import whole_file
from sim.scenario.reader import load_scenario

GENERATED = {
    "poisson": ["users = 200", "topics = 40", 'horizon = "12h"'],
    "mobility": ["users = 300", 'horizon = "14d"'],
    "interests": ["users = 200", "topics = 40", "publication_rate = 1.0"],
}
"""The keys that a new scenario shows of each kind of workload."""


def list_scenarios() -> dict[str, str]:
    """The scenarios that are shipped: their names, and the question that each answers.

    Examples:
        >>> sim.list_scenarios()["quickstart"]
        'A first comparison: three ways to decide which broker serves a user.'
    """
    with as_file(files("scenarios")) as folder:
        return {
            path.relative_to(folder).with_suffix("").as_posix(): _title(path) for path in sorted(folder.rglob("*.toml"))
        }


def copy_scenario(name: str, to: str | Path = ".") -> list[Path]:
    """Copy a shipped scenario, and the files that it names, to a folder.

    Args:
        name: the scenario's name in `list_scenarios`.
        to: the folder.

    Returns:
        The paths of the copies, the scenario first.

    Raises:
        InputError: where there is no such scenario, a file that is there already would be replaced, or the
            folder cannot be written.

    Examples:
        >>> [path.as_posix() for path in sim.copy_scenario("three-regions", "mine")]
        ['mine/three-regions.toml', 'mine/three-regions/brokers.csv']
    """
    if name not in list_scenarios():
        raise InputError(unknown("scenario", name, list_scenarios()))
    with as_file(files("scenarios")) as folder:
        source = folder / f"{name}.toml"
        beside = [
            source.parent / text for text in dict.fromkeys(_texts(toml.read(source)[0])) if _is_file(source, text)
        ]
        found = {path: Path(to) / path.relative_to(source.parent) for path in (source, *beside)}
        if there := next((copy for copy in found.values() if copy.exists()), None):
            raise InputError(f"{there}: is there already, and is not replaced; give another folder")
        try:
            for path, copy in found.items():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        except OSError as problem:
            raise InputError(f"{copy}: cannot be written ({problem.strerror})") from None
    return list(found.values())


def new_scenario(
    path: str | Path,
    workload: str = "poisson",
    brokers: int = 10,
    geometry: str = "chord",
    compare: Sequence[str] = ("static", "similarity"),
    replications: int = 5,
) -> Path:
    """Write a scenario to begin with: it runs as it is, and comments say what to change.

    Args:
        path: the file to write.
        workload: "poisson", "interests" or "mobility" to generate one, or the folder of a workload.
        brokers: the number of brokers.
        geometry: the overlay between them, such as "chord", "star" or "full-mesh".
        compare: the ways to select a user's broker that are compared, the first as the baseline.
        replications: how often each is run, with new random numbers.

    Returns:
        The path of the file.

    Raises:
        InputError: where the file is there already, or the scenario is not valid.

    Examples:
        >>> path = sim.new_scenario("first.toml", brokers=4)
        >>> sim.plan(path).to_do
        10
    """
    target = Path(path)
    if target.exists():
        raise InputError(f"{target}: is there already, and is not replaced; give another name")
    check_workload(workload)
    check_kinds("geometry", [geometry])
    check_kinds("selection", compare)
    text = "\n".join(_lines(target, workload, brokers, geometry, compare, replications)) + "\n"
    with whole_file(target) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    try:
        load_scenario(target)
    except InputError:
        target.unlink()
        raise
    return target


def check_workload(name: str) -> None:
    """Raise InputError where a new scenario cannot have this workload: neither a kind to generate nor a folder."""
    if name not in GENERATED and not Path(name).is_dir():
        raise InputError(
            f"workload '{name}': no such folder{suggestion(name, GENERATED)} (allowed: {', '.join(GENERATED)}, or a workload's folder)"
        )


def check_kinds(group: str, kinds: Sequence[str]) -> None:
    """Raise InputError where there is no plug-in of one of these kinds in the group."""
    for kind in kinds:
        if kind not in plugins.names(group):
            raise InputError(unknown(f"kind of {group}", kind, plugins.names(group)))


def _lines(
    path: Path, workload: str, brokers: int, geometry: str, compare: Sequence[str], replications: int
) -> Iterator[str]:
    yield f"# Compares {', '.join(compare)}, with {brokers} brokers. Run it, and look at the results:"
    yield "#"
    yield f"#   brokersim run {path}"
    yield f"#   brokersim report results/{path.stem}"
    yield "#"
    yield "# `brokersim explain KEY` says what a key means, `brokersim policies` lists the kinds of everything."
    yield f"title = {_quoted(path.stem)}"
    yield "seed = 1"
    yield f"replications = {replications}    # more of them make confidence intervals narrower"
    yield '# warm_up = "1h"        # leave out the beginning'
    yield "\n# What happens to the network from outside."
    yield "[workload]"
    if workload in GENERATED:
        yield f"kind = {_quoted(workload)}    # other kinds: brokersim generate --help"
        yield from GENERATED[workload]
    else:
        yield 'kind = "prepared"'
        yield f"path = {_quoted(os.path.relpath(workload, path.parent))}"
    yield "\n[network]"
    yield f"brokers = {brokers}"
    yield f"geometry = {{ kind = {_quoted(geometry)} }}    # the overlay between the brokers"
    yield '# latency = { kind = "unit" }    # round-trip times: by distance, by region, measured'
    yield "\n# By default a broker takes no time for a message."
    yield "# [brokers]"
    yield '# service = { kind = "deterministic", time = "100us" }'
    yield "\n# Each variant changes some keys of the above; all of them see the same random numbers."
    for name in compare:
        yield "[[variant]]"
        yield f"name = {_quoted(name)}"
        yield f"selection = {{ kind = {_quoted(name)} }}\n"
    yield "# Every variant at each of these values; remove the # to try it."
    yield "# [sweep]"
    yield f'# "network.brokers" = [{brokers}, {2 * brokers}]'


def _quoted(text: str) -> str:
    return toml.text([text])[1:-1]


def _title(path: Path) -> str:
    """The first sentence of a scenario's comment."""
    first = path.read_text(encoding="utf-8").split("\n#\n", 1)[0]
    return " ".join(line.removeprefix("#").strip() for line in first.splitlines() if line.startswith("#"))


def _texts(value: RawValue) -> Iterator[str]:
    """All texts in nested tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _is_file(source: Path, text: str) -> bool:
    return 0 < len(text) < 200 and (source.parent / text).is_file()
