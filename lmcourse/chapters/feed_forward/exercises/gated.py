"""The exercise on the gated feed-forward layers: GLU, bilinear, ReGLU, GEGLU, SwiGLU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": F.sigmoid,
    "bilinear": lambda z: z,
    "reglu": F.relu,
    "geglu": F.gelu,
    "swiglu": F.silu,
}


def _gate(z: Tensor, kind: str) -> Tensor:
    if kind not in GATES:
        raise ValueError(f"unknown kind {kind!r}; there are {', '.join(GATES)}")
    return GATES[kind](z)


def _glu_ffn(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    hidden = _gate(torch.einsum("...d,dn->...n", x, w_gate), kind) * torch.einsum("...d,dn->...n", x, w_value)
    return torch.einsum("...n,nd->...d", hidden, w_down)


def _layer(random: Random, d: int, n: int) -> list[Tensor]:
    return [normal(random, *shape) for shape in ((d, n), (d, n), (n, d))]


def _glu_cases(random: Random) -> list[Case]:
    d, n = random.randint(2, 5), random.randint(6, 9)
    cases = [case("every kind", normal(random, 4, d, scale=2.0), *_layer(random, d, n), kind) for kind in GATES]
    twice = [part.double() for part in [normal(random, 3, d, scale=2.0), *_layer(random, d, n)]]
    return [
        *cases,
        *(
            case("other shapes", normal(random, 2, 3, d, scale=2.0), *_layer(random, d, n), kind)
            for kind in ("glu", "geglu")
        ),
        case("other shapes", normal(random, d, scale=2.0), *_layer(random, d, d), "swiglu"),
        *(case("double precision", *twice, kind) for kind in ("geglu", "swiglu")),
        case("bad input", normal(random, 2, d, scale=2.0), *_layer(random, d, n), "siglu"),
    ]


_HAND = [
    torch.tensor([[1.0, -1.0], [0.0, 1.0]]),
    torch.tensor([[2.0, 1.0], [1.0, 3.0]]),
    torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
]
_FIXED = Random(11)
_X, _WEIGHTS = normal(_FIXED, 3, 4), _layer(_FIXED, 4, 6)

glu_ffn = Exercise(
    "glu_ffn",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_glu_ffn,
    cases=[
        case("ReGLU by hand", torch.tensor([[1.0, 2.0], [-1.0, 1.0]]), *_HAND, "reglu"),
        *(case(kind, _X, *_WEIGHTS, kind) for kind in GATES),
        case("a kind that is none", _X, *_WEIGHTS, "gelu"),
    ],
    hidden_cases=_glu_cases,
    hints=[
        "Two projections of the same x: z = x @ w_gate and v = x @ w_value. Only z passes the activation.",
        "The five activations are σ, none, ReLU, GELU and SiLU: a dict from kind to function keeps it short.",
        "(act(z) * v) @ w_down. A dict look-up raises KeyError: turn an unknown kind into a ValueError.",
    ],
    forbid=[".glu", "torch.nn.GLU", "numpy"],
)


@glu_ffn.misconception("The activation is on the wrong branch: it belongs to x·W_gate, and x·W_value stays linear.")
def branches_swapped(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return _glu_ffn(x, w_value, w_gate, w_down, kind)


@glu_ffn.misconception("Both branches pass the activation. One of them stays linear: it carries the value.")
def both_activated(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return (_gate(x @ w_gate, kind) * _gate(x @ w_value, kind)) @ w_down


@glu_ffn.misconception("You add the two branches. A gate multiplies, number by number.")
def added(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return (_gate(x @ w_gate, kind) + x @ w_value) @ w_down


@glu_ffn.misconception("You multiply first and activate the product. The activation acts on the gate alone.")
def activated_product(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return _gate((x @ w_gate) * (x @ w_value), kind) @ w_down


@glu_ffn.misconception("Your SwiGLU is the GLU: its gate is σ(z), and Swish is z·σ(z).")
def swish_without_z(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return _glu_ffn(x, w_gate, w_value, w_down, "glu" if kind == "swiglu" else kind)


@glu_ffn.misconception("Your ReGLU is gated by 1[z > 0]. ReLU is z·1[z > 0]: the factor z is missing.")
def step_gate(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    z = x @ w_gate
    gate = (z > 0).to(x.dtype) if kind == "reglu" else _gate(z, kind)
    return (gate * (x @ w_value)) @ w_down


@glu_ffn.misconception("Your GEGLU has the tanh approximation inside. The exact GELU is asked for.")
def approximate_geglu(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    z = x @ w_gate
    gate = F.gelu(z, approximate="tanh") if kind == "geglu" else _gate(z, kind)
    return (gate * (x @ w_value)) @ w_down


@glu_ffn.misconception("A kind that does not exist should raise ValueError; yours computes something for it.")
def unknown_kind_accepted(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str) -> Tensor:
    return _glu_ffn(x, w_gate, w_value, w_down, kind if kind in GATES else "bilinear")
