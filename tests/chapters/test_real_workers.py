"""The same programs on real processes, which end in all circumstances."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
import torch
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.chapters.parallelism.real_processes import RUNNER, together
from lmcourse.chapters.parallelism.simulated import simulate

pytestmark = pytest.mark.prove


def _everything(worker: Any, x: Tensor) -> list[Any]:
    """Messages of several dtypes and shapes, one of them empty, and every collective."""
    right, left = (worker.rank + 1) % worker.size, (worker.rank - 1) % worker.size
    print("worker", worker.rank)
    for message in (x, x.half()[:0], x.view(2, 4) > 2, x[:1].long().squeeze()):
        worker.send(right, message)
    received = [worker.receive(left) for _ in range(4)]
    sums = [worker.all_reduce(x / 7), worker.all_reduce(x, "max"), worker.reduce_scatter(x / 7)]
    return [*received, *sums, worker.all_gather(x.view(4, 2), 1)]


def _runners() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if RUNNER in child.cmdline()]


def test_real_processes_match_simulated_ones(capsys: pytest.CaptureFixture[str]) -> None:
    xs = [torch.arange(8.0), torch.arange(8.0) * 10 + 0.1]
    simulated = simulate(_everything, xs, collectives=True)
    said = capsys.readouterr().out
    real = together(_everything, xs)
    assert said == "worker 0\nworker 1\n"
    assert capsys.readouterr().out == f"starting 2 processes ...\n{said}"
    assert real.sent == simulated.sent
    for mine, theirs in zip(real.results, simulated.results, strict=True):
        assert [(a.dtype, a.shape, torch.equal(a, b)) for a, b in zip(mine, theirs, strict=True)] == [
            (b.dtype, b.shape, True) for b in theirs
        ]
    assert not _runners()


def test_the_failed_worker_is_named_and_no_process_is_left() -> None:
    def program(worker: Any, x: Tensor) -> Tensor:
        if worker.rank:
            raise ArithmeticError("no good")
        return worker.receive(1)  # type: ignore[no-any-return]

    with pytest.raises(CourseError) as caught:
        together(program, [torch.ones(1)] * 2)
    assert str(caught.value) == "worker 1: ArithmeticError: no good"
    assert not _runners()


def test_an_interrupt_ends_all_processes() -> None:
    """The stop button of a notebook does the same."""

    def interrupt() -> None:
        while len(_runners()) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell that runs tests in the background makes them ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            together(lambda worker, x: worker.receive(1 - worker.rank), [torch.ones(1)] * 2)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    # A process that the interrupt met while starting ends a little later, when it finds its stdin closed.
    left = _runners()
    assert len(left) < 2
    assert not psutil.wait_procs(left, timeout=30)[1]


def test_a_time_limit_ends_all_workers() -> None:
    with pytest.raises(CourseError, match=r"limit of 0\.2 s is over, and these workers are still running or"):
        together(lambda worker, x: time.sleep(600), [torch.ones(1)], seconds=0.2)
    assert not _runners()


def test_a_process_ends_when_its_caller_is_gone(tmp_path: Path) -> None:
    """The caller holds the other end of the process's stdin, which closes when a notebook is killed."""
    (tmp_path / "program-0").write_bytes(cloudpickle.dumps((lambda worker: None, ())))
    command = [sys.executable, "-m", RUNNER, str(tmp_path), "0", "2"]  # the second process is never started
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.close()
    assert process.wait() == 1
