"""The exercise on the FLOPs of a product of any two tensors."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from random import Random

import torch

from lmcourse.accounting.counter import count_flops
from lmcourse.chapters.flops.counted import empty
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _einsum(pattern: str, first: list[int], second: list[int]) -> int:
    """Let torch count the product, with a letter for each name; 0 if every axis stays."""
    names = dict.fromkeys(pattern.replace(",", " ").replace("->", " ").split())
    letters = {name: chr(ord("a") + place) for place, name in enumerate(names)}
    parts = re.split(",|->", pattern)
    left, right, result = ("".join(letters[name] for name in part.split()) for part in parts)
    if set(left + right) == set(result):
        return 0
    return count_flops(lambda: torch.einsum(f"{left},{right}->{result}", empty(*first), empty(*second))).total


def _einsum_cases(random: Random) -> list[Case]:
    a, b, c, d, e = random.sample(range(2, 41), 5)  # with two equal sizes, an answer that confuses them would pass
    return [
        case("everything summed", "a b, b a ->", [2, 3], [3, 2]),
        case("nothing summed", "a, b c -> c a b", [2], [3, 4]),
        case("nothing summed", "b d, b d -> d b", [2, 8], [2, 8]),
        case("long names", "b bb bbb, b bbb x -> x bb", [2, 3, 5], [2, 5, 7]),
        case("long names", "i k, k keys -> i keys", [2, 3], [3, 5]),
        case("axes that stay on both sides", "b h s, b h s -> h b", [2, 3, 5], [2, 3, 5]),
        case("a matrix product", "a b, b c -> a c", [a, b], [b, c]),
        case("equal sizes", "a b c, a d c -> b a d", [a, b, c], [a, b, c]),
        case("a matrix product", "b a, c b -> c a", [b, a], [c, b]),
        case("axes that stay on both sides", "a b c, a d c -> b a d", [a, b, c], [a, d, c]),
        case("several axes summed", "a b c, b c d -> a d", [a, b, c], [b, c, d]),
        case("several axes summed", "a b c, a b d -> d c", [a, b, c], [a, b, d]),
        case("long names", "batch query width, batch key width -> batch query key", [a, b, e], [a, c, e]),
    ]


einsum_flops = Exercise(
    "einsum_flops",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_einsum,
    cases=[
        case("a matrix product", "m k, k n -> m n", [2, 3], [3, 4]),
        case("a batch through a layer", "b s d, d f -> b s f", [2, 5, 8], [8, 32]),
        case("a large product", "m k, k n -> m n", [16_384, 32_768], [32_768, 8192]),
        case("equal sizes", "m k, k n -> m n", [3, 3], [3, 3]),
        case("long names", "batch query width, batch key width -> batch query key", [2, 3, 5], [2, 4, 5]),
        case("attention scores", "b h s d, b h t d -> b h s t", [2, 4, 5, 8], [2, 4, 6, 8]),
        case("heads joined again", "b h s d, h d f -> b s f", [2, 4, 5, 8], [4, 8, 32]),
        case("element by element", "b d, b d -> b d", [2, 8], [2, 8]),
        case("the same with a long name", "batch d, batch d -> batch d", [2, 8], [2, 8]),
        case("a name in another name", "i k, k keys -> i keys", [2, 3], [3, 5]),
    ],
    hidden_cases=_einsum_cases,
    hints=[
        "Collect the size of every axis in a dict: a name that occurs twice has the same size.",
        "Every combination of indices of all axes, each axis counted once, is one multiplication and one addition.",
        "If the result has all the axes, nothing is summed and the answer is 0.",
    ],
    forbid=NO_COUNTER,
)


@einsum_flops.variant
def sizes_by_name(pattern: str, first: list[int], second: list[int]) -> int:
    inputs, result = pattern.split("->")
    left, right = (part.split() for part in inputs.split(","))
    sizes = dict(zip(left + right, first + second, strict=True))
    summed = set(sizes) - set(result.split())
    return 2 * math.prod(sizes.values()) if summed else 0


einsum_flops.slips(
    sizes_by_name,
    {
        "2 * math → math": "You count a multiplication and its addition as one FLOP.",
        "sizes.values() → sizes[name] for name in result.split()": "You count the numbers of the result. Each of them "
        "is a sum: multiply by the sizes of the summed axes, too.",
        "2 * math.prod(sizes.values()) → math.prod(sizes.values()) // (k := math.prod(sizes[name] for name in summed)) "
        "* (2 * k - 1)": "You count k − 1 additions for k products, which is exact. The convention is 2·k: the first "
        "product is added to zero, as in the loop.",
        "2 * math.prod(sizes.values()) if summed else 0 → math.prod(sizes[name] for name in result.split())": "You "
        "count 1 for each number of the result. Each of them is a sum: multiply by the sizes of the summed axes, "
        "too.",
        "sizes.values() → set(sizes.values())": "You count equal sizes once. Count each *name* once: two axes may be "
        "equally long.",
        "2 * math → 2 ** len(summed) * math": "You count a factor of 2 for each summed axis. Each combination is one "
        "multiplication and one addition, however many axes are summed.",
        "sizes.values() → [*first, *second[1:]]": "You leave out the first axis of the second tensor. The names decide "
        "which axes are shared.",
        "else 0 → else math.prod(sizes.values())": "You count products element by element. They are no matrix product: "
        "count 0.",
        "part.split() for → [c for c in part if c.isalpha()] for ;; strict=True → strict=False ;; "
        "result.split() → [c for c in result if c.isalpha()]": "You cut names into letters. A name may have several: "
        "split the text.",
        "sizes.values() → first + second": "You multiply the sizes of both tensors, so a shared axis counts twice.",
        "sizes.values() → [*first, second[-1]]": "You treat every pattern as x @ w: all axes of the first tensor "
        "times the last axis of the second. The names decide which axes are shared.",
        "sizes.values() → size for name, size in sizes.items() if name in summed or not (name in left and name in "
        "right)": "You leave out axes that both tensors have and that stay, such as batch and heads. Each of them "
        "repeats the whole product.",
        " if summed else 0 → ": "You count products even if no axis is summed. That is no matrix product: count 0, as "
        "torch's counter does.",
        "math.prod(sizes.values()) → math.prod(first + second) // math.prod(sizes[name] for name in summed)": "You "
        "count an axis twice if both tensors have it and it stays, such as batch and heads. It is one axis.",
        "set(result.split()) → {name for name in sizes if name in result}": "You look for a name inside the text of "
        "the result, where `k` is part of `keys`. Split the text.",
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
    shared = [one[axis] for axis in one if axis in other]
    if len(set(result.split())) == len(one) + len(other) - len(shared):
        return Fraction(0)
    return Fraction(2 * math.prod(first) * math.prod(second), math.prod(shared))


for _strict in ("", ", strict=False"):
    einsum_flops.equivalent_mutant(
        "sizes = dict(zip(left.split() + right.split(), [*first, *second], strict=True)) → "
        f"sizes = dict(zip(left.split() + right.split(), [*first, *second]{_strict}))",
        "The shapes fit the pattern.",
    )
