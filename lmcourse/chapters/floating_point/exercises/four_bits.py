"""The open task: store all tensors of a training run in 16 numbers each."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.chapters.floating_point.four_bits import IN_PLACE, inspect_store, measure_store
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, NO_OPTIMIZER
from lmcourse.exercises.open_task import Band, OpenTask


def powers_of_two_by_chance(x: Tensor, role: str) -> Tensor:
    numbers = torch.tensor([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=x.dtype)
    if role == "gradient":
        powers = 2.0 ** torch.arange(7, dtype=x.dtype)
        numbers = torch.cat([-powers.flip(0), torch.zeros(1, dtype=x.dtype), powers])
    scale = x.abs().max() / numbers[-1] or torch.ones((), dtype=x.dtype)
    place = torch.bucketize(x / scale, numbers[1:-1])
    low, high = numbers[place], numbers[place + 1]
    up = (x / scale - low) / (high - low)
    threshold = torch.rand_like(x) if role == "gradient" else 0.5
    return torch.where(up > threshold, high, low) * scale


my_store = Exercise(
    "my_store",
    points=4,
    minutes=14,
    difficulty=3,
    reference=powers_of_two_by_chance,
    seconds=90.0,
    cases=[case("seeds 0 to 2", seeds=[0, 1, 2])],
    hidden_cases=lambda _: [case("seeds 3 to 5", seeds=[3, 4, 5])],
    hints=[
        "Divide by a scale, so that the largest number of x becomes your largest one; round; multiply. Mind an x "
        "that is 0 everywhere. torch.bucketize(x, numbers) finds between which of your sorted numbers each x lies.",
        "A weight gets the sum of many gradients. What does that sum look like if each gradient goes to the nearest of "
        "16 numbers, and most are small? Section 5 has a remedy.",
        "Which 16 numbers? Those of a gradient may be spread over powers of ten, evenly spaced ones are wasted on it. "
        "And which of your numbers does an activation after a ReLU never use?",
    ],
    forbid=[
        *NO_AUTOGRAD,
        *NO_OPTIMIZER,
        *("sys", "inspect", "gc", "traceback", ".__traceback__", ".tb_frame", ".f_back", ".f_locals", ".gi_frame"),
    ],
    task=OpenTask(
        inspect=inspect_store,
        measure=measure_store,
        baseline={
            "E2M1, no scale": {"run 1": 4.852, "run 2": 4.852, "run 3": 4.852, "mean": 4.852},
            "exact": {"run 1": 0.689, "run 2": 0.709, "run 3": 0.734, "mean": 0.711},
        },
        finish={"mean": 0.97},
        bands=[
            Band(1, "at most 16 numbers, and it runs"),
            *(Band(1, at_most={"mean": loss}) for loss in (1.5, 1.1, 0.97)),
        ],
        digits=3,
    ),
)


my_store.idea(4)(powers_of_two_by_chance)

_ONE_SET = 'if role == "gradient": → if False: ;; '
_NEAREST = 'torch.rand_like(x) if role == "gradient" else 0.5 → 0.5'
_LARGEST = "x.abs().max() / numbers[-1] or torch.ones((), dtype=x.dtype)"

my_store.edited_ideas(
    powers_of_two_by_chance,
    {
        "as it is": (1, f"{_ONE_SET}{_LARGEST} → 1.0 ;; {_NEAREST}"),
        "by chance everywhere": (2, f'{_ONE_SET} if role == "gradient" else 0.5 → '),
        "gradients by chance": (3, 'if role == "gradient": → if False:'),
        "forward clipped": (
            4,
            'scale = x.abs().max() → scale = (x.abs().max() if role == "gradient" else 2.5 * x.std())',
        ),
    },
)

my_store.slips(
    powers_of_two_by_chance,
    {
        'high, low) * scale → high, low) * scale if role != "gradient" else x': "8,192 different numbers in a tensor "
        "of gradients; at most 16 are allowed.",
        f"{_LARGEST} → x.abs().amax(dim=1, keepdim=True).clamp(min=1e-300) / numbers[-1]": "860 different numbers in a "
        "tensor of weights; at most 16 are allowed.",
        f"{_LARGEST} → x.abs().max() / numbers[-1]\n    x /= scale": IN_PLACE,
        "high, low) * scale → high, low).flatten() * scale": "Return a tensor of the shape of x, here (64, 128); yours "
        "is of shape (8192,).",
        f"{_LARGEST} → x.abs().max() / 7\n    return (x / scale).round() * scale": "Your tensor of weights has NaN or "
        "∞ in it. Do you divide by 0 where x is 0 everywhere?",
    },
)
