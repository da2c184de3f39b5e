"""The code that determines the results of runs, found by reading the imports of its modules.

Other code, such as the command line and the pages, may change without changing the version of any run.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

from sim.base.imports import own_imports
from sim.files.hashing import sha256_of

PACKAGE = Path(__file__).resolve().parents[1]
SIMULATION = f"{PACKAGE.name}.simulation"


@cache
def version(*modules: str) -> str:
    """The package's version and, in a source checkout, a hash of the simulation, these modules, and all that they import."""
    number = installed_version("brokersim")
    if not (PACKAGE.parent / "pyproject.toml").is_file():
        return number
    return f"{number}+source.{digest(imported(SIMULATION, *modules), PACKAGE.parent)[:16]}"


def imported(*modules: str) -> list[Path]:
    """The files of the modules that are in this package, and of all in it that they import, also within functions."""
    found: dict[str, Path] = {}
    left = list(modules)
    while left:
        module = left.pop()
        if module not in found and (file := _file(module)):
            found[module] = file
            left += _imports(file)
            left.append(module.rpartition(".")[0])  # the packages around it are loaded with it
    return sorted(found.values())


def digest(files: list[Path], below: Path) -> str:
    """The SHA-256 of files and their paths below a folder."""
    return sha256_of(b"".join(f"{file.relative_to(below).as_posix()}\0".encode() + file.read_bytes() for file in files))


def _file(module: str) -> Path | None:
    """The file of a module of this package; None for any other name."""
    if module.partition(".")[0] != PACKAGE.name:
        return None
    place = PACKAGE.parent.joinpath(*module.split("."))
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file for file in files if file.is_file()), None)


@cache
def _imports(file: Path) -> set[str]:
    return own_imports(file.read_text())
