"""The simplest host: Python is started anew for each notebook."""

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

from lmcourse.errors import CourseError
from lmcourse.grading.environment import SEED, kernel_environment
from lmcourse.grading.examination_result import Evidence

PROGRAM = ("-P", "-s", "-m", "lmcourse.grading.examination.child")

PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")
"""What a notebook sees of the grader's environment. Its seed and its keys are not among them."""


class PlainHost:
    """Starts a process with the rights of this one, or with those that a jail leaves it.

    Args:
        prefix: a command that runs the one behind it with fewer rights; it must pass on the standard input.
        data: the assignment's data files and folders; each guest gets copies of its own in its working folder. A
            jail has a working folder of its own, and shows its own data.
    """

    def __init__(self, prefix: Sequence[str] = (), data: tuple[Path, ...] = ()) -> None:
        self.prefix = tuple(prefix)
        self.data = data

    def start(self, end: socket.socket) -> PlainGuest:
        """Start a process that serves requests at this end of a connection, which it takes over.

        Raises:
            CourseError: no process can be started here, or a data file cannot be copied.
        """
        home = tempfile.TemporaryDirectory(prefix="lmcourse-examinee-", ignore_cleanup_errors=True)
        try:
            with end:
                _copy(self.data, Path(home.name))
                process = subprocess.Popen(
                    [*self.prefix, sys.executable, *PROGRAM],
                    stdin=end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=home.name,
                    env=_environment(Path(home.name)),
                    start_new_session=True,
                )
        except OSError as error:
            home.cleanup()
            raise CourseError(f"The process for a notebook does not start ({error}): check its jail.") from error
        return PlainGuest(process, home)


class PlainGuest:
    """A process, its session and its home. This host sees nothing of what it does."""

    def __init__(self, process: subprocess.Popen[bytes], home: tempfile.TemporaryDirectory[str]) -> None:
        self._process = process
        self._home = home

    def kill(self) -> None:
        """End the process and what it started, and return when it is gone."""
        if self._process.returncode is None:  # until it is waited for, nothing else can get its number
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._home.cleanup()

    def ended_for(self) -> str:
        """Nothing: this host ends no guest of its own accord."""
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
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment = kernel_environment(home, base=kept | {"HOME": str(home), "MPLBACKEND": "agg"})
    environment.pop(SEED, None)
    return environment
