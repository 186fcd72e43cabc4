"""Runs one program to its end in a sandbox, or ends it: for the tests of the sandbox.

Production has no use for it: there the fork server watches its processes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from time import monotonic
from typing import IO, Literal

from lmcourse.grading.sandbox import Sandbox
from lmcourse.grading.sandbox.limits import process_tree_memory
from lmcourse.units import MIB

Cause = Literal["finished", "failed", "time", "memory", "output", "killed"]

OUT_OF_MEMORY_MESSAGES = (b"MemoryError", b"can't allocate memory", b"std::bad_alloc")
"""What Python, torch and C++ print when they get no memory. Whoever fakes it gets another sentence, no more."""

POLL_SECONDS = 0.05
"""Seconds between two looks at a running program."""


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


def run(
    sandbox: Sandbox | None,
    program: Sequence[str],
    *,
    seconds: float,
    input: bytes = b"",
    keep_fds: Collection[int] = (),
    output_limit: int = 2**20,
) -> Ended:
    """Run a program and collect what it writes. It returns, whatever the program does.

    Args:
        sandbox: where to run it; None runs it in a plain process, which keeps the limits of time and output only.
        program: a path and its arguments.
        seconds: of wall-clock time; then everything that it started is killed.
        input: its standard input.
        keep_fds: file descriptors that it inherits, for pipes of the caller.
        output_limit: bytes on its standard output, and on its standard error; more ends it.

    Raises:
        CourseError, ValueError: the sandbox cannot be built; see `Sandbox.command`.
    """
    command = list(program) if sandbox is None else sandbox.command(program, keep_fds)
    start = monotonic()
    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=tuple(keep_fds), start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [_Collector(process.stdout, output_limit), _Collector(process.stderr, output_limit)]
    feeder = Thread(target=_feed, args=(process.stdin, input), daemon=True)
    threads = [*streams, feeder]
    for thread in threads:
        thread.start()
    try:
        stopped = _watch(process, streams, seconds, None if sandbox is None else sandbox.limits.memory)
    finally:
        _kill(process)
    for thread in threads:
        thread.join(timeout=5)  # a plain process may have left one behind that holds the pipe
    output, errors = (bytes(stream.collected[:output_limit]) for stream in streams)
    # A program that floods and ends at once is gone before anybody looks.
    cause, reason = stopped or _output_limit(streams) or explain(process.returncode, errors)
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
            process.wait(max(0.0, min(POLL_SECONDS, deadline - monotonic())))
            return None
        if monotonic() >= deadline:
            return "time", f"It ran longer than {seconds:g} s and was stopped: is there an endless loop?"
        if over_limit := _output_limit(streams):
            return over_limit
        if memory is not None and process_tree_memory(process.pid) > memory:
            return "memory", f"It used more than {memory / MIB:.0f} MiB of memory in all and was stopped."


def _output_limit(streams: list[_Collector]) -> tuple[Cause, str] | None:
    if not any(stream.full for stream in streams):
        return None
    return "output", f"It printed more than {streams[0].limit} bytes and was stopped: is there a print in a loop?"


def _kill(process: Popen[bytes]) -> None:
    """End a program and everything it started. Process 1 of a sandbox dies with bubblewrap, and all inside with it."""
    with suppress(OSError):  # it may have ended
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def explain(status: int, errors: bytes) -> tuple[Cause, str]:
    """Why a program ended that nobody stopped.

    Args:
        status: its exit status; 128 + n, or -n, stands for signal n.
        errors: the end of its standard error.
    """
    if status == 0:
        return "finished", "It ran to its end."
    if any(mark in errors[-2000:] for mark in OUT_OF_MEMORY_MESSAGES):
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
