"""A notebook in a process of its own, seen from outside: it is told what to run, and what it says is checked."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeVar

from lmcourse.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import Plain
from lmcourse.exercises.wire_limits import WireError
from lmcourse.exercises.wire_records import case_to_plain, failure_from_plain, outcome_from_plain, record_of
from lmcourse.grading.environment import SEED, kernel_environment
from lmcourse.grading.examination.channel import Channel

Believed = TypeVar("Believed")

PROGRAM = ("-P", "-s", "-m", "lmcourse.grading.examination.child")

PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")
"""What a notebook sees of the grader's environment. Its seed and its keys are not among them."""


@dataclass(frozen=True)
class Patience:
    """Seconds that a notebook gets, by this process's clock.

    Attributes:
        start: until Python is up.
        cell: for one cell.
        grace: for one case, beyond the exercise's own limit.
        total: for everything.
    """

    start: float = 60.0
    cell: float = 60.0
    grace: float = 3.0
    total: float = 900.0


class LostError(Exception):
    """The process is gone, or no longer to be talked to; the text tells a learner why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.failure = Failure((kind,), reason)


class Examinee:
    """The process of one notebook. Use it in a `with` block: at the end the process is killed.

    Args:
        jail: a command that runs the one behind it with fewer rights; it must pass on the standard input.
        deadline: when all has to be over, by `monotonic`.

    Raises:
        CourseError: at the beginning, if no process starts.
        LostError: from every method, if the process does not answer as it should; after that it is dead.
    """

    def __init__(self, jail: Sequence[str], patience: Patience, deadline: float) -> None:
        self.patience = patience
        self.deadline = deadline
        self._home = tempfile.TemporaryDirectory(prefix="lmcourse-examinee-", ignore_cleanup_errors=True)
        here, there = socket.socketpair()
        self._channel = Channel(here)
        try:
            with there:
                self._process = subprocess.Popen(
                    [*jail, sys.executable, *PROGRAM],
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=self._home.name,
                    env=_environment(Path(self._home.name)),
                    start_new_session=True,
                )
        except OSError as error:
            raise CourseError(f"The process for a notebook does not start ({error}): check its jail.") from error

    def __enter__(self) -> Examinee:
        try:
            self._ask({"text": "", "place": 0}, self.patience.start)
        except LostError as error:
            if monotonic() >= self.deadline:
                raise
            raise CourseError(f"The process for a notebook does not start ({error}): check its jail.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process and what it started."""
        self._channel.close()
        if self._process.returncode is None:  # until it is waited for, nothing else can get its number
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._home.cleanup()

    def run(self, text: str, place: int) -> Failure | None:
        """Run a cell; the failure it ended with, if any."""
        told = self._ask({"text": text, "place": place}, self.patience.cell)
        return None if told is None else self._believed(failure_from_plain, told)

    def evaluate(self, exercise: Exercise, case: Case) -> Outcome:
        """Put a case to the answer. What the case is called, and what is right, is not sent."""
        request = {
            "name": exercise.name,
            "value": exercise.value,
            "case": case_to_plain(case),
            "seconds": exercise.seconds,
            "forbid": list(exercise.rules),
        }
        return self._believed(outcome_from_plain, self._ask(request, exercise.seconds + self.patience.grace))

    def _ask(self, request: dict[str, Plain], seconds: float) -> Plain:
        """Send a request and wait for its answer, in time and with its number; anything else ends the process."""
        nonce = secrets.token_hex(16)
        end = min(self.deadline, monotonic() + seconds)
        try:
            self._channel.send(request | {"nonce": nonce}, max(end - monotonic(), 0.001))
            reply = record_of(self._channel.receive(max(end - monotonic(), 0.001)), ("nonce", "result"))
            if reply["nonce"] != nonce:
                raise WireError("an answer to another question")
        except TimeoutError as error:
            late = f"the notebook ran longer than {self.patience.total:g} s in all"
            reason = late if end == self.deadline else f"still running after {seconds:g} s"
            raise self._lost("TimeLimitExceeded", reason) from error
        except WireError as error:
            raise self._lost("NoAnswer", f"what came from your notebook is no answer: {error}") from error
        except OSError as error:
            raise self._lost("PythonEnded", "it ended Python itself: an exit, a crash, or no memory left") from error
        return reply["result"]

    def _believed(self, read: Callable[[Plain], Believed], told: Plain) -> Believed:
        try:
            return read(told)
        except WireError as error:
            raise self._lost("NoAnswer", f"what came from your notebook is no answer: {error}") from error

    def _lost(self, kind: str, reason: str) -> LostError:
        self.close()
        return LostError(kind, reason)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment = kernel_environment(home, base=kept | {"HOME": str(home), "MPLBACKEND": "agg"})
    environment.pop(SEED, None)
    return environment
