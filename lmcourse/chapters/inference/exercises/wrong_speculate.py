"""Wrong answers to the exercise on speculative decoding, each with a sentence about its mistake."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Answer = tuple[int, Tensor]
Speculation = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[int, Tensor | None]]

WRONG_SPECULATIONS: list[tuple[Speculation, str]] = []


def _wrong(sentence: str) -> Callable[[Speculation], Speculation]:
    """Add a wrong answer to the list."""

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
    "After a miss you draw from p. Kept guesses already give a part of p: subtract what they give, and draw from "
    "the rest."
)
def from_p(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, p[kept]


@_wrong(
    "You keep a token with probability q/p. It is p/q: a token that the large model finds *more* likely always stays."
)
def inverted(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(q, p[:-1], drafted, chance))
    return kept, _after(p, q, kept)


@_wrong(
    "You keep a token even when chance · q equals p. It must be less: a chance of 0 would keep tokens that p excludes."
)
def border_kept(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    rows = torch.arange(len(drafted))
    kept = _count((chance * q[rows, drafted] <= p[rows, drafted]).tolist())
    return kept, _after(p, q, kept)


@_wrong("You do not divide what is left of p − q by its sum, so your distribution does not sum to one.")
def not_renormalised(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, p[kept] if kept == len(q) else (p[kept] - q[kept]).clamp(min=0)


@_wrong("You continue after the first miss. The later tokens were drafted after a token that was rejected.")
def goes_on(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = sum(_stays(p, q, drafted, chance))
    return kept, _after(p, q, kept)


@_wrong("If all stay, you return no distribution. The last row of p is for the token after the whole draft.")
def no_bonus(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, torch.zeros_like(p[0]) if kept == len(q) else _after(p, q, kept)


@_wrong("You keep a token only if it is the large model's best. Keep it with probability min(1, p/q).")
def only_the_best(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count((p[: len(drafted)].argmax(-1) == drafted).tolist())
    return kept, _after(p, q, kept)


@_wrong("You keep a token only if p is at least q. If p is smaller, keep it with probability p/q.")
def no_chance(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, torch.full_like(chance, 1 - 1e-12)))
    return kept, _after(p, q, kept)


@_wrong("You compare the chance with p alone. Compare it with p/q.")
def p_alone(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    rows = torch.arange(len(drafted))
    kept = _count((chance < p[rows, drafted]).tolist())
    return kept, _after(p, q, kept)


@_wrong("After k kept tokens *row k* decides. You take the row after it.")
def wrong_row(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, _after(p, q, min(kept + 1, len(q)))


@_wrong("You take |p − q|. Where q is larger than p, use 0.")
def absolute(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    gap = (p[kept] - q[kept]).abs() if kept < len(q) else p[kept]
    return kept, gap / gap.sum()


@_wrong("You count the rejected token as well.")
def rejected_counted(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return min(kept + 1, len(drafted)), _after(p, q, kept)


@_wrong("You only remove the rejected token from p. Kept guesses already give a part of the other tokens: subtract q.")
def rejected_taken_out(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    rest = p[kept].clone()
    if kept < len(q):
        rest[drafted[kept]] = 0
    return kept, rest / rest.sum()


@_wrong("You do not set negative differences to 0. Where q is larger than p, nothing is missing.")
def negative_kept(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    gap = p[kept] - q[kept] if kept < len(q) else p[kept]
    return kept, gap / gap.abs().sum()


@_wrong("Your distribution has negative entries: p − q is below 0 where q is larger. Set those to 0, then divide.")
def negative_kept_in_the_sum(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    gap = p[kept] - q[kept] if kept < len(q) else p[kept]
    return kept, gap / gap.sum()


@_wrong("You take the softmax of max(p − q, 0), which gives every token a chance. Divide by the sum instead.")
def softmax_of_the_positive_rest(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, (p[kept] - q[kept]).clamp(min=0).softmax(-1) if kept < len(q) else p[kept]


@_wrong("If all stay, you return the row of p for the last guess. The row after it is for the next token.")
def last_guess_again(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, _after(p, q, kept) if kept < len(q) else p[max(len(q) - 1, 0)]


@_wrong("You make a distribution of p − q with a softmax. Set negative differences to 0, and divide by the sum.")
def softmax_of_the_rest(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, (p[kept] - q[kept]).softmax(-1) if kept < len(q) else p[kept]


@_wrong("You draw from max(q − p, 0). Draw from max(p − q, 0): what p has beyond q.")
def other_way_round(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    rest = (q[kept] - p[kept]).clamp(min=0) if kept < len(q) else p[kept]
    return kept, rest / rest.sum()


@_wrong(
    "If all stay, you subtract a row of q as well. The place after the draft has no guess: the last row of p counts."
)
def last_row_too(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> Answer:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, _after(p, q, kept) if kept < len(q) or not len(q) else _after(p[-1:], q[-1:], 0)


@_wrong("If all stay, you return None. The last row of p is for the token after the whole draft.")
def none_if_all_stay(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor | None]:
    kept = _count(_stays(p, q, drafted, chance))
    return kept, _after(p, q, kept) if kept < len(q) else None
