"""Launchers start and kill a notebook's process: their interface, and the one without a sandbox.

The other launcher is `lmcourse.grading.fork_server.ForkServer`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lmcourse.errors import CourseError
from lmcourse.grading.environment import SEED, kernel_environment, program
from lmcourse.grading.examination_result import Evidence

CHILD_PROGRAM = ("-P", "-s", "-c", program("lmcourse.grading.examination.child"))

PASSED_ON_VARIABLES = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")
"""What a notebook sees of the grader's environment. Its seed and its keys are not among them."""


class LaunchedProcess(Protocol):
    """The process of one notebook, and everything that it started."""

    def kill(self) -> None:
        """Kill all of it, and return when it is gone. May be called again."""

    def kill_reason(self) -> str:
        """Why the launcher killed it, in half a sentence ("it used more than 2048 MiB of memory"), or nothing."""

    def evidence(self) -> list[Evidence]:
        """Evidence of tampering so far; complete once it has been killed."""


class Launcher(Protocol):
    """Starts processes for notebooks, one after the other.

    Attributes:
        quick: whether that takes less than a second, so that a notebook can have several.
    """

    quick: bool

    def start(self, connection: socket.socket) -> LaunchedProcess:
        """Start a process that serves requests (`child.serve`) at this end of a connection, which it takes over.

        Raises:
            CourseError: no process can be started here.
        """


class PlainLauncher:
    """Starts Python anew for each notebook, with the rights of this process.

    Args:
        data: the assignment's data files and folders; each process gets copies of its own in its working folder.
    """

    quick = False  # each loads torch

    def __init__(self, data: tuple[Path, ...] = ()) -> None:
        self.data = data

    def start(self, connection: socket.socket) -> PlainProcess:
        """Start a process that serves requests at this end of a connection, which it takes over.

        Raises:
            CourseError: no process can be started here, or a data file cannot be copied.
        """
        home = tempfile.TemporaryDirectory(prefix="lmcourse-notebook-", ignore_cleanup_errors=True)
        try:
            with connection:
                _copy(self.data, Path(home.name))
                process = subprocess.Popen(
                    [sys.executable, *CHILD_PROGRAM],
                    stdin=connection.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=home.name,
                    env=_environment(Path(home.name)),
                    start_new_session=True,
                )
        except OSError as error:
            home.cleanup()
            raise CourseError(f"The process for a notebook does not start ({error}).") from error
        return PlainProcess(process, home)


class PlainProcess:
    """A process, its session and its home folder. This launcher sees nothing of what it does."""

    def __init__(self, process: subprocess.Popen[bytes], home: tempfile.TemporaryDirectory[str]) -> None:
        self._process = process
        self._home = home

    def kill(self) -> None:
        """Kill the process and what it started, and return when it is gone."""
        if self._process.returncode is None:  # until it is waited for, nothing else can get its number
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._home.cleanup()

    def kill_reason(self) -> str:
        """Nothing: this launcher kills no process of its own accord."""
        return ""

    def evidence(self) -> list[Evidence]:
        """None."""
        return []


def _copy(data: Sequence[Path], folder: Path) -> None:
    for path in data:
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
        else:
            shutil.copy(path, folder / path.name)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON_VARIABLES if name in os.environ}
    environment = kernel_environment(home, base=kept | {"HOME": str(home), "MPLBACKEND": "agg"})
    environment.pop(SEED, None)
    return environment
