"""A notebook in a process of its own, seen from outside: it is told what to run, and what it says is checked."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from lmcourse.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import Plain
from lmcourse.exercises.wire_limits import WireError
from lmcourse.exercises.wire_records import case_to_plain, outcome_from_plain, record_of
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.host import Host
from lmcourse.grading.examination.printed import FLOOD, CellOutcome, cell_from_plain
from lmcourse.grading.examination_result import Evidence, Kind

Believed = TypeVar("Believed")


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

    @property
    def spent(self) -> LostError:
        """What to raise when there is no more time for anything."""
        return LostError("TimeLimitExceeded", f"the notebook ran longer than {self.total:g} s in all")


class LostError(Exception):
    """The process is gone, or no longer to be talked to; the text tells a learner why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.failure = Failure((kind,), reason)


class Examinee:
    """The process of one notebook. Use it in a `with` block: at the end the process is killed.

    Args:
        host: starts the process, and ends it.
        deadline: when all has to be over, by `monotonic`.

    Raises:
        CourseError: at the beginning, if no process starts.
        LostError: from every method, if the process does not answer as it should; after that it is dead.
    """

    def __init__(self, host: Host, patience: Patience, deadline: float) -> None:
        self.patience = patience
        self.deadline = deadline
        self._seen: list[Evidence] = []
        here, there = socket.socketpair()
        self._channel = Channel(here)
        try:
            self._guest = host.start(there)
        except BaseException:
            self._channel.close()
            raise

    def __enter__(self) -> Examinee:
        try:
            self._ask({"text": "", "place": 0}, self.patience.start, "The empty cell")
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
        self._guest.kill()

    def evidence(self) -> list[Evidence]:
        """What was noticed of it so far; complete once it is closed."""
        return [*self._seen, *self._guest.evidence()]

    def run(self, text: str, place: int) -> CellOutcome:
        """Run a cell."""
        where = f"Code cell {place}"
        told = self._ask({"text": text, "place": place}, self.patience.cell, where)
        outcome = self._believed(cell_from_plain, told, where)
        if outcome.flooded:
            self._note("flood", f"{where} printed more than {FLOOD:,} characters.")
        return outcome

    def evaluate(self, exercise: Exercise, case: Case) -> Outcome:
        """Put a case to the answer. What the case is called, and what is right, is not sent."""
        request = {
            "name": exercise.name,
            "value": exercise.value,
            "case": case_to_plain(case),
            "seconds": exercise.seconds,
            "forbid": list(exercise.rules),
        }
        where = f"`{exercise.name}`"
        return self._believed(
            outcome_from_plain, self._ask(request, exercise.seconds + self.patience.grace, where), where
        )

    def _ask(self, request: dict[str, Plain], seconds: float, where: str) -> Plain:
        """Send a request and wait for its answer, in time and with its number; anything else ends the process."""
        nonce = secrets.token_hex(16)
        end = min(self.deadline, monotonic() + seconds)
        try:
            self._channel.send(request | {"nonce": nonce}, max(end - monotonic(), 0.001))
            reply = record_of(self._channel.receive(max(end - monotonic(), 0.001)), ("nonce", "result"))
            if reply["nonce"] != nonce:
                raise WireError("an answer to another question")
        except TimeoutError as error:
            self.close()
            late = LostError("TimeLimitExceeded", f"still running after {seconds:g} s")
            raise (self.patience.spent if end == self.deadline else late) from error
        except WireError as error:
            raise self._no_answer(error, where) from error
        except OSError as error:
            raise self._ended(where) from error
        return reply["result"]

    def _believed(self, read: Callable[[Plain], Believed], told: Plain, where: str) -> Believed:
        try:
            return read(told)
        except WireError as error:
            raise self._no_answer(error, where) from error

    def _no_answer(self, error: WireError, where: str) -> LostError:
        self.close()
        self._note("protocol", f"{where}: what came back is no answer: {error}.")
        return LostError("NoAnswer", f"what came from your notebook is no answer: {error}")

    def _ended(self, where: str) -> LostError:
        """It hung up: the host ended it, and says why, or it ended by itself."""
        self.close()
        reason = self._guest.ended_for()
        if not reason:
            self._note("crash", f"{where} ended Python itself.")
        return LostError("PythonEnded", reason or "it ended Python itself: an exit, a crash, or no memory left")

    def _note(self, kind: Kind, what: str) -> None:
        self._seen.append(Evidence(kind, what, "seen"))
