"""Time and memory limits for a stretch of a learner's code, in this process.

They save a learner from their own endless loop. They do not stop an attacker: that takes a process of its own.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch

HEADROOM = 4 * 2**30
"""Bytes that a checked answer may allocate beyond what the process holds already."""

AGAIN = 0.25
"""Seconds until the limit strikes again, for code that catches every exception and goes on."""


class TimeLimitExceeded(BaseException):
    """The code ran out of time. Not an `Exception`, so that `except Exception` in a loop does not swallow it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` inside the block once `seconds` have passed, and again while it goes on."""
    on_main_thread = threading.current_thread() is threading.main_thread()
    if hasattr(signal, "setitimer") and on_main_thread:
        with _signal_after(seconds):
            yield
    else:
        with _exception_after(seconds):
            yield


@contextmanager
def _signal_after(seconds: float) -> Iterator[None]:
    def strike(number: int, frame: FrameType | None) -> None:
        raise TimeLimitExceeded

    previous = signal.signal(signal.SIGALRM, strike)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def _exception_after(seconds: float) -> Iterator[None]:
    """The same without signals (Windows, threads): it can only strike between two Python instructions."""
    done = threading.Event()
    thread = ctypes.c_ulong(threading.get_ident())

    def strike() -> None:
        wait = seconds
        while not done.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeLimitExceeded))
            wait = AGAIN

    watchdog = threading.Thread(target=strike, daemon=True)
    watchdog.start()
    try:
        yield
    finally:
        done.set()
        watchdog.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # a strike that is still on its way


@contextmanager
def memory_limit(headroom: int = HEADROOM) -> Iterator[None]:
    """Make an allocation beyond `headroom` bytes raise MemoryError instead of stopping the machine.

    Linux only: elsewhere the system does not offer it. With CUDA it steps aside, because the driver reserves
    hundreds of gigabytes of address space that cost nothing.
    """
    if sys.platform != "linux" or torch.cuda.is_available():
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    wanted = pages * resource.getpagesize() + headroom
    lowest = min([wanted] + [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY])
    resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
