"""The exercise on the noise of a minibatch gradient."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises.scripts import tensor
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _noise(gradients: Tensor, batch: int, replacement: bool) -> float:
    """Compute in exact fractions: ‖Σ g‖² over a batch is a sum of B squares and B (B − 1) products of two draws."""
    rows = [[Fraction(number) for number in row] for row in gradients.tolist()]
    n = len(rows)
    total = sum(sum(column) ** 2 for column in zip(*rows, strict=True))
    squares = sum(number**2 for row in rows for number in row)
    products = total / n**2 if replacement or n == 1 else (total - squares) / (n * (n - 1))
    return float((squares / n + (batch - 1) * products) / batch - total / n**2)


FOUR = tensor([2.0, 0.0], [0.0, 0.0], [0.0, 2.0], [0.0, -2.0])


def _hidden(random: Random) -> list[Case]:
    six = normal64(Random(7), 6, 3)
    cases = [
        case("a single example", tensor([3.0, -4.0]), 1, False),
        case("a single example", tensor([3.0, -4.0]), 2, True),
        case("two examples", tensor([1.0], [4.0]), 1, False),
        case("all of them", six, 6, False),
        case("all but one", six, 5, False),
        case("one of six", six, 1, True),
        case("one of six", six, 1, False),
        case("a batch larger than the data", tensor([1.0, 2.0], [-3.0, 5.0]), 5, True),
        case("a mean far from zero", 100.0 + six[:5], 2, True),
        case("a mean far from zero", 100.0 + six[:5], 3, False),
        case("a mean far from zero", 1e6 + six[:5], 2, True),
        case("all of them, with replacement", six[:5], 5, True),
        case("many examples", normal64(Random(9), 40, 2), 20, False),
        case("one number each", six[:, :1], 3, True),
    ]
    for n, d in ((3, 4), (5, 1), (5, 2)):
        gradients = normal64(random, n, d) + random.uniform(-2, 2)
        cases += [case("other gradients", gradients, 2, replacement) for replacement in (True, False)]
    return cases


gradient_noise = Exercise(
    "gradient_noise",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_noise,
    cases=[
        case("two that disagree, one drawn", tensor([1.0], [-1.0]), 1, True),
        case("three draws of four, with replacement", FOUR, 3, True),
        case("two of four, each at most once", FOUR, 2, False),
        case("all four, each once", FOUR, 4, False),
        case("four draws of four, with replacement", FOUR, 4, True),
        case("fifteen of thirty, each at most once", torch.arange(30.0, dtype=torch.float64)[:, None], 15, False),
        case("one of two", tensor([1.0], [4.0]), 1, False),
        case("nearly equal", tensor([1e8], [1e8 + 2.0]), 1, True),
        case("all agree", tensor([3.0, 1.0], [3.0, 1.0], [3.0, 1.0]), 2, True),
        edge(case("one example in all", tensor([5.0, 7.0]), 1, False)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with batches of one: the mean over all examples of ‖g − full gradient‖².",
        "With replacement, B draws are independent: the variance of their mean is the variance of one, divided by B.",
        "Without replacement there is another factor. It is 1 for B = 1 and 0 for B = n, and a straight line in "
        "between. Beware of n = 1.",
    ],
    forbid=["random", "numpy.random", "torch.randint", "torch.randperm", "torch.multinomial"],
    tolerance=Tolerance(1e-9, 1e-11),
    seconds=2.0,
)


gradient_noise.equivalent_mutant(
    "noise = (gradients - gradients.mean(dim=0)).square().sum(dim=1).mean().item() / batch → "
    "noise = (gradients.mean(dim=0) - gradients).square().sum(dim=1).mean().item() / batch",
    "A square does not see the sign.",
)


@gradient_noise.variant
def one_draw_first(gradients: Tensor, batch: int, replacement: bool) -> float:
    n = len(gradients)
    distances = gradients - gradients.mean(dim=0)
    one = distances.square().sum(dim=1).mean().item()
    correction = 1.0 if replacement or n == 1 else (n - batch) / (n - 1)
    return one / batch * correction


gradient_noise.slips(
    one_draw_first,
    {
        "one / batch → one": "You return the noise of one example. Averaging B of them divides it by B.",
        "one / batch → one / batch**2": "You divide by B². The spread falls with √B, its square with B.",
        "one / batch → one / math.sqrt(batch)": "You divide by √B. That is how the spread falls; the squared length "
        "falls with B.",
        "sum(dim=1).mean().item() → sum().item() / max(n - 1, 1)": "You divide by n − 1. These n gradients are the "
        "whole population: divide by n.",
        "1.0 if replacement or n == 1 else (n - batch) / (n - 1) → 1.0": "You draw with replacement in both cases. "
        "Without it a batch of all examples is exact.",
        "replacement or n == 1 → replacement ;; (n - 1) → n": "Your correction is (n − B)/n. Try B = 1, where no "
        "example can come twice.",
        "(n - batch) / (n - 1) → 1 - (batch - 1) / n": "Your correction is not 0 for a batch of all n examples. That "
        "batch has the full gradient, without noise.",
        "sum(dim=1).mean() → mean()": "You average over the coordinates. A squared length adds them up.",
        " - gradients.mean(dim=0) → ": "You forgot to subtract the full gradient: noise is how far a batch is from it.",
        "if replacement → if not replacement": "You inverted `replacement`: with `replacement=False` each example is "
        "drawn at most once.",
        "return one / batch * correction → from itertools import combinations, product\n    drawn = product(gradients, "
        "repeat=batch) if replacement else combinations(gradients, batch)\n    found = [(sum(each) / batch - "
        "gradients.mean(dim=0)).square().sum().item() for each in drawn]\n    return sum(found) / len(found)": "You go "
        "through all batches. Of 30 examples there are 155,117,520 batches of 15.",
        "1.0 if replacement → 0.0 if batch == n else 1.0 if replacement": "A batch as large as the data is exact only "
        "if no example comes twice. With replacement some may.",
        "distances.square().sum(dim=1).mean() → (gradients.square().mean(dim=0) - "
        "gradients.mean(dim=0).square()).sum()": "You subtract the square of the mean from the mean of the squares. If "
        "both are large and nearly equal, no correct digit is left: subtract the mean first.",
    },
)


@gradient_noise.variant
def in_plain_python(gradients: Tensor, batch: int, replacement: bool) -> float:
    columns = list(zip(*gradients.tolist(), strict=True))
    n = len(columns[0])
    means = [math.fsum(column) / n for column in columns]
    noise = sum(math.fsum((x - mean) ** 2 for x in column) for column, mean in zip(columns, means, strict=True)) / n
    left = n - batch if not replacement else n - 1
    return noise / batch * (left / (n - 1) if n > 1 else 1)


@gradient_noise.variant
def by_the_formula(gradients: Tensor, batch: int, replacement: bool) -> float:
    n = gradients.size(0)
    variance = gradients.var(dim=0, correction=0).sum().item()
    if n == 1:
        return 0.0
    return variance / batch if replacement else variance / batch * (n - batch) / (n - 1)
