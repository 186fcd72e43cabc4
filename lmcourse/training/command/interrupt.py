"""Ctrl-C during a run: the step is finished first, so that nothing is lost."""

from __future__ import annotations

import logging
import signal
import time
from types import FrameType, TracebackType
from typing import Any

from lmcourse.training.metrics import Record

log = logging.getLogger(__name__)

SAME_SIGNAL_SECONDS = 1.0
"""Seconds in which two signals are one Ctrl-C: the terminal sends it, and torchrun passes it on."""


class StoppedError(KeyboardInterrupt):
    """Ctrl-C, when a step is over: the state of the run is whole."""


class InterruptHandler:
    """A callback that stops a run between two steps after Ctrl-C (SIGINT), by raising StoppedError there.

    A second Ctrl-C does not wait for the step. Works in the main thread only, where Python handles signals. With many
    processes each needs one, or it would end at once; the one that is a callback stops all.
    """

    def __init__(self) -> None:
        self._asked: float | None = None
        self._before: Any = None

    def __call__(self, record: Record) -> None:
        """Stop here, if somebody asked for it."""
        if self._asked is not None:
            raise StoppedError

    def __enter__(self) -> InterruptHandler:
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            log.info("stopping after this step; Ctrl-C again does not wait for it")
        elif now - self._asked > SAME_SIGNAL_SECONDS:
            raise KeyboardInterrupt
