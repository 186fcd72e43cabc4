"""Workers: what they are told and answer, and what becomes of a job when one of them ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.batch import ExaminationJob, ExaminationSettings, open_pool, worker_processes
from lmcourse.grading.batch.job import data_files_of, exercises_version, imported_modules, job_for
from lmcourse.grading.batch.worker import Examiner
from lmcourse.grading.batch.worker_processes import WorkerError, WorkerProcesses
from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook
from lmcourse.grading.fork_server import ForkServer
from tests.grading.real_course import CHAPTER, REPOSITORY
from tests.grading.sandboxed import needs_bubblewrap

SOURCE = REPOSITORY / "solutions" / CHAPTER.id / f"{CHAPTER.topic}.ipynb"

ECHO = """
import os, sys
for line in sys.stdin:
    word = line.strip()
    if word == "die once" and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
    if word == "die":
        os._exit(1)
    if word == "wait":
        import time; time.sleep(600)
    print(os.getpid(), word, flush=True)
"""
"""A worker that examines nothing."""


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> WorkerProcesses:
    monkeypatch.setattr(worker_processes, "WORKER_COMMAND", (sys.executable, "-c", ECHO))
    monkeypatch.chdir(tmp_path)
    return WorkerProcesses()


def test_a_worker_does_one_job_after_the_other(echo: WorkerProcesses) -> None:
    first, second = echo.perform("a").split(), echo.perform("b").split()
    assert (first[1], second[1]) == ("a", "b")
    assert first[0] == second[0]
    echo.close()


def test_a_job_survives_a_worker(echo: WorkerProcesses) -> None:
    first = echo.perform("a").split()[0]
    again = echo.perform("die once").split()
    assert again[1:] == ["die", "once"]
    assert again[0] != first
    echo.close()


def test_a_job_that_ends_every_worker_is_given_up(echo: WorkerProcesses) -> None:
    with pytest.raises(WorkerError):
        echo.perform("die")
    assert echo.perform("a").split()[1] == "a"
    echo.close()


def test_closed_workers_are_gone_and_stay_so(echo: WorkerProcesses) -> None:
    process = int(echo.perform("a").split()[0])
    told = []

    def ask() -> None:
        with pytest.raises(WorkerError) as error:
            echo.perform("wait")
        told.append(str(error.value))

    asked = threading.Thread(target=ask)
    asked.start()
    time.sleep(0.2)
    echo.stop()
    asked.join(20)
    assert told == ["grading was broken off"]
    echo.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(WorkerError):
        echo.perform("a")


def test_a_job_is_one_line() -> None:
    settings = ExaminationSettings("process", seed=3, cell_seconds=5.0, total_seconds=50.0)
    answer = new_code_cell("f = 1", metadata={"nbgrader": {"grade_id": "f", "solution": True}})
    cells = [new_markdown_cell("# Title"), new_code_cell("a = 1\nb = '\u2028'"), answer, new_code_cell("")]
    job = job_for(SOURCE, new_notebook(cells=cells), settings)
    assert "\n" not in job.to_json()
    assert ExaminationJob.from_json(job.to_json()) == job
    assert (job.assignment, job.cells[1:], job.answer_cells) == (CHAPTER.id, ("f = 1", ""), {"f": 2})


def test_what_a_notebook_finds_and_imports(tmp_path: Path) -> None:
    folder = tmp_path / "01-x"
    folder.mkdir()
    for name in ("data.csv", "answers.py", ".hidden", "page.html", "x.ipynb"):
        (folder / name).write_text("")
    (folder / "pictures").mkdir()
    assert data_files_of(folder / "x.ipynb") == (str(folder / "data.csv"), str(folder / "pictures"))
    assert {"torch", "lmcourse.notebook"} <= {*imported_modules(SOURCE)}


@needs_bubblewrap
def test_a_worker_that_is_killed_is_replaced_and_the_marks_are_there() -> None:
    """The real worker, killed by somebody in the middle of a class."""
    settings = ExaminationSettings("bubblewrap", seed=3)
    cells = ["import time; time.sleep(1)", "max_finite = 3"]
    notebooks = {name: new_notebook(cells=[*map(new_code_cell, (*cells, f"name = {name!r}"))]) for name in ("a", "b")}
    jobs = [(name, job_for(SOURCE, notebook, settings)) for name, notebook in notebooks.items()]
    killed = False
    done = {}
    others = set(children("lmcourse.grading.batch.worker"))
    with open_pool(workers=1) as pool:
        for name, examined in pool.examine(jobs):
            done[name] = examined
            if not killed:
                [worker] = set(children("lmcourse.grading.batch.worker")) - others
                os.kill(worker, signal.SIGKILL)
                killed = True
    assert not [one for one in done.values() if isinstance(one, Exception)]
    assert done.keys() == {"a", "b"}
    assert set(children("lmcourse.grading.batch.worker")) == others


@needs_bubblewrap
def test_a_worker_keeps_its_fork_server_for_the_next_assignment_that_sees_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("1,2")
    settings = ExaminationSettings("bubblewrap", seed=3)
    first = ExaminationJob("one", (), {}, settings, modules=("mailbox",))
    next_one, with_data = replace(first, modules=("sched",)), replace(first, data=(str(tmp_path / "table.csv"),))
    with Examiner() as examiner:
        server = examiner.launcher(first, [])
        assert examiner.launcher(next_one, []) is server
        assert isinstance(server, ForkServer)
        assert server.modules == ("sched",)
        assert examiner.launcher(with_data, []) is not server


def test_where_nothing_can_be_examined_it_is_said() -> None:
    lost = ExaminationJob(
        "no-such-chapter", ("a = 1",), {}, ExaminationSettings("process", seed=3), version=exercises_version()
    )
    with open_pool(workers=1) as pool:
        with pytest.raises(CourseError, match="There is no notebook 'no-such-chapter'"):
            list(pool.examine([("x", lost)]))
        with pytest.raises(CourseError, match="has other exercises: install the same version"):
            list(pool.examine([("x", replace(lost, version="another"))]))


def children(program: str) -> list[int]:
    """The children of this process that run a program."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if program in Path(f"/proc/{child}/cmdline").read_text():
                found.append(int(child))
    return found
