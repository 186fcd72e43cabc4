"""Ctrl-C or SIGTERM during a run: the step is finished first, so that nothing is lost."""

from __future__ import annotations

import logging
import signal
import time
from types import FrameType, TracebackType
from typing import Any

from lmcourse.training.metrics import Record

log = logging.getLogger(__name__)

SAME_SIGNAL_SECONDS = 1.0
"""Seconds in which two signals are one: the terminal sends Ctrl-C, and torchrun passes it on."""

STOP_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""Ctrl-C, and what clusters send before they take a machine away; each with what it makes of a run."""


class StoppedError(KeyboardInterrupt):
    """A signal, when a step is over: the state of the run is whole.

    Attributes:
        reason: what it makes of the run, as in `STOP_SIGNALS`.
    """

    def __init__(self, reason: str = STOP_SIGNALS[signal.SIGINT]) -> None:
        super().__init__(reason)
        self.reason = reason


class InterruptHandler:
    """A callback that stops a run between two steps after Ctrl-C (SIGINT) or SIGTERM, by raising StoppedError there.

    Ctrl-C again does not wait for the step. SIGTERM again changes nothing: clusters and torchrun send it several times,
    and a checkpoint that is being written is what it is meant to save. Works in the main thread only, where Python
    handles signals. With many processes each needs one as a callback; whichever gets the signal stops all.
    """

    def __init__(self) -> None:
        self._asked: float | None = None
        self._reason = ""
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self, record: Record) -> None:
        """Stop here, if somebody asked for it."""
        if self._asked is not None:
            raise StoppedError(self._reason)

    def __enter__(self) -> InterruptHandler:
        self._before = {number: signal.signal(number, self._ask) for number in STOP_SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked is None:
            self._asked, self._reason = now, STOP_SIGNALS[signal.Signals(number)]
            hurry = "; Ctrl-C again does not wait for it" if number == signal.SIGINT else ""
            log.info("stopping after this step%s", hurry)
        elif number == signal.SIGINT and now - self._asked > SAME_SIGNAL_SECONDS:
            raise KeyboardInterrupt
