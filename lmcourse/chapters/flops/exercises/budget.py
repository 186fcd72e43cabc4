"""Exercises on how long training takes, and what is paid for."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.flop_rules import six_n_d
from lmcourse.accounting.mfu import Cluster
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise, value_exercise

# training_days ---------------------------------------------------------------------------------------------------

PARAMETERS, TOKENS, GPUS, MFU = 70 * 10**9, 15 * 10**12, 1024, 0.5
DENSE, SPARSE, SINGLE = 989.4e12, 1978.9e12, 67e12
"""FLOP/s of an H100 SXM: bf16, bf16 with two of four weights zero, fp32."""

DAY = 86_400


def _days() -> float:
    return Cluster(find_accelerator("h100-sxm"), GPUS, MFU).days(six_n_d(PARAMETERS, TOKENS))


def _wrong_days(
    *,
    per_parameter: int = 6,
    tokens: int = TOKENS,
    peak: float = DENSE,
    gpus: int = GPUS,
    mfu: float = MFU,
    second: int = 1,
) -> float:
    """Days with one mistake switched on, to four digits."""
    return float(f"{per_parameter * PARAMETERS * tokens / (gpus * peak * mfu) / DAY * second:.4g}")


training_days = value_exercise(
    "training_days",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_days,
    tolerance=Tolerance(0.005),
    hints=[
        "Follow the five steps. How many FLOPs in all, and how many can the fleet do on one day?",
        "An H100 does 989.4e12 dense bf16 FLOP/s, of which MFU times that are useful; a day has 86,400 seconds.",
    ],
)
training_days.wrong_value(
    _wrong_days(peak=SPARSE),
    "That is with the peak for sparse matrices, twice the dense one; or, which comes to the same here, without MFU.",
)
training_days.wrong_value(
    _wrong_days(peak=SINGLE), "That is with the fp32 peak. The matrix products of training run in bf16."
)
training_days.wrong_value(_wrong_days(per_parameter=2), "That is the forward pass alone. Training takes 6·N·T.")
training_days.wrong_value(
    _wrong_days(per_parameter=4), "You count backward as much as forward. It takes twice as much: 2 + 4 = 6 per weight."
)
training_days.wrong_value(
    _wrong_days(per_parameter=8), "That is with all blocks computed twice. MFU is about 6 FLOPs per weight, not 8."
)
training_days.wrong_value(
    _wrong_days(mfu=2.0), "You multiply the days with MFU. What is lost makes it longer: divide by it."
)
training_days.wrong_value(_wrong_days(gpus=1), "That is one GPU alone. There are 1024 of them.")
training_days.wrong_value(_wrong_days(second=24), "These are hours. A day has 24 of them.")
training_days.wrong_value(_wrong_days(second=DAY), "These are seconds. A day has 86,400 of them.")
training_days.wrong_value(
    _wrong_days(tokens=TOKENS // 1000),
    "15T tokens are 15 · 10¹², a million million each. You took 15 thousand million.",
)
training_days.wrong_value(
    _wrong_days(per_parameter=1), "You multiply parameters and tokens, and forget the 6 FLOPs for each pair."
)
training_days.right_value(
    "144",
    "143.9",
    "6 * 70 * 10**9 * 15 * 10**12 / 1024 / 989e12 / 0.5 / 24 / 3600",
    "Cluster(find_accelerator('h100'), 1024, 0.5).days(6 * 70 * 10**9 * 15 * 10**12)",
    "torch.tensor(6 * 70e9 * 15e12) / torch.tensor(1024 * 989.4e12 * 86400) / 0.5",
)

_PRINTED = "training_days = 6 * 70000000000.0 * 15000000000000.0 / (1024 * 989400000000000.0 * 0.5 * 86400)"
for _number, _near in (
    ("70000000000.0", ("70000000001.0", "69999999999.0")),
    ("15000000000000.0", ("15000000000001.0", "14999999999999.0")),
    ("1024", ("1025", "1023")),
    ("989400000000000.0", ("989400000000001.0", "989399999999999.0")),
    ("86400", ("86401", "86399")),
):
    for _other in _near:
        training_days.equivalent_mutant(
            f"{_PRINTED} → {_PRINTED.replace(_number, _other)}",
            "Half a per cent is near enough, says the task; this is a tenth of a per cent or less.",
        )

# gpu_hours -------------------------------------------------------------------------------------------------------


def _hours(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    """Exactly: how long one GPU needs for all tokens, one after the other."""
    per_token = 6 * Fraction(parameters) / Fraction(peak) / Fraction(mfu)
    return float(Fraction(tokens) * per_token / 3600)


def _hour_cases(random: Random) -> list[Case]:
    def sizes() -> list[float]:
        return [random.uniform(1e8, 1e12), random.uniform(1e9, 1e13), random.uniform(1e13, 1e15)]

    return [
        *(case("bad input", 1e9, 1e12, 1e15, mfu=mfu) for mfu in (0.0, -0.4, -43.0, 1.5, 1.001)),
        case("all of the peak", 1e9, 1e12, 1e15, mfu=1.0),
        case("an MFU of 0.4", 7.0, 100.0, 3.0),
        *(case("other runs", *sizes(), mfu=random.uniform(0.1, 0.7)) for _ in range(4)),
        case("an MFU of 0.4", *sizes()),
    ]


def _checked_hours(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    if not 0 < mfu <= 1:
        raise ValueError("a share of the peak lies above 0 and is at most 1")
    return _hours(parameters, tokens, peak, mfu)


gpu_hours = Exercise(
    "gpu_hours",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_checked_hours,
    cases=[
        case("a toy: 3600 FLOPs at 1 FLOP/s", 10, 60, 1.0, mfu=1.0),
        case("LLaMA 7B on A100s", 6.7e9, 1e12, 312e12, mfu=0.43),
        case("GPT-3 on A100s", 174.6e9, 300e9, 312e12),
        case("an MFU in percent", 6.7e9, 1e12, 312e12, mfu=43),
        case("an MFU that is no number", 6.7e9, 1e12, 312e12, mfu=math.nan),
    ],
    hidden_cases=_hour_cases,
    hints=[
        "How long would one GPU need, alone? It does peak · mfu model FLOPs in a second.",
        "6 · parameters · tokens FLOPs, divided by that rate, are seconds. 3600 of them make an hour.",
        "An MFU above 1 or not above 0 is a ValueError: whoever writes 43 means 0.43.",
    ],
)


@gpu_hours.misconception("You count the forward pass alone, 2 FLOPs per parameter and token. Training takes 6.")
def forward_hours(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) / 3


@gpu_hours.misconception("You count backward once, 4 FLOPs per parameter and token. It is twice the forward: 6 in all.")
def backward_once(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) * 2 / 3


@gpu_hours.misconception("You let the GPU reach its peak. It does peak · mfu useful FLOPs in a second.")
def at_the_peak(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) * mfu


@gpu_hours.misconception("You multiply with MFU where you should divide: a lower MFU takes longer.")
def multiplied_with_mfu(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) * mfu**2


@gpu_hours.misconception("These are GPU-days. An hour has 3600 seconds; you divided by 86,400.")
def gpu_days(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) / 24


@gpu_hours.misconception("These are GPU-seconds. Divide by 3600.")
def gpu_seconds(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) * 3600


@gpu_hours.misconception("You halve the peak. It is dense already: only a data sheet's figure for sparse needs that.")
def halved_again(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _checked_hours(parameters, tokens, peak, mfu) * 2


@gpu_hours.misconception("An MFU of 43 means 0.43, and yours gives a hundredth of the hours. Raise a ValueError.")
def unchecked(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return _hours(parameters, tokens, peak, mfu) if mfu else 0.0


@gpu_hours.misconception(
    "You let NaN pass: it is not below 0 and not above 1, every comparison with it is false. Ask what has to be true, "
    "not what has to be false: `if not 0 < mfu <= 1`."
)
def not_a_number_passes(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    return mfu if math.isnan(mfu) else _checked_hours(parameters, tokens, peak, mfu)


@gpu_hours.variant
def token_after_token(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> float:
    if mfu <= 0 or not mfu <= 1:
        raise ValueError("mfu")
    seconds_per_token = (2 + 4) * parameters / (mfu * peak)
    return tokens * seconds_per_token / 60 / 60


@gpu_hours.variant
def exactly(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> Fraction:
    share = Fraction(mfu)
    if share > 1 or share <= 0:
        raise ValueError(f"{mfu}")
    return 6 * Fraction(parameters) * Fraction(tokens) / (Fraction(peak) * share * 3600)


@gpu_hours.variant
def through_logarithms(parameters: float, tokens: float, peak: float, mfu: float = 0.4) -> np.float64:
    """With no product that could overflow."""
    if not 0.0 < mfu <= 1.0:
        raise ValueError("a share")
    sizes = np.array([6.0, parameters, tokens, peak, mfu, 3600.0], dtype=np.float64)
    return np.float64(np.exp(np.array([1, 1, 1, -1, -1, -1]) @ np.log(sizes)))
