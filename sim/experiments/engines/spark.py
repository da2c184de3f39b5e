"""Perform runs as Spark tasks, on this machine or on a cluster: simulated there, written here."""

from __future__ import annotations

import pickle
import re
import shutil
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Self

from sim.base.errors import InputError
from sim.base.private import lasting_folder, temporary_folder
from sim.experiments.engines.spark_wheels import pack_wheels
from sim.experiments.outcomes import Failure, Progress, Record, RunOutcome
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store
from sim.spark import cause, spark_session

_PAUSE = 0.2  # s, between two checks of the cluster
PATIENCE = 120.0  # s without any executor; a machine that starts or returns takes less
_MOST = 4096  # threads, each of which waits for a run
CODE = "BROKERSIM_WHEELS"
"""Environment variable of Spark's Python processes: those with another value have other code, and are not reused for these wheels."""

REMEDY = "install brokersim there, or set PYSPARK_PYTHON to a Python that has its dependencies"


class Spark:
    """The engine of a Spark master; without one, of Spark on all cores of this machine.

    Each run is a job of one task. A task whose executor is lost is repeated by Spark, up to three times, and only this process
    writes results. brokersim itself is shipped to the executors; its dependencies must be installed there.
    """

    def __init__(self, store: Store, master: str | None = None) -> None:
        self.store, self.master = store, master or "local[*]"
        self.running: dict[Future[Record | Failure], RunSpec] = {}
        self.workloads: dict[str, str] = {}  # the names of shipped prepared workloads, by hash

    def __enter__(self) -> Self:
        """Raises InputError where Spark does not start."""
        from pyspark.sql import SparkSession

        with ExitStack() as resources:
            # an existing session is reused, and still sends earlier files to new executors
            self.lasting = SparkSession.getActiveSession() is not None
            self.folder = lasting_folder() if self.lasting else resources.enter_context(temporary_folder())
            self.context = resources.enter_context(spark_session(self.master, short=True)).sparkContext
            wheels = pack_wheels(self.folder)
            for wheel in wheels:
                self.context.addFile(str(wheel))
            self.wheels = [wheel.name for wheel in wheels]
            self.context.environment[CODE] = ",".join(self.wheels)
            resources.callback(self.context.environment.pop, CODE)
            self.tag = f"brokersim-{uuid.uuid4()}"
            self.threads = ThreadPoolExecutor(_MOST, "spark-run")
            resources.callback(self._cancel)
            self.one = self.context.parallelize([None], 1)
            self.seen = time.monotonic()
            self.resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resources.__exit__(kind, error, trace)

    def perform(self, specs: Sequence[RunSpec], tell: Progress) -> Iterator[tuple[RunSpec, RunOutcome]]:
        """As `RunEngine.perform`, without progress within runs. Raises InputError where the cluster cannot perform any."""
        to_do = deque(specs)
        while to_do or self.running:
            slots = self._slots()
            while to_do and len(self.running) <= slots:  # one more, so that no slot waits for this process
                spec = to_do.popleft()
                self.running[self.threads.submit(self._simulated, spec, self._workload(spec))] = spec
            ended, _ = wait(self.running, _PAUSE, FIRST_COMPLETED)
            for future in ended:
                spec = self.running.pop(future)
                yield spec, self.store.write_run(spec, future.result())

    def _slots(self) -> int:
        """How many runs the executors perform at a time. Raises InputError where there has been no executor for `PATIENCE` seconds."""
        from py4j.protocol import Py4JError

        try:
            spark = self.context._jsc.sc()
            if spark.isLocal() or spark.getExecutorMemoryStatus().size() > 1:  # the list includes the driver
                self.seen = time.monotonic()
            slots = self.context.defaultParallelism
        except (Py4JError, OSError) as error:
            raise self._ended(error) from error
        if time.monotonic() - self.seen > PATIENCE:
            raise InputError(
                f"no machine of {self.master} has had an executor for {PATIENCE:.0f} s (each takes a core and the memory of "
                "spark.executor.memory, 1 GB by default); finished runs are kept"
            )
        return slots

    def _workload(self, spec: RunSpec) -> str | None:
        """Ship the prepared workload of a run once; returns its name, or None where the run generates its own."""
        if not spec.workload_hash:
            return None
        if spec.workload_hash not in self.workloads:
            path = self.store.shared(spec.workload_hash).absolute()
            if self.lasting:
                path = shutil.copyfile(path, self.folder / f"{spec.workload_hash}-{self.tag}")
            self.context.addFile(str(path))
            self.workloads[spec.workload_hash] = path.name
        return self.workloads[spec.workload_hash]

    def _simulated(self, spec: RunSpec, workload: str | None) -> Record | Failure:
        """Let Spark perform one run; called in a separate thread."""
        from py4j.protocol import Py4JError

        from sim.experiments.engines import spark_executor

        task = partial(spark_executor.perform_shipped, pickle.dumps(spec), self.wheels, workload)
        try:
            self.context.addJobTag(self.tag)
            # the whole input is read, otherwise Spark would not reuse the Python process
            [answer] = self.context.runJob(self.one, lambda one: [task() for _ in one])
        except (Py4JError, OSError, EOFError) as error:
            return self._lost(error)
        if isinstance(answer, str):
            raise InputError(f"{answer}; {REMEDY}")
        found: Record | Failure = pickle.loads(answer)  # noqa: S301 - from our own executor
        return found

    def _lost(self, error: Exception) -> Failure:
        """The reason why Spark gave up a run. Raises InputError where it would give up every run."""
        from py4j.protocol import Py4JError

        said = str(error)
        if unusable := re.search(r"Cannot run program .+|Python in worker has different version.+", said):
            raise InputError(f"{self.master}: {unusable[0].strip()}; {REMEDY}")
        try:
            ended = self.context._jsc.sc().isStopped()
        except (Py4JError, OSError):
            ended = True
        if ended:
            raise self._ended(error)
        lost = re.search(r"ExecutorLostFailure.+", said)
        return Failure(f"Spark gave up the run: {lost[0].strip() if lost else cause(error)}", "")

    def _ended(self, error: Exception) -> InputError:
        return InputError(f"{self.master}: Spark has ended ({cause(error)}); finished runs are kept")

    def _cancel(self) -> None:
        """Cancel the runs in progress."""
        from py4j.protocol import Py4JError

        self.threads.shutdown(wait=False, cancel_futures=True)
        while wait(self.running, _PAUSE).not_done:
            with suppress(Py4JError, OSError):  # Spark has ended
                self.context.cancelJobsWithTag(self.tag)
