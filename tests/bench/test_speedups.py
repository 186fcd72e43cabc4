"""All setups of a training step compute the same, each change is a single one, and only faster ones are kept."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from lmcourse.bench.speedups import StepSetup, make_training_step, measure_speedups, optimizations
from lmcourse.models.zoo.course import modern

CONFIG = modern(1, 32, 2, 32)


@pytest.mark.parametrize(
    "setup", [StepSetup(3, fused_optimizer=True), StepSetup(3, fused_attention=True), StepSetup(3, True, True)], ids=str
)
def test_fused_kernels_compute_the_same_steps(setup: StepSetup) -> None:
    plain, fused = make_training_step(CONFIG, StepSetup(3), 16), make_training_step(CONFIG, setup, 16)
    for _ in range(3):
        torch.testing.assert_close(plain(), fused())


def test_bf16_rounds_but_still_learns() -> None:
    plain, rounded = (make_training_step(CONFIG, StepSetup(3, bf16=bf16), 16) for bf16 in (False, True))
    first, other = plain(), rounded()
    assert first != other, "autocast did nothing"
    torch.testing.assert_close(first, other, rtol=2**-7, atol=0)
    assert rounded() < other


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_change_is_one_change(device: str) -> None:
    setup = StepSetup()
    for change in optimizations(8, device).values():
        before, setup = setup, change(setup)
        differing = [name for name, value in asdict(setup).items() if value != asdict(before)[name]]
        assert len(differing) == 1
    assert setup == StepSetup(8, True, True, True, compiled=device == "cuda")


def test_measuring_speedups_leaves_random_state_unchanged() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    make_training_step(CONFIG, StepSetup(), 8)
    assert torch.equal(torch.rand(3), expected)


def test_only_faster_changes_are_kept() -> None:
    # Each change is timed once without and once with it. Eight texts in 4 s are twice the tokens/s of one text in 1 s.
    times = iter([1.0, 4.0, 4.0, 5.0, 4.0, 2.0, 2.0, 2.0])
    speedups = measure_speedups(CONFIG, 8, batch=8, warmup=0, repeats=1, stopwatch=lambda step: next(times))
    assert [speedup.ratio for speedup in speedups] == pytest.approx([2.0, 0.8, 2.0, 1.0])
    assert [speedup.kept for speedup in speedups] == [True, False, True, False]
    assert speedups[0].before == pytest.approx(8 / 1.0)
    assert speedups[-1].setup == StepSetup(8, fused_optimizer=False, fused_attention=True, bf16=False)
