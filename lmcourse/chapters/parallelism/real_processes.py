"""Run a program on real processes, one for each worker: the same program that `simulated` runs in one process.

The processes are newly started (never forked: that is unsafe with threads, and impossible on Windows), meet through a
file, and talk through gloo, torch's backend for CPUs. They end when the program ends, when time is up, when the caller
is interrupted, and when the caller has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.chapters.parallelism import worker as wire
from lmcourse.chapters.parallelism.worker import CollectiveWorker, Run

RUNNER = "lmcourse.chapters.parallelism.real_processes"
"""The name of this module, which is also the program of each process: python -m RUNNER FOLDER RANK SIZE."""

POLL_SECONDS = 0.05
LOST_CONNECTION = "by peer"
"""Part of gloo's error message, in lower case, when the process at the other end has ended."""
GRACE_SECONDS = 5.0
"""Seconds that a process waits after losing its connection, so that the failed process is seen to end first."""

LOOPBACK = {"linux": "lo", "darwin": "lo0"}
"""The loopback network interface, by operating system. On Windows gloo finds it automatically."""

TIMEOUT = timedelta(minutes=10)
"""Time after which a process stops waiting for another; the notebook stops the processes sooner."""


def together(program: Callable[..., Any], *columns: Sequence[Any], seconds: float = 120.0) -> Run:
    """Run a program on one process per entry of its inputs.

    Args:
        program: called as `program(worker, *inputs)` in each process. It may be defined in a notebook; the objects
            that it uses are sent with it.
        columns: its inputs: for each argument a list with an entry per worker.
        seconds: after which all processes are ended.

    Raises:
        CourseError: a process failed (the message has its rank and error), or time was up.
    """
    size = len(columns[0])
    print(f"starting {size} processes ...", flush=True)
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
    """Start one process. It ends by itself once the pipe to its stdin is closed, even if this process was killed."""
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
    """Wait until every process has ended well; raise a CourseError if one has not."""
    end = time.monotonic() + seconds
    while True:
        codes = [process.poll() for process in processes]
        failed = {rank: _reason(folder / f"errors-{rank}", rank, code) for rank, code in enumerate(codes) if code}
        # A process that fails closes the connections of the others, which may seem to end before it does.
        causes = {rank: reason for rank, reason in failed.items() if LOST_CONNECTION not in reason.lower()}
        if causes or (failed and (None not in codes or time.monotonic() > end)):
            rank, reason = next(iter((causes or failed).items()))
            raise CourseError(f"worker {rank}: {reason}")
        if None not in codes:
            return
        if failed:
            end = min(end, time.monotonic() + GRACE_SECONDS)
        elif time.monotonic() > end:
            waiting = ", ".join(str(rank) for rank, code in enumerate(codes) if code is None)
            raise CourseError(
                f"the time limit of {seconds:g} s is over, and these workers are still running or waiting: {waiting}"
            )
        time.sleep(POLL_SECONDS)


def _reason(errors: Path, rank: int, code: int) -> str:
    """Return the last line of what a process wrote to stderr, or its exit code."""
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix(f"[rank{rank}]: ") if lines else f"exit code {code}"


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        if process.stdin:
            process.stdin.close()


class ProcessWorker(CollectiveWorker):
    """A worker in its own process.

    gloo's `send` waits until the other side has received the message. So messages are sent without waiting
    (`isend`), and kept until all have arrived.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.sent = 0
        self._under_way: list[tuple[dist.Work | None, Tensor, dist.Work | None, Tensor]] = []

    def send(self, to: int, tensor: Tensor) -> None:
        """Send a copy of a tensor to the worker of this rank: a header first, which says its dtype and shape."""
        wire.check_message(self.rank, self.size, to, tensor)
        self.sent += wire.byte_count(tensor)
        message = tensor.detach().clone().contiguous()
        header = torch.zeros(HEADER, dtype=torch.int64)
        described = [DTYPES.index(message.dtype), message.ndim, *message.shape]
        header[: len(described)] = torch.tensor(described)
        first = dist.isend(header, to)
        self._under_way.append((first, header, dist.isend(message, to) if message.numel() else None, message))

    def receive(self, sender: int) -> Tensor:
        """Return the next tensor from the worker of this rank; waits until it is there."""
        wire.check_other(self.rank, self.size, sender)
        header = torch.zeros(HEADER, dtype=torch.int64)
        dist.recv(header, sender)
        dtype, ndim, *shape = header.tolist()
        message = torch.empty(shape[:ndim], dtype=DTYPES[dtype])
        if message.numel():
            dist.recv(message, sender)
        return message

    def settle(self) -> None:
        """Wait until all messages and all workers have arrived."""
        for header, _, message, _ in self._under_way:
            for work in (header, message):
                if work is not None:
                    work.wait()
        self._under_way.clear()
        dist.barrier()

    def everybodys(self, name: str, x: Tensor, argument: Any) -> list[Tensor]:
        """Return all workers' tensors, as in `CollectiveWorker`."""
        mine = x.detach().clone().contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        return parts

    def count(self, sent: int) -> None:
        """Count sent bytes, as in `CollectiveWorker`."""
        self.sent += sent


HEADER = 10
DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]
"""The data types that can be sent; a header holds the index into this list."""


def _end_with_the_caller() -> None:
    """End this process once the other end of its stdin is closed."""

    def watch() -> None:
        os.read(0, 1)  # sys.stdin would stay locked while Python ends
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(folder: Path, rank: int, size: int) -> None:
    """Connect to the other processes, run the program, and write its result."""
    _end_with_the_caller()
    torch.set_num_threads(1)
    program, inputs = cloudpickle.loads((folder / f"program-{rank}").read_bytes())
    meeting = (folder / "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=TIMEOUT)
    worker = ProcessWorker(rank, size)
    result = program(worker, *inputs)
    worker.settle()
    dist.destroy_process_group()
    unfinished = folder / f"unfinished-{rank}"
    unfinished.write_bytes(cloudpickle.dumps((result, worker.sent)))
    unfinished.replace(folder / f"result-{rank}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
