"""The exercise on which stored vectors stay valid when a text grows or loses its first token."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
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
        case("all numbers off by 1e-5", [ZERO], [ZERO + CLOSE], 0),
        case("all numbers off by 1.5e-5", [FLAT], [FLAT + 1.5e-5], 0),
        edge(case("one token in common", [ROWS], [ROWS[2:]], 2)),
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
def common_rows(before: list[Tensor], after: list[Tensor], shift: int) -> list[bool]:
    answers = []
    for old, new in zip(before, after, strict=True):
        rows = [i for i in range(len(old)) if 0 <= i - shift < len(new)]
        same = [bool((old[i] - new[i - shift]).abs().max() <= 1e-5) for i in rows]
        answers.append(bool(rows) and all(same))
    return answers


unchanged.slips(
    common_rows,
    {
        "0 <= i - shift → 0 <= i + shift ;; new[i - shift] → new[i + shift]": "You compare before[i] with after[i + "
        "shift]. The task asks for after[i − shift].",
        "all(same) → same[-1]": "You look at the last row only. All rows that both caches have must agree.",
        "all(same) → same[0]": "You look at the first row only. All rows that both caches have must agree.",
        "all(same) → any(same)": "You accept one row that agrees. All rows must agree.",
        "return answers → return [all(answers)] * len(answers)": "You give all layers one answer. The first may agree "
        "where deeper ones do not.",
        "bool(rows) → bool(rows) and len(old) == len(new)": "You return False if the lengths differ. Compare the rows "
        "that both caches have.",
        "(old[i] - new[i - shift]).abs().max() <= 1e-5 → old[i].equal(new[i - shift])": "You compare for equal bits. "
        "Rounding may change the last digits: allow 1e-5.",
        "(old[i] - new[i - shift]).abs().max() <= 1e-5 → torch.allclose(old[i], new[i - shift], atol=1e-5)": "You "
        "allow a larger difference for larger numbers, as `torch.allclose` does with its `rtol`. Allow 1e-5 for all.",
        "bool(rows) and → ": "You return True if both have no row in common, as Python's `all` of nothing does. "
        "Return False.",
        ".abs().max() → .norm()": "You compare the length of the difference. Every entry may differ by 1e-5, so take "
        "the largest |difference|.",
        "bool((old[i] - new[i - shift]).abs().max() <= 1e-5) → (old[i] - new[i - shift]).abs().mean() ;; all(same) → "
        "bool(sum(same) / len(same) <= 1e-5)": "You compare the mean difference, in which one large difference is "
        "lost. *No* entry may differ by more than 1e-5.",
        "(old[i] - new[i - shift]).abs() → (new[i - shift] - old[i])": "You leave out the sign: a negative difference "
        "is always below 1e-5. Take its absolute value.",
        "0 <= i - shift → 0 <= i ;; new[i - shift] → new[i]": "The shift has no effect in your answer.",
        "0 <= i - shift → -len(new) <= i - shift": "An index below 0 counts from the end in Python: you compare rows "
        "that do not belong together.",
        "0 <= i - shift → i - shift": "You let i − shift fall below 0. Python then counts from the end, and stops "
        "with IndexError beyond the first row: skip these i.",
    },
)


unchanged.equivalent_mutant(
    "gaps = [(x - new[i - shift]).abs().max() for i, x in enumerate(old) if 0 <= i - shift < len(new)] → "
    "gaps = [(new[i - shift] - x).abs().max() for i, x in enumerate(old) if 0 <= i - shift < len(new)]",
    "A distance does not see the sign.",
)
