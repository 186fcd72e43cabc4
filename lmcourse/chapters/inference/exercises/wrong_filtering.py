"""Wrong answers to the exercise on top-k, top-p and min-p: one pipeline, with one step done wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Rule = Callable[[Tensor, float], Tensor]
"""A rule: takes logits and the rule's number, and returns logits."""

OUT = -math.inf


def _order(logits: Tensor) -> Tensor:
    return logits.argsort(dim=-1, descending=True, stable=True)


def _top_k(logits: Tensor, k: float) -> Tensor:
    return logits.scatter(-1, _order(logits)[:, int(k) :], OUT)


def _before(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sorted order, the sorted probabilities, and the sum of those before each one."""
    order = _order(logits)
    p = logits.double().softmax(-1).gather(-1, order)
    return order, p, p.cumsum(-1) - p


def _out(logits: Tensor, order: Tensor, out: Tensor) -> Tensor:
    return logits.masked_fill(torch.zeros_like(out).scatter(-1, order, out), OUT)


def _top_p(logits: Tensor, share: float) -> Tensor:
    order, _, before = _before(logits)
    return logits if share == 1 else _out(logits, order, before >= share)


def _min_p(logits: Tensor, share: float) -> Tensor:
    return logits.masked_fill(logits.double() < logits.double().amax(-1, keepdim=True) + math.log(share), OUT)


def _checked(top_k: int | None, top_p: float | None, min_p: float | None) -> None:
    if (top_k is not None and top_k < 1) or any(s is not None and not 0 < s <= 1 for s in (top_p, min_p)):
        raise ValueError("an argument is out of range")


def _run(
    logits: Tensor,
    numbers: tuple[int | None, float | None, float | None],
    top_k: Rule = _top_k,
    top_p: Rule = _top_p,
    min_p: Rule = _min_p,
) -> Tensor:
    _checked(*numbers)
    for rule, number in zip((top_k, top_p, min_p), numbers, strict=True):
        logits = logits if number is None else rule(logits, number)
    return logits


def crossing_out(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        order, p, before = _before(logits)
        return logits if share == 1 else _out(logits, order, before + p > share)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def crossing_out_but_the_first(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        order, p, before = _before(logits)
        return logits if share == 1 else _out(logits, order, (before + p > share) & (before > 0))

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def one_too_many(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        order, p, before = _before(logits)
        return logits if share == 1 else _out(logits, order, (before - p.roll(1, -1)) >= share)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def each_above_p(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        return logits if share == 1 else logits.masked_fill(logits.softmax(-1) < share, OUT)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def rounded_at_one(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        order, _, before = _before(logits.float())
        return _out(logits, order, before >= share)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def k_th_out(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, k: float) -> Tensor:
        last = logits.topk(min(int(k), logits.shape[-1])).values[:, -1:]
        return logits.masked_fill(logits <= last, OUT)

    return _run(logits, (top_k, top_p, min_p), top_k=rule)


def mask_in_sorted_order(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        _, _, before = _before(logits)
        return logits if share == 1 else logits.masked_fill(before >= share, OUT)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def min_p_first(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    _checked(top_k, top_p, min_p)
    return _run(_run(logits, (None, None, min_p)), (top_k, top_p, None))


def absolute(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        return logits.masked_fill(logits.softmax(-1) < share, OUT)

    return _run(logits, (top_k, top_p, min_p), min_p=rule)


def of_logits(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        return logits.masked_fill(logits < share * logits.amax(-1, keepdim=True), OUT)

    return _run(logits, (top_k, top_p, min_p), min_p=rule)


def sorted_places(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return _run(logits, (top_k, top_p, min_p)).sort(-1, descending=True).values


def zeros(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return _run(logits, (top_k, top_p, min_p)).nan_to_num(neginf=0.0)


def probabilities(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return _run(logits, (top_k, top_p, min_p)).softmax(-1)


def not_renewed(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    _checked(top_k, top_p, min_p)
    kept = [_run(logits, rules) for rules in ((top_k, None, None), (None, top_p, None), (None, None, min_p))]
    return torch.stack(kept).amin(0)


def in_place(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return logits.copy_(_run(logits, (top_k, top_p, min_p)))


def never_refuses(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    k = None if top_k is None else max(top_k, 1)
    p, m = (None if share is None else min(max(share, 1e-30), 1.0) for share in (top_p, min_p))
    return _run(logits, (k, p, m))


def least_first(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        order, p, _ = _before(logits)
        return logits if share == 1 else _out(logits, order, p.flip(-1).cumsum(-1).flip(-1) <= share)

    return _run(logits, (top_k, top_p, min_p), top_p=rule)


def best_of_all_rows(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        p = logits.double().softmax(-1)
        return logits.masked_fill(p < share * p.max(), OUT)

    return _run(logits, (top_k, top_p, min_p), min_p=rule)


def equals_out(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    def rule(logits: Tensor, share: float) -> Tensor:
        return logits.masked_fill(logits.double() <= logits.double().amax(-1, keepdim=True) + math.log(share), OUT)

    return _run(logits, (top_k, top_p, min_p), min_p=rule)


def k_not_limited(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    kept = _run(logits, (top_k, top_p, min_p))
    if top_k is not None:
        logits.topk(top_k, dim=-1)
    return kept


def widened(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return _run(logits.float(), (top_k, top_p, min_p))


def log_probabilities(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    return _run(logits, (top_k, top_p, min_p)).log_softmax(-1)


WRONG_FILTERS = (
    (
        least_first,
        "You add up from the least likely token, and remove tokens that have up to `top_p` together. Add up from the "
        "likeliest.",
    ),
    (
        best_of_all_rows,
        "You compare with the best token of all rows. min_p times the best probability of the *same* row is the limit.",
    ),
    (equals_out, "You drop a token with exactly min_p times the best probability. It stays: the rule says *at least*."),
    (k_not_limited, "`topk` stops if k is larger than the vocabulary. Then all tokens stay: take the smaller of both."),
    (widened, "Your logits come back in float32. Compare in float32, and return them in the dtype that they had."),
    (log_probabilities, "You return log-probabilities. Leave the logits that stay as they came."),
    (
        crossing_out,
        "You drop the token that crosses `top_p`. It belongs to the set: look at the sum of the tokens *before* it.",
    ),
    (
        crossing_out_but_the_first,
        "You keep the best token, and drop a later one that crosses `top_p`. It stays, too: only the tokens *before* "
        "it count.",
    ),
    (
        one_too_many,
        "You keep one token more than the one that reaches p. A token stays if those *before* it have less than p.",
    ),
    (
        each_above_p,
        "You compare each token's own probability with top_p. It limits what the kept tokens have *together*.",
    ),
    (rounded_at_one, "Your rounded sum reaches 1 too early. With top-p 1 every token stays."),
    (k_th_out, "You drop the k-th best token itself. It belongs to the k tokens that stay."),
    (
        mask_in_sorted_order,
        "You sort, and apply the mask to logits that are not sorted. Put the mask back in place first, with `scatter`.",
    ),
    (min_p_first, "You apply min-p before the others. The order is top-k, top-p, min-p."),
    (absolute, "You compare probabilities with min_p itself. The limit is min_p times the *best* token's probability."),
    (
        of_logits,
        "You multiply the best *logit* by min_p. The fraction is of its probability: in logits, add ln(min_p).",
    ),
    (sorted_places, "Your results are in sorted order. Put each one back at its token's place, with `scatter`."),
    (zeros, "You set logits to 0 for tokens that are out. A logit of 0 is still a probability: use −∞."),
    (probabilities, "You return probabilities. Return logits."),
    (
        not_renewed,
        "Your top-p does not start from what top-k left. Each rule works on the tokens that the rule before it left, "
        "normalised again.",
    ),
    (in_place, "You change the logits that you were given. Work on a copy."),
    (never_refuses, "You accept a k below 1, or a top_p or min_p that is not above 0 and at most 1. Raise ValueError."),
)
