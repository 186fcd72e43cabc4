"""The exercise on analogies between word vectors."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64

SIX_WORDS = torch.tensor(
    [
        [-1.00, 0.01, 0.51, 0.04],
        [1.00, 0.02, 0.47, 0.01],
        [-0.95, 0.93, 0.70, 0.02],
        [0.97, 0.95, 0.69, 0.01],
        [0.00, -0.01, 0.03, 0.95],
        [0.01, 0.00, -0.02, 0.97],
    ],
    dtype=torch.float64,
)
"""Man, woman, king, queen, apple, orange: gender, royal, age, food."""


def _cosine(x: list[float], y: list[float]) -> float:
    longest = math.hypot(*x) * math.hypot(*y)
    return math.fsum(a * b for a, b in zip(x, y, strict=True)) / longest if longest else -math.inf


def _analogy(E: Tensor, a: int, b: int, c: int) -> int:
    """One word after the other, in Python's floats; the first of the best stays."""
    rows = E.tolist()
    wanted = [rows[b][k] - rows[a][k] + rows[c][k] for k in range(E.shape[1])]
    best, found = -math.inf, -1
    for word, row in enumerate(rows):
        cosine = _cosine(row, wanted)
        if word not in (a, b, c) and cosine > best:
            best, found = cosine, word
    return found


def _tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


TIE = _tensor([1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 4], [0, 2, 0], [0, 0, 1], [0, 8, 0])
LONG = _tensor([1, 0], [2, 1], [1, 1], [9, 1], [1, 0.9], [-1, 3])
NINE = integers(Random(2572), 9, 3, low=-9, high=9, dtype=torch.float64)
UNEQUAL = normal64(Random(8), 40, 3) * torch.linspace(0.2, 3.0, 40, dtype=torch.float64)[:, None]
AWAY = _tensor([0, 1], [1, 1], [1, 0], [0, 0], [-2, -1], [-1, 0.5], [-1, -4])


def _hidden(random: Random) -> list[Case]:
    many = normal64(Random(7), 40, 6)
    cases = [
        case("a row of zeros", AWAY, 0, 1, 2),
        case("a row of zeros", torch.cat([torch.zeros(1, 4), SIX_WORDS]).double(), 1, 3, 2),
        case("ties", TIE, 0, 1, 2),
        case("ties", TIE, 2, 0, 4),
        case("long and short rows", many * torch.logspace(-3, 3, 40, dtype=torch.float64)[:, None], 3, 17, 29),
        case("long and short rows", LONG, 0, 1, 2),
        case("the same word twice", many, 5, 5, 8),
        case("the same word twice", many, 4, 9, 9),
        case("the same word twice", many, 6, 11, 6),
        case("only one word is left", SIX_WORDS[:4], 2, 0, 3),
        case("the first and the last word", many, 1, 0, 39),
        case("the first and the last word", many, 39, 38, 0),
        case("all point away", AWAY[[0, 1, 2, 4, 6]], 0, 1, 2),
        case("one feature", _tensor([1.0], [3.0], [2.0], [-1.0], [5.0], [6.0]), 0, 1, 2),
        case("single precision", SIX_WORDS.float(), 1, 3, 0),
        case("six words", SIX_WORDS, 4, 0, 5),
    ]
    for a, b, c in ((0, 17, 33), (21, 4, 12), (30, 25, 8)):
        # Fixed vectors in random places: which mistakes show in them does not depend on luck.
        places = random.sample(range(40), 40)
        E = torch.empty_like(UNEQUAL)
        E[places] = UNEQUAL
        cases.append(case("other vectors", random.uniform(0.5, 2.0) * E, places[a], places[b], places[c]))
    return cases


analogy = Exercise(
    "analogy",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_analogy,
    cases=[
        case("man, king, woman", SIX_WORDS, 0, 2, 1),
        case("king, man, queen", SIX_WORDS, 2, 0, 3),
        case("apple, orange, man", SIX_WORDS, 4, 5, 0),
        case("nine words", NINE, 0, 1, 2),
        case("a tie", TIE, 0, 1, 2),
        case("a long row", LONG, 0, 1, 2),
        case("a row of zeros", AWAY, 0, 1, 2),
    ],
    hidden_cases=_hidden,
    hints=[
        "The point to look from is E[b] − E[a] + E[c]. Its own length does not matter, those of the rows do.",
        "A cosine is a dot product over the product of both lengths. A row of zeros has none: give it −∞.",
        "Set the entries of a, b and c to −∞ as well, and take argmax().",
    ],
)


def _cosines(E: Tensor, target: Tensor) -> Tensor:
    lengths = E.norm(dim=1)
    return torch.where(lengths > 0, E @ target / lengths.clamp(min=1e-300) / target.norm(), -math.inf)


def _best(cosines: Tensor, *excluded: int) -> int:
    left = cosines.clone()
    left[list(excluded)] = -math.inf
    return int(left.argmax())


@analogy.misconception("The nearest vector is often one of the three you put in; by custom they are left out.")
def inputs_allowed(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(_cosines(E, E[b] - E[a] + E[c]))


@analogy.misconception("Long vectors win dot products. The cosine compares directions.")
def dot_product(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(E @ (E[b] - E[a] + E[c]), a, b, c)


@analogy.misconception("You take the smallest distance. Asked for is the largest cosine.")
def nearest_by_distance(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(-(E - (E[b] - E[a] + E[c])).norm(dim=1), a, b, c)


@analogy.misconception("From a to b is a *difference*, b − a. You add all three.")
def all_added(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(_cosines(E, E[a] + E[b] + E[c]), a, b, c)


@analogy.misconception("You go from b to a: the difference has the wrong sign.")
def direction_reversed(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(_cosines(E, E[a] - E[b] + E[c]), a, b, c)


@analogy.misconception("You leave out c only. a and b are left out, too.")
def only_c_excluded(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(_cosines(E, E[b] - E[a] + E[c]), c)


@analogy.misconception("A word without a vector has no direction; it must not win with a NaN.")
def nan_of_zero(E: Tensor, a: int, b: int, c: int) -> int:
    target = E[b] - E[a] + E[c]
    return _best(E @ target / E.norm(dim=1) / target.norm(), a, b, c)


@analogy.misconception("A row of zeros counts as a cosine of 0 in yours, and wins where all others point away.")
def zero_counts_as_zero(E: Tensor, a: int, b: int, c: int) -> int:
    target = E[b] - E[a] + E[c]
    return _best(E @ target / (E.norm(dim=1) + 1e-12), a, b, c)


@analogy.misconception("Of words that fit alike you take the last. Asked for is the first.")
def last_of_a_tie(E: Tensor, a: int, b: int, c: int) -> int:
    left = _cosines(E, E[b] - E[a] + E[c])
    left[[a, b, c]] = -math.inf
    return len(E) - 1 - int(left.flip(0).argmax())


@analogy.misconception("You make all vectors equally long first. Take the difference of the vectors as they are.")
def normalised_before(E: Tensor, a: int, b: int, c: int) -> int:
    directions = torch.nn.functional.normalize(E, dim=1)
    return _best(_cosines(E, directions[b] - directions[a] + directions[c]), a, b, c)


@analogy.misconception("You look for what is like c. The way from a to b is not used.")
def nearest_to_c(E: Tensor, a: int, b: int, c: int) -> int:
    return _best(_cosines(E, E[c]), a, b, c)


@analogy.variant
def in_a_loop(E: Tensor, a: int, b: int, c: int) -> int | None:
    target = (E[b] - E[a] + E[c]).double()
    best, winner = -2.0, None
    for word in range(E.size(0)):
        row = E[word].double()
        if word in {a, b, c} or not row.any():
            continue
        cosine = (row.dot(target) / (row.norm() * target.norm())).item()
        if cosine > best:
            best, winner = cosine, word
    return winner


@analogy.variant
def with_numpy(E: Tensor, a: int, b: int, c: int) -> np.int64:
    rows = E.numpy()
    target = rows[b] - rows[a] + rows[c]
    lengths = np.linalg.norm(rows, axis=1)
    scores = np.full(len(rows), -np.inf)
    known = lengths > 0
    scores[known] = rows[known] @ target / lengths[known]
    scores[[a, b, c]] = -np.inf
    return np.argmax(scores)


@analogy.variant
def by_sorting(E: Tensor, a: int, b: int, c: int) -> int:
    target = E[b] - E[a] + E[c]
    words = [w for w in range(len(E)) if w not in (a, b, c) and E[w].abs().sum() > 0]
    return min(words, key=lambda w: (-float(E[w] @ target / E[w].square().sum().sqrt()), w))


@analogy.variant
def normalised_first(E: Tensor, a: int, b: int, c: int) -> Any:
    lengths = E.norm(dim=-1, keepdim=True)
    directions = E / lengths.masked_fill(lengths == 0, 1)
    scores = directions @ (E[b] - E[a] + E[c])
    scores[(lengths == 0)[:, 0]] = -torch.inf
    return scores.index_fill(0, torch.tensor([a, b, c]), -torch.inf).argmax()
