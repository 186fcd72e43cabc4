"""Time and memory limits for a learner's code in this process, and a test that separates it from libraries.

The limits protect learners from their own endless loops. They do not stop attackers, which requires a separate process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import site
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

import torch

SCRIPT = "<script>"


def _folders() -> tuple[str, ...]:
    standard = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths = [*standard, *site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    both = dict.fromkeys(spelling for path in paths for spelling in (path, str(Path(path).resolve())))
    return tuple(f"{path}{os.sep}" for path in both)


LIBRARY_PREFIXES = _folders()
"""Folders of code that learners did not write, under all their paths."""


@cache
def in_library(filename: str) -> bool:
    """Return True if code with this file name belongs to a library. Cells have file names outside all libraries."""
    return filename.startswith((*LIBRARY_PREFIXES, "<frozen ", SCRIPT))


def runs_answers(frame: FrameType) -> bool:
    """Return True if this frame calls answers, so that the frames that called it do not belong to an answer."""
    return frame.f_globals.get("__name__") in ("lmcourse.exercises.outcome", "lmcourse.grading.child")


HEADROOM_BYTES = 4 * 2**30
"""Bytes that a checked answer may allocate in addition to the memory that the process already has."""

REPEAT_SECONDS = 0.25
"""Seconds until the limit interrupts again, for code that catches all exceptions and continues."""

RETRY_SECONDS = 0.001
"""Seconds until the limit checks again whether it may interrupt."""

IMPORT_SECONDS, IMPORT_RETRY_SECONDS = 30.0, 0.05
"""Additional seconds for an import to finish, because an interrupted import leaves half a module; and seconds until the
limit checks again."""

PATIENCE = 4
"""Longest wall-clock time, in multiples of the limit, if other programs use the processor."""

MIN_SHARE = 0.002
"""Fraction of a processor below which code counts as waiting, not as computing."""

MAX_CATCHABLE_TIMEOUTS = 2
"""Number of interrupts after which code that catches the exception gets it again at its next line."""


class TimeLimitExceeded(BaseException):
    """The code ran out of time. This is not an `Exception`, so that `except Exception` in a loop does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` inside the `with` block after `seconds`, and repeatedly until the block ends.

    On a busy machine, a computing block has `seconds` of processor time and at most `PATIENCE` times that on the clock.
    A block that catches the exception and ends has still exceeded the limit.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    limit = _by_signal if hasattr(signal, "setitimer") and on_main_thread else _by_thread
    interrupts = _Interrupts(seconds)
    # An interrupt may come inside this `finally`; then the limit's own `finally`, around it, has REPEAT_SECONDS until
    # the next interrupt.
    with limit(seconds, interrupts):
        try:
            yield
        finally:
            interrupts.over = True
    if interrupts.count:
        raise TimeLimitExceeded


class _Interrupts:
    """Handles the interrupts that come when the time is up."""

    def __init__(self, seconds: float) -> None:
        self.count = 0
        self.over = False
        self.import_seconds = 0.0
        self._seconds = seconds
        self._begin = self._last = _times()

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: end the code wherever it is."""
        if self.over:
            return
        if _is_between(frame):
            signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS, REPEAT_SECONDS)
            return
        if self.import_seconds < IMPORT_SECONDS and _imports(frame):
            self.import_seconds += IMPORT_RETRY_SECONDS
            signal.setitimer(signal.ITIMER_REAL, IMPORT_RETRY_SECONDS, REPEAT_SECONDS)
            return
        if not self.count and self._is_kept_waiting():
            return
        self.count += 1
        if self.count > MAX_CATCHABLE_TIMEOUTS:
            for one in takewhile(lambda one: not runs_answers(one), _with_callers(frame)):
                one.f_trace = self._at_line
            sys.settrace(self._at_line)  # Python removes it when it raises
        raise TimeLimitExceeded

    def _at_line(self, frame: FrameType, event: str, value: Any) -> Callable[..., Any] | None:
        name = frame.f_globals.get("__name__", "")
        if self.over or name.startswith(("contextlib", "lmcourse.exercises.", "lmcourse.grading.child")):
            return None
        if event == "line":
            raise TimeLimitExceeded
        return self._at_line

    def _is_kept_waiting(self) -> bool:
        """Return True if the code is computing, but other programs have used the processor for a part of its time."""
        now, begin, last = _times(), self._begin, self._last
        self._last = now
        computes = now[1] - last[1] >= MIN_SHARE * (now[0] - last[0])
        return computes and now[1] - begin[1] < self._seconds and now[0] - begin[0] < PATIENCE * self._seconds


def _times() -> tuple[float, float]:
    """Return wall-clock seconds, and seconds of processor time of this thread."""
    return time.monotonic(), time.thread_time()


def _with_callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _imports(frame: FrameType | None) -> bool:
    """Return True if the answer is importing a module; for example, PyTorch imports its compiler in the first step."""
    answer = takewhile(lambda one: not runs_answers(one), _with_callers(frame))
    return any(
        one.f_code.co_name == "_load_unlocked" and one.f_code.co_filename == "<frozen importlib._bootstrap>"
        for one in answer
    )


def _is_between(frame: FrameType | None) -> bool:
    """Return True before the block begins and after it ends, where an interrupt would prevent the limit from ending."""
    if frame is not None and frame.f_globals.get("__name__") in ("contextlib", "lmcourse.exercises.rules"):
        return True
    own = (time_limit.__wrapped__.__code__, _by_signal.__wrapped__.__code__)  # type: ignore[attr-defined]
    return any(one.f_code in own for one in _with_callers(frame))


@contextmanager
def _by_signal(seconds: float, interrupts: _Interrupts) -> Iterator[None]:
    begin, trace = time.monotonic(), sys.gettrace()
    handler = signal.signal(signal.SIGALRM, interrupts.interrupt)
    others, interval = signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        interrupts.over = True
        sys.settrace(trace)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if others:  # there is another limit around this one
            signal.setitimer(signal.ITIMER_REAL, max(others - (time.monotonic() - begin), 0.001), interval)


@contextmanager
def _by_thread(seconds: float, interrupts: _Interrupts) -> Iterator[None]:
    """Limit the time without signals (Windows, threads). This can interrupt only between two Python instructions, and
    only once."""
    done = threading.Event()
    thread = ctypes.c_ulong(threading.get_ident())

    def interrupt() -> None:
        wait = seconds
        while not done.wait(wait):
            interrupts.count += 1
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeLimitExceeded))
            wait = REPEAT_SECONDS

    watchdog = threading.Thread(target=interrupt, daemon=True)
    watchdog.start()
    try:
        try:
            yield
        finally:
            done.set()
    finally:
        done.set()  # repeated, because an interrupt may have come before the first call
        _join_watchdog(watchdog)


def _join_watchdog(watchdog: threading.Thread) -> None:
    """Wait for the end of the watchdog and of a pending interrupt.

    The interrupt must not be cancelled: if a profiler is set, CPython 3.11 would then wait for it forever.
    """
    while True:
        try:
            watchdog.join()
            for _ in range(2):  # Python checks for a pending interrupt when a loop jumps back
                pass
            return
        except TimeLimitExceeded:
            continue


@contextmanager
def memory_limit(headroom: int = HEADROOM_BYTES) -> Iterator[None]:
    """Make an allocation beyond `headroom` bytes raise MemoryError instead of stopping the machine.

    This works only on Linux. With CUDA there is no limit, because the driver reserves hundreds of gigabytes of address
    space that use no memory.
    """
    if sys.platform != "linux" or torch.cuda.is_available():
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    wanted = pages * resource.getpagesize() + headroom
    lowest = min([wanted] + [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY])
    resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
