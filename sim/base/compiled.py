"""The decorator for compiled kernels: typed, with a cache folder that exists wherever the package was installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sim.base.private import temporary_home, user_cache

P = ParamSpec("P")
R = TypeVar("R")


def _writable(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)


# Cached code is executed, so the cache lies beside the source, or else where only the user can write.
if "NUMBA_CACHE_DIR" not in os.environ and not _writable(Path(__file__).parent / "__pycache__"):
    os.environ["NUMBA_CACHE_DIR"] = str((user_cache() or temporary_home()) / "numba")

import numba  # noqa: E402  (it reads the environment when it is imported)
from numba.core.caching import IndexDataCacheFile  # noqa: E402


class _Index(IndexDataCacheFile):
    """Numba's index of cached code; it counts as empty where records that it names have been renamed or moved since."""

    def _load_index(self) -> dict[object, str]:
        try:
            found: dict[object, str] = super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ModuleNotFoundError):
            return {}
        return found


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain function over arrays (nopython, cached on disk); results do not depend on threads."""
    dispatcher: Any = numba.njit(cache=True)(function)
    dispatcher._cache._cache_file.__class__ = _Index
    compiled: Callable[P, R] = dispatcher
    return compiled
