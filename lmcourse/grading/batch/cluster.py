"""The workers of a Dask cluster. Each of its machines needs this course installed, and bubblewrap."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from lmcourse.errors import CourseError

CONNECT_SECONDS = 15
"""To wait for the scheduler."""


@contextmanager
def cluster_executor(address: str) -> Iterator[Executor]:
    """The cluster behind a scheduler, as an executor.

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
