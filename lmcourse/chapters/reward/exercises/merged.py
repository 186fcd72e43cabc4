"""The exercise on a low-rank change, added to its matrix."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

Weight = Float[Tensor, "out in"]


def _reference(weight: Weight, a: Float[Tensor, "r in"], b: Float[Tensor, "out r"], alpha: float) -> Weight:
    """Send the unit vectors through the layer with two paths, one after the other."""
    eye = torch.eye(weight.shape[1], dtype=weight.dtype)
    rows = [weight @ unit + (alpha / len(a)) * (b @ (a @ unit)) for unit in eye]
    return torch.stack(rows, dim=1)


def _case(name: str, random: Random, out: int, into: int, rank: int, alpha: float) -> Case:
    a, b = normal(random, rank, into), normal(random, out, rank)
    return case(name, normal(random, out, into), a, b, alpha)


def _hidden(random: Random) -> list[Case]:
    doubles = (part.double() for part in (normal(random, 2, 3), normal(random, 2, 3), normal(random, 2, 2)))
    return [
        case("B is 0", normal(random, 3, 2), normal(random, 1, 2), torch.zeros(3, 1), 8.0),
        case("fp64", *doubles, 1.0),
        _case("other layers", random, 5, 3, 2, 4.0),
        _case("other layers", random, 3, 6, 3, 1.5),
        _case("rank 1", random, 4, 3, 1, 2.0),
    ]


_ROWS = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])

merged = Exercise(
    "merged",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_reference,
    new=True,
    cases=[
        case("rank 1", _ROWS, torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0], [-1.0]]), 2.0),
        case(
            "rank 2, square",
            torch.zeros(2, 2),
            torch.tensor([[1.0, 2.0], [0.0, 1.0]]),
            torch.tensor([[1.0, 0.0], [3.0, 1.0]]),
            4.0,
        ),
        _case("rank 2 of a larger layer", Random(3), 4, 5, 2, 3.0),
        _case("rank 3 of a square layer", Random(4), 3, 3, 3, 1.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Which of the two products, A B or B A, has the shape of the weight?",
        "r is the number of rows of A.",
        "The result is a new matrix: the trained one must stay as it is.",
    ],
)


@merged.variant
def in_one_line(weight: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    return weight + alpha / a.shape[0] * b @ a


merged.slips(
    in_one_line,
    {
        "alpha / a.shape[0] → alpha": "You scale by α. Divide it by the rank: then a larger rank makes no larger "
        "change.",
        "alpha / a.shape[0] * → ": "The change is not scaled: it counts α / r times.",
        "weight + → ": "You return the change alone. The trained matrix is part of the merged one.",
        "a.shape[0] → a.shape[1]": "You divide by the number of inputs. The rank r is the number of rows of A.",
        "a.shape[0] → b.shape[0]": "You divide by the number of outputs. The rank r is the number of rows of A.",
        "a.shape[0] → a.shape[0] ** 0.5": "You divide by √r. Divide by r.",
        "alpha / a.shape[0] → alpha * a.shape[0]": "You multiply by the rank. Divide by it.",
        "alpha / a.shape[0] → a.shape[0] / alpha": "Your factor is turned round: it is α / r.",
        "alpha / a.shape[0] → alpha // a.shape[0]": "`//` drops what stands behind the point of α / r.",
        "alpha / a.shape[0] * b → (alpha / a.shape[0]) ** 2 * b": "You scale twice. The factor α / r counts once.",
        "weight + alpha / a.shape[0] * b @ a → alpha / a.shape[0] * (weight + b @ a)": "You scale the trained matrix, "
        "too. Only the change counts α / r times.",
        "b @ a → (b @ a).mT || b @ a → (a @ b)": "The product is turned: W + (α/r) B A, and B has the rows of W.",
        "weight + alpha / a.shape[0] * b @ a → weight.add_(alpha / a.shape[0] * b @ a)": "You change the trained "
        "matrix itself. Return a new one.",
        "weight + alpha → weight - alpha": "You subtract the change. The layer with two paths adds it.",
    },
)
