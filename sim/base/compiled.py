"""The decorator for compiled kernels: typed, and with a cache folder that works wherever the package is installed."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

# Any: Numba has no types for what it compiles.
from typing import Any, ParamSpec, TypeVar

from sim.base.imports import read_module
from sim.base.private import temporary_home, user_cache

P = ParamSpec("P")
R = TypeVar("R")

_ROOT = Path(__file__).parents[2]


def _writable(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)


# Cached code is executed, so the cache is beside the source or, failing that, where only the user can write.
if "NUMBA_CACHE_DIR" not in os.environ and not _writable(Path(__file__).parent / "__pycache__"):
    os.environ["NUMBA_CACHE_DIR"] = str((user_cache() or temporary_home()) / "numba")

import numba  # noqa: E402  (it reads the environment when it is imported)
from numba.core.caching import IndexDataCacheFile  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.registry import CPUDispatcher  # noqa: E402


@cache
def _stamp(path: Path) -> str:
    """The SHA-256 of a module and of all modules of `sim` that it imports, directly or not."""
    found, ahead = {path}, [path]
    while ahead:
        new = read_module(ahead.pop(), _ROOT)[1] - found
        found |= new
        ahead += new
    return hashlib.sha256(b"".join(read_module(each, _ROOT)[0] for each in sorted(found))).hexdigest()


class _Index(IndexDataCacheFile):
    """Numba's index of cached code; treated as empty if records that it refers to have been renamed or moved since."""

    def _load_index(self) -> dict[object, str]:
        try:
            found: dict[object, str] = super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ModuleNotFoundError):
            return {}
        return found


@cache
def _locks(folder: Path) -> int:
    """The file of a cache folder in which each kernel has a byte to lock; open as long as the process, as closing it unlocks all."""
    return os.open(folder / "kernels.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


@contextmanager
def _alone(index: Path) -> Iterator[None]:
    """Wait until no other process compiles the kernel of this index; the lock ends with the process at the latest.

    A kernel is locked before those that it calls, which do not call it, so that no two processes wait for each other.
    Without the right to write, or on a file system without locks, nobody waits.
    """
    byte = int.from_bytes(hashlib.blake2s(index.name.encode(), digest_size=7).digest(), "little")
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        locks = _locks(index.parent)
        fcntl.lockf(locks, fcntl.LOCK_EX, 1, byte)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        fcntl.lockf(locks, fcntl.LOCK_UN, 1, byte)


def _sent(name: str, function: Callable[..., Any], inline: bool, records: tuple[type, ...]) -> Any:
    """A kernel in a process that may not have this package, compiled there once, though it may be sent again and again."""
    known: dict[str, tuple[Any, ...]] = numba.__dict__.setdefault("_sent_kernels", {})
    if name not in known:  # with the types of records, of which it would otherwise get new ones each time
        known[name] = numba.njit(forceinline=inline)(function), records
    return known[name][0]


def _widened(kind: Any) -> Any:
    plain = getattr(kind, "literal_type", kind)
    return numba.types.int64 if plain in numba.types.signed_domain else plain


class _Dispatcher(CPUDispatcher):
    """Numba's dispatcher; what one process compiles, others that want it meanwhile take from the cache.

    Numba itself would also mix up what two processes write to one index at the same time.
    """

    _cache: Any

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What kernels call is not compiled again for each constant and each width of a whole number."""
        return super().get_call_template([_widened(arg) for arg in args], {key: _widened(kws[key]) for key in kws})

    def __reduce__(self) -> tuple[Any, ...]:
        function, inline = self.py_func, bool(self.targetoptions.get("forceinline"))
        records = (kind for kind in function.__globals__.values() if isinstance(kind, type) and issubclass(kind, tuple))
        return _sent, (f"{function.__module__}.{function.__qualname__}", function, inline, tuple(records))

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, _alone(Path(self._cache._cache_file._index_path)):
            return super().compile(sig)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain function over arrays (nopython, cached on disk); results do not depend on threads.

    It is recompiled when the text of any module that it depends on has changed, as their constants and kernels are
    compiled in; file times do not matter. Inside a kernel, copy an array with a loop: for `a[:] = b`, numba spends two
    seconds compiling the error message for differing shapes.
    """
    return _compiled(function, inline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel into its callers: for the steps of a loop, where a call costs as much as its body.

    The compiler inlines small kernels by itself: a small one that is rarely called may then be compiled again at every
    place of the inlined one, which makes compiling several times slower. Inlining what it calls makes it too large for
    that.
    """
    return _compiled(function, inline=True)


def _compiled(function: Callable[P, R], *, inline: bool) -> Callable[P, R]:
    dispatcher: Any = numba.njit(cache=True, forceinline=inline)(function)
    if hasattr(dispatcher, "_cache"):  # otherwise NUMBA_DISABLE_JIT is set, for debugging
        dispatcher.__class__ = _Dispatcher
        index = dispatcher._cache._cache_file
        index.__class__, index._source_stamp = _Index, _stamp(Path(function.__code__.co_filename))
    compiled: Callable[P, R] = dispatcher
    return compiled
