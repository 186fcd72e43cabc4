"""The exercise on folding a norm's scale and shift into the matrix that reads it."""

from __future__ import annotations

from random import Random

import einops
import numpy as np
import torch
from torch import Tensor

from lmcourse.chapters.normalization_and_blocks.exercises.inputs import scales
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal

Layer = tuple[Tensor, Tensor]


def _by_evaluation(scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None) -> Layer:
    """Find the linear map of norm parameters and layer together, from its values at 0 and at every unit vector."""
    d = weight.shape[1]
    points = torch.cat([torch.zeros(1, d), torch.eye(d)]).double()
    outputs = torch.nn.functional.linear(
        points * scale.double() + shift.double(), weight.double(), None if bias is None else bias.double()
    )
    return (outputs[1:] - outputs[0]).T.contiguous().to(weight.dtype), outputs[0].to(weight.dtype)


def _ask(name: str, random: Random, n: int, d: int, dtype: torch.dtype = torch.float32) -> Case:
    return case(
        name,
        scales(random, d, dtype),
        normal(random, d, dtype=dtype),
        integers(random, n, d, low=-3, high=3, dtype=dtype),
        normal(random, n, dtype=dtype),
    )


def _t(*numbers: float) -> Tensor:
    return torch.tensor(numbers)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("a square matrix", fixed, 3, 3),
        _ask("more outputs than inputs", fixed, 5, 2),
        _ask("fewer outputs than inputs", fixed, 2, 5),
        _ask("double precision", fixed, 3, 4, torch.float64),
        case("negative scales", _t(-2.0, 0.5), _t(1.0, -1.0), torch.tensor([[1.0, 2.0], [3.0, -4.0]]), _t(0.0, 1.0)),
        case("a scale of zero", _t(0.0, 2.0), _t(3.0, 1.0), torch.tensor([[1.0, 2.0], [5.0, 4.0]]), _t(1.0, -1.0)),
        case("no bias", _t(2.0, 3.0, 0.5), _t(1.0, 0.0, -2.0), torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]]), None),
        case("no bias", scales(fixed, 3).double(), normal(fixed, 3).double(), torch.eye(3).double(), None),
        _ask("other shapes", random, random.randint(2, 6), random.randint(2, 6)),
        _ask("other shapes", random, random.randint(2, 6), random.randint(7, 9)),
    ]


fold_norm = Exercise(
    "fold_norm",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_by_evaluation,
    cases=[
        case("one number", _t(2.0), _t(3.0), torch.tensor([[5.0]]), _t(1.0)),
        case("only scales", _t(2.0, 10.0), _t(0.0, 0.0), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), _t(5.0, 6.0)),
        case("only shifts", _t(1.0, 1.0), _t(1.0, 10.0), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), _t(5.0, 6.0)),
        case("two inputs, three outputs", _t(2.0, 0.5), _t(1.0, -4.0), torch.arange(6.0).view(3, 2), _t(1.0, 0.0, 7.0)),
        case("a layer without a bias", _t(2.0, 0.5), _t(3.0, -1.0), torch.arange(6.0).view(3, 2), None),
        edge(case("no bias, in fp64", *(each.double() for each in (_t(2.0), _t(3.0), torch.ones(2, 1))), None)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write it out for one output: y = Σ w_i (scale_i · x_i + shift_i) + bias. Separate the terms with x_i from the "
        "others.",
        "w_i · scale_i multiplies x_i. So each *column* of the matrix is multiplied by its scale.",
        "The rest is Σ w_i · shift_i + bias: the old matrix times the shift, plus the old bias, if there was one.",
    ],
)


@fold_norm.variant
def number_by_number(scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    n, d = weight.shape
    new_weight, new_bias = torch.zeros_like(weight), torch.zeros(n, dtype=weight.dtype)
    for i in range(n):
        if bias is not None:
            new_bias[i] += bias[i]
        for j in range(d):
            new_weight[i, j] = weight[i, j] * scale[j]
            new_bias[i] += weight[i, j] * shift[j]
    return new_weight, new_bias


@fold_norm.variant
def with_einsum(scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    zero = torch.zeros(len(weight), dtype=weight.dtype)
    scaled = einops.einsum(weight, scale, "n d, d -> n d")
    return [scaled, einops.einsum(weight, shift, "n d, d -> n") + (zero if bias is None else bias)]


@fold_norm.variant
def with_numpy(scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    matrix = weight.numpy()
    offset = np.zeros(matrix.shape[0], matrix.dtype) if bias is None else bias.numpy()
    return torch.tensor(matrix * scale.numpy()[np.newaxis]), torch.tensor(matrix @ shift.numpy() + offset)


@fold_norm.variant
def matrix_and_bias(scale: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    moved = weight @ shift
    return weight * scale, moved if bias is None else bias + moved


fold_norm.slips(
    matrix_and_bias,
    {
        "weight * scale → weight * scale[:, None]": "You multiply rows by the scale. The scale belongs to the inputs "
        "of the matrix: its columns.",
        "weight @ shift → shift": "You add the shift itself to the bias. The layer reads the shift through its matrix: "
        "multiply.",
        "weight @ shift → (weight * scale) @ shift": "You multiply the shift by the *new* matrix, which scales it. The "
        "shift is added after the scale: use the old matrix.",
        "bias + → bias * scale[0] +": "You scale the layer's own bias. It is added after the matrix: leave it as it "
        "is.",
        "weight * scale → weight / scale": "You divide by the scale, which undoes it. It should move into the matrix.",
        "weight @ shift → torch.zeros_like(weight[:, 0]) ;; weight * scale → weight * scale + shift": "You add the "
        "shift to the matrix. It does not depend on x̂, so it belongs in the bias.",
        " if bias is None else bias + moved → ": "The layer's own bias is missing.",
        "weight @ shift → torch.zeros_like(weight[:, 0])": "The shift is missing. It changes the bias: the matrix "
        "times the shift is added to it.",
        "weight * scale → (weight * scale).T": "Your matrix is (in, out). Weights are (out, in) here, as in nn.Linear.",
        "moved if bias is None → None if bias is None": "You return None as the bias. The layer now needs a bias: the "
        "matrix times the shift.",
        "moved if bias is None → 0 * moved if bias is None": "Without an old bias, your new one is 0. The shift makes "
        "one: the matrix times the shift.",
    },
)
