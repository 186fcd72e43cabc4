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
        case("other sizes", _rows(seen, 3, 4), 0),
        case("other sizes", _rows(seen, 4, 2), 99),
        case("other sizes", _rows(seen, 2, 2), 7),
        case("one word", _rows(seen, 3, 1), 5),
        case("one row", _rows(seen, 1, 9), 0),
        case("a start among the words", torch.tensor([[3, 3, 1], [1, 3, 3]]), 3),
        case("a negative start", _rows(seen, 2, 5), -1),
        _of_dtype("8-bit tokens", _rows(seen, 2, 4).to(torch.uint8)),
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
        _of_dtype("32-bit tokens", torch.tensor([[5, 6, 7]], dtype=torch.int32)),
    ],
    hidden_cases=_hidden,
    hints=[
        "When the decoder predicts the first word, which words has it read? And for the second word?",
        "A column of `start`, then all columns of target but the last: torch.cat along dim=1.",
    ],
)


@teacher_inputs.misconception(
    "You do not shift. The decoder would read the very word it should predict, and the loss would fall to 0."
)
def not_shifted(target: Tensor, start: int) -> Tensor:
    return target.clone()


@teacher_inputs.misconception("You shift the wrong way: the input would be the future.")
def shifted_left(target: Tensor, start: int) -> Tensor:
    return torch.cat([target[:, 1:], torch.full_like(target[:, :1], start)], dim=1)


@teacher_inputs.misconception("Your last word wraps around to the front. `start` belongs there.")
def rolled(target: Tensor, start: int) -> Tensor:
    return target.roll(1, dims=1)


@teacher_inputs.misconception("Your rows are one word too long. The last word is predicted, not read.")
def too_long(target: Tensor, start: int) -> Tensor:
    return torch.cat([torch.full_like(target[:, :1], start), target], dim=1)


@teacher_inputs.misconception("You replace the first word. Put `start` before it, and shift all words by one.")
def start_overwrites(target: Tensor, start: int) -> Tensor:
    return torch.cat([torch.full_like(target[:, :1], start), target[:, 1:]], dim=1)


@teacher_inputs.misconception("You change the target itself, which the loss still needs. Work on a copy.")
def changed_in_place(target: Tensor, start: int) -> Tensor:
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = start
    return target


@teacher_inputs.misconception("You shift rows, not words: time is the second axis.")
def rows_moved(target: Tensor, start: int) -> Tensor:
    return torch.cat([torch.full_like(target[:1], start), target[:-1]])


@teacher_inputs.misconception("You roll the rows, not the words: time is the second axis.")
def rows_rolled(target: Tensor, start: int) -> Tensor:
    read = target.roll(1, dims=0)
    read[:, 0] = start
    return read


@teacher_inputs.misconception("Your tokens are int64, whatever comes in. Return the dtype of `target`.")
def always_int64(target: Tensor, start: int) -> Tensor:
    return _row_by_row(target, start).long()


@teacher_inputs.variant
def rolled_and_replaced(target: Tensor, start: int) -> Tensor:
    read = torch.roll(target, shifts=1, dims=1)
    read[:, 0] = start
    return read


@teacher_inputs.variant
def padded_in_front(target: Tensor, start: int) -> Tensor:
    return torch.nn.functional.pad(target, (1, 0), value=start)[:, :-1]


@teacher_inputs.variant
def word_by_word(target: Tensor, start: int) -> Tensor:
    read = torch.empty_like(target)
    for row in range(target.size(0)):
        before = start
        for place in range(target.size(1)):
            read[row, place] = before
            before = int(target[row, place])
    return read


@teacher_inputs.variant
def as_lists(target: Tensor, start: int) -> Tensor:
    return torch.tensor([[start, *row[:-1]] for row in target.tolist()], dtype=target.dtype)
