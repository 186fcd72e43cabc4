"""A guest as the grader has it: watched from outside by a thread, and ended."""

from __future__ import annotations

import os
import select
import signal
from contextlib import AbstractContextManager, suppress
from threading import Event, Thread
from time import monotonic, sleep

from lmcourse.grading.examination_result import Evidence
from lmcourse.grading.jail import Limits
from lmcourse.grading.jail.memory import forks_use_more
from lmcourse.grading.nursery.room import Room
from lmcourse.grading.nursery.wire import LONGEST
from lmcourse.grading.nursery.witness import Statements
from lmcourse.units import MIB

LOOK = 0.05
"""Seconds between two looks at its memory."""

ANSWER = 5.0
"""Seconds until a keeper that does not end a guest is ended itself."""

DYING = 2.0
"""Seconds between the end of a process's descriptors and its own, at most."""


class NurseryGuest:
    """One fork of the keeper, and what it started.

    Args:
        room: where it is; it has been admitted, and is ready.
        limits: of its memory and time.
        witness: the end of its witness's pipe, which this takes over.
        user: what holds its user's number.
    """

    def __init__(self, room: Room, limits: Limits, witness: int, user: AbstractContextManager[object]) -> None:
        self._room, self._limits, self._witness, self._user = room, limits, witness, user
        self._statements = Statements()
        self._found: list[Evidence] = []
        self._reason = ""
        self._gone = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """End all of it, and return when it is gone. May be called again."""
        if not self._gone.is_set():
            self._hear_the_rest()
            if self._statements.over:
                self._gone.wait(DYING)  # it is dying, or wants to be thought so
            if not self._gone.is_set() and self._statements.over:
                self._statements.silenced()
            self._room.kill_guest()
            if not self._gone.wait(ANSWER):
                self._room.end()
        self._thread.join()

    def _hear_the_rest(self) -> None:
        """Give the watching thread time for what the witness has said, or for the end of its pipe."""
        deadline = monotonic() + DYING
        with suppress(OSError, ValueError):  # closed meanwhile: all is heard
            while not self._statements.over and monotonic() < deadline and select.select([self._witness], [], [], 0)[0]:
                sleep(0.001)

    def ended_for(self) -> str:
        """Which limit it was ended for, in half a sentence, or nothing."""
        return self._reason

    def evidence(self) -> list[Evidence]:
        """What was noticed; complete once it has been killed."""
        return [*self._found, *self._statements.evidence()]

    def _watch(self) -> None:
        """Until it is gone: look at its memory, hear its witness, and wait for its end."""
        waiting = select.poll()
        waiting.register(self._room.control, select.POLLIN)
        waiting.register(self._witness, select.POLLIN)
        look = monotonic()
        while self._room.control.fileno() not in (ready := dict(waiting.poll(1000 * LOOK))):
            if self._witness in ready and self._hear():
                waiting.unregister(self._witness)
            if monotonic() >= look and not self._reason:
                self._weigh()
                look = monotonic() + LOOK
        self._end()

    def _hear(self) -> bool:
        """Take what the witness said; whether it was the last."""
        self._statements.add(os.read(self._witness, 4096))
        return self._statements.over

    def _weigh(self) -> None:
        if forks_use_more(self._room.keeper, self._limits.memory):
            self._reason = f"it used more than {self._limits.memory / MIB:.0f} MiB of memory"
            self._found.append(Evidence("memory", f"The notebook was ended: {self._reason}.", "seen"))
            self._room.kill_guest()

    def _end(self) -> None:
        """All of it is gone, or the keeper died, and with it the guest."""
        status = b""
        with suppress(OSError):
            status = self._room.control.recv(LONGEST)
        if not status:
            self._room.end()
        while not self._statements.over:
            self._hear()
        os.close(self._witness)
        with self._user:
            pass
        number = int(status or 0) - 128
        if number == signal.SIGXCPU:
            self._reason = f"it used more than {self._limits.cpu_seconds} s of processor time"
        elif number in set(signal.Signals) - {signal.SIGKILL}:
            what = f"Its Python ended with {signal.Signals(number).name}: a crash, or a signal that it sent itself."
            self._found.append(Evidence("crash", what, "seen"))
        self._gone.set()
