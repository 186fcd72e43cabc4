"""The grader's side of a submission's process: start it in a sandbox, limit its time, kill it with all children."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.base.units import GIB
from lmcourse.course.chapters import PUBLISHED
from lmcourse.grading.sandbox import MEMORY, Isolation, environment, memory_used, sandboxed
from lmcourse.grading.wire import Channel, ProtocolError

# The program of the process. It imports without garbage collections, which would take a sixth of the time.
PROGRAM = "import gc; gc.disable(); from lmcourse.grading.child import main; gc.freeze(); gc.enable(); main()"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Settings:
    """Settings for examining submissions."""

    isolation: Isolation = "bubblewrap"
    private: tuple[Path, ...] = ()  # folders that submissions must not see
    cell_seconds: float = 30.0
    total_seconds: float = 900.0
    term: str = PUBLISHED  # the name from which hidden cases are drawn


class LostError(Exception):
    """The process ended, is late, or sent an invalid answer. The text continues a sentence that begins with "code cell
    7" or "the answer"."""


class SubmissionProcess:
    """A process that runs cells, and runs answers on cases, until it is closed or `monotonic()` reaches `end`.

    Raises CourseError if no process can be started here, and LostError after it had to be killed for a wrong answer.
    """

    def __init__(self, data: Sequence[Path], settings: Settings, end: float) -> None:
        if monotonic() >= end:  # checked before a process is started that would have to be killed
            raise LostError("had no time left")
        self._end = end
        self._home: tempfile.TemporaryDirectory[str] | None = None
        here, there = socket.socketpair()
        with there:
            self._process = self._start(there, data, settings)
        self._channel = Channel(here, self._watch_memory)
        try:
            self._exchange(min(START_SECONDS, end - monotonic()))
        except LostError as error:
            if monotonic() >= end:
                raise
            raise CourseError(f"The process of a submission does not start ({error}): check its sandbox.") from error

    def ask(self, do: str, within: float, /, **request: Any) -> Any:
        """Send a request and return the answer, which is always a plain value."""
        return self._exchange(min(within, self._end - monotonic()), {"do": do, **request})

    def close(self) -> None:
        """Kill the process and all processes that it has started. You may call this again."""
        self._channel.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # in a sandbox all processes end together with bubblewrap
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._home:
            self._home.cleanup()

    def _exchange(self, seconds: float, request: Any = None) -> Any:
        try:
            if seconds <= 0:
                raise TimeoutError
            if request:
                self._channel.send(request, seconds)
            return self._channel.receive(seconds)
        except TimeoutError:
            raise self._lost(f"was still running after {max(seconds, 0):.0f} s") from None
        except ProtocolError as error:
            raise self._lost(f"sent an invalid answer ({error})") from error
        except OSError:
            raise self._lost("ended Python: an exit, a crash, or no memory left") from None

    def _lost(self, why: str) -> LostError:
        self.close()
        return LostError(why)

    def _watch_memory(self) -> None:
        if memory_used(self._process.pid) > MEMORY:
            raise self._lost(f"used more than {MEMORY // GIB} GiB of memory")

    def _start(self, there: socket.socket, data: Sequence[Path], settings: Settings) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-P", "-s", "-c", PROGRAM]
        options: dict[str, Any] = {"stdin": there.fileno(), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if settings.isolation == "bubblewrap":
            program = sandboxed(program, data, settings.private)
        else:
            self._home = tempfile.TemporaryDirectory(prefix="lmcourse-notebook-", ignore_cleanup_errors=True)
            for path in data:
                copy = shutil.copytree if path.is_dir() else shutil.copy
                copy(path, Path(self._home.name, path.name))
            home = {"HOME": self._home.name, "TMPDIR": self._home.name}
            kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
            options |= {"cwd": self._home.name, "env": environment() | kept | home}
        try:
            return subprocess.Popen(program, start_new_session=True, **options)
        except OSError as error:
            raise CourseError(f"The process of a submission does not start ({error}).") from error
