"""In a notebook's process: an earlier answer whose place the course's own takes, without being there.

The function only asks the grader, which runs the reference and sends back what came of it. So a learner's code can call
the right answer, as their own right one could be called, but not read it.
"""

from __future__ import annotations

import builtins
import signal
from threading import Lock
from typing import Any

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.values import Plain, to_plain
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.messages import outcome_from_plain

_asking = Lock()


class RemoteAnswer:
    """A function whose calls the grader answers.

    Args:
        name: of the exercise.
        channel: to the grader.
    """

    def __init__(self, name: str, channel: Channel) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "__main__"  # a name of the notebook's to the rules, which forbid those of this package
        self._channel = channel

    def __call__(self, *args: Any, **kwargs: Any) -> Plain:
        """What the reference returns.

        Raises:
            Exception: what the reference raises, if that is one of Python's own exceptions.
            NotPlainError: an input is no plain value.
        """
        call = {"args": to_plain(list(args)), "kwargs": to_plain(kwargs), "script": None}
        # A time limit that interrupts here would leave half a message on the way.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        try:
            with _asking:
                self._channel.send({"call": self.__name__, "case": call})
                outcome = outcome_from_plain(self._channel.receive())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if outcome.failure:
            raise _exception(outcome.failure)
        return outcome.value


def _exception(failure: Failure) -> Exception:
    """The exception that a failure tells of; a RuntimeError in place of a kind that is none of Python's."""
    known = [getattr(builtins, kind, None) for kind in failure.kinds]
    kind = next((kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception)), RuntimeError)
    return kind(failure.message)
