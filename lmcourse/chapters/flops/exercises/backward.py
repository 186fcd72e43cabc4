"""The exercise on the FLOPs of a backward pass."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
from torch import Tensor

from lmcourse.accounting.counter import count_flops
from lmcourse.chapters.flops.exercises.counted import empty
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _backward(batch: int, widths: list[int], input_grad: bool = False) -> int:
    """Run autograd backwards through the layers; torch counts the FLOPs."""

    def run() -> Tensor:
        x = empty(batch, widths[0], trained=input_grad)
        for inputs, outputs in pairwise(widths):
            x = x @ empty(inputs, outputs, trained=True)
        return x

    return count_flops(run, backward=True)["backward"]


def _cases(random: Random) -> list[Case]:
    def widths(layers: int) -> list[int]:
        return sorted(random.sample(range(2, 501), layers + 1), reverse=True)

    batch = random.randint(2, 100)
    return [
        case("a batch of one", 1, [2, 3, 5, 7]),
        case("an input with a gradient", 3, [2, 3, 5, 7], input_grad=True),
        case("a single layer", 3, [1, 1]),
        case("other layers", 3, [7, 5, 5, 2, 3]),
        *(case("other layers", batch, widths(layers)) for layers in (2, 3, 6)),
        *(case("an input with a gradient", batch, widths(layers), input_grad=True) for layers in (2, 4)),
        case("a single layer", batch, widths(1)),
        case("a single layer", batch, widths(1), input_grad=True),
        case("a batch of one", 1, widths(3)),
    ]


backward_flops = Exercise(
    "backward_flops",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_backward,
    cases=[
        case("one layer", 4, [3, 5]),
        case("one layer, input with a gradient", 4, [3, 5], input_grad=True),
        case("two layers, 128 to 128 to 32", 64, [128, 128, 32]),
        case("the same, input with a gradient", 64, [128, 128, 32], input_grad=True),
        case("three layers", 8, [16, 64, 64, 10]),
    ],
    hidden_cases=_cases,
    hints=[
        "z = x·w has two gradients: dw = xᵀ·dz and dx = dz·wᵀ. What are the shapes of each product?",
        "Both take as many FLOPs as z = x·w itself. Which of them is never used?",
        "No parameters come before the first layer: without input_grad its dx is not computed.",
    ],
    forbid=NO_COUNTER,
)


def _products(batch: int, widths: list[int]) -> list[int]:
    return [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]


@backward_flops.misconception(
    "You always count two gradients per layer, 4 FLOPs per weight and row. The input of the first layer needs one only "
    "with input_grad."
)
def twice_the_forward(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return 2 * sum(_products(batch, widths))


@backward_flops.misconception(
    "You count one gradient per layer, so the backward pass costs as much as the forward pass. Every layer after the "
    "first also needs the gradient of its input."
)
def weights_only(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return sum(_products(batch, widths))


@backward_flops.misconception(
    "Without input_grad you leave out dx in every layer. Only the first layer's is left out: the others pass theirs on."
)
def no_gradient_passed_on(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return (2 if input_grad else 1) * sum(_products(batch, widths))


@backward_flops.misconception(
    "You never count the gradient of the first layer's input. With input_grad it is computed, too."
)
def input_never_counted(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return _backward(batch, widths)


@backward_flops.misconception(
    "You leave out a gradient at the last layer. It is the first layer whose input needs no gradient."
)
def last_for_first(batch: int, widths: list[int], input_grad: bool = False) -> int:
    products = _products(batch, widths)
    return 2 * sum(products) - (0 if input_grad else products[-1])


@backward_flops.misconception(
    "You count one gradient per layer, and one more for the input. Every layer after the first has two: for its "
    "weights and for its input."
)
def one_and_the_input(batch: int, widths: list[int], input_grad: bool = False) -> int:
    products = _products(batch, widths)
    return sum(products) + (products[0] if input_grad else 0)


@backward_flops.misconception("You inverted input_grad. The first layer's dx is left out if it is False.")
def input_grad_inverted(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return _backward(batch, widths, not input_grad)


@backward_flops.misconception(
    "You add the gradient of the input to 4 FLOPs per weight and row. They contain it: subtract it without input_grad."
)
def input_added(batch: int, widths: list[int], input_grad: bool = False) -> int:
    products = _products(batch, widths)
    return 2 * sum(products) + (products[0] if input_grad else 0)


@backward_flops.misconception("You count the gradients of the inputs alone. The weights of each layer need one, too.")
def inputs_only(batch: int, widths: list[int], input_grad: bool = False) -> int:
    products = _products(batch, widths)
    return sum(products if input_grad else products[1:])


@backward_flops.misconception("You count one row. A batch has `batch` of them.")
def one_row(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return _backward(1, widths, input_grad)


@backward_flops.misconception("You count forward and backward. Count only the backward pass.")
def forward_included(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return _backward(batch, widths, input_grad) + sum(_products(batch, widths))


@backward_flops.misconception(
    "You count 5 FLOPs per weight and row. The first factor, gradient times φ', is element-wise, with one entry per "
    "output: it is not a matrix product."
)
def five_per_weight(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return 5 * sum(_products(batch, widths)) // 2


@backward_flops.misconception("You count a multiplication and its addition as one FLOP.")
def multiply_adds(batch: int, widths: list[int], input_grad: bool = False) -> int:
    return _backward(batch, widths, input_grad) // 2


@backward_flops.misconception("Your code expects exactly three widths. A chain may have any number of layers.")
def two_layers_only(batch: int, widths: list[int], input_grad: bool = False) -> int:
    inputs, hidden, outputs = widths
    return 2 * batch * inputs * hidden * (1 + input_grad) + 4 * batch * hidden * outputs


@backward_flops.variant
def from_the_last_layer(batch: int, widths: list[int], input_grad: bool = False) -> int:
    total = 0
    for layer in reversed(range(1, len(widths))):
        one = 2 * batch * widths[layer - 1] * widths[layer]
        total += one
        if layer > 1 or input_grad:
            total += one
    return total


@backward_flops.variant
def first_layer_and_the_rest(batch: int, widths: list[int], input_grad: bool = False) -> int:
    first, second, *rest = widths
    if not rest:
        return (4 if input_grad else 2) * batch * first * second
    back = [first_layer_and_the_rest(batch, widths[:2], input_grad), first_layer_and_the_rest(batch, widths[1:], True)]
    return sum(back)


@backward_flops.variant
def dot_product_of_widths(batch: int, widths: list[int], input_grad: bool = False) -> float:
    sizes = np.array(widths, dtype=np.float64)
    twice_forward = 4.0 * batch * float(sizes[:-1] @ sizes[1:])
    return twice_forward if input_grad else twice_forward - 2.0 * batch * widths[0] * widths[1]
