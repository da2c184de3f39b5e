"""Build wheels of the code that runs need, from its imported location: this package and third-party plug-ins."""

from __future__ import annotations

import hashlib
import re
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path

from sim.files.hashing import sha256_of
from sim.plugins import GROUPS

_OURS = "brokersim"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date of zip files: the same code makes the same bytes
WHEEL = "Wheel-Version: 1.0\nGenerator: brokersim\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def pack_wheels(folder: Path) -> list[Path]:
    """Write a wheel of each distribution with plug-ins, including this package, to a folder.

    A wheel contains the packages of the plug-ins as imported here (possibly from a source checkout), and the metadata by which they
    are found, without dependencies. A hash of the content is its build tag.
    """
    entries = [entry for group in GROUPS for entry in entry_points(group=f"{_OURS}.{group}")]
    roots: dict[str, set[str]] = {}
    for entry in entries:
        if entry.dist is not None:
            roots.setdefault(entry.dist.name, set()).add(entry.module.partition(".")[0])
    return [_pack(distribution(name), roots[name], folder) for name in sorted(roots)]


def _pack(packed: Distribution, roots: set[str], folder: Path) -> Path:
    name, version = re.sub(r"[-_.]+", "_", packed.name), packed.version.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    contents = {file: path.read_bytes() for root in sorted(roots) for file, path in _files(root)}
    contents[f"{info}/METADATA"] = (packed.read_text("METADATA") or packed.read_text("PKG-INFO") or "").encode()
    contents[f"{info}/entry_points.txt"] = (packed.read_text("entry_points.txt") or "").encode()
    contents[f"{info}/WHEEL"] = WHEEL.encode()
    record = "".join(f"{file},sha256={_digest(content)},{len(content)}\n" for file, content in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"{name}-{version}-0_{sha256_of(record)[:16]}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, content in contents.items():
            archive.writestr(zipfile.ZipInfo(file, EPOCH), content, zipfile.ZIP_DEFLATED)
    return wheel


def _files(root: str) -> Iterator[tuple[str, Path]]:
    """The files of a module or package, by their names in a wheel."""
    spec = find_spec(root)
    if spec is None:  # named by an entry point but missing: using it raises an error
        return
    for place in map(Path, spec.submodule_search_locations or ()):
        for path in sorted(place.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{root}/{path.relative_to(place).as_posix()}", path
    if spec.submodule_search_locations is None and spec.origin is not None:
        yield Path(spec.origin).name, Path(spec.origin)


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
