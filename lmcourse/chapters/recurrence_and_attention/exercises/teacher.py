"""The exercise on the words that a decoder reads during training."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise


def _row_by_row(target: Tensor, start: int) -> Tensor:
    return torch.tensor([[start, *row][: len(row)] for row in target.tolist()], dtype=target.dtype)


def _rows(random: Random, b: int, s: int) -> Tensor:
    return torch.tensor([[random.randint(1, 50) for _ in range(s)] for _ in range(b)])


def _of_dtype(name: str, target: Tensor) -> Case:
    """A case that compares the dtype, too: otherwise integers of all sizes are equal."""
    return script(name, "read = teacher_inputs(target, 3)\nread\nread.dtype", target=target)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    fixed = [
        *(case("other sizes", _rows(seen, b, s), start) for b, s, start in ((3, 4, 0), (4, 2, 99), (2, 2, 7))),
        case("one word", _rows(seen, 3, 1), 5),
        case("one row", _rows(seen, 1, 9), 0),
        case("a start among the words", torch.tensor([[3, 3, 1], [1, 3, 3]]), 3),
        case("a negative start", _rows(seen, 2, 5), -1),
        _of_dtype("32-bit tokens", _rows(seen, 2, 4).int()),
    ]
    return fixed + [case("other sizes", _rows(random, random.randint(2, 4), s), random.randint(60, 90)) for s in (3, 6)]


teacher_inputs = Exercise(
    "teacher_inputs",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_row_by_row,
    cases=[
        case("one row", torch.tensor([[5, 6, 7]]), 0),
        case("two rows", torch.tensor([[4, 2, 9, 1], [3, 3, 8, 6]]), 10),
        case("one word", torch.tensor([[5], [8]]), 0),
        _of_dtype("8-bit tokens", torch.tensor([[5, 6, 7]], dtype=torch.uint8)),
    ],
    hidden_cases=_hidden,
    hints=[
        "When the decoder predicts the first word, which words has it read? And for the second word?",
        "A column of `start`, then all columns of target but the last: torch.cat along dim=1.",
    ],
)


@teacher_inputs.variant
def start_in_front(target: Tensor, start: int) -> Tensor:
    first = torch.full_like(target[:, :1], start)
    return torch.cat([first, target[:, :-1]], dim=1)


teacher_inputs.slips(
    start_in_front,
    {
        "torch.cat([first, target[:, :-1]], dim=1) → target.clone()": "You do not shift. The decoder would read the "
        "very word it should predict, and the loss would fall to 0.",
        "torch.cat([first, target[:, :-1]], dim=1) → torch.cat([target[:, :1], target[:, :-1]], dim=1)": "You shift, "
        "but the first word is still the target's. Nothing has been said yet: `start` belongs there.",
        "torch.full_like(target[:, :1], start) → torch.full((1, target.shape[1]), start) ;; target[:, :-1]], dim=1 → "
        "target[:-1]], dim=0": "You shift the rows of the batch, not the words: each row gets a start of its own.",
        "first, target[:, :-1] → target[:, 1:], first": "You shift the wrong way: the input would be the future.",
        "torch.full_like(target[:, :1], start) → target[:, -1:]": "Your last word wraps around to the front. `start` "
        "belongs there.",
        "target[:, :-1] → target": "Your rows are one word too long. The last word is predicted, not read.",
        "target[:, :-1] → target[:, 1:]": "You replace the first word. Put `start` before it, and shift all words by "
        "one.",
        "return torch.cat( → return target.copy_(torch.cat( ;; dim=1) → dim=1))": "You change the target itself, which "
        "the loss still needs. Work on a copy.",
        "target[:, :1] → target[:1] ;; target[:, :-1]], dim=1 → target[:-1]], dim=0": "You shift rows, not words: time "
        "is the second axis.",
        "torch.cat([first, target[:, :-1]], dim=1) → torch.cat([torch.full_like(target[:1], start), target[1:]])": ""
        "You write `start` over a whole row. It belongs in front of each row.",
        "torch.cat([first, target[:, :-1]], dim=1) → torch.cat([first[:1, 0], target.flatten()[:-1]]).view_as(target"
        ")": "You shift all rows as one, and put `start` before the first only. Each row begins with it.",
        "target[:, :-1] → target[:, :1].expand(-1, target.shape[1] - 1)": "Your first word spreads over the row: you "
        "copy each word from a place that you have just written.",
        "target[:, :-1] → target.roll(1, dims=0)[:, 1:]": "You roll the rows, not the words: time is the second axis.",
        "torch.cat([first, target[:, :-1]], dim=1) → target + start": "You add `start` to every word. It is a word "
        "itself, and comes before the first.",
        "[first, target[:, :-1]] → [target[:, :-1]]": "The start symbol is missing: your rows are one word too short.",
        "target[:, :1], start) → target[:, :1], 0)": "Your rows begin with 0, whatever `start` is.",
        "dim=1) → dim=1).float()": "Your tokens are floats. Return the dtype of `target`.",
        "dim=1) → dim=1).int()": "Your tokens are int32, whatever comes in. Return the dtype of `target`.",
        "dim=1) → dim=1).long()": "Your tokens are int64, whatever comes in. Return the dtype of `target`.",
    },
)
