"""Who does the jobs: workers on this machine, or, through the same interface, those of a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

from lmcourse.errors import CourseError
from lmcourse.grading.batch.crew import Crew
from lmcourse.grading.batch.job import Job
from lmcourse.grading.examined import Examined

Key = TypeVar("Key")


class Pool:
    """Does jobs, several at a time.

    Args:
        executor: where they are done.
        perform: does one, on a line of JSON; it is called there.
    """

    def __init__(self, executor: Executor, perform: Callable[[str], str]) -> None:
        self._executor = executor
        self._perform = perform

    def examine(self, jobs: Iterable[tuple[Key, Job]]) -> Iterator[tuple[Key, Examined | Exception]]:
        """Do the jobs; each result as soon as it is there, or why the worker failed, not the notebook.

        Raises:
            CourseError: a worker cannot examine notebooks at all.
        """
        waiting = {self._executor.submit(self._perform, job.to_json()): key for key, job in jobs}
        for future in as_completed(waiting):
            try:
                answer = json.loads(future.result())
            except Exception as error:  # a cluster passes on whatever went wrong at the other end
                yield waiting[future], error
                continue
            yield waiting[future], examined_of(answer)


def examined_of(answer: Mapping[str, Any]) -> Examined:
    """What a worker's answer says.

    Raises:
        CourseError: it cannot examine notebooks.
    """
    if "error" in answer:
        raise CourseError(answer["error"])
    return Examined.from_json(answer["examined"])


@contextmanager
def open_pool(workers: int | None = None, scheduler: str | None = None) -> Iterator[Pool]:
    """Workers for as long as the block lasts.

    Args:
        workers: processes on this machine; by default one for each processor that it may use.
        scheduler: the address of a Dask cluster to use instead.

    Raises:
        CourseError: there is no such cluster, or Dask is not installed.
    """
    if scheduler is not None:
        from lmcourse.grading.batch.cluster import executor_of, perform_here

        with executor_of(scheduler) as executor:
            yield Pool(executor, perform_here)
        return
    crew = Crew()
    executor = ThreadPoolExecutor(workers or processors(), thread_name_prefix="grading")
    try:
        yield Pool(executor, crew.perform)
    finally:
        crew.stop()
        executor.shutdown(cancel_futures=True)
        crew.close()


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
