"""The exercise on the gated feed-forward layers: GLU, bilinear, ReGLU, GEGLU, SwiGLU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": F.sigmoid,
    "bilinear": lambda z: z,
    "reglu": F.relu,
    "geglu": F.gelu,
    "swiglu": F.silu,
}


def _glu_ffn(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str, change: Any = None) -> Tensor:
    if kind not in GATES:
        raise ValueError(f"unknown kind {kind!r}; there are {', '.join(GATES)}")
    wide, *weights = (part.double() for part in (x, w_gate, w_value, w_down))
    gate, value = (torch.einsum("...d,dn->...n", wide, weight) for weight in weights[:2])
    hidden = (change or torch.positive)(GATES[kind](gate) * value)
    return torch.einsum("...n,nd->...d", hidden, weights[2]).to(x.dtype)


def _ask(name: str, random: Random, *shape: int, n: int, kind: str) -> Case:
    """A case in double precision, where the order of the sums does not matter."""
    d = shape[-1]
    return case(name, *(normal64(random, *of) for of in (shape, (d, n), (d, n), (n, d))), kind)


def _changed(name: str, random: Random, *shape: int, n: int, kind: str) -> Case:
    """A case with a change that is not linear, so that the place of the change shows."""
    names = ("x", "w_gate", "w_value", "w_down")
    lines = f"glu_ffn(x, w_gate, w_value, w_down, {kind!r}, lambda hidden: hidden.clamp(max=0.1))"
    return script(name, lines, **dict(zip(names, _ask(name, random, *shape, n=n, kind=kind).args, strict=False)))


def _glu_cases(random: Random) -> list[Case]:
    d, n, fixed = random.randint(2, 5), random.randint(6, 9), Random(2)
    cases = [_ask("every kind", random, 4, d, n=n, kind=kind) for kind in GATES]
    large = [10 * part for part in _ask("", fixed, 3, 3, n=4, kind="").args[:4]]
    single = [part.float() for part in _ask("", fixed, 2, 3, n=3, kind="").args[:4]]
    return [
        _ask("other shapes", fixed, 3, n=3, kind="swiglu"),
        _ask("other shapes", fixed, 2, 3, 4, n=2, kind="geglu"),
        _ask("other shapes", fixed, 0, 2, n=3, kind="glu"),
        *(case("far from zero", *large, kind) for kind in GATES),
        *(case("single precision", *single, kind) for kind in GATES),
        _changed("a change", random, 2, d, n=n, kind="swiglu"),
        *(_ask("bad input", fixed, 2, 3, n=4, kind=kind) for kind in ("siglu", "lu", "", "SwiGLU", "glu2")),
        *cases,
    ]


_HAND = [
    torch.tensor([[1.0, -1.0], [0.0, 1.0]]),
    torch.tensor([[2.0, 1.0], [1.0, 3.0]]),
    torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
]

glu_ffn = Exercise(
    "glu_ffn",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_glu_ffn,
    differentiable=True,
    cases=[
        case("ReGLU by hand", torch.tensor([[1.0, 2.0], [-1.0, 1.0]]), *_HAND, "reglu"),
        *(_ask(kind, Random(11), 3, 4, n=6, kind=kind) for kind in GATES),
        _ask("two texts", Random(12), 2, 3, 4, n=6, kind="swiglu"),
        _changed("a change: no hidden number above 0.1", Random(11), 3, 4, n=6, kind="geglu"),
        _ask("a kind that is none", Random(11), 3, 4, n=6, kind="gelu"),
        _ask("a kind in capitals", Random(11), 3, 4, n=6, kind="GLU"),
    ],
    hidden_cases=_glu_cases,
    hints=[
        "Two projections of the same x: z = x @ w_gate and v = x @ w_value. Only z goes through the activation.",
        "The five activations are σ, none, ReLU, GELU and SiLU: a dict from kind to function keeps it short.",
        "hidden = act(z) * v, then `change`, if it is given, then @ w_down. A dict look-up raises KeyError: turn an "
        "unknown kind into a ValueError.",
    ],
    forbid=[".glu"],
)


@glu_ffn.variant
def with_a_dict(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str, change: Any = None) -> Tensor:
    acts = {"glu": nn.Sigmoid(), "bilinear": nn.Identity(), "reglu": nn.ReLU(), "geglu": nn.GELU(), "swiglu": nn.SiLU()}
    if kind not in acts:
        raise ValueError(f"unknown kind {kind!r}; there are {', '.join(acts)}")
    gate: Tensor = acts[kind](x @ w_gate)
    value = x @ w_value
    hidden = gate * value
    if change is not None:
        hidden = change(hidden)
    return hidden @ w_down


glu_ffn.slips(
    with_a_dict,
    {
        "x @ w_gate → x @ w_value ;; x @ w_value → x @ w_gate": "The activation is on the wrong branch: it belongs to "
        "x·W_gate, and x·W_value stays linear.",
        "value = x @ w_value → value = acts[kind](x @ w_value)": "You activate both branches. The value branch stays "
        "linear.",
        "gate * value → gate + value": "You add the two branches. A gate multiplies, number by number.",
        "acts[kind](x @ w_gate) → x @ w_gate ;; gate * value → acts[kind](gate * value)": "You multiply first and "
        "activate the product. The activation acts on the gate alone.",
        "nn.SiLU() → nn.Sigmoid()": "Your SwiGLU is the GLU: its gate is σ(z), and Swish is z·σ(z).",
        "nn.ReLU() → lambda z: (z > 0).to(z.dtype)": "Your ReGLU is gated by 1[z > 0]. ReLU is z·1[z > 0]: the factor "
        "z is missing.",
        'nn.GELU() → nn.GELU("tanh")': "Your GEGLU uses the tanh approximation. Use the exact GELU.",
        'raise ValueError(f"unknown kind {kind!r}; there are {\', \'.join(acts)}") → kind = "bilinear"': "A kind "
        "that does not exist should raise ValueError; yours computes something for it.",
        "nn.Identity() → torch.ones_like": "Your bilinear layer has no gate: it returns the values. Its gate is z "
        "itself, not 1.",
        "nn.Sigmoid() → nn.SiLU()": "Your GLU uses SiLU as its gate. The original gate is the sigmoid, σ(z) without "
        "the factor z.",
        'gate * value → gate if kind == "bilinear" else gate * value': "Your bilinear layer leaves out the values. It "
        "multiplies gate and value, too, only without an activation.",
        "acts[kind](x @ w_gate) → (x @ w_gate) * acts[kind](x @ w_gate)": "You multiply the activation by z once more. "
        "The gate is f(z): ReLU, GELU and SiLU have their factor z inside.",
        "nn.Identity() → torch.ones_like ;; nn.ReLU() → lambda z: (z > 0).to(z.dtype) ;; nn.GELU() → "
        "torch.special.ndtr ;; nn.SiLU() → nn.Sigmoid()": "Your gates are 1, 1[z > 0], Φ(z) and σ(z). ReLU, GELU and "
        "SiLU are z times these, and the bilinear gate is z.",
        "return hidden @ w_down → return hidden": "You leave out w_down. The product of gate and value goes down to "
        "the width of x again.",
        "gate * value → gate.detach() * value": "The values are right, but the gate is detached: W_gate gets no "
        "gradient and never learns.",
        "    if change is not None:\n        hidden = change(hidden)\n → ": "`change` has no effect: it is not called, "
        "or what it returns is dropped. It gets the hidden numbers, and its result goes down.",
        "hidden = change(hidden)\n    return hidden @ w_down → return change(hidden @ w_down)\n    return hidden @ "
        "w_down": "You change the layer's result. `change` gets the hidden numbers, before the way down.",
        "hidden = change(hidden) → hidden = gate * change(value)": "You change the values alone. The hidden numbers "
        "are the products of gate and value.",
        "hidden = change(hidden) → hidden = acts[kind](change(x @ w_gate)) * value": "You change the gate's input. The "
        "hidden numbers are the products of gate and value.",
        "hidden = change(hidden) → hidden = change(gate) * value": "You change the gate alone. The hidden numbers are "
        "the products of gate and value.",
    },
)
