"""Private temporary folders, removed even after processes that were killed."""

from __future__ import annotations

import atexit
import fcntl
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PURPOSE = "purpose"
"""The file in a claimed folder that says for what it stays."""


def user_cache() -> Path | None:
    """The user's cache folder, if it (or its parent) is owned by the user and writable by nobody else; else None."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        there = next(folder for folder in (cache, *cache.parents) if folder.exists())
        found = there.stat()
    except (OSError, RuntimeError):  # no home folder
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & stat.S_IWOTH
    return cache if own and os.access(there, os.W_OK) else None


def temporary_home() -> Path:
    """A folder of the user in the system's temporary directory, for files that later processes may reuse.

    Its name can be guessed: if anybody else created it, can enter it, or put a link there, this process gets a new folder instead.
    """
    home = Path(tempfile.gettempdir()) / f"brokersim-{os.getuid()}"
    with suppress(FileExistsError):
        home.mkdir(mode=0o700)
    found = home.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return home
    return lasting_folder()


def lasting_folder() -> Path:
    """A new folder in the system's temporary directory until this process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(temporary_folder())


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder in the system's temporary directory while the body runs."""
    with claimed_folder(Path(tempfile.gettempdir()), "brokersim-", ".scratch") as folder:
        yield folder


@contextmanager
def claimed_folder(place: Path, prefix: str, suffix: str, purpose: str = "") -> Iterator[Path]:
    """A new folder in `place` while the body runs; leftovers of this user's killed processes are removed.

    With a `purpose`, that of a killed process with the same one is taken instead, and it stays at the end as long as it has the file
    `PURPOSE`.
    """
    with ExitStack() as claim:
        found: Path | None = None
        for left in place.glob(f"{glob.escape(prefix)}*{suffix}"):
            with suppress(OSError), ExitStack() as one:
                one.enter_context(_claimed(left))
                if found is None and purpose and (left / PURPOSE).is_file() and (left / PURPOSE).read_text() == purpose:
                    found = left
                    claim.push(one.pop_all())
                else:
                    shutil.rmtree(left, ignore_errors=True)
        # the name alone, as the path is absolute from Python 3.12 on
        folder = found or place / Path(tempfile.mkdtemp(prefix=prefix, suffix=".new", dir=place)).name
        if found is None:
            with suppress(OSError):  # on a file system without locks, nothing is removed
                claim.enter_context(_claimed(folder))
            if purpose:
                (folder / PURPOSE).write_text(purpose)
            folder = folder.rename(folder.with_suffix(suffix))  # only now may others find it
        try:
            yield folder
        finally:
            if not (folder / PURPOSE).exists():
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process at the latest.

    Raises OSError where another process holds it, or where it is a link or belongs to another user.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise PermissionError(f"{folder}: belongs to another user")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
