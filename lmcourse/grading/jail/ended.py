"""How a program ended, in a sentence that its author can act on."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

Cause = Literal["finished", "failed", "time", "memory", "output", "killed"]

NO_MEMORY = (b"MemoryError", b"can't allocate memory", b"std::bad_alloc")
"""What Python, torch and C++ print when they get no memory. Whoever fakes it gets another sentence, no more."""


@dataclass(frozen=True)
class Ended:
    """The end of a program.

    Args:
        cause: "finished" is status 0, "failed" another one; "killed" is a signal that was not ours.
        status: of its exit, or 128 + the signal's number, or -9 where we ended it.
        output: what it wrote to its standard output, up to the limit. A stranger wrote it.
        errors: the same of its standard error.
        seconds: from start to end.
        reason: one sentence.
    """

    cause: Cause
    status: int
    output: bytes
    errors: bytes
    seconds: float
    reason: str

    @property
    def ok(self) -> bool:
        """Whether it ran to its end without an error."""
        return self.cause == "finished"


def explain(status: int, errors: bytes) -> tuple[Cause, str]:
    """Why a program ended that nobody stopped.

    Args:
        status: its exit status; 128 + n, or -n, stands for signal n.
        errors: the end of its standard error.
    """
    if status == 0:
        return "finished", "It ran to its end."
    if any(mark in errors[-2000:] for mark in NO_MEMORY):
        return "memory", "It asked for more memory than a submission may use: are arrays larger than they need to be?"
    number = -status if status < 0 else status - 128
    name = signal.Signals(number).name if number in set(signal.Signals) else None
    if name == "SIGXCPU":
        return "time", "It used all the processor time that a submission may use: is there an endless loop?"
    if name == "SIGXFSZ":
        return "killed", "It wrote a larger file than a submission may write."
    if name:
        return "killed", f"Python itself ended with {name}: a crash, or a signal it sent itself."
    return "failed", f"It ended with exit status {status}: the last lines it printed say why."
