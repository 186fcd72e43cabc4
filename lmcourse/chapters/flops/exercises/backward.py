"""The exercise on the FLOPs of a backward pass."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np

from lmcourse.chapters.flops.counted import counted_backward
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


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
    minutes=6,
    difficulty=2,
    reference=counted_backward,
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


@backward_flops.variant
def of_weights_and_of_inputs(batch: int, widths: list[int], input_grad: bool = False) -> int:
    products = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    of_weights = sum(products)
    of_inputs = sum(products if input_grad else products[1:])
    return of_weights + of_inputs


backward_flops.slips(
    of_weights_and_of_inputs,
    {
        " if input_grad else products[1:] → ": "You always count two gradients per layer, 4 FLOPs per weight and row. "
        "The input of the first layer needs one only with input_grad.",
        " + of_inputs → ": "You count one gradient per layer, so the backward pass costs as much as the forward pass. "
        "Every layer after the first also needs the gradient of its input.",
        "products[1:] → []": "Without input_grad you leave out dx in every layer. Only the first layer's is left out: "
        "the others pass theirs on.",
        "products if input_grad else products[1:] → products[1:]": "You never count the gradient of the first layer's "
        "input. With input_grad it is computed, too.",
        "products[1:] → products[-1:]": "You count dx at the last layer alone. Every layer but the first passes one "
        "on.",
        "of_inputs\n → of_inputs + batch * sum(widths[1:])\n": "You count a bias, too. There are only weights here.",
        "of_inputs\n → of_inputs + 2 * batch * widths[-1]\n": "You count the loss as a product. It is none.",
        "[1:] → [:-1]": "You leave out a gradient at the last layer. It is the first layer whose input needs no "
        "gradient.",
        "products if input_grad else products[1:] → products[:1] if input_grad else []": "You count one gradient per "
        "layer, and one more for the input. Every layer after the first has two: for its weights and for its input.",
        "if input_grad → if not input_grad": "You inverted input_grad. The first layer's dx is left out if it is "
        "False.",
        "products if input_grad else products[1:] → products + products[:1] if input_grad else products": "You add "
        "the gradient of the input to 4 FLOPs per weight and row. They contain it: subtract it without input_grad.",
        "of_weights + of_inputs → of_inputs": "You count the gradients of the inputs alone. The weights of each layer "
        "need one, too.",
        "2 * batch → 2": "You count one row. A batch has `batch` of them.",
        "of_weights + of_inputs → sum(products) + of_weights + of_inputs": "You count forward and backward. Count "
        "only the backward pass.",
        "of_weights + of_inputs → 5 * sum(products) // 2": "You count 5 FLOPs per weight and row. The first factor, "
        "gradient times φ', is element-wise, with one entry per output: it is not a matrix product.",
        "2 * batch → batch": "You count a multiplication and its addition as one FLOP.",
        "products = [ → inputs, hidden, outputs = widths\n    products = [": "Your code expects exactly three widths. "
        "A chain may have any number of layers.",
        "of_weights = sum(products) → of_weights = sum(products if input_grad else products[1:])": "Without "
        "input_grad you leave out the first layer altogether. Only its dx is not needed: its weights are trained.",
        "of_weights = sum(products) → of_weights = sum(products[1:])": "You leave out the gradient of the first "
        "layer's weights. They are trained, too.",
        "2 * batch → 4 * batch": "You count twice as much for each gradient as it takes. Both dw and dx are one "
        "product, 2 FLOPs for each weight and row.",
        "pairwise(widths)] → pairwise(widths[1:])]": "You leave out the first layer and its weights, too. They are "
        "trained: only the gradient of its input may be left out.",
        "pairwise(widths)] → pairwise(widths[1:])] ;; products if input_grad else products[1:] → products": "You leave "
        "out the first layer altogether. Its weights are trained, and with input_grad its dx is computed, too.",
        "pairwise(widths)] → [*pairwise(widths)][:-1]]": "You leave out the last layer.",
        "of_weights + of_inputs → of_weights + of_inputs + products[0] * input_grad": "With input_grad you count dx "
        "of the first layer twice.",
        "of_weights + of_inputs → of_weights + sum(products[1:]) + 2 * batch * widths[0] * input_grad": "With "
        "input_grad you add two FLOPs for each number of the input. Its gradient is a product with all weights of the "
        "first layer.",
        "of_weights + of_inputs → of_weights + sum(products[1:]) + batch * widths[0] * input_grad": "With input_grad "
        "you add one FLOP for each number of the input. Its gradient is a product with all weights of the first layer.",
        "products[1:] → products[2:]": "Without input_grad you leave out dx of the first two layers. The second "
        "layer's dx carries the gradient to the first layer's weights.",
        "of_weights + of_inputs → 2 * of_weights - (0 if input_grad else 2 * batch * widths[0])": "Without input_grad "
        "you subtract two FLOPs for each number of the input. Its gradient is a product with all weights of the first "
        "layer.",
        "of_weights + of_inputs → 2 * of_weights - (0 if input_grad else batch * widths[0])": "Without input_grad you "
        "subtract one FLOP for each number of the input. Its gradient is a product with all weights of the first "
        "layer.",
        "of_weights + of_inputs → of_weights + of_inputs // batch": "You count the gradients of the inputs for one "
        "row. A batch has `batch` of them.",
        "of_weights + of_inputs → of_weights // batch + of_inputs": "You count the gradients of the weights for one "
        "row. They are sums over all rows of the batch.",
    },
)


@backward_flops.variant
def dot_product_of_widths(batch: int, widths: list[int], input_grad: bool = False) -> float:
    sizes = np.array(widths, dtype=np.float64)
    twice_forward = 4.0 * batch * float(sizes[:-1] @ sizes[1:])
    return twice_forward if input_grad else twice_forward - 2.0 * batch * widths[0] * widths[1]
