"""The modules whose activations the exercise on hooks measures."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script

CALL = "measured_activations(block, x)"
CALL_WITH_GRADIENT = "measured_activations(block, x.clone().requires_grad_())"
BRANCH = """\
import functools
import torch
from torch import nn
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = {inside}
    def forward(self, x):
        return {result}
block = Branch()
"""


def layers(name: str, layers: str, x: Tensor) -> Case:
    return script(name, f"from torch import nn\nblock = nn.Sequential({layers})\n{CALL}", x=x)


def branch(name: str, inside: str, result: str, x: Tensor, call: str = CALL) -> Case:
    return script(name, BRANCH.format(inside=inside, result=result) + call, x=x)


X = torch.arange(24.0).view(2, 3, 4)

_FIXED = [
    branch("parts of parameters", "nn.Linear(4, 4)", "self.inside(x) * self.inside.weight.detach()[1]", X),
    branch(
        "copies of parameters",
        "nn.Linear(4, 4)",
        "nn.functional.linear(x.bfloat16(), self.inside.weight.bfloat16())",
        X,
        CALL_WITH_GRADIENT,
    ),
    layers("an input that wants a gradient", "nn.Tanh()", X[:1, 0, 1].clone().requires_grad_()),
    branch("an input that wants a gradient", "nn.LayerNorm(4)", "self.inside(x)", X, CALL_WITH_GRADIENT),
    branch("modules in modules", "nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.GELU()))", "self.inside(x)", X),
    branch(
        "buffers",
        'self.register_buffer("table", torch.ones(2, 4)[1], persistent=False)',
        "x.exp() * self.table",
        X,
        CALL_WITH_GRADIENT,
    ),
    branch("indices", "nn.Embedding(24, 5)", "self.inside(x.long())", X),
    branch(
        "views",
        "nn.Linear(4, 2)",
        "(lambda y: torch.view_as_complex(y).square().real + y.square().sum(-1))(self.inside(x))",
        X,
    ),
    branch("views", "nn.Linear(4, 8)", "(lambda y: y[..., :4] * y[..., 4:].detach())(self.inside(x))", X),
    branch("views", "nn.Linear(4, 1)", "self.inside(x).expand(2, 3, 100).square()", X),
]


def hidden_cases(random: Random) -> list[Case]:
    B, S, D = random.randint(2, 5), random.choice([2, 3, 4, 6, 8, 9]), random.choice([7, 11, 13])
    x, wide = torch.ones(B, S, D), torch.ones(B, S, D, dtype=torch.float64)
    linear = f"nn.Linear({D}, {D})"
    return [
        *_FIXED,
        layers("other sizes", f"nn.LayerNorm({D}), nn.Linear({D}, {2 * D}), nn.Tanh(), nn.Linear({2 * D}, {D})", x),
        branch("other sizes", linear, "x + self.inside(x).softmax(dim=-1)", x),
        branch("other precisions", f"{linear}.double()", "self.inside(x).exp() * x", wide),
        branch("other precisions", linear, "self.inside(x).bfloat16().exp().float()", x),
        branch("views", f"nn.Linear({D}, {2 * D})", f"self.inside(x)[..., :{D}].exp()", x),
        branch("masks", linear, "self.inside(x) * (x > 0)", x),
        branch("nothing to keep", linear, "x + x", x),
        layers("buffers", f"nn.Linear({S}, 3), nn.BatchNorm1d({D})", x.mT.contiguous()),
    ]
