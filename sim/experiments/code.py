"""The code that determines the results of runs, found by reading the imports of its modules.

Other code, such as the command line and the pages, may change without changing the version of any run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple, cast

from pydantic import BaseModel

from sim.base.imports import module_files, read_module
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
    root, found = PACKAGE.parent, set[Path]()
    left = [*module_files(modules, root)]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += read_module(file, root)[1]
            around = file.parents[file.name == "__init__.py"] / "__init__.py"  # loaded with it
            left += [around] if around.is_file() else []
    return sorted(found)


def digest(files: list[Path], below: Path) -> str:
    """The SHA-256 of files and their paths below a folder."""
    return sha256_of(b"".join(f"{file.relative_to(below).as_posix()}\0".encode() + file.read_bytes() for file in files))


class Foreign(NamedTuple):
    """Code that this package's version does not cover: a hash of it, and the modules of this package that it imports."""

    hash: str
    imports: frozenset[str]


def written_here(kind: type) -> Foreign:
    """The compiled code of a class that is in no file, with all that it names in its module."""
    left, seen = [cast("object", kind)], [cast("object", kind)]
    parts, imports = list[str](), set[str]()
    while left:
        for part in _parts(left.pop(), kind.__module__):
            if isinstance(part, str):
                parts.append(part)
            elif not any(part is each for each in seen):
                seen.append(part)
                left.append(part)
                home = part.__name__ if isinstance(part, ModuleType) else getattr(part, "__module__", None)
                if home and home.startswith(f"{PACKAGE.name}."):
                    imports.add(home)
    return Foreign(sha256_of("\n".join(parts).encode()), frozenset(imports))


def _parts(thing: object, module: str) -> Iterator[object]:
    """The text of a thing's code, and the things that it names; of what other modules define, the names alone."""
    if isinstance(thing, FunctionType | type):
        yield f"{thing.__module__}.{thing.__qualname__}"
        if thing.__module__ == module:
            yield from _code(thing) if isinstance(thing, FunctionType) else _members(thing)
    elif isinstance(thing, ModuleType):
        yield thing.__name__
    else:
        yield repr(sorted(map(repr, thing)) if isinstance(thing, set | frozenset) else thing)


def _members(kind: type) -> Iterator[object]:
    yield from kind.__bases__
    fields = issubclass(kind, BaseModel)
    if issubclass(kind, BaseModel):
        yield str(kind.model_json_schema())
    for name, value in vars(kind).items():
        inner = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(inner, FunctionType) or not (fields or name.startswith("__")):
            yield name
            yield inner


def _code(function: FunctionType) -> Iterator[object]:
    yield repr(function.__defaults__)
    left = [function.__code__]
    while left:
        code = left.pop()
        yield code.co_code.hex()
        left += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        yield from (constant for constant in code.co_consts if not isinstance(constant, CodeType))
        yield from code.co_names
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)
