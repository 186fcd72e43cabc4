"""The exercise on SiLU, also called Swish, where an exponential can overflow silently."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.feed_forward.exercises.activations import FIVE_INPUTS
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _silu(x: Tensor, beta: float = 1.0) -> Tensor:
    return x.double().mul(torch.special.expit(beta * x.double())).to(x.dtype)


GRADIENT = "x = x.requires_grad_()\nsilu(x).sum().backward()\nx.grad"
ROUNDED = "silu(x).float()\nsilu(y).float()"
"""An expression with the result in fp32: the tolerance of fp16 would hide an answer that rounds twice."""
_FINE, _TAIL = torch.tensor([-2.47, -1.54, -0.76, 0.32, 1.19, 1.92]), torch.tensor([-7.5, -5.25, -3.3, 1.5])
VANISHED = "silu(x).abs() < 1e-9"


def _silu_cases(random: Random) -> list[Case]:
    return [
        case("other β", FIVE_INPUTS, beta=0.0),
        case("other β", FIVE_INPUTS, beta=-1.0),
        case("other shapes", torch.tensor(-1.25)),
        case("other shapes", torch.zeros(0, 2)),
        case("other precisions", 3 * FIVE_INPUTS.double(), beta=0.5),
        edge(case("other precisions", torch.tensor([-14.0, -11.1, -9.0, 60000.0]).half(), beta=1.5)),
        edge(case("other precisions", torch.tensor([-95.0, -3.3, 0.3, 7.0]).bfloat16())),
        script("the gradient, far from zero", GRADIENT, x=torch.tensor([-1e30, -1e4, -89.0, 89.0, 1e4, 1e30])),
        script("the gradient, far from zero", GRADIENT, x=torch.tensor([-800.0, 800.0], dtype=torch.float64)),
        script("the gradient in half precision", GRADIENT, x=torch.tensor([-12.0, -1.0, 20.0]).half()),
        case("other shapes", normal(random, 3, 4, scale=2.0)),
        case("other shapes", normal(random, 2, 1, 5, scale=2.0), beta=1.702),
        case("other β", normal(random, 9, scale=2.0), beta=random.uniform(0.3, 4.0)),
        case("far from zero", 1000 + 1e4 * normal(random, 9).abs()),
    ]


silu = Exercise(
    "silu",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_silu,
    differentiable=True,
    cases=[
        case("five numbers", FIVE_INPUTS),
        case("β = 2", FIVE_INPUTS, beta=2.0),
        case("β = ¼", FIVE_INPUTS, beta=0.25),
        case("far from zero", torch.tensor([-1e6, -100.0, 100.0, 1e6])),
        case("double precision", FIVE_INPUTS.double()),
        script("in fp64, very far out: is it 0?", VANISHED, x=torch.tensor([-1e40, -2000.0], dtype=torch.float64)),
        case("half precision", torch.tensor([-12.0, -11.5, -11.0, 2.0], dtype=torch.float16)),
        edge(script("in fp16 and in bf16: every number", ROUNDED, x=_FINE.half(), y=_TAIL.bfloat16())),
        script("its gradient at −100", GRADIENT, x=torch.tensor([-100.0])),
        script("its gradient at −1000, in fp64", GRADIENT, x=torch.tensor([-1000.0], dtype=torch.float64)),
        script("its gradient at −2, 0 and 100", GRADIENT, x=torch.tensor([-2.0, 0.0, 100.0])),
    ],
    hidden_cases=_silu_cases,
    hints=[
        "σ(z) = 1 / (1 + e^−z). For which z does e^−z overflow, and what happens to the gradient there?",
        "There is another way to write the same sigmoid: σ(z) = (1 + tanh(z / 2)) / 2. tanh never overflows.",
        "β goes inside the sigmoid only. Compute in fp32 (x.float()) if x has 16 bits, and cast at the end.",
    ],
    forbid=[".silu", ".sigmoid", ".sigmoid_", ".logsigmoid", ".expit", ".glu"],
)


@silu.variant
def by_tanh(x: Tensor, beta: float = 1.0) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    gate = (1 + (beta * wide / 2).tanh()) / 2
    return (wide * gate).to(x.dtype)


silu.slips(
    by_tanh,
    {
        "wide / 2 → wide": "Your gate is σ(2βx). The tanh form halves what is inside: σ(z) = (1 + tanh(z/2)) / 2.",
        "1 + → ": "The 1 is missing: tanh goes from −1 to 1, and (1 + tanh(z/2)) / 2 from 0 to 1.",
        "beta * → ": "β is not used: the gate is σ(βx).",
        "wide * gate → beta * wide * gate": "You multiply by βx. β belongs to the gate alone: x·σ(βx).",
        "wide * gate → gate": "That is σ(βx), the gate alone. SiLU multiplies x by it.",
        "beta * → -beta *": "Your gate closes where it should open: it is σ(−βx). Check the sign in the exponent.",
        "(1 + (beta * wide / 2).tanh()) / 2 → (beta * wide).exp() / (1 + (beta * wide).exp())": "You compute e^z / (1 "
        "+ e^z), which is ∞/∞ for large z, and so NaN. σ(z) = (1 + tanh(z/2)) / 2 is safe everywhere, in the backward "
        "pass as well.",
        "(1 + (beta * wide / 2).tanh()) / 2 → 1 / (1 + (-beta * wide).exp())": "The values are right, but the gradient "
        "is NaN where e^(−βx) overflows: 0 · ∞ in the backward pass. σ(z) = (1 + tanh(z/2)) / 2 is safe everywhere.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.double() ;; "
        "(1 + (beta * wide / 2).tanh()) / 2 → 1 / (1 + (-beta * wide).exp())": "The values are right. But in float64 "
        "e^−z overflows, too, only later: beyond 709 the gradient is NaN.",
        "(1 + (beta * wide / 2).tanh()) / 2 → 1 / (1 + (-beta * wide).clamp(max=80).exp())": "You limit the exponent, "
        "so your gate never falls below a certain number, and x times it grows far out. The true value goes to 0.",
        "(1 + (beta * wide / 2).tanh()) / 2 → 1 / (1 + (-beta * x).clamp(max=50).exp()).to(wide.dtype)": "You limit "
        "the exponent, which keeps the gate from falling to 0, and compute it in the input's 16 bits. Use (1 + "
        "tanh(z/2)) / 2 in fp32.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() if x.dtype == torch.float16 else x": "You "
        "convert float16 only. bfloat16 has still fewer digits: compute it in float32, too.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() if x.dtype == torch.bfloat16 else x": "You "
        "convert bfloat16 only. Compute float16 in float32, too.",
        "(beta * wide / 2).tanh() → beta * (wide / 2).tanh()": "You multiply the tanh by β. β belongs inside: "
        "tanh(βx/2).",
        "beta * wide / 2 → wide / beta / 2": "You divide by β. The gate is σ(βx): a larger β opens it faster.",
        "(wide * gate) → (wide * gate.detach())": "The values are right, but the gate is detached, so half of the "
        "gradient is missing. The slope is σ + βx·σ·(1 − σ).",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.double() ;; (1 + (beta * wide / 2).tanh()) / 2 → "
        "(beta * wide).exp() / (1 + (beta * wide).exp())": "You compute e^z / (1 + e^z) in float64: that is ∞/∞ beyond "
        "z = 709. σ(z) = (1 + tanh(z/2)) / 2 is safe everywhere.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float()": "You always compute in float32, which loses "
        "half the digits of float64. Convert only 16-bit inputs to float32.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; wide * gate → x / (1 + (-beta * x).exp())": "You "
        "compute in the input's 16 bits: e^12 overflows in fp16, and the result becomes 0. Compute in fp32, then cast.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x": "You compute in the input's 16 bits: there tanh(−6) "
        "is exactly −1, and the result becomes 0. Compute in fp32, then cast.",
        "(wide * gate).to(x.dtype) → wide * gate": "For 16-bit inputs, your result is in float32. Cast it back to the "
        "input's dtype: `.to(x.dtype)`.",
        "(wide * gate).to(x.dtype) → x * gate.to(x.dtype)": "You round the gate to 16 bits before you multiply. "
        "Multiply in fp32, and round the product.",
        "gate = (1 + (beta * wide / 2).tanh()) / 2 → z = beta * wide\n    gate = torch.where(z > 0, 1 / (1 + "
        "(-z).exp()), z.exp() / (1 + z.exp()))": "The values are right, but the gradient is NaN. torch.where computes "
        "both of its branches, and the one that is not chosen overflows: 0 · ∞ in the backward pass. Use one formula "
        "that is safe everywhere, such as (1 + tanh(z/2)) / 2.",
        "(1 + (beta * wide / 2).tanh()) / 2 → (beta * wide / 2).tanh()": "Your gate is tanh(βx/2), which goes from −1 "
        "to 1. A sigmoid goes from 0 to 1: add 1, then halve.",
        "tanh()) / 2 → tanh())": "Your gate is 1 + tanh(βx/2), which goes from 0 to 2. Halve it.",
        "(1 + (beta * wide / 2).tanh()) / 2 → 1 + (beta * wide / 2).tanh() / 2": "Your gate is 1 + tanh(βx/2)/2, which "
        "goes from ½ to 3/2. Halve the 1 as well.",
    },
)


@silu.variant
def by_the_size_of_z(x: Tensor, beta: float = 1.0) -> Tensor:
    wide = x.double()
    small = (-(beta * wide).abs()).exp()
    return (wide * torch.where(beta * wide > 0, 1.0, small) / (1 + small)).to(x.dtype)
