"""Which of the course's answers stand in for earlier ones of a learner's, and their calls, which the grader answers.

An exercise may be built on the answer to an earlier one. Where that is missing or wrong, the later one is judged once
more with the reference in its place. The process that is asked then is a new one, in which nothing is judged but
exercises that come later: what it could learn of a reference can no longer earn that exercise's points.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.limits import memory_limit
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.encoding import ProtocolError
from lmcourse.grading.examination.messages import case_from_plain, outcome_to_plain, record_of
from lmcourse.report import Report
from lmcourse.units import MIB

MAX_MEMORY_BYTES = 1024 * MIB
"""Bytes that a reference may take for inputs that a learner's code chose."""

MAX_INPUT_BYTES = 16 * MIB
"""Bytes of all tensors of a call."""

MAX_WHOLE_NUMBER = 2**63
"""Larger ones would keep a reference busy in Python's own arithmetic, which no time limit interrupts."""


def stand_ins_for(
    exercise: Exercise, reports: Mapping[str, Report], exercises: Sequence[Exercise], reached: Collection[str]
) -> frozenset[str]:
    """The earlier exercises whose references are to stand in while an answer is judged once more.

    Args:
        exercise: whose answer did not pass.
        reports: on the exercises before it, final.
        exercises: of the notebook, in order.
        reached: the names that the answer leads to.
    """
    by_name = {each.name: each for each in exercises}
    meant: set[str] = set()
    waiting = [*exercise.uses]
    while waiting:
        name = waiting.pop()
        if name not in meant:
            meant.add(name)
            waiting += by_name[name].uses
    return frozenset(name for name in meant if name in reached and not reports[name].passed)


class StandIns:
    """The references that a notebook's process may have called for it.

    Args:
        exercises: whose.
    """

    def __init__(self, exercises: Sequence[Exercise] = ()) -> None:
        self._exercises = {exercise.name: exercise for exercise in exercises}

    @property
    def names(self) -> list[str]:
        """The names of the exercises."""
        return [*self._exercises]

    def is_call(self, message: Plain) -> bool:
        """Whether a message is a call of one of them, and no answer."""
        return bool(self._exercises) and isinstance(message, dict) and "call" in message

    def reply(self, message: Plain, seconds: float) -> dict[str, Plain]:
        """What comes of a call, to be sent back.

        Args:
            message: one for which `is_call` holds; its sender is not trusted.
            seconds: the most that the reference gets.

        Raises:
            ProtocolError: it is no proper call.
        """
        record = record_of(message, ("call", "case"))
        case = case_from_plain(record["case"])
        exercise = self._exercises.get(record["call"]) if isinstance(record["call"], str) else None
        if exercise is None or case.script is not None:
            raise ProtocolError("a call of nothing that stands in")
        if not _small([*case.args, *case.kwargs.values()]):
            return outcome_to_plain(Outcome(failure=Failure(("ValueError",), f"{exercise.name}: too large an input")))
        with memory_limit(MAX_MEMORY_BYTES):
            outcome = run_case(
                exercise.reference, case, name=exercise.name, seconds=max(min(seconds, exercise.seconds), 0.001)
            )
        failure = outcome.failure and replace(outcome.failure, line="", number=0, cause="")
        return outcome_to_plain(Outcome(outcome.value, failure))


def _small(inputs: Sequence[Plain]) -> bool:
    """Whether a reference can be given these inputs without keeping the grader from its work."""
    waiting, data = [*inputs], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            data += value.numel() * value.element_size()
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, int) and abs(value) > MAX_WHOLE_NUMBER:
            return False
    return data <= MAX_INPUT_BYTES
