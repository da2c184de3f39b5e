"""The decorator for compiled kernels: typed, with a cache folder that exists wherever the package was installed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sim.base.private import temporary_home, user_cache

P = ParamSpec("P")
R = TypeVar("R")

_ROOT = Path(__file__).parents[2]
_IMPORT = re.compile(r"^from (sim[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


def _writable(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)


# Cached code is executed, so the cache lies beside the source, or else where only the user can write.
if "NUMBA_CACHE_DIR" not in os.environ and not _writable(Path(__file__).parent / "__pycache__"):
    os.environ["NUMBA_CACHE_DIR"] = str((user_cache() or temporary_home()) / "numba")

import numba  # noqa: E402  (it reads the environment when it is imported)
from numba.core.caching import IndexDataCacheFile  # noqa: E402


@cache
def _imports(path: Path) -> tuple[bytes, frozenset[Path]]:
    """A module's text, and the modules of ours that it imports."""
    text = path.read_bytes()
    found = ((package, f"{many}{one}") for package, many, one in _IMPORT.findall(text.decode()))
    names = {f"{package}.{name.split(' as ')[0].strip()}" for package, more in found for name in more.split(",")}
    names |= {name.rpartition(".")[0] for name in names}
    modules = (_ROOT / f"{name.replace('.', '/')}.py" for name in names)
    return text, frozenset(module for module in modules if module.is_file())


@cache
def _stamp(path: Path) -> str:
    """The SHA-256 of a module and of all modules of ours that it imports, and these in turn."""
    found, ahead = {path}, [path]
    while ahead:
        new = _imports(ahead.pop())[1] - found
        found |= new
        ahead += new
    return hashlib.sha256(b"".join(_imports(each)[0] for each in sorted(found))).hexdigest()


class _Index(IndexDataCacheFile):
    """Numba's index of cached code; it counts as empty where records that it names have been renamed or moved since."""

    def _load_index(self) -> dict[object, str]:
        try:
            found: dict[object, str] = super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ModuleNotFoundError):
            return {}
        return found


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain function over arrays (nopython, cached on disk); results do not depend on threads.

    It is compiled anew when the text of any module that it was made of has changed: constants and other kernels of theirs are
    compiled in. When files were written does not matter. In a kernel, a loop copies one array into another: for `a[:] = b`, numba
    compiles for two seconds what it would say of shapes that differ.
    """
    return _compiled(function, inline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel into each that calls it: for the steps of a loop, where a call takes as long as what is done in it.

    The compiler puts other kernels into these where they are small: a small one that is rarely called may be compiled again wherever
    the inlined one is, and make compiling take several times as long. Inline what it calls, and it is too large for that.
    """
    return _compiled(function, inline=True)


def _compiled(function: Callable[P, R], *, inline: bool) -> Callable[P, R]:
    dispatcher: Any = numba.njit(cache=True, forceinline=inline)(function)
    if hasattr(dispatcher, "_cache"):  # else NUMBA_DISABLE_JIT is set, for those who debug
        index = dispatcher._cache._cache_file
        index.__class__, index._source_stamp = _Index, _stamp(Path(function.__code__.co_filename))
    compiled: Callable[P, R] = dispatcher
    return compiled
