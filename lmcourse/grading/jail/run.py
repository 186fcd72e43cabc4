"""Run a program to its end, or end it: a limit of time, of output and of memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from time import monotonic
from typing import IO

from lmcourse.grading.jail.ended import Cause, Ended, explain
from lmcourse.grading.jail.jail import Jail
from lmcourse.grading.jail.memory import tree_memory
from lmcourse.units import MIB

LOOK = 0.05
"""Seconds between two looks at a running program."""


def run(
    jail: Jail | None,
    program: Sequence[str],
    *,
    seconds: float,
    input: bytes = b"",
    keep: Collection[int] = (),
    output_limit: int = 2**20,
) -> Ended:
    """Run a program and collect what it writes. It returns, whatever the program does.

    Args:
        jail: where to run it; None runs it in a plain process, which keeps the limits of time and output only.
        program: a path and its arguments.
        seconds: of wall-clock time; then everything that it started is killed.
        input: its standard input.
        keep: file descriptors that it inherits, for pipes of the caller.
        output_limit: bytes on its standard output, and on its standard error; more ends it.

    Raises:
        CourseError, ValueError: the jail cannot be built; see `Jail.command`.
    """
    command = list(program) if jail is None else jail.command(program, keep)
    start = monotonic()
    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=tuple(keep), start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [_Collector(process.stdout, output_limit), _Collector(process.stderr, output_limit)]
    feeder = Thread(target=_feed, args=(process.stdin, input), daemon=True)
    threads = [*streams, feeder]
    for thread in threads:
        thread.start()
    try:
        stopped = _watch(process, streams, seconds, None if jail is None else jail.limits.memory)
    finally:
        _kill(process)
    for thread in threads:
        thread.join(timeout=5)  # a plain process may have left one behind that holds the pipe
    output, errors = (bytes(stream.collected[:output_limit]) for stream in streams)
    # A program that floods and ends at once is gone before anybody looks.
    cause, reason = stopped or _too_much(streams) or explain(process.returncode, errors)
    return Ended(cause, process.returncode, output, errors, monotonic() - start, reason)


class _Collector(Thread):
    """Reads a stream to its end, or until it is longer than it may be."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        super().__init__(daemon=True)
        self.stream, self.limit, self.collected = stream, limit, bytearray()

    def run(self) -> None:
        with self.stream:
            while not self.full and (piece := os.read(self.stream.fileno(), 2**16)):
                self.collected += piece

    @property
    def full(self) -> bool:
        return len(self.collected) > self.limit


def _feed(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError), stream:  # it may end without reading
        stream.write(data)


def _watch(
    process: Popen[bytes], streams: list[_Collector], seconds: float, memory: int | None
) -> tuple[Cause, str] | None:
    """Wait for the end; None if it came by itself, otherwise why the program has to be stopped."""
    deadline = monotonic() + seconds
    while True:
        with suppress(TimeoutExpired):
            process.wait(max(0.0, min(LOOK, deadline - monotonic())))
            return None
        if monotonic() >= deadline:
            return "time", f"It ran longer than {seconds:g} s and was stopped: is there an endless loop?"
        if too_much := _too_much(streams):
            return too_much
        if memory is not None and tree_memory(process.pid) > memory:
            return "memory", f"It used more than {memory / MIB:.0f} MiB of memory in all and was stopped."


def _too_much(streams: list[_Collector]) -> tuple[Cause, str] | None:
    if not any(stream.full for stream in streams):
        return None
    return "output", f"It printed more than {streams[0].limit} bytes and was stopped: is there a print in a loop?"


def _kill(process: Popen[bytes]) -> None:
    """End a program and everything it started. Process 1 of a jail dies with bubblewrap, and all inside with it."""
    with suppress(OSError):  # it may have ended
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
