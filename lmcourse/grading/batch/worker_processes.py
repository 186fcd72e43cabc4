"""A pool of worker processes that examine notebooks, on this machine or in a Dask cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TypeVar

from lmcourse.errors import CourseError
from lmcourse.grading.batch.job import ExaminationJob
from lmcourse.grading.environment import program
from lmcourse.grading.examination_result import ExaminationResult

Key = TypeVar("Key")

WORKER_COMMAND = (sys.executable, "-P", "-c", program("lmcourse.grading.batch.worker"))
"""Starts a worker."""

CONNECT_SECONDS = 15
"""To wait for the scheduler."""


class WorkerError(Exception):
    """A worker ended instead of answering."""


class WorkerProcesses:
    """The worker processes that this process starts, one for each thread that asks.

    Each starts with its first job, and anew after it was lost.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def perform(self, line: str) -> str:
        """The answer to a job, both as a line of JSON. A worker that ends is replaced once.

        Raises:
            WorkerError: two workers ended over this job, or they were stopped.
        """
        for _ in range(2):
            process = self._worker()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                print(line, file=process.stdin, flush=True)
                if answer := process.stdout.readline():
                    return answer
            except OSError:
                pass
            self._end(process)
        raise WorkerError("the worker ended instead of answering, twice")

    def stop(self) -> None:
        """End all workers, also in the middle of a job. None starts again."""
        with self._lock:
            self._closed = True
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """End all workers and wait for their ends; to be called once no thread asks any more."""
        self.stop()
        while self._processes:
            self._processes.pop().communicate()

    def _worker(self) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] | None = getattr(self._of_thread, "process", None)
        if process is not None and process.poll() is None:
            return process
        with self._lock:
            if self._closed:
                raise WorkerError("grading was broken off")
            process = self._of_thread.process = subprocess.Popen(
                WORKER_COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
            self._processes.add(process)
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()
        with self._lock:
            self._processes.discard(process)
        self._of_thread.process = None


_of_dask_worker = WorkerProcesses()
"""Of the Dask worker that imports this module. They end with it: their standard input does."""


def perform_in_dask_worker(line: str) -> str:
    """Do a job in the process that this is called in: a Dask worker, whose own threads only wait for it."""
    return _of_dask_worker.perform(line)


class Pool:
    """Does jobs, several at a time.

    Args:
        executor: gives where they are done; asked when there is a job.
        perform: does one, on a line of JSON; it is called there.
    """

    def __init__(self, executor: Callable[[], Executor], perform: Callable[[str], str]) -> None:
        self._executor = executor
        self._perform = perform

    def examine(
        self, jobs: Iterable[tuple[Key, ExaminationJob]]
    ) -> Iterator[tuple[Key, ExaminationResult | Exception]]:
        """Do the jobs; each result as soon as it is there, or why the worker failed, not the notebook. Of a run that
        is broken off nothing more is begun.

        Raises:
            CourseError: a worker cannot examine notebooks at all; there is no such cluster, or Dask is not installed.
        """
        waiting = {self._executor().submit(self._perform, job.to_json()): key for key, job in jobs}
        try:
            for future in as_completed(waiting):
                try:
                    answer = json.loads(future.result())
                except Exception as error:  # a cluster passes on whatever went wrong at the other end
                    yield waiting[future], error
                    continue
                yield waiting[future], result_from_answer(answer)
        finally:
            for future in waiting:
                future.cancel()


def result_from_answer(answer: Mapping[str, Any]) -> ExaminationResult:
    """Parse the answer of a worker.

    Raises:
        CourseError: it cannot examine notebooks.
    """
    if "error" in answer:
        raise CourseError(answer["error"])
    return ExaminationResult.from_json(answer["examined"])


@contextmanager
def open_pool(workers: int | None = None, scheduler: str | None = None) -> Iterator[Pool]:
    """Workers for as long as the block lasts, started when they are needed.

    Args:
        workers: processes on this machine; by default one for each processor that it may use.
        scheduler: the address of a Dask cluster to use instead.
    """
    if scheduler is not None:
        with ExitStack() as cluster:
            yield Pool(cache(lambda: cluster.enter_context(_cluster_executor(scheduler))), perform_in_dask_worker)
        return
    workers_here = WorkerProcesses()
    executor = ThreadPoolExecutor(workers or available_cpus(), thread_name_prefix="grading")
    try:
        yield Pool(lambda: executor, workers_here.perform)
    finally:
        workers_here.stop()
        executor.shutdown(cancel_futures=True)
        workers_here.close()


@contextmanager
def _cluster_executor(address: str) -> Iterator[Executor]:
    """The workers of a Dask cluster, as an executor. Each of its machines needs this course installed, and bubblewrap.

    Args:
        address: as Dask prints it, `tcp://HOST:8786`.

    Raises:
        CourseError: Dask is not installed, nobody answers, or there are no workers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise CourseError('--scheduler needs Dask: pip install "lmcourse[cluster]".') from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise CourseError(f"There is no Dask scheduler at {address} ({type(error).__name__}): start one.") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise CourseError(f"The Dask scheduler at {address} has no workers: start `dask worker {address}`.")
        # A worker that dies takes its job with it; Dask gives the job to another one.
        yield client.get_executor(pure=False, retries=1)


def available_cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
