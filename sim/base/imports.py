"""What modules of this package a text imports, found without parsing it, which takes long for all of them."""

from __future__ import annotations

import re

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
