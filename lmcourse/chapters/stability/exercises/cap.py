"""The exercise on soft-capping."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal, normal64


def with_tanh(logits: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    if cap <= 0:
        raise ValueError("the cap must be positive")
    t = torch.tanh(logits / cap)
    value = cap * t
    slope = 1 - t**2
    return value, slope


def _parts(name: str, logits: Tensor, cap: float) -> list[Case]:
    """Return a case for the values and one for the slopes, so that each of the two earns points by itself."""
    return [
        script(f"{name}: the {part}", f"soft_cap(logits, {cap})[{place}]", logits=logits)
        for place, part in enumerate(("values", "slopes"))
    ]


def _cap_cases(random: Random) -> list[Case]:
    return [
        case("bad input", torch.tensor([1.0, -2.0]), -30.0),
        *_parts("far beyond the cap", torch.tensor([1e5, -1e5, 1.0], dtype=torch.float64), 20.0),
        *_parts("other shapes", torch.tensor(7.0, dtype=torch.float64), 5.0),
        *_parts("other shapes", torch.zeros(0, 3, dtype=torch.float64), 5.0),
        *_parts("other shapes", 20 * normal64(random, 2, 3), random.uniform(5, 50)),
        *_parts("other shapes", 20 * normal64(random, 2, 2, 2), random.uniform(5, 50)),
        *_parts("small caps", normal64(random, 6), random.uniform(0.1, 0.9)),
        *_parts("single precision", normal(random, 5, dtype=torch.float32), 2.0),
    ]


soft_cap = Exercise(
    "soft_cap",
    points=3,
    minutes=6,
    difficulty=2,
    reference=with_tanh,
    cases=[
        *_parts("Gemma 2's scores, cap 50", torch.tensor([0.0, 10.0, 100.0, -100.0], dtype=torch.float64), 50.0),
        *_parts("Gemma 2's logits, cap 30", torch.tensor([30.0, -15.0, 1e5, -1e5], dtype=torch.float64), 30.0),
        *_parts("a cap of one half", torch.tensor([0.25, 1.0]), 0.5),
        *_parts("a matrix", torch.tensor([[1.0, 2.0], [40.0, -3.0]], dtype=torch.float64), 20.0),
        case("a negative cap", torch.tensor([1.0, -2.0], dtype=torch.float64), -30.0),
        case("no cap at all", torch.tensor([1.0], dtype=torch.float64), 0.0),
    ],
    hidden_cases=_cap_cases,
    hints=[
        "Squeeze z / cap with tanh, then stretch the result again by cap.",
        "The derivative of tanh(u) is 1 − tanh²(u). What does the chain rule do to the two factors, cap and 1/cap?",
        "They cancel. The derivative of tanh is left, taken at z / cap.",
    ],
    forbid=[".backward", "torch.autograd", "torch.func"],
)


soft_cap.variant(with_tanh)

soft_cap.slips(
    with_tanh,
    {
        "cap * t → logits.clamp(-cap, cap) ;; 1 - t**2 → (logits.abs() < cap).to(logits.dtype)": "You clamp. Beyond a "
        "hard limit the gradient is 0, and below it nothing is softened.",
        "cap * t → t ;; 1 - t**2 → (1 - t**2) / cap": "Your values end at ±1: multiply the tanh by cap.",
        "cap * t → t": "Your values end at ±1: multiply the tanh by cap.",
        "cap * t → cap * t.abs()": "You lose the sign: a negative logit stays negative.",
        "torch.tanh → torch.sigmoid": "You take a sigmoid, which is 1/2 at 0 and never negative. Use tanh.",
        "return value, slope → return slope, value": "You return the slope first. The capped logits come first.",
        "1 - t**2 → 1 + t**2": "Your slope grows with the score: the derivative of tanh is 1 − tanh², with a minus.",
        "1 - t**2 → (1 - t) ** 2": "Your slope is (1 − tanh)². The derivative of tanh is 1 − "
        "tanh²: square the tanh, then subtract.",
        "1 - t**2 → value / logits": "You divide the value by the logit. The slope is the derivative at that place.",
        "t = torch.tanh(logits / cap) → grow = torch.exp(2 * logits / cap)\n    t = (grow - 1) / (grow + 1)": "Your "
        "exp overflows far above the cap, and ∞/∞ is NaN. `torch.tanh` does not overflow.",
        "t = torch.tanh(logits / cap) → grow = torch.exp(logits / cap)\n    t = (grow - 1 / grow) / (grow + 1 / "
        "grow)": "Your exp overflows far beyond the cap, and ∞/∞ is NaN. `torch.tanh` does not overflow.",
        "logits / cap → logits ;; 1 - t**2 → cap * (1 - t**2)": "You take tanh(z), which is saturated at 3 already. "
        "Divide by cap inside, so that small logits stay as they are.",
        "logits / cap → logits": "You take tanh(z), so logits of 3 are at the cap already. Near 0 the slope must be 1: "
        "divide by the cap inside.",
        "cap * t → cap * torch.tanh(logits)": "Your value is cap · tanh(z). Use tanh(z / cap).",
        "1 - t**2 → (1 - t**2) / cap": "Your slope is divided by cap: the factor cap outside cancels the 1/cap inside.",
        "t**2 → t": "Your slope is 1 − tanh. The derivative of tanh is 1 − tanh², with the square.",
        "t**2 → value**2": "You squared the capped value. Divide it by cap first: tanh = capped / cap.",
        '    if cap <= 0:\n        raise ValueError("the cap must be positive")\n →  ;; logits / cap → logits / (cap '
        "or torch.nan)": "You accept a cap of 0 or below. Raise ValueError.",
        '    if cap <= 0:\n        raise ValueError("the cap must be positive")\n → ': "You accept a cap of 0 or "
        "below. Raise ValueError.",
        "cap <= 0 → cap < 0": "You reject a negative cap, but accept 0.",
        "cap <= 0 → cap == 0": "You reject a cap of 0, but accept a negative one.",
        "1 - t**2 → (logits.abs() < cap).to(logits.dtype)": "Your slope is that of a hard "
        "limit, 1 below the cap and 0 beyond: differentiate the tanh.",
        "t**2 → torch.tanh(value / cap) ** 2": "You take the slope at the capped value, so tanh is applied twice. Take "
        "it at the logit itself.",
        "t**2 → torch.tanh(logits) ** 2": "In the slope you take tanh(z): divide by the cap there, too.",
        "1 - t**2 → cap * (1 - t**2)": "Your slope is too large by the factor cap: the 1/cap inside the tanh cancels "
        "it.",
    },
)


@soft_cap.variant
def by_exponentials(logits: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    if not cap > 0:
        raise ValueError("the cap must be positive")
    decay = torch.exp(-2 * logits.abs() / cap)
    capped = cap * logits.sign() * (1 - decay) / (1 + decay)
    return capped, 4 * decay / (1 + decay) ** 2


@soft_cap.variant
def with_numpy(logits: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    if cap <= 0:
        raise ValueError("the cap must be positive")
    squeezed = np.asarray(np.tanh(logits.numpy() / cap))
    capped, slope = (np.asarray(part, squeezed.dtype) for part in (cap * squeezed, 1 - squeezed**2))
    return torch.from_numpy(capped), torch.from_numpy(slope)
