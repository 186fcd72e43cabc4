"""The hidden cases of the exercise on the strides of a view."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case


def _drawn(random: Random) -> list[Case]:
    """Cases with random sizes and gaps, which do not affect whether the view is possible."""
    a, b, c, gap = random.sample(range(2, 8), 4)
    swapped = [a, b, c], [b * c, 1, b]
    return [
        case("merged", [a, b, c], [b * c, c, 1], [a * b, c]),
        case("merged", [a, b, c], [gap * b * c, gap * c, gap], [a, b * c]),
        case("merged", [a, 1, b], [b, gap * c, 1], [a * b]),
        case("split", [a * b], [gap], [a, b]),
        case("split", [c, a * b], [1, c], [c, a, b]),
        case("merged and cut elsewhere", [a, b * c], [gap * b * c, gap], [a * b, c]),
        case("a copy would be needed", [a, b], [1, a], [a * b]),
        case("a copy would be needed", *swapped, [a, b * c]),
        case("a copy would be needed", [a, b], [gap * b, 1], [a * b]),
        case("another number of elements", [a, b], [b, 1], [a * b + 1]),
    ]


def hidden_cases(random: Random) -> list[Case]:
    """Views of all kinds with sizes chosen by hand, then some with random sizes."""
    fixed = [
        case("merged", [2, 3, 4], [12, 4, 1], [24]),
        case("merged", [2, 3, 4], [12, 4, 1], [6, 4]),
        case("merged", [2, 3, 4], [24, 8, 2], [2, 12]),
        case("merged", [3, 4, 2], [1, 24, 12], [3, 8]),
        case("split", [24], [1], [2, 3, 4]),
        case("split", [6, 4], [1, 6], [3, 2, 2, 2]),
        case("split", [12], [5], [2, 6]),
        case("merged and cut elsewhere", [4, 6], [6, 1], [3, 8]),
        case("merged and cut elsewhere", [2, 6, 5], [30, 5, 1], [3, 4, 5]),
        case("merged and cut elsewhere", [2, 6, 5], [6, 1, 12], [4, 3, 5]),
        case("merged and cut elsewhere", [2, 6, 5], [6, 1, 12], [12, 5]),
        case("a copy would be needed", [2, 6, 5], [6, 1, 12], [2, 30]),
        case("a copy would be needed", [2, 3, 4], [4, 8, 1], [6, 4]),
        case("a copy would be needed", [4, 3], [1, 4], [6, 2]),
        case("a copy would be needed", [2, 6], [12, 1], [4, 3]),
        case("a copy would be needed", [6, 4], [8, 1], [4, 6]),
        case("the same shape", [3, 2], [1, 3], [3, 2]),
        case("axes of size 1", [1], [7], [1, 1, 1]),
        case("axes of size 1", [1, 1], [3, 9], [1]),
        case("axes of size 1", [4, 1], [3, 17], [2, 1, 2]),
        case("axes of size 1", [1, 4, 1, 3], [99, 3, 5, 1], [12, 1]),
        case("axes of size 1", [2, 1, 3], [1, 1, 2], [6]),
        case("no axes", [], [], [1, 1]),
        case("no axes", [1, 1], [5, 5], []),
        case("no axes", [], [], []),
        case("repeated elements", [2, 5], [0, 0], [10]),
        case("repeated elements", [3, 4], [0, 1], [12]),
        case("repeated elements", [2, 3, 4], [0, 4, 1], [2, 12]),
        case("repeated elements", [4, 6], [1, 0], [4, 2, 3]),
        case("overlapping windows", [3, 4], [1, 1], [12]),
        case("overlapping windows", [3, 4], [1, 1], [3, 2, 2]),
        case("another number of elements", [3, 4], [4, 1], [3, 5]),
        case("another number of elements", [3, 4], [4, 1], [6]),
        case("another number of elements", [2], [1], [4]),
        case("another number of elements", [4], [1], []),
        case("another number of elements", [4, 2], [1, 4], [2, 2]),
    ]
    return [*fixed, *_drawn(random)]
