"""A real Dask cluster on this machine gives the same marks as grading without it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.grading.grader import record
from lmcourse.grading.workers import GradingOptions
from tests.grading.conftest import Course, needs_bubblewrap
from tests.grading.learners import Learner

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(1500)]


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
    """A scheduler and its workers."""

    scheduler: subprocess.Popen[str]
    address: str
    folder: Path
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def add_worker(self) -> None:
        where = ("--host", "127.0.0.1", "--local-directory", str(self.folder))
        how = ("--nthreads", "1", "--no-dashboard", "--memory-limit", "0")
        self.workers.append(started("worker", self.address, *where, *how))

    def wait_for_workers(self) -> None:
        from distributed import Client

        with Client(self.address) as client:
            client.wait_for_workers(len(self.workers), timeout=180)


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


def test_cluster_gives_the_same_marks_when_a_worker_dies(cluster: Cluster, course: Course) -> None:
    expected = {"ada": 26.0, "bob": 23.0, "cy": 24.0}
    Learner().scratch("import time; time.sleep(0.5)").hand_in(course.submitted, "ada")
    Learner().answer("ulp", "").hand_in(course.submitted, "bob")
    Learner().answer("tensor_bytes", "").hand_in(course.submitted, "cy")

    def lose_a_worker(done: int, of: int) -> None:
        if done == 1:
            cluster.workers[0].kill()

    options = GradingOptions(scheduler=cluster.address, on_progress=lose_a_worker)
    with pytest.raises(CourseError, match=r"The Dask scheduler at tcp.*has no workers: start `dask worker tcp"):
        record([course.submitted], course=course.root, options=options)
    cluster.add_worker()
    cluster.add_worker()
    cluster.wait_for_workers()
    results = record([course.submitted], course=course.root, options=options)
    assert {result.student: result.score for result in results} == expected
    assert {student: sum(points.values()) for student, points in course.marks().items()} == expected
    assert cluster.workers[0].poll() is not None


def test_address_without_a_scheduler_is_reported_in_one_line(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    Learner().hand_in(course.submitted, "ada")
    monkeypatch.setattr("lmcourse.grading.workers.CONNECT_SECONDS", 1)
    with pytest.raises(CourseError, match="No Dask scheduler answers at tcp"):
        record([course.submitted], course=course.root, options=GradingOptions(scheduler="tcp://127.0.0.1:1"))
