"""A real Dask cluster on this machine: a scheduler and workers as processes, and the same marks as without."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from distributed import Client
from lmcourse.grading.record import record
from nbformat.v4 import new_code_cell
from tests.grading.real_course import RealCourse

from lmcourse.errors import CourseError
from lmcourse.grading.grader import GradingOptions
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SOME = ("decimal_error", "max_finite")


def started(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dask", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def address_of(scheduler: subprocess.Popen[str]) -> str:
    assert scheduler.stderr is not None
    for line in scheduler.stderr:
        if found := re.search(r"tcp://[\d.]+:\d+", line):
            return found[0]
    raise AssertionError("the scheduler ended")


@dataclass
class Cluster:
    """A scheduler and what else belongs to it."""

    scheduler: subprocess.Popen[str]
    address: str
    folder: Path
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def add_worker(self) -> None:
        where = ("--host", "127.0.0.1", "--local-directory", str(self.folder))
        how = ("--nthreads", "1", "--no-dashboard", "--memory-limit", "0")
        self.workers.append(started("worker", self.address, *where, *how))

    def wait_for_workers(self) -> None:
        with Client(self.address) as client:
            client.wait_for_workers(len(self.workers), timeout=60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler without workers."""
    flags = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
    scheduler = started("scheduler", *flags)
    cluster = Cluster(scheduler, address_of(scheduler), tmp_path_factory.mktemp("dask"))
    try:
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            process.terminate()
        for process in (*cluster.workers, scheduler):
            process.communicate(timeout=30)


def test_a_class_is_graded_by_a_cluster_also_when_a_worker_dies(cluster: Cluster, tmp_path: Path) -> None:
    course = RealCourse(tmp_path)
    submitted = course.root / "submitted"
    expected = {}
    for number in range(4):
        name = f"student{number}"
        solved = SOME[: number % 3]
        notebook = course.partly(*solved)
        notebook.cells.insert(0, new_code_cell("import time; time.sleep(0.5)"))
        course.submit(name, notebook)
        expected[name] = course.expected(solved)
    options = GradingOptions(
        scheduler=cluster.address, on_progress=lambda done, of: done == 1 and lose_a_worker(cluster)
    )
    with pytest.raises(CourseError, match="has no workers: start `dask worker tcp"):
        record([submitted], course=course.root, options=options)
    cluster.add_worker()
    cluster.add_worker()
    cluster.wait_for_workers()
    results = record([submitted], course=course.root, options=options)
    assert course.marks() == expected
    assert {result.student: result.exercises for result in results} == expected
    assert cluster.workers[0].poll() is not None


def lose_a_worker(cluster: Cluster) -> None:
    cluster.workers[0].kill()


def test_where_there_is_no_scheduler_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course = RealCourse(tmp_path)
    course.submit("ada", course.released())
    monkeypatch.setattr("lmcourse.grading.batch.worker_processes.CONNECT_SECONDS", 1)
    with pytest.raises(CourseError, match="There is no Dask scheduler at tcp"):
        record([course.root / "submitted"], course=course.root, options=GradingOptions(scheduler="tcp://127.0.0.1:1"))
