"""Workers that examine submissions: this process, processes on this machine, or workers of a Dask cluster."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from socket import gethostname
from threading import Lock

from lmcourse.base.errors import CourseError
from lmcourse.exercises.registry import exercises_beside
from lmcourse.grading.examine import Examination, SubmittedCode, examine
from lmcourse.grading.process import Settings
from lmcourse.grading.sandbox import PACKAGE, choose_isolation

CONNECT_SECONDS = 15

_one_at_a_time = Lock()


@dataclass(frozen=True)
class GradingOptions:
    """Options of a grading run: how to isolate, how many submissions at once, time limits."""

    isolation: str | None = None
    workers: int | None = None
    scheduler: str | None = None  # the address of a Dask cluster to use instead of this machine
    cell_seconds: float = 30.0
    total_seconds: float = 900.0
    on_progress: Callable[[int, int], None] = lambda done, of: None  # called after each submission
    on_note: Callable[[str], None] = lambda sentence: None  # called with each sentence about the gradebook

    def settings(self, private: Sequence[Path], term: str) -> Settings:
        """Return the settings for examining submissions; raise CourseError if this machine does not support the
        isolation."""
        elsewhere = self.scheduler is not None and self.isolation is None
        isolation = "bubblewrap" if elsewhere else choose_isolation(self.isolation)
        return Settings(isolation, tuple(private), self.cell_seconds, self.total_seconds, term)


def examine_job(
    submitted: SubmittedCode, source: Path, names: Collection[str], settings: Settings, version: str
) -> Examination:
    """Examine a submission with the exercises of these names beside the course's notebook `source`.

    Raises CourseError if this machine cannot do it, or its course has another version.
    """
    if version != course_version():
        here = f"The course on {gethostname()} has version {course_version()}"
        raise CourseError(f"{here}: install version {version} there.")
    exercises = [each for each in exercises_beside(source) if each.name in names]
    # references use torch's global settings, so only one thread of a Dask worker may run them at a time
    with _one_at_a_time:
        return examine(submitted, exercises, settings)


@cache
def course_version() -> str:
    """Return a hash of all code that determines marks."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("exercises", "chapters", "report") for path in (PACKAGE / part).rglob("*.py")):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


@contextmanager
def open_executor(options: GradingOptions, jobs: int) -> Iterator[Executor]:
    """Return an executor of worker processes, here or in a Dask cluster."""
    if options.scheduler:
        with _cluster(options.scheduler) as executor:
            yield executor
        return
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(options.workers or cpus, jobs)
    # A forked worker already has torch and the exercises; importing them takes longer than examining a submission.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Set up a worker: it uses one core, and ends when its parent process ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    import torch

    torch.set_num_threads(1)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """Return the workers of a Dask cluster as an executor. Each machine needs this course and bubblewrap."""
    try:
        from distributed import Client
    except ImportError as error:
        raise CourseError('--scheduler needs Dask: pip install "lmcourse[cluster]".') from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise CourseError(f"No Dask scheduler answers at {address} ({type(error).__name__}): start one.") from error
    with client:
        if not client.scheduler_info()["workers"]:
            start = f"start `dask worker {address} --nthreads 1`"
            raise CourseError(f"The Dask scheduler at {address} has no workers: {start}.")
        # If a worker dies, Dask gives its job to another worker.
        yield client.get_executor(pure=False, retries=1)
