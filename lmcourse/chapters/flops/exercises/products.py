"""Exercises on the FLOPs of a single product: of two matrices, and of any two tensors."""

from __future__ import annotations

import math
from random import Random

import einops

from lmcourse.accounting.counter import count_flops
from lmcourse.chapters.flops.exercises.counted import empty, product
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise

# matmul_flops ----------------------------------------------------------------------------------------------------


def _matmul_cases(random: Random) -> list[Case]:
    def size() -> int:
        return random.randint(2, 9999)

    return [
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
    tolerance=EXACT,
    cases=[
        case("2 × 3 times 3 × 4", 2, 3, 4),
        case("a vector times a matrix", 1, 4096, 1024),
        case("the product of the notes", 16_384, 32_768, 8192),
    ],
    hidden_cases=_matmul_cases,
    hints=[
        "How many numbers has the result, and what does each of them take?",
        "One entry is a dot product of k numbers: k multiplications and, by convention, k additions.",
    ],
    forbid=["torch.utils.flop_counter"],
)


@matmul_flops.misconception(
    "You count a multiplication and the addition that goes with it as one. Hardware makers and torch count two."
)
def multiply_adds(m: int, k: int, n: int) -> int:
    return m * k * n


@matmul_flops.misconception(
    "Exactly, k products need only k − 1 additions. The convention is 2·k: the first product is added to zero, as in "
    "the loop."
)
def one_addition_less(m: int, k: int, n: int) -> int:
    return m * (2 * k - 1) * n


@matmul_flops.misconception("That is two per number of the result: as if each took no more than one multiplication.")
def two_per_result(m: int, k: int, n: int) -> int:
    return 2 * m * n


@matmul_flops.misconception("You add up the sizes of the matrices. Every row of the first meets every column.")
def sizes_added(m: int, k: int, n: int) -> int:
    return 2 * (m * k + k * n)


@matmul_flops.misconception("You multiply the sizes of the two matrices, and so k twice: the sum over k is one sum.")
def inner_axis_twice(m: int, k: int, n: int) -> int:
    return 2 * m * k * k * n


# einsum_flops ----------------------------------------------------------------------------------------------------


def _einsum(pattern: str, first: list[int], second: list[int]) -> int:
    """Let torch do it. einops refuses sizes that do not fit in its own words."""
    try:
        return count_flops(lambda: einops.einsum(empty(*first), empty(*second), pattern)).total
    except (einops.EinopsError, RuntimeError, ValueError) as error:
        raise ValueError("the sizes do not fit the pattern") from error


def _einsum_cases(random: Random) -> list[Case]:
    a, b, c, d, e = (random.randint(2, 40) for _ in range(5))
    return [
        case("a matrix product", "a b, b c -> a c", [a, b], [b, c]),
        case("a matrix product", "b a, c b -> c a", [b, a], [c, b]),
        case("axes that stay on both sides", "a b c, a d c -> b a d", [a, b, c], [a, d, c]),
        case("several axes summed", "a b c, b c d -> a d", [a, b, c], [b, c, d]),
        case("several axes summed", "a b c, a b d -> d c", [a, b, c], [a, b, d]),
        case("everything summed", "a b, a b ->", [a, b], [a, b]),
        case("nothing summed", "a b, c -> a b c", [a, b], [c]),
        case("nothing summed", "a b, a b -> b a", [a, b], [a, b]),
        case("long names", "batch query width, batch key width -> batch query key", [a, b, e], [a, c, e]),
        case("bad input", "a b, b c -> a c", [a, b], [b + 1, c]),
    ]


einsum_flops = Exercise(
    "einsum_flops",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_einsum,
    tolerance=EXACT,
    cases=[
        case("a matrix product", "m k, k n -> m n", [2, 3], [3, 4]),
        case("a batch through a layer", "b s d, d f -> b s f", [2, 5, 8], [8, 32]),
        case("attention scores", "b h s d, b h t d -> b h s t", [2, 4, 5, 8], [2, 4, 6, 8]),
        case("heads joined again", "b h s d, h d f -> b s f", [2, 4, 5, 8], [4, 8, 32]),
        case("element by element", "b d, b d -> b d", [2, 8], [2, 8]),
        case("one axis, two sizes", "m k, k n -> m n", [2, 3], [5, 4]),
    ],
    hidden_cases=_einsum_cases,
    hints=[
        "Collect the size of every axis in a dict: the same name must always have the same size.",
        "Every combination of all axes, each axis once, is one multiplication and one addition.",
        "If the axes of the result are all the axes there are, nothing is summed and the answer is 0.",
    ],
    forbid=["torch.utils.flop_counter", "torch.einsum", "einops"],
)


def _axes(pattern: str, first: list[int], second: list[int]) -> tuple[dict[str, int], list[str], list[str], list[str]]:
    """Sizes by name, and the names of both inputs and of the result. ValueError where two sizes disagree."""
    inputs, result = pattern.split("->")
    left, right = (part.split() for part in inputs.split(","))
    sizes: dict[str, int] = {}
    for name, size in zip(left + right, first + second, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError("the sizes do not fit the pattern")
    return sizes, left, right, result.split()


def _nothing_summed(pattern: str, first: list[int], second: list[int]) -> bool:
    sizes, _, _, result = _axes(pattern, first, second)
    return set(sizes) == set(result)


@einsum_flops.misconception("You count a multiplication and its addition as one FLOP.")
def one_per_pair(pattern: str, first: list[int], second: list[int]) -> int:
    return _einsum(pattern, first, second) // 2


@einsum_flops.misconception(
    "You count the numbers of the result. Each of them is a sum: multiply with the axes that are summed, too."
)
def result_only(pattern: str, first: list[int], second: list[int]) -> int:
    sizes, _, _, result = _axes(pattern, first, second)
    return 0 if set(sizes) == set(result) else 2 * math.prod(sizes[name] for name in result)


@einsum_flops.misconception("You multiply the sizes of both tensors, so an axis that both have counts twice.")
def shared_axes_twice(pattern: str, first: list[int], second: list[int]) -> int:
    return 0 if _nothing_summed(pattern, first, second) else 2 * math.prod(first) * math.prod(second)


@einsum_flops.misconception(
    "You treat every pattern as x @ w, all of the first times the last axis of the second. The names decide which axes "
    "are shared."
)
def always_a_layer(pattern: str, first: list[int], second: list[int]) -> int:
    return 0 if _nothing_summed(pattern, first, second) else 2 * math.prod(first) * second[-1]


@einsum_flops.misconception(
    "You leave out axes that both tensors have and that stay, such as batch and heads. Each of them repeats the whole "
    "product."
)
def batch_left_out(pattern: str, first: list[int], second: list[int]) -> int:
    sizes, left, right, result = _axes(pattern, first, second)
    if set(sizes) == set(result):
        return 0
    stays = set(left) & set(right) & set(result)
    return 2 * math.prod(size for name, size in sizes.items() if name not in stays)


@einsum_flops.misconception(
    "Where no axis is summed there is no addition and no matrix product: torch's counter, and we, count 0."
)
def products_without_a_sum(pattern: str, first: list[int], second: list[int]) -> int:
    return 2 * math.prod(_axes(pattern, first, second)[0].values())


@einsum_flops.misconception("An axis with two sizes is an error in the model: raise a ValueError, do not pick one.")
def sizes_unchecked(pattern: str, first: list[int], second: list[int]) -> int:
    inputs, result = pattern.split("->")
    sizes = dict(zip(inputs.replace(",", " ").split(), first + second, strict=True))
    return 0 if set(sizes) == set(result.split()) else 2 * math.prod(sizes.values())
