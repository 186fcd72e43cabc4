"""The exercise on which stored vectors stay valid when a text grows or loses its first token."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

States = list[Tensor]

CLOSE = 1e-5


def _entry_by_entry(before: States, after: States, shift: int) -> list[bool]:
    """Return for each layer True if the largest difference between old and new vectors is small."""
    answers = []
    for old, new in zip(before, after, strict=True):
        pairs = [(old[i], new[i - shift]) for i in range(len(old)) if 0 <= i - shift < len(new)]
        distances = [abs(x - y) for a, b in pairs for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        answers.append(bool(distances) and max(distances) <= CLOSE)
    return answers


def _layers(tokens: Tensor, count: int) -> States:
    """Return the input of each layer of causal attention, without positions."""
    states = [tokens]
    for _ in range(count - 1):
        x = states[-1][None, None]
        states.append(states[-1] + 2 * F.scaled_dot_product_attention(x, x, x, is_causal=True)[0, 0])
    return [state.clone() for state in states]


def _window(tokens: Tensor, count: int) -> tuple[States, States]:
    """The states of a text, and the states of the same text without its first token but with one more at its end."""
    return _layers(tokens[:-1], count), _layers(tokens[1:], count)


TEXT = normal(Random(3), 5, 2)
OTHER = normal(Random(4), 7, 3)
ROWS = torch.tensor([[1.0], [2.0], [3.0]])
PAIR = torch.zeros(3, 2, dtype=torch.float64)
SEESAW = torch.tensor([1e-3, -1e-3, 0.0])
ZERO = torch.zeros(2, 1, dtype=torch.float64)
FLAT = torch.zeros(2, 6)
ONE_LARGER = torch.tensor([3e-5, 0.0, 0.0, 0.0, 0.0, 0.0])
NOISE = torch.tensor([[4e-6], [-4e-6], [4e-6]])


def _at(index: int, by: float = 1e-3) -> Tensor:
    changed = torch.cat([ROWS, ROWS[:1]])
    changed[index] += by
    return changed


def _hidden(random: Random) -> list[Case]:
    fixed, tall = Random(7), normal(Random(8), 6, 4)
    wide = normal(fixed, 4, 3)
    drawn, layers = normal(random, 7, 3), random.sample(range(2, 5), 2)
    return [
        case("a growing text", _layers(OTHER[:5], 3), _layers(OTHER, 3), 0),
        case("a growing text", _layers(-OTHER[:6], 2), _layers(-OTHER, 2), -1),
        case("a sliding window", *_window(OTHER, 2), 1),
        case("a sliding window", *_window(OTHER, 3), 0),
        case("a sliding window", *_window(OTHER, 4), -1),
        case("two tokens dropped", _layers(OTHER, 2), _layers(OTHER[2:], 2), 2),
        case("a token in front", _layers(OTHER[1:], 2), _layers(OTHER, 2), -1),
        case("a token in front", _layers(OTHER[1:], 3), _layers(OTHER, 3), 1),
        case("one row changed", [ROWS, ROWS, ROWS], [_at(0), _at(1), _at(2)], 0),
        case("one row changed", [ROWS, ROWS, ROWS], [_at(3), _at(2, -1e-3), _at(0, -1e-3)], 0),
        case("one number changed", [wide, wide], [wide + torch.tensor([0.0, 0.0, 1e-3]), wide + 1e-3], 0),
        case("one number changed", [wide, wide], [wide, wide - torch.tensor([1e-3, 0.0, 0.0])], 0),
        case("changes that cancel", [wide, PAIR], [wide + SEESAW, PAIR + torch.tensor([1.5e-5, 0.0])], 0),
        case("changes that cancel", [ROWS, ROWS], [ROWS + torch.tensor([[1.0], [-1.0], [0.0]]), ROWS.flip(0)], 0),
        case("rounded differently", [100 * ROWS, 1e-4 * ROWS], [100 * ROWS + 2e-4, 1e-4 * ROWS + 2e-5], 0),
        case("rounded differently", [ROWS, ROWS], [ROWS - NOISE, ROWS + 3e-5], 0),
        case("at the limit", [ZERO, ZERO, ZERO, ZERO], [ZERO + CLOSE, ZERO - CLOSE, ZERO + 8e-6, ZERO + 1.5e-5], 0),
        case("at the limit", [torch.zeros(2, 4)], [torch.full((2, 4), 9e-6)], 0),
        case("nothing in common", [ROWS, ROWS], [ROWS, ROWS], 3),
        case("nothing in common", [ROWS], [ROWS], -3),
        case("nothing in common", [ROWS[:0], ROWS], [ROWS, ROWS[:0]], 0),
        case("one in common", [ROWS, ROWS], [ROWS[2:], ROWS[1:]], 2),
        case("one in common", [ROWS, ROWS, ROWS], [ROWS[:1], ROWS[1:2], ROWS[2:]], 0),
        case("a text that got shorter", [tall, tall], [tall[:4], tall[1:]], 0),
        case("no layers", [], [], 0),
        case("other texts", *_window(drawn, layers[0]), 1),
        case("other texts", _layers(drawn[:4], layers[1]), _layers(drawn, layers[1]), 0),
    ]


unchanged = Exercise(
    "unchanged",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_entry_by_entry,
    cases=[
        case("one token more", _layers(TEXT[:3], 2), _layers(TEXT[:4], 2), 0),
        case("a window that dropped its first token", *_window(TEXT[:4], 3), 1),
        case("the same, shifted the other way", *_window(TEXT[:4], 2), -1),
        case("only the last row changed", [ROWS, ROWS], [ROWS, _at(2)[:3]], 0),
        case("only the first row changed", [ROWS], [_at(0)], 0),
        case("the last digit", [ROWS, ROWS], [ROWS + NOISE, ROWS + 1e-2], 0),
        case("large numbers", [1000 * ROWS, ROWS], [1000 * ROWS + 4e-3, ROWS], 0),
        case("many small differences, and one larger one", [FLAT, FLAT], [FLAT + 9e-6, FLAT + ONE_LARGER], 0),
        case("nothing in common", [ROWS, ROWS], [ROWS, ROWS], 4),
        case("one got shorter", [ROWS, ROWS], [ROWS[:2], ROWS[1:]], 1),
    ],
    hidden_cases=_hidden,
    hints=[
        "For which i do both before[i] and after[i − shift] exist? From max(0, shift) to min(len(before), len(after) + "
        "shift) − 1.",
        "Cut both to these rows: old = before[first:last], new = after[first - shift : last - shift]. Mind that a "
        "negative index would count from the end.",
        "The answer of a layer: len(old) > 0 and (old - new).abs().max() <= 1e-5, as a bool.",
    ],
)


@unchanged.variant
def row_by_row(before: list[Tensor], after: list[Tensor], shift: int) -> list[bool]:
    answers = []
    for old, new in zip(before, after, strict=True):
        met, same = 0, True
        for i in range(old.shape[0]):
            j = i - shift
            if j < 0 or j >= new.shape[0]:
                continue
            met += 1
            same = same and bool(torch.all(torch.abs(old[i] - new[j]) <= 1e-5))
        answers.append(met > 0 and same)
    return answers


@unchanged.variant
def with_slices(before: list[Tensor], after: list[Tensor], shift: int) -> list[bool]:
    found = []
    for x, y in zip(before, after, strict=True):
        if shift > 0:
            x = x[shift:]
        else:
            y = y[-shift:]
        n = min(len(x), len(y))
        found.append(n > 0 and torch.allclose(x[:n], y[:n], rtol=0, atol=1e-5))
    return found


@unchanged.variant
def with_numpy(before: list[Tensor], after: list[Tensor], shift: int) -> list[bool]:
    result = []
    for old, new in zip(before, after, strict=True):
        i = np.arange(len(old))
        i = i[(i - shift >= 0) & (i - shift < len(new))]
        gap = np.abs(old.numpy()[i] - new.numpy()[i - shift])
        result.append(bool(gap.size and gap.max() <= 1e-5))
    return result


def _pairs(old: Tensor, new: Tensor, shift: int) -> list[bool]:
    """Return for each token in both texts True if its row is the same."""
    rows = [i for i in range(len(old)) if 0 <= i - shift < len(new)]
    return [bool((old[i] - new[i - shift]).abs().max() <= CLOSE) for i in rows]


def _each(before: States, after: States, shift: int) -> list[list[bool]]:
    return [_pairs(old, new, shift) for old, new in zip(before, after, strict=True)]


@unchanged.misconception("You compare before[i] with after[i + shift]. The task asks for after[i − shift].")
def other_way(before: States, after: States, shift: int) -> list[bool]:
    return _entry_by_entry(before, after, -shift)


@unchanged.misconception("You look at the last row only. All rows that both caches have must agree.")
def last_only(before: States, after: States, shift: int) -> list[bool]:
    return [bool(rows) and rows[-1] for rows in _each(before, after, shift)]


@unchanged.misconception("You look at the first row only. All rows that both caches have must agree.")
def first_only(before: States, after: States, shift: int) -> list[bool]:
    return [bool(rows) and rows[0] for rows in _each(before, after, shift)]


@unchanged.misconception("You accept one row that agrees. All rows must agree.")
def any_row(before: States, after: States, shift: int) -> list[bool]:
    return [any(rows) for rows in _each(before, after, shift)]


@unchanged.misconception("You give all layers one answer. The first may agree where deeper ones do not.")
def one_answer(before: States, after: States, shift: int) -> list[bool]:
    return [all(_entry_by_entry(before, after, shift))] * len(before)


@unchanged.misconception("You return False if the lengths differ. Compare the rows that both caches have.")
def same_length(before: States, after: States, shift: int) -> list[bool]:
    same = _entry_by_entry(before, after, shift)
    return [ok and len(old) == len(new) for ok, old, new in zip(same, before, after, strict=True)]


@unchanged.misconception("You compare for equal bits. Rounding may change the last digits: allow 1e-5.")
def bit_equal(before: States, after: States, shift: int) -> list[bool]:
    found = []
    for old, new in zip(before, after, strict=True):
        rows = [i for i in range(len(old)) if 0 <= i - shift < len(new)]
        found.append(bool(rows) and all(old[i].equal(new[i - shift]) for i in rows))
    return found


@unchanged.misconception(
    "You allow a larger difference for larger numbers, as `torch.allclose` does with its `rtol`. Allow 1e-5 for all."
)
def relative(before: States, after: States, shift: int) -> list[bool]:
    found = []
    for old, new in zip(before, after, strict=True):
        rows = [i for i in range(len(old)) if 0 <= i - shift < len(new)]
        found.append(bool(rows) and all(torch.allclose(old[i], new[i - shift], atol=1e-5) for i in rows))
    return found


@unchanged.misconception(
    "You return True if both have no row in common, as Python's `all` of nothing does. Return False."
)
def nothing_is_all(before: States, after: States, shift: int) -> list[bool]:
    return [all(rows) for rows in _each(before, after, shift)]


@unchanged.misconception(
    "You compare the length of the difference. Every entry may differ by 1e-5, so take the largest |difference|."
)
def by_length(before: States, after: States, shift: int) -> list[bool]:
    return _by(before, after, shift, lambda gap: gap.norm(dim=-1).max())


@unchanged.misconception(
    "You compare the mean difference, in which one large difference is lost. *No* entry may differ by more than 1e-5."
)
def by_mean(before: States, after: States, shift: int) -> list[bool]:
    return _by(before, after, shift, lambda gap: gap.abs().mean())


@unchanged.misconception("You leave out the sign: a negative difference is always below 1e-5. Take its absolute value.")
def without_abs(before: States, after: States, shift: int) -> list[bool]:
    return _by(before, after, shift, lambda gap: gap.max())


def _by(before: States, after: States, shift: int, size: Callable[[Tensor], Tensor]) -> list[bool]:
    """For each layer, whether a measure of all differences after − before is at most 1e-5."""
    found = []
    for old, new in zip(before, after, strict=True):
        rows = [i for i in range(len(old)) if 0 <= i - shift < len(new)]
        found.append(bool(rows) and size(torch.stack([new[i - shift] - old[i] for i in rows])).item() <= CLOSE)
    return found


@unchanged.misconception("The shift has no effect in your answer.")
def no_shift(before: States, after: States, shift: int) -> list[bool]:
    return _entry_by_entry(before, after, 0)


@unchanged.misconception(
    "An index below 0 counts from the end in Python: you compare rows that do not belong together."
)
def wrapped(before: States, after: States, shift: int) -> list[bool]:
    found = []
    for old, new in zip(before, after, strict=True):
        rows = [i for i in range(len(old)) if i - shift < len(new) and shift - i <= len(new)]
        found.append(bool(rows) and all(bool((old[i] - new[i - shift]).abs().max() <= CLOSE) for i in rows))
    return found


@unchanged.misconception(
    "You let i − shift fall below 0. Python then counts from the end, and stops with IndexError beyond the first row: "
    "skip these i."
)
def wrapped_until_it_fails(before: States, after: States, shift: int) -> list[bool]:
    found = []
    for old, new in zip(before, after, strict=True):
        rows = [new[i - shift].sub(old[i]).abs().max() <= CLOSE for i in range(len(old)) if i - shift < len(new)]
        found.append(bool(rows) and bool(torch.stack(rows).all()))
    return found


unchanged.equivalent_mutant(
    "gaps = [(x - new[i - shift]).abs().max() for i, x in enumerate(old) if 0 <= i - shift < len(new)] → "
    "gaps = [(new[i - shift] - x).abs().max() for i, x in enumerate(old) if 0 <= i - shift < len(new)]",
    "A distance does not see the sign.",
)
