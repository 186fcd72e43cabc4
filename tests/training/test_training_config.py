"""Test valid settings of runs, and settings that are rejected in one line."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, replace
from typing import Any

import pytest

from lmcourse.training.schedules import Constant, Cosine, WarmupStableDecay
from lmcourse.training.training_config import Parallelism, TrainingConfig, changes

PLAIN = TrainingConfig(steps=10, batch=2, seq_len=8)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"seq_len": -1}, "seq_len must be at least 1, not -1"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"z_loss": math.nan}, "z_loss must be at least 0, not nan"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0, not 0.0"),
        ({"eps": math.inf}, "eps must be finite, not inf"),
        ({"max_seconds": 0.0}, "max_seconds must be above 0, not 0.0"),
        ({"max_tokens": 15}, "max_tokens 15 is less than the 16 tokens of one step"),
        ({"betas": (0.9, 1.0)}, "betas must be at least 0 and below 1, not (0.9, 1.0)"),
        ({"schedule": "linear"}, "there is no schedule 'linear'; choose from 'constant', 'cosine', 'wsd'"),
        ({"warmup_steps": 11}, "a warm-up of 11 steps does not fit into a run of 10 steps"),
        ({"decay_steps": 3}, "decay_steps is only for the schedule 'wsd', not for 'cosine'"),
        ({"min_lr_ratio": 2.0}, "min_lr_ratio is a fraction of the full rate, from 0 to 1, not 2.0"),
    ],
)
def test_impossible_arguments_are_rejected_in_one_line(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(PLAIN, **setting)


def test_a_batch_divides_among_the_processes_that_read() -> None:
    halves = replace(PLAIN, batch=8, parallel=Parallelism(data_parallel=2, fsdp=2, tensor_parallel=3))
    assert halves.parallel.dp_size == 4
    assert halves.parallel.world_size == 12
    with pytest.raises(ValueError, match="a batch of 6 cannot be divided evenly among 4 processes"):
        replace(halves, batch=6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fsdp": 0}, "fsdp must be at least 1, not 0"),
        ({"sequence_parallel": True}, "set tensor_parallel above 1"),
        ({"pipeline_schedule": "zero"}, "pipeline_schedule"),
    ],
)
def test_impossible_parallel_settings_are_rejected(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Parallelism(**wrong)


def test_the_named_schedule_is_used() -> None:
    assert replace(PLAIN, schedule="constant", warmup_steps=2).make_schedule() == Constant(2)
    assert replace(PLAIN, warmup_steps=2, min_lr_ratio=0.1).make_schedule() == Cosine(10, 2, 0.1)
    wsd = replace(PLAIN, schedule="wsd", warmup_steps=2, decay_steps=3, min_lr_ratio=0.1)
    assert wsd.make_schedule() == WarmupStableDecay(10, 2, 3, min_lr_ratio=0.1)


def test_changes_are_named() -> None:
    after = asdict(replace(PLAIN, steps=20, grad_clip=None))
    assert changes(asdict(PLAIN), asdict(PLAIN)) == ""
    assert changes(asdict(PLAIN), after) == "steps 10 → 20, grad_clip 1.0 → None"
    divided = asdict(replace(PLAIN, parallel=Parallelism(fsdp=2, tensor_parallel=4)))
    assert changes(asdict(PLAIN), divided) == "parallel.fsdp 1 → 2, parallel.tensor_parallel 1 → 4"
