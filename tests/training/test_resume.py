"""Interruptions of a process do not change the losses of its run."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.training.checkpoint_format import MANIFEST, MODEL, STATE
from lmcourse.training.metrics import read_metrics
from lmcourse.training.state import rng_states, seed_all, set_rng_states
from lmcourse.training.trainer import Trainer
from tests.training import runs

pytestmark = pytest.mark.usefixtures("one_thread")


def wait_for_lines(path: Path, lines: int, process: Any) -> None:
    """Wait until a process has written a number of lines, or has ended."""
    while process.is_alive() and (path.read_bytes().count(b"\n") if path.exists() else 0) < lines:
        time.sleep(0.001)


def wait_for_checkpoint(folder: Path, process: Any) -> None:
    """Wait until a process is writing a checkpoint, or has ended."""
    while process.is_alive() and not list(folder.glob("checkpoints/.step-*")):
        pass


@pytest.mark.prove
def test_a_killed_run_resumes_without_losing_steps(whole: Path, tmp_path: Path) -> None:
    """SIGKILL comes at random moments, every other time while a checkpoint is written; the run equals an uninterrupted
    run."""
    context, chance = multiprocessing.get_context("forkserver"), random.Random(0)
    context.set_forkserver_preload(["torch._dynamo", "tests.training.runs"])  # does slow imports once for all processes
    kills = writing = 0
    while True:
        process = context.Process(target=runs.resume_and_run, args=(tmp_path,))
        process.start()
        done = len(read_metrics(tmp_path / "metrics.jsonl")) if (tmp_path / "metrics.jsonl").exists() else 0
        wait_for_lines(tmp_path / "metrics.jsonl", done // 3 * 3 + chance.randint(1, 6), process)
        if kills % 2:
            wait_for_checkpoint(tmp_path, process)
        time.sleep(chance.uniform(0, 0.005))
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
        writing += bool(list(tmp_path.glob("checkpoints/.step-*")))
    assert kills >= 3
    assert writing >= 1
    assert runs.records(tmp_path) == runs.records(whole)
    assert runs.same_weights(tmp_path, whole)
    assert not list(tmp_path.glob("checkpoints/.step-*"))


def test_a_checkpoint_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a crash of the machine could lose data. Metrics are synced before their checkpoint, too."""
    calls: list[int | str] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        calls.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def watched_replace(path: Path, target: Path) -> Path:
        calls.append("moved")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    runs.trainer(tmp_path, max_tokens=64).run()
    place = tmp_path / "checkpoints" / "step-00000001"
    moved = calls.index("moved")
    names = (MODEL, "optimizer.safetensors", STATE, MANIFEST)
    written = [tmp_path / "metrics.jsonl", *(place / name for name in names), place]
    assert calls[:moved] == [path.stat().st_ino for path in written]
    assert calls[moved + 1 :] == [place.parent.stat().st_ino]


def test_budgets_end_a_run_and_it_can_continue(whole: Path, tmp_path: Path) -> None:
    assert runs.trainer(tmp_path, max_tokens=7 * 64 + 63).run() == "tokens"
    assert [record["step"] for record in runs.records(tmp_path)] == list(range(1, 8))
    assert "validation_loss" in runs.records(tmp_path)[-1]
    run = runs.trainer(tmp_path, max_seconds=1e-9)
    assert run.resume() == 7
    assert run.run() == "time"
    assert len(runs.records(tmp_path)) == 7
    run = runs.trainer(tmp_path)
    assert run.resume() == 7
    assert run.run() == "steps"
    assert runs.losses(tmp_path) == runs.losses(whole)


def test_a_resumed_run_follows_its_own_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """This includes settings in the saved optimizer: with this decay, weights are 0 after a step with rate 0.01."""
    runs.trainer(tmp_path, max_tokens=2 * 64).run()
    changes = {"weight_decay": 100.0, "schedule": "constant", "learning_rate": 0.01, "warmup_steps": 0}
    run = runs.trainer(tmp_path, steps=3, precision="fp16", **changes)
    with caplog.at_level(logging.WARNING):
        run.resume()
    assert "learning_rate 0.001 → 0.01" in caplog.messages[0]
    assert "weight_decay 0.1 → 100.0" in caplog.messages[0]
    run.run()
    assert run.state.model.get_parameter("head.linear.weight").abs().max() < 0.05


def break_at(run: Trainer, step: int) -> None:
    """Let the loss be NaN from a step on."""

    def hook(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return output * math.nan if run.state.step + 1 >= step else output

    run.state.model.register_forward_hook(hook)


def test_a_nonfinite_loss_stops_a_run_without_losing_steps(whole: Path, tmp_path: Path) -> None:
    run = runs.trainer(tmp_path)
    break_at(run, 15)
    with pytest.raises(CourseError) as caught:
        run.run()
    place = tmp_path / "checkpoints" / "step-00000014"
    line = f"step 15, windows 56 to 59: the loss is nan; the last good checkpoint, of step 14, is {place}"
    assert str(caught.value) == line
    assert [record["step"] for record in runs.records(tmp_path)] == list(range(1, 15))

    same = place.stat().st_ino
    run = runs.trainer(tmp_path)
    break_at(run, 15)
    run.resume()
    with pytest.raises(CourseError, match="step 15, windows 56 to 59: the loss is nan"):
        run.run()
    assert place.stat().st_ino == same  # the file must not be rewritten, because it would be missing for a moment

    run = runs.trainer(tmp_path)
    assert run.resume() == 14
    run.run()
    assert runs.records(tmp_path) == runs.records(whole)
    assert runs.same_weights(tmp_path, whole)


def test_a_run_is_not_overwritten(whole: Path) -> None:
    with pytest.raises(CourseError, match="already has a run: resume it, or choose another folder"):
        runs.trainer(whole).run()


def test_a_finished_run_resumes_to_its_end(whole: Path) -> None:
    before = runs.records(whole)
    run = runs.trainer(whole)
    assert run.resume() == 40
    assert run.run() == "steps"
    assert runs.records(whole) == before
    assert list(run.state.spikes.norms) == [record["gradient_norm"] for record in before]
    best = min(before, key=lambda record: record.get("validation_loss", math.inf))
    assert (run.state.best_loss, run.state.best_step) == (best["validation_loss"], best["step"])
    assert run.state.seconds > 0


def test_a_checkpoint_of_another_model_or_text_is_rejected_in_one_line(whole: Path) -> None:
    with pytest.raises(CourseError, match="belongs to a different model"):
        runs.trainer(whole, dropout=0.2).resume()
    with pytest.raises(CourseError, match="seq_len 16 instead of 8"):
        runs.trainer(whole, seq_len=8).resume()


def test_muon_continues_bit_for_bit(tmp_path: Path) -> None:
    runs.trainer(tmp_path / "whole", steps=8, optimizer="muon").run()
    runs.trainer(tmp_path / "parted", steps=8, optimizer="muon", max_tokens=5 * 64).run()
    run = runs.trainer(tmp_path / "parted", steps=8, optimizer="muon")
    assert run.resume() == 5
    run.run()
    assert runs.losses(tmp_path / "parted") == runs.losses(tmp_path / "whole")
    weights = [tmp_path / name / "checkpoints" / "step-00000008" / MODEL for name in ("whole", "parted")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_muon_and_adamw_follow_one_schedule(tmp_path: Path) -> None:
    run = runs.trainer(tmp_path, steps=3, optimizer="muon", warmup_steps=2, muon_learning_rate=0.04, precision="fp16")
    rates = []
    run.state.optimizer.register_step_pre_hook(
        lambda optimizer, *_: rates.append([group["lr"] for group in optimizer.param_groups])
    )
    run.run()
    assert [row[0] for row in rates] == pytest.approx([0.02, 0.04, 0.04])
    assert [row[-1] for row in rates] == pytest.approx([0.0005, 0.001, 0.001])
    state = run.state.optimizer.state
    assert {frozenset(values) for values in state.values()} == {
        frozenset({"b"}),
        frozenset({"step", "exp_avg", "exp_avg_sq"}),
    }
    assert set(state) == set(run.state.model.parameters())


def test_a_run_cannot_resume_with_another_optimizer(tmp_path: Path) -> None:
    runs.trainer(tmp_path, max_tokens=64).run()
    run = runs.trainer(tmp_path, optimizer="muon")
    with pytest.raises(CourseError, match="has the state of adamw, which muon cannot use: pass --optimizer adamw"):
        run.resume()


def test_all_random_generators_are_restored() -> None:
    def draw() -> list[float]:
        return [random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(()).item()]

    before = rng_states()
    seed_all(7)
    first = draw()
    states = rng_states()
    second = draw()
    set_rng_states(json.loads(json.dumps(states)))
    assert draw() == second != first
    seed_all(7)
    assert draw() == first
    set_rng_states(before)
