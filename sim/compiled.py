"""The one decorator for compiled kernels, typed, with a cache folder that exists wherever the package was installed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def _writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


# numba raises at import where neither the package's folder nor the user's cache folder can be written
if not (_writable(Path(__file__).parent / "__pycache__") or _writable(Path.home() / ".cache")):
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"brokersim-numba-{os.getuid()}"))

import numba  # noqa: E402  (it reads the environment when it is imported)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain function over arrays (nopython, cached on disk); results do not depend on threads."""
    compiled: Callable[P, R] = numba.njit(cache=True)(function)
    return compiled
