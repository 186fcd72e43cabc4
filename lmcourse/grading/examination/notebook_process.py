"""The grader's side of a notebook's process: sends requests with timeouts, and validates the answers."""

from __future__ import annotations

import hmac
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
from lmcourse.exercises.forbidden_names import Names
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.channel import ANSWER, QUESTION, Channel, signed_text
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import ProtocolError
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.messages import (
    MAX_CELL_PRINTED_CHARS,
    CellOutcome,
    case_to_plain,
    cell_from_plain,
    outcome_from_plain,
    record_of,
)
from lmcourse.grading.examination.running_cells import Statements
from lmcourse.grading.examination.stand_ins import StandIns
from lmcourse.grading.examination_result import Evidence, EvidenceKind

Parsed = TypeVar("Parsed")

KEY_BYTES = 32
"""Of the key with which questions and answers are signed."""


@dataclass(frozen=True)
class Timeouts:
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
    def total_exceeded(self) -> LostError:
        """The error to raise when there is no more time for anything."""
        return LostError("TimeLimitExceeded", f"the notebook ran longer than {self.total:g} s in all")


class LostError(Exception):
    """The process is gone, or no longer to be talked to; the text tells a learner why.

    Attributes:
        failure: the same as the outcome of a case.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.failure = Failure((kind,), reason)


class NotebookProcess:
    """The process of one notebook. It lives until `close`.

    Args:
        launcher: starts the process, and kills it.
        timeouts: how long each step may take.
        deadline: when all has to be over, by `monotonic`.
        stand_ins: the course's answers that its cells get to call.

    Raises:
        CourseError: at the beginning, if no process starts.
        LostError: from every method, if the process does not answer as it should; after that it is dead.
    """

    def __init__(
        self, launcher: Launcher, timeouts: Timeouts, deadline: float, stand_ins: StandIns | None = None
    ) -> None:
        self.timeouts = timeouts
        self.stand_ins = stand_ins or StandIns()
        self.deadline = deadline
        self._found: list[Evidence] = []
        self._rules: Names = ()
        here, there = socket.socketpair()
        self._channel = Channel(here)
        self._key, self._asked = secrets.token_bytes(KEY_BYTES), 0
        try:
            self._process = launcher.start(there)
        except BaseException:
            self._channel.close()
            raise

    def wait_until_ready(self) -> None:
        """Wait until Python is up. To be called once, before anything else.

        Raises:
            CourseError: the process does not answer; that is not the learner's fault.
        """
        try:
            first = {"text": "", "number": 0, "answer": "", "under": [], "statements": None}
            first |= {"stand_ins": list(self.stand_ins.names), "key": self._key.hex()}
            self._ask(first, self.timeouts.start, "The empty cell")
        except LostError as error:
            if monotonic() >= self.deadline:
                raise
            raise CourseError(f"The process for a notebook does not start ({error}): check its sandbox.") from error

    def close(self) -> None:
        """Kill the process and what it started."""
        self._channel.close()
        self._process.kill()

    def evidence(self) -> list[Evidence]:
        """Evidence of tampering so far; complete once it is closed."""
        return [*self._found, *self._process.evidence()]

    def run(self, text: str, number: int, answer: str = "") -> CellOutcome:
        """Run a cell, without any rules.

        Args:
            text: its Python.
            number: of the cell, from 1 on.
            answer: the name of the exercise whose answer it is to define, if it is the cell for one.
        """
        return self._run({"text": text, "number": number, "answer": answer, "under": [], "statements": None})

    def run_under_rules(self, text: str, number: int, answer: str, rules: Names, statements: Statements) -> CellOutcome:
        """Run statements of a cell, one by one, while rules hold.

        Args:
            text, number, answer: as for `run`.
            rules: what is refused meanwhile.
            statements: which.
        """
        request = {"text": text, "number": number, "answer": answer, "under": list(rules)}
        outcome = self._run(request | {"statements": list(statements)})
        if not all(one in statements and {*broken} <= {*rules} for one, broken in outcome.refused):
            raise self._no_answer(ProtocolError("statements, or rules, that are none"), f"Code cell {number}")
        return outcome

    def enforce(self, rules: Names) -> None:
        """Have the process refuse what these rules cover, and end what the notebook has started.

        A request of its own, before the cases, whose inputs it could not read if another exercise's rules still held.
        """
        self._ask({"rules": list(rules)}, self.timeouts.cell, "A set of rules")
        self._rules = rules

    def _run(self, request: dict[str, Plain]) -> CellOutcome:
        where = f"Code cell {request['number']}"
        reply = self._ask(request, self.timeouts.cell, where)
        outcome = self._parse(cell_from_plain, reply, where)
        if outcome.flooded:
            self._note("flood", f"{where} printed more than {MAX_CELL_PRINTED_CHARS:,} characters.")
        return outcome

    def run_case(
        self, exercise: Exercise, case: Case, seconds: float, rules: Names | None = None, noted: Names | None = None
    ) -> Outcome:
        """Put a case to the answer. What the case is called, and what is right, is not sent.

        Args:
            exercise: whose answer.
            case: one of its cases.
            seconds: the time limit, by the notebook's own clock.
            rules: what is refused meanwhile; by default what the exercise rules out.
            noted: what is noted if the answer uses it; by default what is refused.
        """
        rules = exercise.rules if rules is None else rules
        request = {
            "name": exercise.name,
            "value": exercise.value,
            "case": case_to_plain(case),
            "seconds": seconds,
            "forbid": list(rules if noted is None else noted),
        }
        where = f"`{exercise.name}`"
        if rules != self._rules:
            self.enforce(rules)
        return self._parse(outcome_from_plain, self._ask(request, seconds + self.timeouts.grace, where), where)

    def _ask(self, request: dict[str, Plain], seconds: float, where: str) -> Plain:
        """Send a request and wait for its answer, in time and with its number; anything else ends the process."""
        nonce = secrets.token_hex(16)
        end = min(self.deadline, monotonic() + seconds)
        try:
            question = self._channel.encoded(request | {"nonce": nonce})
            self._channel.put(question, self._signature(QUESTION, question), max(end - monotonic(), 0.001))
            message, signed = self._receive(end)
            while self.stand_ins.is_call(message):
                self._channel.send(self.stand_ins.reply(message, end - monotonic()), max(end - monotonic(), 0.001))
                message, signed = self._receive(end)
            if not signed:
                raise ProtocolError("an answer that the program around the notebook did not give")
            self._asked += 1
            reply = record_of(message, ("nonce", "result"))
            if reply["nonce"] != nonce:
                raise ProtocolError("an answer to another question")
        except TimeoutError as error:
            self.close()
            late = LostError("TimeLimitExceeded", f"still running after {seconds:g} s")
            raise (self.timeouts.total_exceeded if end == self.deadline else late) from error
        except ProtocolError as error:
            raise self._no_answer(error, where) from error
        except OSError as error:
            raise self._ended(where) from error
        return reply["result"]

    def _receive(self, end: float) -> tuple[Plain, bool]:
        """The next message, and whether it is signed as the answer to the last question."""
        message, signature = self._channel.take(max(end - monotonic(), 0.001))
        signed = hmac.compare_digest(signature, self._signature(ANSWER, message))
        return decode(message, self._channel.limits), signed

    def _signature(self, direction: bytes, message: bytes) -> bytes:
        return hmac.digest(self._key, signed_text(direction, self._asked, message), "sha256")

    def _parse(self, parse: Callable[[Plain], Parsed], reply: Plain, where: str) -> Parsed:
        try:
            return parse(reply)
        except ProtocolError as error:
            raise self._no_answer(error, where) from error

    def _no_answer(self, error: ProtocolError, where: str) -> LostError:
        self.close()
        self._note("protocol", f"{where}: what came back is no answer: {error}.")
        return LostError("NoAnswer", f"what came from your notebook is no answer: {error}")

    def _ended(self, where: str) -> LostError:
        """It hung up: the launcher killed it, and says why, or it ended by itself."""
        self.close()
        reason = self._process.kill_reason()
        if not reason:
            self._note("crash", f"{where} ended Python itself.")
        return LostError("PythonEnded", reason or "it ended Python itself: an exit, a crash, or no memory left")

    def _note(self, kind: EvidenceKind, what: str) -> None:
        self._found.append(Evidence(kind, what, "seen"))
