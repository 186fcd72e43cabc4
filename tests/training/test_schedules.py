"""Compare schedules with torch's, and check that no step is wasted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler

from lmcourse.training.optimizers.rules import SGD
from lmcourse.training.schedules import Constant, Cosine, Schedule, WarmupStableDecay


def factors(build: Callable[[torch.optim.Optimizer], Any], steps: int) -> list[float]:
    """Return the learning rates that a torch scheduler sets for an optimizer with rate 1."""
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
    scheduler: LRScheduler = build(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def ours(schedule: Schedule, steps: int) -> list[float]:
    return [schedule(step) for step in range(steps)]


def test_linear_warm_up_matches_torchs() -> None:
    theirs = factors(lambda o: LinearLR(o, start_factor=1 / 8, total_iters=7), 12)
    assert ours(Constant(8), 12) == pytest.approx(theirs, rel=1e-12)


def test_cosine_matches_torchs() -> None:
    theirs = factors(lambda o: CosineAnnealingLR(o, T_max=20, eta_min=0.25), 21)
    assert ours(Cosine(20, min_lr_ratio=0.25), 21) == pytest.approx(theirs, rel=1e-12)


def test_linear_decay_matches_torchs() -> None:
    theirs = factors(lambda o: LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=20), 25)
    assert ours(WarmupStableDecay(20, 0, 20, min_lr_ratio=0.2), 25) == pytest.approx(theirs, rel=1e-12)


@settings(deadline=None)
@given(data=st.data(), steps=st.integers(1, 500), min_lr_ratio=st.floats(0, 1))
def test_no_step_is_wasted(data: st.DataObject, steps: int, min_lr_ratio: float) -> None:
    """The peak is reached at the end of the warm-up, all factors are above 0 and at most 1, and the last is the
    minimum. After the warm-up a schedule is the one of a shorter run without it."""
    warmup_steps = data.draw(st.integers(0, steps))
    decay_steps = data.draw(st.integers(0, steps - warmup_steps))
    for schedule in (
        Cosine(steps, warmup_steps, min_lr_ratio),
        WarmupStableDecay(steps, warmup_steps, decay_steps, min_lr_ratio=min_lr_ratio),
    ):
        found, rest = ours(schedule, steps), steps - warmup_steps
        assert found[warmup_steps:] == ours(replace(schedule, steps=rest, warmup_steps=0), rest)
        assert all(0 < factor <= 1 for factor in found)
        assert max(found) == 1
        assert not warmup_steps or found[warmup_steps - 1] == 1
        if schedule != WarmupStableDecay(steps, warmup_steps, 0, min_lr_ratio=min_lr_ratio) or min_lr_ratio:
            assert schedule(steps + 3) == pytest.approx(min_lr_ratio, abs=1e-15)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Constant(-1), "a warm-up of -1 steps does not fit"),
        (lambda: Cosine(10, 11), "a warm-up of 11 steps does not fit into a run of 10 steps"),
        (lambda: Cosine(10, 2, 1.5), "min_lr_ratio is a fraction of the full rate, from 0 to 1, not 1.5"),
        (lambda: WarmupStableDecay(10, 6, 5), "a warm-up of 6 and a decay of 5 steps do not fit into a run of 10"),
        (lambda: WarmupStableDecay(10, 6, -1), "a decay of -1"),
    ],
)
def test_phases_that_do_not_fit_are_rejected(build: Callable[[], Schedule], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
