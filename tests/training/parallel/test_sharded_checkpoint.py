"""Any number of processes can resume from a checkpoint of many processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.training import checkpoint_format
from lmcourse.training.checkpoint_format import STATE
from lmcourse.training.training_config import ONE_PROCESS, Parallelism
from tests.training import runs
from tests.training.parallel.real_processes import Ended, all_returned, run_processes, trainer

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]

Settings = dict[str, Any]
Alone = Callable[..., Path]


def begin(folder: Path, parallel: Parallelism, settings: Settings) -> None:
    """Do the first 2 of 4 steps."""
    trainer(folder, parallel, steps=4, max_tokens=2 * settings["grad_accum_steps"] * 64, **settings).run()


def go_on(folder: Path, parallel: Parallelism, settings: Settings) -> int:
    """Do the other steps, and return the step at which they resumed."""
    run = trainer(folder, parallel, steps=4, **settings)
    begun = run.resume()
    run.run()
    return begun


def anyhow(parallel: Parallelism, folder: Path, work: Any, *args: Any) -> list[Any]:
    """Run on the required number of processes."""
    return [work(*args)] if parallel == ONE_PROCESS else all_returned(run_processes(parallel, folder, work, *args))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Alone:
    """Return the folder of all 4 steps on one process, with some settings."""

    @cache
    def run(**settings: Any) -> Path:
        folder = tmp_path_factory.mktemp("alone")
        trainer(folder, ONE_PROCESS, steps=4, **settings).run()
        return folder

    return run


KINDS: dict[str, Settings] = {
    # fused matrices and biases are split and joined again
    "fused": {"grad_accum_steps": 2, "name": "untied GPT-2"},
    "stages": {"grad_accum_steps": 4, "name": "four tied layers"},
    "muon": {"grad_accum_steps": 2, "optimizer": "muon", "muon_learning_rate": 1e-3},
}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("fused", Parallelism(fsdp=2, tensor_parallel=2), Parallelism(fsdp=2)),
        ("fused", Parallelism(fsdp=2, tensor_parallel=2), ONE_PROCESS),
        ("fused", Parallelism(data_parallel=2), Parallelism(fsdp=2)),
        ("fused", ONE_PROCESS, Parallelism(fsdp=2, tensor_parallel=2)),
        ("fused", ONE_PROCESS, Parallelism(data_parallel=2)),
        ("stages", Parallelism(pipeline_parallel=4), Parallelism(pipeline_parallel=2, pipeline_schedule="gpipe")),
        ("stages", Parallelism(pipeline_parallel=2), ONE_PROCESS),
        ("stages", ONE_PROCESS, Parallelism(pipeline_parallel=2, fsdp=2)),
        ("muon", Parallelism(fsdp=2, tensor_parallel=2), ONE_PROCESS),
        ("muon", ONE_PROCESS, Parallelism(fsdp=2)),
    ],
    ids=str,
)
def test_a_run_resumes_with_another_number_of_processes(
    kind: str, before: Parallelism, after: Parallelism, alone: Alone, tmp_path: Path
) -> None:
    settings, parted = KINDS[kind], tmp_path / "parted"
    whole = alone(**settings)
    anyhow(before, tmp_path / "before", begin, parted, before, settings)
    assert len(runs.losses(parted)) == 2
    assert set(anyhow(after, tmp_path / "after", go_on, parted, after, settings)) == {2}
    assert runs.losses(parted) == pytest.approx(runs.losses(whole), rel=1e-4 if kind == "muon" else 2e-6)
    norms = [[record["gradient_norm"] for record in runs.records(run)] for run in (parted, whole)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    assert not list(parted.glob("checkpoints/.*"))


def die_while_saving(folder: Path, step: int) -> None:
    run = trainer(folder, Parallelism(fsdp=2), checkpoint_every=1)
    commit_checkpoint = checkpoint_format.commit_checkpoint

    def die(*args: Any) -> None:
        if run.state.step == step:
            os._exit(1)
        commit_checkpoint(*args)

    checkpoint_format.commit_checkpoint = die
    run.run()


def test_a_crash_while_writing_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    first, second = run_processes(Parallelism(fsdp=2), tmp_path, die_while_saving, tmp_path / "run", 3)
    assert str(first) == "exit code 1"
    assert str(second) == "CourseError: process 1 stops: another process ended; its error message, if any, is above"
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == [
        ".step-00000003.new",
        "step-00000001",
        "step-00000002",
    ]
    parallel = Parallelism(fsdp=2)
    settings = {"grad_accum_steps": 2, "checkpoint_every": 1}
    assert all_returned(run_processes(parallel, tmp_path, go_on, tmp_path / "run", parallel, settings)) == [2, 2]
    assert not list((tmp_path / "run").glob("checkpoints/.*"))


def resume_damaged(folder: Path) -> int:
    return trainer(folder, Parallelism(data_parallel=2)).resume()


def test_only_one_process_reports_that_no_checkpoint_is_intact(tmp_path: Path) -> None:
    begin(tmp_path / "run", ONE_PROCESS, {"grad_accum_steps": 2})
    for place in (tmp_path / "run" / "checkpoints").iterdir():
        (place / STATE).unlink()
    first, second = run_processes(Parallelism(data_parallel=2), tmp_path, resume_damaged, tmp_path / "run")
    assert str(first).startswith("CourseError: no checkpoint in ")
    assert str(second) == "SystemExit: 2"
    assert isinstance(first, Ended)
    with pytest.raises(CourseError, match=r"no checkpoint in .* is intact"):
        trainer(tmp_path / "run", ONE_PROCESS).resume()
