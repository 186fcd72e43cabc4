"""Failures such as two processes, SIGTERM, lack of memory or a full disk give one line and lose no data.

The failures are real: a signal, an impossible allocation, and a limit on the size of files, which a process can set and
which fails in the middle of a file, like a full disk.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import Timeout

from lmcourse.base.device import telling_no_memory
from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.data.grammar import story_grammar
from lmcourse.training.command.main import end_message
from lmcourse.training.command.run_folder import LOCK, lock_file, lock_folder
from lmcourse.training.command.train_run import STOPPED, train
from lmcourse.training.metrics import Record, read_metrics
from lmcourse.training.run_config import RunConfig
from lmcourse.training.trained_model import load_trained_model
from lmcourse.training.training_config import TrainingConfig

MORE_THAN_ANY_MACHINE_HAS = 2**52

needs_limits = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no largest size of files to set")


@pytest.fixture
def run(tmp_path: Path) -> RunConfig:
    """Return a run of four steps with a checkpoint after the second."""
    corpus = tmp_path / "stories.txt"
    corpus.write_text(story_grammar().generate(random.Random(2)) * 3)
    training = TrainingConfig(steps=4, batch=2, seq_len=16, checkpoint_every=2)
    return RunConfig(preset="nano", corpus=str(corpus), training=training, tokenizer="bytes")


@pytest.fixture(autouse=True)
def unmetered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the MFU off, because measuring this machine takes longer than these runs."""
    monkeypatch.setattr("lmcourse.training.command.train_run.make_mfu_meter", lambda model, config: None)


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def at(step: int, do: Callable[[], object]) -> Callable[[Record], None]:
    """Return a callback that does something after a certain step."""
    return lambda record: do() if record["step"] == step else None  # type: ignore[func-returns-value,return-value]


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_processes_cannot_resume_with_one_run(
    run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lock on a second descriptor is also rejected in the same process."""
    folder = tmp_path / "run"
    train(run, folder)
    before = files(folder)
    capsys.readouterr()
    with lock_folder(folder, resume=True):
        assert main(["train", "--resume", "--out", str(folder), "--steps", "9"]) == 2
    told = capsys.readouterr().err
    assert told == f"lmcourse: another process trains in {folder}: wait until it ends, or choose another --out\n"
    assert files(folder) == before
    assert train(replace(run, training=replace(run.training, steps=5)), folder, resume=True).step == 5


def test_a_file_is_locked_if_folders_cannot_be(tmp_path: Path) -> None:
    """This is the case on Windows and network drives. A file that a killed process left does not block new runs."""
    for _ in range(2):
        with ExitStack() as stack:
            lock_file(tmp_path, stack)
            with pytest.raises(Timeout), ExitStack() as other:
                lock_file(tmp_path, other)
            assert [path.name for path in tmp_path.iterdir()] == [LOCK]


@pytest.mark.parametrize(
    ("name", "status", "told"), [("SIGINT", 130, "Ctrl-C"), ("SIGTERM", 143, "SIGTERM"), ("SIGHUP", 129, "SIGHUP")]
)
def test_a_signal_ends_after_the_step_and_loses_nothing(
    name: str, status: int, told: str, run: RunConfig, tmp_path: Path
) -> None:
    """It comes while step 3 is being logged, so the step has not ended yet."""
    number = getattr(signal, name)
    folder, outside = tmp_path / "run", signal.signal(number, signal.SIG_DFL)  # because tests may also run under nohup
    result = train(run, folder, callbacks=[at(3, lambda: os.kill(os.getpid(), number))])
    left = signal.signal(number, outside)
    assert (STOPPED[result.reason], result.step) == (status, 3)
    assert end_message(result, folder).startswith(f"Stopped by {told}: step 3,")
    assert Path(result.checkpoint).is_dir()
    assert load_trained_model(folder, last=True).step == 3
    assert left == signal.SIG_DFL
    assert train(run, folder, resume=True).step == 4
    assert [record["step"] for record in read_metrics(folder / "metrics.jsonl")] == [1, 2, 3, 4]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_a_run_under_nohup_ignores_a_closed_terminal(run: RunConfig, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = train(run, tmp_path / "run", callbacks=[at(2, lambda: os.kill(os.getpid(), signal.SIGHUP))])
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (result.reason, result.step) == ("steps", 4)


def test_out_of_memory_ends_a_run_in_one_line(run: RunConfig, tmp_path: Path) -> None:
    """The checkpoint of step 2 is kept."""
    hungry = at(3, lambda: torch.empty(MORE_THAN_ANY_MACHINE_HAS))
    with pytest.raises(CourseError, match=r"^out of memory: a smaller --batch .* needs less; --dry-run says how much$"):
        train(run, tmp_path / "run", callbacks=[hungry])
    assert load_trained_model(tmp_path / "run", last=True).step == 2


@pytest.mark.parametrize("allocate", [torch.empty, np.empty, bytearray], ids=["torch", "numpy", "python"])
def test_out_of_memory_is_reported_for_any_allocation(allocate: Callable[[int], object]) -> None:
    with pytest.raises(CourseError, match=r"^out of memory: take less$"), telling_no_memory("take less"):
        allocate(MORE_THAN_ANY_MACHINE_HAS)


def test_other_errors_are_not_reported_as_out_of_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), telling_no_memory("take less"):
        torch.ones(2, 3) @ torch.ones(2, 3)


@needs_limits
def test_a_full_disk_keeps_the_previous_checkpoint(run: RunConfig, tmp_path: Path) -> None:
    """At step 4 there is no space for half a megabyte of weights, but there is for lines of metrics."""
    folder = tmp_path / "run"
    with no_file_beyond(2**40) as _:
        import resource

        def fill() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

        with pytest.raises(
            CourseError, match=r"step-00000004 cannot be written: .*File too large.*resume with --resume$"
        ):
            train(run, folder, callbacks=[at(3, fill)])
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"step-00000002"}
    assert load_trained_model(folder, last=True).step == 2
    assert train(run, folder, resume=True).step == 4


@needs_limits
@pytest.mark.parametrize("kept", ["nothing", "weights"])
def test_a_full_disk_is_handled_at_each_file_of_a_checkpoint(kept: str, run: RunConfig, tmp_path: Path) -> None:
    """The optimizer's two moments take twice as much space as the weights."""
    room = {"nothing": 10_000, "weights": 800_000}[kept]
    with no_file_beyond(room), pytest.raises(CourseError, match="step-00000002 cannot be written") as caught:
        train(run, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []
    assert train(run, tmp_path / "run", resume=True).step == 4


@needs_limits
def test_a_full_disk_is_reported_at_any_other_moment(run: RunConfig, tmp_path: Path) -> None:
    """The moments are the preparation of the text, and the logging of a step."""
    folder = tmp_path / "run"
    with no_file_beyond(10), pytest.raises(CourseError, match=r"File too large; make room, then begin again$"):
        train(run, folder)
    without = replace(run, training=replace(run.training, steps=40, checkpoint_every=None))
    again = rf"File too large; make room, then continue: lmcourse train --resume --out {folder}$"
    with no_file_beyond(2500), pytest.raises(CourseError, match=again):
        train(without, folder)
    assert 3 < len(read_metrics(folder / "metrics.jsonl")) < 40
    assert train(replace(run, training=replace(run.training, steps=1, checkpoint_every=None)), folder, resume=True)
