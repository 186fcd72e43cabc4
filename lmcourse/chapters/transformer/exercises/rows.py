"""The exercise on the rows of an embedding that get a gradient."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers


def _by_autograd(tokens: Tensor, vocabulary: int, tied: bool) -> list[int]:
    """Run a backward pass of a small model in float64, and return the rows whose gradient is not zero."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(vocabulary, 4, generator=generator, dtype=torch.float64).requires_grad_()
    mixed = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    head = table if tied else torch.randn(vocabulary, 4, generator=generator, dtype=torch.float64)
    logits = (table[tokens[:, :-1]] @ mixed).tanh() @ head.T
    F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum").backward()  # type: ignore[no-untyped-call]
    assert table.grad is not None
    return torch.nonzero(table.grad.abs().sum(1)).flatten().tolist()


def _ids(*texts: list[int]) -> Tensor:
    return torch.tensor(texts)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    drawn = integers(fixed, 3, 4, low=0, high=29, dtype=torch.int64)
    return [
        case("several texts", drawn, 40, False),
        case("several texts", _ids([9, 8, 7, 6], [0, 8, 1, 5]), 12, False),
        case("several texts", drawn, 31, True),
        case("repeated tokens", _ids([4, 4, 4, 4]), 6, False),
        case("repeated tokens", _ids([4, 1, 4, 1, 4]), 6, False),
        case("repeated tokens", _ids([0, 1], [1, 0], [0, 0]), 2, False),
        case("two tokens in the vocabulary", _ids([1, 0]), 2, False),
        case("two tokens in the vocabulary", _ids([1, 1, 1]), 2, True),
        case("two tokens in the vocabulary", _ids([1, 1, 1]), 2, False),
        case("a large vocabulary", _ids([2051, 3, 257, 300, 5], [2049, 131, 2051, 9, 9]), 2100, False),
        edge(case("one token of text", _ids([3], [1]), 5, False)),
        edge(case("one token of text", _ids([3], [1]), 5, True)),
        *(case("several texts", torch.tensor(random.sample(range(60), 15)).view(3, 5), 60, False) for _ in range(4)),
    ]


rows_with_gradient = Exercise(
    "rows_with_gradient",
    points=1,
    minutes=4,
    difficulty=1,
    reference=_by_autograd,
    cases=[
        case("one text", _ids([3, 5, 5, 7]), 10, False),
        case("the same, tied", _ids([3, 5, 5, 7]), 10, True),
        case("two texts", _ids([6, 2, 1], [6, 0, 6]), 8, False),
        case("one text backwards", _ids([7, 5, 3]), 9, False),
        edge(case("nothing to predict", _ids([4]), 6, True)),
        case("numbers of one and two digits", _ids([10, 9, 2, 1]), 12, False),
    ],
    hidden_cases=_hidden,
    hints=[
        "Which rows does the model look up to make its predictions? An untied table is not used in any other way.",
        "The last token of each text is a target but never read. If the head is tied, every logit is a product with a "
        "row.",
        "Without a single prediction there is no loss, and no gradient.",
    ],
)


@rows_with_gradient.variant
def rows_that_are_read(tokens: Tensor, vocabulary: int, tied: bool) -> list[int]:
    read = tokens[:, :-1].flatten().tolist()
    if tied and read:
        return list(range(vocabulary))
    return sorted(set(read))


rows_with_gradient.slips(
    rows_that_are_read,
    {
        "set(read) → set(read if tied else tokens.flatten().tolist())": "You list the last token of each text as well. "
        "In that place it is only predicted, never read, and sends no gradient to its row.",
        "    if tied and read:\n        return list(range(vocabulary))\n → ": "With a tied head you list only the "
        "tokens that are read. The same matrix computes *all* logits, and the softmax sends a gradient to every row.",
        "sorted(set(read)) → list(range(vocabulary))": "You list all rows. A look-up sends a gradient only to the rows "
        "that were looked up.",
        "set(read) → read": "You list the right rows, but some of them twice. List each row once.",
        "tokens[:, :-1] → tokens[:, 1:]": "You list the tokens that are predicted. A gradient arrives at the tokens "
        "that are read.",
        "sorted(set(read)) → list(dict.fromkeys(read))": "You list the right rows in the wrong order: sort them.",
        "list(range(vocabulary)) → sorted(set(tokens.flatten().tolist()))": "With a tied head you list only the tokens "
        "that are read or predicted. The softmax also pushes down all other tokens.",
        "set(read) → set(read if tied else tokens.flatten()[:-1].tolist())": "You leave out the last token of the "
        "whole batch only. Each text has a last token of its own, which is never read.",
        "tokens[:, :-1] → tokens[:1, :-1]": "You list only the rows of the first text. Add the rows of the other "
        "texts.",
        "tied and read → tied": "You list rows for texts of one token. They have nothing to predict: no loss, and no "
        "gradient for any row.",
        "if tied and read → if not tied and read": "You swap the two cases. A tied matrix is also the head, so it "
        "gets a gradient in *every* row; an untied one only where it is read.",
        "list(range(vocabulary)) → sorted(set(tokens[:, 1:].flatten().tolist()))": "With a tied head you list only "
        "the tokens that are predicted. The softmax also pushes down all other tokens.",
        "tokens[:, :-1] → tokens[:-1]": "You leave out the last *text*. Leave out the last token of each text: "
        "tokens[:, :-1].",
    },
)
