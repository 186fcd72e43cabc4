"""An error on one of many processes ends all of them, with one line."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.training.checkpoint_format import read_manifest
from lmcourse.training.metrics import Record
from lmcourse.training.parallel.process_group import make_context, process_group
from lmcourse.training.training_config import ONE_PROCESS, Parallelism
from tests.training import runs
from tests.training.parallel.real_processes import Ended, all_returned, run_processes, trainer

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]

TWO = Parallelism(data_parallel=2)
CPU = torch.device("cpu")


def die(folder: Path, parallel: Parallelism) -> None:
    run = trainer(folder, parallel, steps=10_000, evaluate_every=None)

    def look(*_: Any) -> None:
        if run.distributed.rank == 1 and run.state.step == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    run.state.optimizer.register_step_pre_hook(look)
    run.run()


@pytest.mark.parametrize("parallel", [TWO, Parallelism(fsdp=2), Parallelism(tensor_parallel=2)], ids=str)
def test_a_killed_process_ends_the_others(parallel: Parallelism, tmp_path: Path) -> None:
    first, second = run_processes(parallel, tmp_path, die, tmp_path / "run", parallel)
    assert str(first) == "CourseError: process 0 stops: another process ended; its error message, if any, is above"
    assert str(second) == f"exit code {-signal.SIGKILL}"


def break_one(folder: Path, parallel: Parallelism, rank: int) -> None:
    run = trainer(folder, parallel)

    def hook(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return output * math.nan if run.state.step == 2 and run.distributed.rank == rank else output

    run.state.model.blocks[-1].register_forward_hook(hook)  # type: ignore[index,union-attr]
    run.run()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_nonfinite_loss_on_one_process_ends_all(rank: int, tmp_path: Path) -> None:
    first, second = run_processes(TWO, tmp_path, break_one, tmp_path / "run", TWO, rank)
    line = f"CourseError: step 3, windows 16 to 23: the loss is nan; the last good checkpoint, of step 2, is {tmp_path}"
    assert str(first).startswith(line)
    assert str(second) == "SystemExit: 2"
    again = trainer(tmp_path / "run", ONE_PROCESS)
    assert again.resume() == 2
    again.run()
    alone = trainer(tmp_path / "alone", ONE_PROCESS)
    alone.run()
    assert runs.losses(tmp_path / "run") == pytest.approx(runs.losses(tmp_path / "alone"), rel=1e-6)


def take_time(folder: Path) -> tuple[str, float]:
    run = trainer(folder, TWO, steps=10_000, max_seconds=0.3, evaluate_every=None)
    return run.run(), run.state.seconds


def save_until_full(folder: Path) -> None:
    """Train so that, after the first checkpoint, rank 0 cannot write files over 20 kB, as on a full disk."""
    import resource

    run = trainer(folder, Parallelism(fsdp=2), checkpoint_every=1)

    def fill(record: Record) -> None:
        if record["step"] == 2 and run.distributed.is_main:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    run.callbacks = [fill]
    run.run()


def test_a_full_disk_on_one_process_ends_all_processes(tmp_path: Path) -> None:
    ended = [str(one) for one in run_processes(Parallelism(fsdp=2), tmp_path, save_until_full, tmp_path / "run")]
    assert ended[0].startswith("CourseError: ")
    assert "step-00000002 cannot be written: " in ended[0]
    assert "the checkpoint before it is intact" in ended[0]
    assert "\n" not in ended[0]
    assert ended[1].startswith("SystemExit")
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000001"]
    assert read_manifest(tmp_path / "run" / "checkpoints" / "step-00000001")["step"] == 1


def test_a_time_limit_ends_all_processes_after_the_same_step(tmp_path: Path) -> None:
    first, second = all_returned(run_processes(TWO, tmp_path, take_time, tmp_path / "run"))
    assert first == second
    assert first[0] == "time"


def cannot_be_cut(folder: Path) -> None:
    trainer(folder, Parallelism(tensor_parallel=2), "Qwen 3", precision="fp16").run()


def test_only_one_process_reports_an_indivisible_size(tmp_path: Path) -> None:
    first, second = run_processes(Parallelism(tensor_parallel=2), tmp_path, cannot_be_cut, tmp_path / "run")
    assert str(first).startswith("ValueError: fp16 on several processes needs all gradients on each")
    assert str(second) == "SystemExit: 2"


def run_again(folder: Path) -> None:
    trainer(folder, TWO).run()


@pytest.mark.parametrize(("parallel", "started"), [(Parallelism(data_parallel=2, fsdp=2), 2), (ONE_PROCESS, 2)])
def test_a_wrong_number_of_processes_is_reported(parallel: Parallelism, started: int, tmp_path: Path) -> None:
    results = run_processes(parallel, tmp_path, run_again, tmp_path / "run", started=started)
    for result in results:
        assert isinstance(result, Ended)
        assert f"the run is for {parallel.world_size} process" in str(result)
        assert "2 were started" in str(result)
        assert "\n" not in str(result)


def test_without_torchrun_the_start_command_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(CourseError, match="torchrun --nproc-per-node 2"), process_group(TWO, CPU):
        pass
    with pytest.raises(CourseError, match="torchrun --nproc-per-node 2"):
        make_context(TWO, CPU)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(CourseError, match="torch cannot communicate between mps devices"),
        process_group(TWO, torch.device("mps")),
    ):
        pass
