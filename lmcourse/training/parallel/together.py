"""Run a program on real processes, one for each worker: the same program that `simulated` runs in one.

The processes are started afresh (never forked: that is unsafe with threads, and impossible on Windows), meet through a
file, and talk through gloo, torch's backend for CPUs. They end when the program does, when time is up, when the caller
is interrupted, and when the caller is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cloudpickle

from lmcourse.errors import CourseError
from lmcourse.training.parallel.worker import Run

RUNNER = "lmcourse.training.parallel.runner"
POLL_SECONDS = 0.05
LOST_CONNECTION = "by peer"
"""What gloo's error says, in small letters, when a process at the other end has ended."""

LOOPBACK = {"linux": "lo", "darwin": "lo0"}
"""The network interface of a machine with itself, by system. Windows finds it alone."""


def together(program: Callable[..., Any], *columns: Sequence[Any], seconds: float = 120.0) -> Run:
    """Run a program on as many processes as each input has entries.

    Args:
        program: called as `program(worker, *inputs)` in each process. It may be defined in a notebook; what it uses
            goes with it.
        columns: its inputs: for each argument a list with an entry per worker.
        seconds: after which all processes are ended.

    Raises:
        CourseError: a process failed, with its rank and error; or time was up.
    """
    size = len(columns[0])
    with tempfile.TemporaryDirectory(prefix="lmcourse-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for rank in range(size):
            inputs = tuple(column[rank] for column in columns)
            (folder / f"program-{rank}").write_bytes(cloudpickle.dumps((program, inputs)))
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(size):
                processes.append(_start(folder, rank, size))
            _wait(processes, folder, seconds)
        finally:
            _end(processes)
        for rank in range(size):
            print((folder / f"printed-{rank}").read_text(encoding="utf-8"), end="")
        answers = [cloudpickle.loads((folder / f"result-{rank}").read_bytes()) for rank in range(size)]
    return Run([result for result, _ in answers], [sent for _, sent in answers])


def _start(folder: Path, rank: int, size: int) -> subprocess.Popen[bytes]:
    """Start one process. It ends by itself once the pipe to its stdin is closed, so also when this process is gone."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if sys.platform in LOOPBACK:
        environment.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[sys.platform])
    with (folder / f"printed-{rank}").open("wb") as printed, (folder / f"errors-{rank}").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", RUNNER, str(folder), str(rank), str(size)],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=errors,
            env=environment,
        )


def _wait(processes: list[subprocess.Popen[bytes]], folder: Path, seconds: float) -> None:
    """Wait until every process has ended well; a CourseError for the first that has not."""
    end = time.monotonic() + seconds
    while True:
        codes = [process.poll() for process in processes]
        failed = {rank: _reason(folder / f"errors-{rank}", rank, code) for rank, code in enumerate(codes) if code}
        if failed:
            # One that fails takes the connections of the others with it: they are not to blame.
            rank = min(failed, key=lambda rank: LOST_CONNECTION in failed[rank].lower())
            raise CourseError(f"worker {rank}: {failed[rank]}")
        if None not in codes:
            return
        if time.monotonic() > end:
            waiting = ", ".join(str(rank) for rank, code in enumerate(codes) if code is None)
            raise CourseError(
                f"ended after {seconds:g} s, while these workers were still at work or waiting: {waiting}"
            )
        time.sleep(POLL_SECONDS)


def _reason(errors: Path, rank: int, code: int) -> str:
    """The last line of what a process wrote to stderr, or its exit code."""
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix(f"[rank{rank}]: ") if lines else f"exit code {code}"


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        if process.stdin:
            process.stdin.close()
