"""Wrong answers to the exercise on speculative decoding, each with what it does wrong."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Answer = tuple[int, Tensor]
Speculation = Callable[[Tensor, Tensor, Tensor, Tensor], Answer]

WRONG_SPECULATIONS: list[tuple[Speculation, str]] = []


def _wrong(sentence: str) -> Callable[[Speculation], Speculation]:
    """Put a wrong answer on the list."""

    def keep(answer: Speculation) -> Speculation:
        WRONG_SPECULATIONS.append((answer, sentence))
        return answer

    return keep


def _stays(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> list[bool]:
    rows = torch.arange(len(drafted))
    answer: list[bool] = (chance * q[rows, drafted] < p[rows, drafted]).tolist()
    return answer


def _count(stays: list[bool]) -> int:
    return [*stays, False].index(False)


def _after(p: Tensor, q: Tensor, kept: int) -> Tensor:
    if kept >= len(q):
        return p[kept]
    rest = (p[kept] - q[kept]).clamp(min=0)
    return rest / rest.sum()


@_wrong(
    "After a miss you draw from p. Then what the draft likes too much stays too frequent: only what p has *more* of is "
    "missing."
)
def from_p(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, p[kept]


@_wrong("You keep with probability q/p. It is p/q: certain where the large model likes the token *more*.")
def inverted(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(q, p[:-1], drafted, chance))
    return kept, _after(p, q, kept)


@_wrong(
    "You keep a token also where chance · q is just p. It has to be less: else a chance of 0 keeps what p excludes."
)
def border_kept(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    rows = torch.arange(len(drafted))
    kept = _count((chance * q[rows, drafted] <= p[rows, drafted]).tolist())
    return kept, _after(p, q, kept)


@_wrong("What is left of p − q is not divided by its sum: your distribution does not sum to one.")
def not_renormalised(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, p[kept] if kept == len(q) else (p[kept] - q[kept]).clamp(min=0)


@_wrong("The first miss ends it: what comes after was drafted behind a token that is gone.")
def goes_on(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = sum(_stays(p, q, drafted, chance))
    return kept, _after(p, q, kept)


@_wrong("If all stay, the last row of p gives one token more, for free. You give nothing.")
def no_bonus(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, torch.zeros_like(p[0]) if kept == len(q) else _after(p, q, kept)


@_wrong("You keep a token only if it is the large model's best. That is another text than a drawn one.")
def only_the_best(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count((p[: len(drafted)].argmax(-1) == drafted).tolist())
    return kept, _after(p, q, kept)


@_wrong("You keep a token whenever p is at least q, and never else. If p is smaller, chance decides.")
def no_chance(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, torch.full_like(chance, 1 - 1e-12)))
    return kept, _after(p, q, kept)


@_wrong("You compare the chance with p alone. The draft has drawn the token with q already: divide by it.")
def p_alone(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    rows = torch.arange(len(drafted))
    kept = _count((chance < p[rows, drafted]).tolist())
    return kept, _after(p, q, kept)


@_wrong("Behind k kept tokens *row k* decides. You take the one after it.")
def wrong_row(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, _after(p, q, min(kept + 1, len(q)))


@_wrong("You take |p − q|. Where q is larger, nothing is missing.")
def absolute(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    gap = (p[kept] - q[kept]).abs() if kept < len(q) else p[kept]
    return kept, gap / gap.sum()


@_wrong("You count the rejected token, too.")
def rejected_counted(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return min(kept + 1, len(drafted)), _after(p, q, kept)


@_wrong("You only take the rejected token out of p. What p and q share has been drawn already: subtract q.")
def rejected_taken_out(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    rest = p[kept].clone()
    if kept < len(q):
        rest[drafted[kept]] = 0
    return kept, rest / rest.sum()
