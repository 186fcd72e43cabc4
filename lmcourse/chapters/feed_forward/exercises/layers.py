"""The exercise on the plain feed-forward layer."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64


def _ffn(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    wide = [part.double() for part in (x, w1.T, b1, w2.T, b2)]
    return F.linear(F.relu(F.linear(wide[0], *wide[1:3])), *wide[3:]).to(x.dtype)


def _shapes(d: int, n: int) -> tuple[tuple[int, ...], ...]:
    return (d, n), (n,), (n, d), (d,)


def _ask(name: str, random: Random, *shape: int, n: int) -> Case:
    """A case in double precision, where the order of the sums does not matter. The first output is negative."""
    weights = [normal64(random, *of) for of in _shapes(shape[-1], n)]
    weights[-1][0] = -1000.0
    return case(name, 2 * normal64(random, *shape), *weights)


def _whole(name: str, random: Random, *shape: int, n: int) -> Case:
    """A case in single precision with small whole numbers, so that nothing is rounded."""
    weights = [integers(random, *of, low=-2, high=2) for of in _shapes(shape[-1], n)]
    return case(name, integers(random, *shape, low=-2, high=2), *weights)


def _ffn_cases(random: Random) -> list[Case]:
    d, n = random.randint(2, 6), random.randint(7, 12)
    fixed = Random(1)
    return [
        _whole("no token", fixed, 0, 3, n=4),
        _whole("a single number", fixed, 1, 1, n=1),
        _ask("other shapes", fixed, 3, n=5),
        _ask("other shapes", random, 5, d, n=n),
        _ask("other shapes", random, 2, 3, d, n=n),
        _ask("narrower than the model", random, 3, n, n=d),
        _ask("square matrices", random, 4, d, n=d),
    ]


_HAND = [
    torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0]]),
    torch.tensor([0.0, 1.0, -1.0]),
    torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]),
    torch.tensor([0.0, 0.5]),
]
_FIXED = Random(11)

ffn = Exercise(
    "ffn",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_ffn,
    differentiable=True,
    cases=[
        case("one token, by hand", torch.tensor([[1.0, 2.0]]), *_HAND),
        case("three tokens", torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), *_HAND),
        _whole("as wide as the model", _FIXED, 2, 3, n=3),
        _whole("two texts of four tokens", _FIXED, 2, 4, 3, n=8),
    ],
    hidden_cases=_ffn_cases,
    hints=[
        "Write the shapes beside each step: (…, d) @ (d, n) + (n) is (…, n).",
        "The ReLU is between the two matrices, after the first bias: (x @ w1 + b1).clamp(min=0).",
    ],
)


@ffn.variant
def with_at(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return (x @ w1 + b1).relu() @ w2 + b2


ffn.slips(
    with_at,
    {
        "(x @ w1 + b1).relu() → F.gelu(x @ w1 + b1)": "You use GELU between the matrices. This layer has a ReLU there.",
        "x @ → x.relu() @ ;; b1).relu() → b1)": "Your ReLU acts on the input. It belongs between the two matrices.",
        ".relu() → ": "You leave out the ReLU. Without it, two matrices in a row are one matrix.",
        "(x @ → ((x @ ;; + b2 → + b2).relu()": "You apply a ReLU to the output as well. The layer ends with the second "
        "bias and may be negative.",
        "(x @ w1 + b1).relu() → ((x @ w1).relu() + b1)": "You add b1 after the ReLU. Add it before: there it moves the "
        "point where each neuron switches on.",
        " + b1 → ": "b1 is not used.",
        " + b2 → ": "b2 is not used.",
        "@ w1 → @ w1.T ;; @ w2 → @ w2.T": "You multiply by the transposed matrices, as if W1 were (d_ff, d). Here a "
        "token is a row, and W1 is (d, d_ff).",
        "return → return x +": "You add the input at the end. The residual connection belongs to the block around this "
        "layer.",
        "(x @ → ((x @ ;; .relu() @ w2 + b2 →  @ w2 + b2).relu()": "Your ReLU comes after the second matrix. It belongs "
        "between the two: the result may be negative.",
        ".relu() → .clamp(max=0)": "You keep the negative hidden numbers and drop the positive ones. A ReLU is max(0, "
        "z): clamp(min=0).",
        "(x @ w1 + b1).relu() → F.silu(x @ w1 + b1)": "You use SiLU between the matrices. This layer has a ReLU there.",
        ".relu() → .relu() ** 2": "You square the ReLU. Here it is max(0, z) itself.",
        "x @ → x.relu() @": "You apply a ReLU to the input as well. There is one ReLU, between the two matrices.",
        "(x @ w1 + b1).relu() → (x @ w1 + b1 > 0).to(x.dtype)": "Your hidden numbers are 0 or 1: the gate alone. A "
        "ReLU multiplies z by it.",
        "relu → abs": "You take absolute values. A ReLU makes the negative hidden numbers 0.",
        "(x @ w1 + b1).relu() → F.leaky_relu(x @ w1 + b1)": "Your ReLU is leaky: a hundredth of each negative number "
        "passes. Here they become 0.",
        "relu → sigmoid": "You use a sigmoid between the matrices. This layer has a ReLU there: max(0, z).",
    },
)
