"""The exercise on the FLOPs of a product of two matrices."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.chapters.flops.exercises.counted import product
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _matmul_cases(random: Random) -> list[Case]:
    def size() -> int:
        return random.randint(2, 9999)

    return [
        case("a single number", 1, 1, 1),
        case("a single row", 1, 7, 3),
        case("a single column", 3, 7, 1),
        case("an outer product", 3, 1, 7),
        *(case("other sizes", size(), size(), size()) for _ in range(4)),
        case("a single row", 1, size(), size()),
        case("a single column", size(), size(), 1),
        case("a dot product", 1, size(), 1),
    ]


matmul_flops = Exercise(
    "matmul_flops",
    points=1,
    minutes=3,
    difficulty=1,
    reference=lambda m, k, n: product((m, k), (k, n)),
    tolerance=Tolerance(1e-13),  # floats are fine, and one product is larger than 2^53
    cases=[
        case("2 × 3 times 3 × 4", 2, 3, 4),
        case("a vector times a matrix", 1, 4096, 1024),
        case("a large product", 16_384, 32_768, 8192),
        case("a very large product", 300_001, 300_003, 300_007),
    ],
    hidden_cases=_matmul_cases,
    hints=[
        "How many numbers does the result have, and how many FLOPs does each take?",
        "One entry is a dot product of k numbers: k multiplications and, by convention, k additions.",
    ],
    forbid=NO_COUNTER,
)


@matmul_flops.variant
def results_times_each(m: int, k: int, n: int) -> int:
    results = m * n
    each = 2 * k
    return results * each


matmul_flops.slips(
    results_times_each,
    {
        "2 * k → k": "You count a multiplication and the addition that goes with it as one. Hardware makers and torch "
        "count two.",
        "2 * k → 2 * k - 1": "You count k − 1 additions for k products, which is exact. The convention is 2·k: the "
        "first product is added to zero, as in the loop.",
        "2 * k → 2": "You count 2 FLOPs per number of the result. Each of them is a sum of k products.",
        "m * n → m": "You count one column of the result. It has n of them.",
        "m * n → m + n": "You add up the sizes of the matrices. Every row of the first meets every column.",
        "2 * k → 2 * k * k": "You multiply the sizes of the two matrices, and so k twice: the sum over k is one sum.",
    },
)


@matmul_flops.variant
def exactly(m: int, k: int, n: int) -> Fraction:
    return Fraction(m * n) / Fraction(1, k) * 2
