"""The exercise on the FLOPs of a product of any two tensors."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import einops
import torch

from lmcourse.chapters.flops.exercises.counted import empty
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _einsum(pattern: str, first: list[int], second: list[int]) -> int:
    """Count by summing ones over all axes: the sum visits every combination once."""
    inputs, result = pattern.split("->")
    try:
        left, right = map(einops.parse_shape, (empty(*first), empty(*second)), inputs.split(","))
    except RuntimeError as error:
        raise ValueError("a shape has more or fewer sizes than names") from error
    if any(left[axis] != right[axis] for axis in left.keys() & right.keys()):
        raise ValueError("the sizes of an axis disagree")
    if not (left.keys() | right.keys()) - set(result.split()):
        return 0
    one, other = (torch.ones(shape, dtype=torch.float64) for shape in (first, second))
    return 2 * int(einops.einsum(one, other, f"{inputs}->"))


def _einsum_cases(random: Random) -> list[Case]:
    a, b, c, d, e = random.sample(range(2, 41), 5)  # with two equal sizes, an answer that confuses them would pass
    product = "m k, k n -> m n"
    return [
        case("bad input", product, [2, 1], [3, 4]),
        case("bad input", product, [2, 3], [1, 4]),
        case("bad input", product, [2, 3, 3], [4]),
        case("bad input", product, [2], [3, 4]),
        case("bad input", product, [2, 3], [3, 4, 5]),
        case("bad input", "b m k, b k n -> b m n", [2, 3, 4], [5, 4, 6]),
        case("bad input", "b d, b d -> b d", [2, 8], [2, 9]),
        case("axes of one", product, [2, 1], [1, 4]),
        case("axes of one", product, [1, 3], [3, 1]),
        case("everything summed", "a b, b a ->", [2, 3], [3, 2]),
        case("nothing summed", "a, b c -> c a b", [2], [3, 4]),
        case("nothing summed", "b d, b d -> d b", [2, 8], [2, 8]),
        case("long names", "b bb bbb, b bbb x -> x bb", [2, 3, 5], [2, 5, 7]),
        case("long names", "i k, k keys -> i keys", [2, 3], [3, 5]),
        case("axes that stay on both sides", "b h s, b h s -> h b", [2, 3, 5], [2, 3, 5]),
        case("a matrix product", "a b, b c -> a c", [a, b], [b, c]),
        case("a matrix product", "b a, c b -> c a", [b, a], [c, b]),
        case("axes that stay on both sides", "a b c, a d c -> b a d", [a, b, c], [a, d, c]),
        case("several axes summed", "a b c, b c d -> a d", [a, b, c], [b, c, d]),
        case("several axes summed", "a b c, a b d -> d c", [a, b, c], [a, b, d]),
        case("long names", "batch query width, batch key width -> batch query key", [a, b, e], [a, c, e]),
        case("bad input", "a b, b c -> a c", [a, b], [b + 1, c]),
    ]


einsum_flops = Exercise(
    "einsum_flops",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_einsum,
    cases=[
        case("a matrix product", "m k, k n -> m n", [2, 3], [3, 4]),
        case("a batch through a layer", "b s d, d f -> b s f", [2, 5, 8], [8, 32]),
        case("attention scores", "b h s d, b h t d -> b h s t", [2, 4, 5, 8], [2, 4, 6, 8]),
        case("heads joined again", "b h s d, h d f -> b s f", [2, 4, 5, 8], [4, 8, 32]),
        case("element by element", "b d, b d -> b d", [2, 8], [2, 8]),
        case("the same with a long name", "batch d, batch d -> batch d", [2, 8], [2, 8]),
        case("one axis, two sizes", "m k, k n -> m n", [2, 3], [5, 4]),
        case("an axis that stays, two sizes", "b m k, b k n -> b m n", [2, 3, 4], [5, 4, 6]),
        case("an axis of 1, and of 3", "m k, k n -> m n", [2, 1], [3, 4]),
        case("a name in another name", "i k, k keys -> i keys", [2, 3], [3, 5]),
        case("a size too many", "m k, k n -> m n", [2, 3], [3, 4, 5]),
        case("a size too few", "b m k, k n -> b m n", [2, 3], [3, 4]),
    ],
    hidden_cases=_einsum_cases,
    hints=[
        "Collect the size of every axis in a dict: the same name must always have the same size.",
        "Every combination of indices of all axes, each axis counted once, is one multiplication and one addition.",
        "If the result has all the axes, nothing is summed and the answer is 0.",
    ],
    forbid=NO_COUNTER,
)


@einsum_flops.variant
def sizes_by_name(pattern: str, first: list[int], second: list[int]) -> int:
    inputs, result = pattern.split("->")
    left, right = (part.split() for part in inputs.split(","))
    sizes: dict[str, int] = {}
    for name, size in [*zip(left, first, strict=True), *zip(right, second, strict=True)]:
        if sizes.get(name, size) != size:
            raise ValueError("the sizes do not fit the pattern")
        sizes[name] = size
    summed = set(sizes) - set(result.split())
    return 2 * math.prod(sizes.values()) if summed else 0


einsum_flops.slips(
    sizes_by_name,
    {
        "2 * math → math": "You count a multiplication and its addition as one FLOP.",
        "sizes.values() → sizes[name] for name in result.split()": "You count the numbers of the result. Each of them "
        "is a sum: multiply by the sizes of the summed axes, too.",
        "sizes.values() → first + second": "You multiply the sizes of both tensors, so a shared axis counts twice.",
        "sizes.values() → [*first, second[-1]]": "You treat every pattern as x @ w: all axes of the first tensor "
        "times the last axis of the second. The names decide which axes are shared.",
        "sizes.values() → size for name, size in sizes.items() if name in summed or not (name in left and name in "
        "right)": "You leave out axes that both tensors have and that stay, such as batch and heads. Each of them "
        "repeats the whole product.",
        " if summed else 0 → ": "You count products even if no axis is summed. That is no matrix product: count 0, as "
        "torch's counter does.",
        "if sizes.get(name, size) != size → if False": "You accept an axis with two different sizes. Raise a "
        "ValueError, do not pick one of them.",
        "if sizes.get(name, size) != size → if name not in result.split() and sizes.get(name, size) != size": "You "
        "check for different sizes only on summed axes. An axis that stays needs one size, too: raise a ValueError.",
        "first, strict=True → first, strict=False ;; second, strict=True → second, strict=False": "You pair names and "
        "sizes until one of them runs out. A shape with fewer or more sizes than names is an error: raise a "
        "ValueError.",
        "if sizes.get(name, size) != size → if 1 != size != sizes.get(name, 1) != 1 ;; sizes[name] = size → "
        "sizes[name] = max(size, sizes.get(name, 1))": "You let a size of 1 fit every size, as broadcasting does. "
        "Here 1 and 3 are two sizes.",
        "math.prod(sizes.values()) → math.prod(first + second) // math.prod(sizes[name] for name in summed)": "You "
        "count an axis twice if both tensors have it and it stays, such as batch and heads. It is one axis.",
        "set(result.split()) → {name for name in sizes if name in result}": "You look for a name inside the text of "
        "the result, where `k` is part of `keys`. Split the text.",
        "[*zip(left, first, strict=True), *zip(right, second, strict=True)] → zip(left + right, first + second, "
        "strict=False)": "You ignore sizes that have no name. A shape with more sizes than names is an error, too.",
        "sizes.values() → sizes[name] for name in summed": "You multiply the summed axes alone. The sum is made for "
        "every number of the result.",
        "math.prod(sizes.values()) if summed else 0 → math.prod(sizes[name] for name in result.split())": "You count "
        "the numbers of the result. Each of them is a sum: multiply by the sizes of the summed axes, too.",
        "set(result.split()) → set(result)": "You look for each name among the letters of the result. Names may have "
        "several letters: split the text.",
    },
)


@einsum_flops.variant
def as_matrices_in_a_batch(pattern: str, first: list[int], second: list[int]) -> Fraction:
    """Multiply the sizes of both tensors, and divide by the axes that both have, which count once."""
    inputs, result = pattern.replace("->", ">").split(">")
    left, right = inputs.split(",")
    one, other = dict(zip(left.split(), first, strict=True)), dict(zip(right.split(), second, strict=True))
    for axis in one:
        if other.get(axis, one[axis]) != one[axis]:
            raise ValueError(f"the sizes of axis {axis} disagree")
    shared = [one[axis] for axis in one if axis in other]
    if len(set(result.split())) == len(one) + len(other) - len(shared):
        return Fraction(0)
    return Fraction(2 * math.prod(first) * math.prod(second), math.prod(shared))
