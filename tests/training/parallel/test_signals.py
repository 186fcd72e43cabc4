"""After a signal all processes stop after the same step, with one checkpoint from which the run can resume."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from lmcourse.training.checkpoint_format import read_manifest
from lmcourse.training.command.settings import new_run
from lmcourse.training.command.train_run import RunResult, train
from lmcourse.training.metrics import Record, read_metrics
from lmcourse.training.parallel.process_group import ProcessInfo
from lmcourse.training.training_config import Parallelism
from tests.training import runs
from tests.training.parallel.real_processes import all_returned, run_processes

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread"), needs_signals]

TERM, INT = signal.SIGTERM, signal.SIGINT
DDP, FSDP = Parallelism(data_parallel=2), Parallelism(fsdp=2)
STEPS = 6
FLAGS: dict[str, Any] = {
    **{"tokenizer": "bytes", "batch": 4, "seq_len": 16, "held_out": 0.0},
    **{"schedule": "constant", "warmup_steps": 0},
}
"""Settings with which a step is the same for every planned length of the run."""

Unstopped = Callable[[Parallelism, int], list[float]]
Signals = Mapping[int, tuple[int, signal.Signals]]
"""For each rank, the step after which it gets a signal, and the signal."""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{number} bottles stand on the wall. " for number in range(400)))
    return path


def work(
    folder: Path, text: Path, parallel: Parallelism, steps: int, signals: Signals, resume: bool = False
) -> RunResult:
    """Run the training in one of the processes."""
    divided = {"data_parallel": parallel.data_parallel, "fsdp": parallel.fsdp}
    unsaved = {"checkpoint_every": None, "evaluate_every": None}
    run = new_run({**FLAGS, **divided, **unsaved, "corpus": str(text), "steps": steps}, "speedrun")
    rank = dist.get_rank()

    def kill(record: Record) -> None:
        after, number = signals.get(rank, (None, INT))
        if record["step"] == after:
            os.kill(os.getpid(), number)

    process = ProcessInfo(rank, torch.device("cpu"))
    return train(run, folder, resume=resume, callbacks=[kill], process=process)


def go_on(folder: Path, text: Path, parallel: Parallelism, steps: int) -> None:
    """Resume a stopped run and finish it."""
    results = all_returned(
        run_processes(parallel, folder.with_name("meet"), work, folder, text, parallel, steps, {}, True)
    )
    assert [(result.reason, result.step) for result in results] == [("steps", steps)] * 2


@pytest.fixture(scope="module")
def unstopped(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Unstopped:
    """Return the losses of an uninterrupted run. They are the first losses of a longer run, see `FLAGS`."""

    @cache
    def run(parallel: Parallelism, steps: int) -> list[float]:
        folder = tmp_path_factory.mktemp("unstopped")
        all_returned(run_processes(parallel, folder / "meet", work, folder / "run", text, parallel, steps, {}))
        return runs.losses(folder / "run")

    def losses(parallel: Parallelism, steps: int) -> list[float]:
        return run(parallel, 2 * STEPS * math.ceil(steps / (2 * STEPS)))[:steps]

    return losses


def only_checkpoint(folder: Path) -> int:
    """Return the step of the only checkpoint, after checking that it is undamaged."""
    (checkpoint,) = (folder / "checkpoints").iterdir()
    return int(read_manifest(checkpoint)["step"])


@pytest.mark.parametrize(
    ("parallel", "signals", "step", "reason"),
    [
        pytest.param(DDP, {0: (2, TERM), 1: (2, TERM)}, 2, "terminated", id="both"),
        pytest.param(FSDP, {1: (2, TERM)}, 2, "terminated", id="only the second"),
        pytest.param(DDP, {0: (3, TERM), 1: (2, TERM)}, 2, "terminated", id="one a step later"),
        pytest.param(FSDP, {1: (STEPS, INT)}, STEPS, "interrupted", id="Ctrl-C in the last step"),
    ],
)
def test_all_processes_stop_after_the_same_step(
    parallel: Parallelism, signals: Signals, step: int, reason: str, text: Path, tmp_path: Path, unstopped: Unstopped
) -> None:
    folder = tmp_path / "run"
    results = all_returned(run_processes(parallel, tmp_path / "meet", work, folder, text, parallel, STEPS, signals))
    assert [(result.reason, result.step) for result in results] == [(reason, step)] * 2
    assert only_checkpoint(folder) == step
    go_on(folder, text, parallel, STEPS)
    assert runs.losses(folder) == unstopped(parallel, STEPS)


# The tests below use torchrun, which passes signals on.


def start(folder: Path, text: Path, *more: str) -> subprocess.Popen[str]:
    """Start torchrun with two processes in a process group, as a terminal does, and wait for two steps."""
    flags = [part for name, value in FLAGS.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    run = ["-m", "lmcourse.training", *flags, "--corpus", str(text), "--steps", "1000000", "--out", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *run, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        start_new_session=True,
    )
    metrics, deadline = folder / "metrics.jsonl", time.monotonic() + 120
    while process.poll() is None and not (metrics.exists() and len(read_metrics(metrics)) > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()
    return process


def worker(process: subprocess.Popen[str], rank: int) -> psutil.Process:
    """Return the process of a rank."""
    (found,) = (one for one in psutil.Process(process.pid).children() if one.environ().get("RANK") == str(rank))
    return found


def once_to_torchrun(process: subprocess.Popen[str], folder: Path) -> None:
    process.terminate()


def ctrl_c(process: subprocess.Popen[str], folder: Path) -> None:
    """Send Ctrl-C to all processes, as a terminal does; torchrun passes it on."""
    os.killpg(process.pid, INT)


def again_and_again_to_one(process: subprocess.Popen[str], folder: Path) -> None:
    """Send signals repeatedly to one process, even while the checkpoint is written."""
    one, while_written = worker(process, 1), 0
    while not list((folder / "checkpoints").glob("step-*")):
        one.terminate()
        while_written += bool(list((folder / "checkpoints").glob(".step-*")))
        time.sleep(0.001)
    assert while_written


@pytest.mark.parametrize(
    ("parallel", "send", "reason", "status"),
    [
        (DDP, once_to_torchrun, "SIGTERM", None),
        (DDP, ctrl_c, "Ctrl-C", None),
        (FSDP, again_and_again_to_one, "SIGTERM", 143),
    ],
)
def test_torchrun_and_its_processes_stop(
    parallel: Parallelism,
    send: Callable[[subprocess.Popen[str], Path], None],
    reason: str,
    status: int | None,
    text: Path,
    tmp_path: Path,
    unstopped: Unstopped,
) -> None:
    folder = tmp_path / "run"
    flag = "--data-parallel" if parallel is DDP else "--fsdp"
    process = start(folder, text, flag, "2")
    send(process, folder)
    told, errors = process.communicate(timeout=120)
    assert told.count(f"Stopped by {reason}: step ") == 1
    assert "forcefully exiting" not in errors  # torchrun prints this when it stops waiting
    if status is not None:
        assert re.findall(r"exitcode +: (-?\d+)", errors) == [str(status)] * 2
    step = only_checkpoint(folder)
    assert len(runs.losses(folder)) == step
    go_on(folder, text, parallel, step + 2)
    assert runs.losses(folder) == unstopped(parallel, step + 2)
