"""The exercise on MFU."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.chapters.flops.runs import A100
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _mfu(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> float:
    """Divide the FLOPs that all GPUs do in a second by their peak, exactly."""
    done = Fraction(step_flops) * Fraction(tokens_per_second) / step_tokens
    possible = gpus * Fraction(peak)
    if done > possible:
        raise ValueError("the rate is above the peak")
    return float(done / possible)


def _cases(random: Random) -> list[Case]:
    def run(share: float) -> list[float]:
        step_tokens, parameters = random.randint(1000, 10**6), random.uniform(1e8, 1e12)
        gpus, peak = random.randint(2, 5000), random.uniform(1e14, 1e15)
        rate = share * gpus * peak / (6 * parameters)
        return [6 * parameters * step_tokens, step_tokens, rate, gpus, peak]

    return [
        case("all of the peak", 1024.0, 16, 32.0, 2, 1024.0),
        case("rates that cannot be", 1024.0, 16, 33.0, 2, 1024.0),
        case("rates that cannot be", 1024.0, 16, 3200.0, 2, 1024.0),
        case("nothing is a whole number", 1000.0, 16, 0.25, 3, 128.0),
        *(case("other runs", *run(random.uniform(0.1, 0.9))) for _ in range(5)),
        case("a hardly used machine", *run(random.uniform(1e-6, 1e-4))),
        *(case("rates that cannot be", *run(random.uniform(1.01, 1.99))) for _ in range(2)),
    ]


mfu = Exercise(
    "mfu",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_mfu,
    cases=[
        case("half the peak", 1000.0, 10, 5.0, 1, 1000.0),
        case("two slow GPUs", 1000.0, 10, 0.5, 2, 1000.0),
        case("a 7B model on 32 A100s", 42e9 * 65_536, 65_536, 1e5, 32, A100),
        case("LLaMA 65B on 2048 A100s", 391.7e9 * 4_000_000, 4_000_000, 380.0 * 2048, 2048, A100),
        case("all of the peak", 1000.0, 10, 10.0, 1, 1000.0),
        case("62.5 FLOPs a token", 1000.0, 16, 2.0, 1, 250.0),
        case("a fifth above the peak", 1000.0, 10, 12.0, 1, 1000.0),
        case("a rate that cannot be", 42e9 * 65_536, 65_536, 1e5, 1, A100),
    ],
    hidden_cases=_cases,
    hints=[
        "What are the units of step_flops, and of tokens_per_second? Write them down, and divide by what does not "
        "cancel.",
        "FLOPs per token, times tokens per second, are the useful FLOP/s of all GPUs together.",
        "Divide by gpus · peak. If the share is above 1, raise ValueError instead of returning it.",
    ],
)


@mfu.variant
def done_over_possible(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> float:
    done = step_flops / step_tokens * tokens_per_second
    possible = gpus * peak
    share = done / possible
    if share > 1:
        raise ValueError("the rate is above the peak")
    return share


mfu.slips(
    done_over_possible,
    {
        "step_flops / step_tokens → step_flops": "You multiply the FLOPs of a whole step by a rate in tokens. First "
        "divide by the step's tokens.",
        "step_flops / step_tokens → step_flops ;; if share > 1 → if False": "You never divide by the step's tokens, "
        "so your MFU is far above 1.",
        "step_flops / step_tokens → step_flops // step_tokens": "You divide the FLOPs of a step with //, which drops "
        "the fraction of a FLOP.",
        "gpus * peak → peak": "All GPUs work: what they could have done is gpus · peak, not the peak of one.",
        "return share → return 100 * share": "You return a percentage. A share is between 0 and 1.",
        "if share > 1 → if False": "You return a share above 1, which is impossible: something was counted wrongly. "
        "Raise ValueError.",
        'raise ValueError("the rate is above the peak") → return 1.0': "You cap the share at 1. That hides a mistake "
        "in the count: raise ValueError.",
        'share > 1 → share >= 1 ;; "the rate is above the peak" → "the share is not below 1"': "You reject a share of "
        "exactly 1. Only a share above 1 is impossible.",
        "return share → return 1 / share": "You return the inverse: possible work divided by work done. Swap the two.",
        "return share → return share / 3": "You count only the forward pass. step_flops already is for forward and "
        "backward: use all of it.",
        "gpus * peak → gpus * peak / 2": "You halve the peak. It is already the dense peak.",
    },
)


@mfu.variant
def time_of_a_step(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> float:
    possible = step_tokens / tokens_per_second * gpus * peak
    if possible < step_flops:
        raise ValueError("the rate is above the peak")
    return step_flops / possible


@mfu.variant
def seconds_of_a_step(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> float:
    ideal, seconds = step_flops / (gpus * peak), step_tokens / tokens_per_second
    share = ideal / seconds
    if not 0 < share <= 1:
        raise ValueError("the share is not between 0 and 1")
    return share


@mfu.variant
def per_gpu(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> np.float64:
    flops_per_token = np.float64(step_flops) / step_tokens
    share = np.divide(flops_per_token * (tokens_per_second / gpus), peak)
    if not share <= 1:
        raise ValueError(share)
    return np.float64(share)


@mfu.variant
def in_decimals(step_flops: float, step_tokens: int, tokens_per_second: float, gpus: int, peak: float) -> Decimal:
    done = Decimal(step_flops) * Decimal(tokens_per_second)
    possible = Decimal(gpus) * Decimal(peak) * step_tokens
    if done > possible:
        raise ValueError(f"{done} of {possible}")
    return done / possible
