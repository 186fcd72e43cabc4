"""What a run may be, and what is refused in one line."""

from __future__ import annotations

import json
import math
import re
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest

from lmcourse.training.config import TrainingConfig, changes
from lmcourse.training.parallelism import Parallelism
from lmcourse.training.schedules import Constant, Cosine, WarmupStableDecay

PLAIN = TrainingConfig(steps=10, batch=2, length=8)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"length": -1}, "length must be at least 1, not -1"),
        ({"accumulate": 0}, "accumulate must be at least 1, not 0"),
        ({"keep": 0}, "keep must be at least 1, not 0"),
        ({"evaluate_every": 0}, "evaluate_every must be at least 1, not 0"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0, not -0.1"),
        ({"z_loss": math.nan}, "z_loss must be at least 0, not nan"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0, not 0.0"),
        ({"eps": 0.0}, "eps must be above 0, not 0.0"),
        ({"clip": 0.0}, "clip must be above 0, not 0.0"),
        ({"spike": 0.0}, "spike must be above 0, not 0.0"),
        ({"max_seconds": 0.0}, "max_seconds must be above 0, not 0.0"),
        ({"max_tokens": 15}, "max_tokens 15 is less than the 16 tokens of one step"),
        ({"betas": (0.9, 1.0)}, "betas must be at least 0 and below 1, not (0.9, 1.0)"),
        ({"schedule": "linear"}, "there is no schedule 'linear'; there are 'constant', 'cosine', 'wsd'"),
        ({"precision": "fp8"}, "there is no precision 'fp8'; there are 'fp32', 'bf16', 'fp16'"),
        ({"warmup": 11}, "a warm-up of 11 steps do not fit into a run of 10"),
        ({"decay": 3}, "only 'wsd' has a number of steps to decay, not 'cosine'"),
        ({"floor": 2.0}, "the floor is a share of the full rate, from 0 to 1, not 2.0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(PLAIN, **setting)


def test_it_is_frozen_and_plain() -> None:
    with pytest.raises(FrozenInstanceError):
        PLAIN.steps = 3  # type: ignore[misc]
    read = json.loads(json.dumps(asdict(PLAIN), allow_nan=False))
    settings = {**read, "betas": tuple(read["betas"]), "parallel": Parallelism(**read["parallel"])}
    assert TrainingConfig(**settings) == PLAIN


def test_a_batch_divides_among_the_processes_that_read() -> None:
    halves = replace(PLAIN, batch=8, parallel=Parallelism(replicate=2, shard=2, tensor=3))
    assert halves.parallel.readers == 4
    assert halves.parallel.processes == 12
    with pytest.raises(ValueError, match="a batch of 6 does not divide among 4 processes"):
        replace(halves, batch=6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shard": 0}, "shard must be at least 1, not 0"),
        ({"sequence": True}, "set tensor above 1"),
        ({"schedule": "zero"}, "schedule"),
    ],
)
def test_what_cannot_be_parallel_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Parallelism(**wrong)


def test_the_schedule_is_the_one_that_is_named() -> None:
    assert replace(PLAIN, schedule="constant", warmup=2).make_schedule() == Constant(2)
    assert replace(PLAIN, warmup=2, floor=0.1).make_schedule() == Cosine(10, 2, 0.1)
    wsd = replace(PLAIN, schedule="wsd", warmup=2, decay=3, floor=0.1)
    assert wsd.make_schedule() == WarmupStableDecay(10, 2, 3, floor=0.1)


def test_a_step_has_the_tokens_of_all_micro_batches() -> None:
    assert replace(PLAIN, accumulate=3).tokens_per_step == 3 * 2 * 8


def test_changes_are_named() -> None:
    after = asdict(replace(PLAIN, steps=20, clip=None))
    assert changes(asdict(PLAIN), asdict(PLAIN)) == ""
    assert changes(asdict(PLAIN), after) == "steps 10 → 20, clip 1.0 → None"
    divided = asdict(replace(PLAIN, parallel=Parallelism(shard=2, tensor=4)))
    assert changes(asdict(PLAIN), divided) == "parallel.shard 1 → 2, parallel.tensor 1 → 4"
