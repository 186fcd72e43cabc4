"""The worker program: examines one notebook after the other, a line of JSON in, a line of JSON out.

It holds references, hidden cases and seeds, and is trusted; the notebooks run in processes of their own, in a sandbox.
It ends when its standard input does, also in the middle of a notebook, so nothing is left behind by a grader that
was killed.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from socket import gethostname
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO

from lmcourse.errors import CourseError
from lmcourse.exercises.exercise import Exercise
from lmcourse.grading.batch.job import ExaminationJob, exercises_version
from lmcourse.grading.examination import PlainLauncher, Timeouts, examine
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.sandbox import Sandbox

if TYPE_CHECKING:
    from lmcourse.grading.fork_server import ForkServer


class Examiner:
    """Examines notebooks, and keeps what they have in common: the fork server."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._server: ForkServer | None = None

    def __enter__(self) -> Examiner:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def perform(self, job: ExaminationJob) -> dict[str, Any]:
        """Do a job. Gives `{"examined": …}` or, if that is not possible here, `{"error": one line}`."""
        from lmcourse.course import find_chapter
        from lmcourse.exercises.registry import exercises_of

        if job.version != exercises_version():
            return {"error": f"The course on {gethostname()} has other exercises: install the same version there."}
        timeouts = Timeouts(cell=job.settings.cell_seconds, total=job.settings.total_seconds)
        try:
            exercises = exercises_of(find_chapter(job.assignment))
            examined = examine(
                job.cells,
                job.answer_cells,
                exercises,
                job.settings.seed,
                self.launcher(job, exercises),
                timeouts,
                frozenset(job.provided_cells),
            )
        except CourseError as error:
            return {"error": str(error)}
        return {"examined": examined.to_json()}

    def launcher(self, job: ExaminationJob, exercises: Sequence[Exercise]) -> Launcher:
        """What starts the notebooks of this assignment, one after the other.

        A fork server goes on from one assignment to the next, unless that one is to see other files.
        """
        data = tuple(Path(name) for name in job.data)
        if job.settings.isolation == "process":
            return PlainLauncher(data)
        from lmcourse.grading.fork_server import ForkServer  # for Linux only

        sandbox = Sandbox(data=data, private=tuple(Path(name) for name in job.settings.private))
        rules = [exercise.rules for exercise in exercises]
        if self._server is None or self._server.sandbox != sandbox:
            self._server = None
            self._open.close()
            self._server = self._open.enter_context(ForkServer(sandbox, job.modules, rules))
        self._server.switch(job.modules, rules)
        return self._server


def serve(lines: TextIO, answer: Callable[[str], None]) -> None:
    """Do the job in each line, until there are no more."""
    waiting: Queue[str] = Queue()
    Thread(target=_listen, args=(lines, waiting), daemon=True).start()
    with Examiner() as examiner:
        while line := waiting.get():
            answer(json.dumps(examiner.perform(ExaminationJob.from_json(line))))


def _listen(lines: TextIO, waiting: Queue[str]) -> None:
    for line in lines:
        waiting.put(line)
    os._exit(0)  # whoever asked is gone; the sandbox dies with this process


def main() -> None:
    """Serve on the standard streams. What anything else prints goes to standard error.

    To be called by a program that has switched the garbage collector off (see `worker_processes.WORKER_COMMAND`).
    """
    import torch
    from torch.utils.flop_counter import _FlopCounterMode

    gc.freeze()
    gc.enable()
    torch.set_num_threads(1)  # there is a worker for each core
    # torch would load its compiler, which takes a second, only to keep it out of where some exercises count FLOPs.
    count = inspect.unwrap(_FlopCounterMode.__torch_dispatch__)
    count.__dynamo_disable = count
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(line: str) -> None:
        print(line, file=out, flush=True)

    serve(sys.stdin, answer)
