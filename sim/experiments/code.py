"""The code that determines the results of runs, found by reading the imports of its modules.

Other code, such as the command line and the pages, may change without changing the version of any run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

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
            left += _own_imports(file)
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


def imports(file: Path) -> list[str]:
    """The names of modules, or of their members, that a file imports anywhere, except for type checkers only."""
    return [name for statement in _statements(ast.parse(file.read_bytes()).body) for name in _names(statement)]


_own_imports = cache(imports)


def _statements(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements of a block, nested ones included, except those for type checkers only."""
    for statement in block:
        if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"):
            yield statement
            for part in ("body", "handlers", "cases", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, ()))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
