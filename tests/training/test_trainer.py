"""A run learns, ends in time, logs its steps, and reports spikes."""

from __future__ import annotations

import logging
import math
from itertools import islice
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from lmcourse.base.errors import CourseError
from lmcourse.data.loader import Loader
from lmcourse.training import trainer
from lmcourse.training.metrics import read_metrics
from lmcourse.training.schedules import WarmupStableDecay
from lmcourse.training.spike_detector import MIN_NORMS, SpikeDetector
from tests.training import runs

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_learns_and_logs_every_step(whole: Path) -> None:
    told = read_metrics(whole / "metrics.jsonl")
    assert [record["step"] for record in told] == list(range(1, 41))
    assert told[0]["loss"] == pytest.approx(math.log(256), rel=0.05)
    assert told[-1]["loss"] < 0.85 * told[0]["loss"]
    schedule = runs.BASE.make_schedule()
    for record in told:
        assert record["tokens"] == record["step"] * 2 * 2 * 16
        assert record["learning_rate"] == 1e-3 * schedule(record["step"] - 1)
        assert record["gradient_norm"] > 0
        assert record["tokens_per_second"] > 0
    assert [record["step"] for record in told if "validation_loss" in record] == [10, 20, 30, 40]


@pytest.mark.parametrize("grad_clip", [0.5, None])
def test_the_trainer_matches_a_loop_written_by_hand(tmp_path: Path, grad_clip: float | None) -> None:
    """The loop uses torch's AdamW, clipping and LambdaLR on one large batch; only matrices decay."""
    settings = {
        "weight_decay": 0.5,
        "betas": (0.8, 0.9),
        "eps": 1e-3,
        "z_loss": 0.1,
        "schedule": "wsd",
        "decay_steps": 3,
    }
    run = runs.trainer(tmp_path, dropout=0.0, steps=12, grad_clip=grad_clip, learning_rate=0.01, **settings)
    run.run()

    model = runs.model(dropout=0.0)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.5}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.8, 0.9), eps=1e-3, foreach=False)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, WarmupStableDecay(12, 4, 3))
    losses, norms = [], []
    for batch in islice(Loader(runs.text(), 4, 16, seed=3, prefetch=0), 12):
        optimizer.zero_grad()
        logits = model(batch.inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, batch.targets.flatten()) + 0.1 * logits.logsumexp(-1).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip or math.inf).item())
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    assert runs.losses(tmp_path) == pytest.approx(losses, rel=1e-4)
    assert [record["gradient_norm"] for record in runs.records(tmp_path)] == pytest.approx(norms, rel=1e-2)


def test_recomputed_blocks_change_no_loss(whole: Path, tmp_path: Path) -> None:
    run = runs.trainer(tmp_path, activation_checkpointing=True, max_tokens=5 * 64)
    calls: list[int] = []
    run.state.model.blocks[0].attention.register_forward_hook(lambda *_: calls.append(run.state.step))  # type: ignore[union-attr,index]
    run.run()
    assert runs.losses(tmp_path) == [record["loss"] for record in runs.records(whole)[:5]]
    assert calls.count(3) == 2 * runs.BASE.grad_accum_steps


def test_the_model_runs_in_the_configured_dtype(tmp_path: Path) -> None:
    run = runs.trainer(tmp_path, steps=1, warmup_steps=0, precision="bf16")
    dtypes: set[torch.dtype] = set()
    run.state.model.register_forward_hook(lambda module, inputs, output: dtypes.add(output.dtype))
    run.run()
    assert dtypes == {torch.bfloat16}
    compiled = runs.trainer(tmp_path / "compiled", compile=True).state.model
    assert compiled._compiled_call_impl is not None
    assert list(compiled.state_dict()) == list(runs.model().state_dict())


def test_the_best_checkpoint_is_saved_at_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {2: 3.0, 4: 2.0, 6: 5.0, 8: 2.5, 10: math.nan}
    run = runs.trainer(tmp_path, steps=10, evaluate_every=2, checkpoint_every=None, keep_checkpoints=1)
    monkeypatch.setattr(trainer, "evaluate", lambda *_: losses[run.state.step])
    saved: set[str] = set()
    run.callbacks = [lambda _: saved.update(path.name for path in tmp_path.glob("checkpoints/step-*"))]
    run.run()
    assert sorted(saved) == ["step-00000002", "step-00000004"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000004", "step-00000010"]
    assert (run.state.best_loss, run.state.best_step) == (2.0, 4)


def test_a_spike_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = runs.trainer(tmp_path, steps=24, dropout=0.0, grad_clip=None, schedule="constant", learning_rate=1e-6)
    weight = run.state.model.get_parameter("norm.weight")
    weight.register_hook(lambda gradient: gradient * (1e4 if run.state.step == 21 else 1))
    with caplog.at_level(logging.WARNING):
        run.run()
    (spike,) = [record for record in runs.records(tmp_path) if "spike" in record]
    assert spike["step"] == 22
    assert spike["spike"] > 5
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("step 22: the gradient norm is ")


def test_endless_overflow_ends_the_run(tmp_path: Path) -> None:
    """A few overflows in a row are normal while fp16 finds its scale; twenty are a mistake."""
    run = runs.trainer(tmp_path, precision="fp16", steps=60, evaluate_every=None, checkpoint_every=None)
    weight = run.state.model.get_parameter("norm.weight")
    weight.register_hook(lambda gradient: gradient * (1 if run.state.step in (15, 16) else math.inf))
    with pytest.raises(CourseError, match="step 37: gradients overflowed in fp16 20 times in a row") as caught:
        run.run()
    assert "\n" not in str(caught.value)
    assert "step-00000037: continue with bf16 or fp32, or with a lower learning rate" in str(caught.value)
    assert [record["step"] for record in runs.records(tmp_path) if "skipped" not in record] == [16, 17]
    again = runs.trainer(tmp_path, steps=39)
    assert again.resume() == 37
    assert again.run() == "steps"


def test_spikes_are_relative_to_the_median_of_recent_norms() -> None:
    watch = SpikeDetector(5.0)
    assert [watch.observe(100.0) for _ in range(MIN_NORMS - 1)] == [None] * (MIN_NORMS - 1)
    assert watch.observe(math.inf) is None
    assert watch.observe(499.0) is None
    assert watch.observe(500.0) is None
    assert watch.observe(501.0) == pytest.approx(5.01)
    again = SpikeDetector(5.0, watch.norms)
    assert again.observe(600.0) == watch.observe(600.0) == 6.0
