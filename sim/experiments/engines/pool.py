"""Perform runs in parallel in processes of this machine, which are spawned and never run the calling script again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from types import ModuleType, TracebackType
from typing import Self

from sim.base.errors import InputError
from sim.experiments.outcomes import Failure, Progress, RunOutcome
from sim.experiments.perform import perform
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store

_PAUSE = 0.2  # s, between two checks of the pool
AHEAD = 2
"""Runs per process handed to the pool at a time: the current one, and the next."""


class Pool:
    """The engine of `jobs` processes.

    If one of them is killed (usually by the system, for lack of memory), the runs in the pool are repeated one at a time, and a run
    that is killed again has failed.
    """

    def __init__(self, store: Store, jobs: int) -> None:
        self.store, self.jobs = store, jobs
        self.others: set[BaseProcess] = set()
        self.executor: ProcessPoolExecutor | None = None
        self.reports: SimpleQueue[tuple[str, float]] | None = None

    def __enter__(self) -> Self:
        self.others = set(multiprocessing.active_children())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for process in set(multiprocessing.active_children()) - self.others:
                process.terminate()
        self._close()

    def perform(self, specs: Sequence[RunSpec], tell: Progress) -> Iterator[tuple[RunSpec, RunOutcome]]:
        """As `RunEngine.perform`."""
        names = {spec.hash: spec for spec in specs}
        to_do = deque(specs)
        suspects: deque[RunSpec] = deque()  # what was in the pool when it broke
        running: dict[Future[RunOutcome], tuple[RunSpec, bool]] = {}  # whether it is retried alone
        while to_do or suspects or running:
            alone = bool(suspects)
            waiting, most = (suspects, 1) if alone else (to_do, AHEAD * self.jobs)
            while waiting and len(running) < most:
                spec = waiting.popleft()
                running[self._submit(spec)] = spec, alone
            ended, _ = wait(running, _PAUSE, FIRST_COMPLETED)
            while self.reports is not None and not self.reports.empty():
                run, fraction = self.reports.get()
                tell(names[run], fraction)
            for future in ended:
                spec, alone = running.pop(future)
                try:
                    yield spec, future.result()
                except BrokenProcessPool:
                    self._close()
                    if alone:
                        yield spec, Failure("a process of the pool was killed (too little memory?)", "")
                    else:
                        suspects.append(spec)

    def _submit(self, spec: RunSpec) -> Future[RunOutcome]:
        with _without_script():
            if self.executor is None:
                context = multiprocessing.get_context("spawn")
                try:
                    self.reports = context.SimpleQueue()
                except OSError as error:
                    raise InputError(
                        f"processes cannot share memory here (/dev/shm: {error.strerror}): --jobs 1 runs everything in one"
                    ) from error
                self.executor = ProcessPoolExecutor(self.jobs, context, _start_worker, (self.reports,))
            return self.executor.submit(_perform, spec, self.store)

    def _close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(cancel_futures=True)
            self.executor = None


@contextmanager
def _without_script() -> Generator[None]:
    """Keep processes started meanwhile from running the calling script again, which may have no guard against that, or no file."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


_reports: SimpleQueue[tuple[str, float]] | None = None  # in a worker: the queue for its progress


def _start_worker(reports: SimpleQueue[tuple[str, float]]) -> None:
    global _reports
    _reports = reports
    gc.freeze()  # imported objects stay: the garbage collector need not scan them again and again
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _perform(spec: RunSpec, store: Store) -> RunOutcome:
    last = time.monotonic()

    def tell(fraction: float) -> None:
        nonlocal last
        if _reports is not None and time.monotonic() - last >= _PAUSE:
            last = time.monotonic()
            _reports.put((spec.hash, fraction))

    return perform(spec, store, tell)
