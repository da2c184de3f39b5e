"""What modules of this package a text imports, found without parsing it, which takes long for all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_FOR_TYPE_CHECKERS = re.compile(r"^([ \t]*)if (?:typing\.)?TYPE_CHECKING:.*\n(?:\1[ \t]+.*\n|[ \t]*\n)*", re.MULTILINE)
_IMPORT = re.compile(r"(?<!>>> )\bfrom (sim[\w.]*) import (?:\(([^)]*)\)|(.*))|\bimport (sim\b.*)")


def own_imports(text: str) -> set[str]:
    """The names of modules of this package, or of their members, that a text imports anywhere, except for type checkers only.

    What only looks like an import, in a comment say, may be among them.
    """
    found = set()
    for package, many, one, modules in _IMPORT.findall(_FOR_TYPE_CHECKERS.sub("", text)):
        listed = re.sub("#.*", "", f"{many}{one}{modules}").split(",")
        names = [re.split(r"[\s;(]", name.strip())[0] for name in listed]
        found |= {f"{package}.{name}" for name in names} | {package} if package else set(names)
    return found


def module_files(names: Iterable[str], root: Path) -> frozenset[Path]:
    """The files below `root` of those names that are modules, not members of one."""
    places = [f"{root}/{name.replace('.', '/')}" for name in names]
    files = (f"{place}{end}" for place in places for end in ("/__init__.py", ".py"))
    return frozenset(Path(file) for file in files if os.path.isfile(file))


@cache
def read_module(file: Path, root: Path) -> tuple[bytes, frozenset[Path]]:
    """A module's text, and the files of the modules of this package, below `root`, that it imports."""
    text = file.read_bytes()
    return text, module_files(own_imports(text.decode()), root)
