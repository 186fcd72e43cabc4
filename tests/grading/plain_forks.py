"""Plain processes for notebooks, as with `--isolation=process`, but forked from one that has torch loaded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from lmcourse.exercises import Exercise
from lmcourse.grading.batch import ExaminationJob
from lmcourse.grading.batch.worker import Examiner
from lmcourse.grading.environment import program
from lmcourse.grading.examination import PlainLauncher
from lmcourse.grading.examination.launchers import _environment
from lmcourse.grading.examination_result import Evidence
from tests.grading.tiny_course import REPOSITORY


class PlainForks(PlainLauncher):
    """A launcher for one process after the other. A context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._home = tempfile.TemporaryDirectory(prefix="lmcourse-notebook-", ignore_cleanup_errors=True)
        self._control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = _environment(Path(self._home.name)) | {"PYTHONPATH": str(REPOSITORY)}
        with there:
            command = [sys.executable, "-P", "-s", "-c", program("tests.grading.plain_template")]
            self._template = subprocess.Popen(command, stdin=there.fileno(), env=environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._template.wait()
        self._home.cleanup()

    def start(self, connection: socket.socket) -> PlainFork:  # type: ignore[override]
        """As `PlainLauncher.start`; the process before has been killed."""
        home = tempfile.mkdtemp(dir=self._home.name)
        with connection:
            socket.send_fds(self._control, [home.encode()], [connection.fileno()])
            return PlainFork(int(self._control.recv(100)))


class PlainFork:
    """A process and its session."""

    def __init__(self, process: int) -> None:
        self._process = process

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)

    def kill_reason(self) -> str:
        return ""

    def evidence(self) -> list[Evidence]:
        return []


class PlainExaminer(Examiner):
    """Examines notebooks in such processes."""

    def __init__(self, forks: PlainForks) -> None:
        super().__init__()
        self._forks = forks

    def launcher(self, job: ExaminationJob, exercises: Sequence[Exercise]) -> PlainForks:
        return self._forks
