"""The exercise on top-k, top-p and min-p."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

OUT = -math.inf


def _in_lists(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    """Filter row by row, with Python's own numbers, sorting and sums."""
    if top_k is not None and top_k < 1:
        raise ValueError("top-k keeps at least one token")
    if any(share is not None and not 0 < share <= 1 for share in (top_p, min_p)):
        raise ValueError("a share is above 0 and at most 1")
    rows = []
    for row in logits.tolist():
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))
        order = _kept(row, order[:top_k], top_p)
        limit = OUT if min_p is None else row[order[0]] + math.log(min_p)
        kept = {token for token in order if row[token] >= limit}
        rows.append([logit if token in kept else OUT for token, logit in enumerate(row)])
    return torch.tensor(rows, dtype=logits.dtype).reshape(logits.shape)


def _kept(row: list[float], order: list[int], top_p: float | None) -> list[int]:
    if top_p is None or top_p == 1:
        return order
    weights = [math.exp(row[token] - row[order[0]]) for token in order]
    before = [math.fsum(weights[:rank]) / math.fsum(weights) for rank in range(len(order))]
    return [token for token, share in zip(order, before, strict=True) if share < top_p]


def _logs(*probabilities: float) -> Tensor:
    return torch.tensor([probabilities]).log()


FOUR = torch.zeros(1, 4)
UNSORTED = _logs(0.05, 0.5, 0.15, 0.3)
ALONE = "filter_logits(x, 2, 0.6, 0.1)\nx"


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    rows = normal(fixed, 5, 9, scale=2.0)
    sure = torch.tensor([[0.0, 90.0, 0.0, -5.0]])
    missing = torch.tensor([[OUT, 1.0, 0.5, OUT, 0.0], [2.0, OUT, OUT, OUT, 1.5]])
    return [
        *(case("each rule alone", rows, *rules) for rules in ((3, None, None), (None, 0.6, None), (None, None, 0.2))),
        case("all rules", rows, 5, 0.7, 0.15),
        case("all rules", 3 * rows[:, :4], 2, 0.97, 0.05),
        case("no rule", rows, None, None, None),
        edge(case("top_p = 1", sure, None, 1.0, None)),
        edge(case("top_p = 1", normal(fixed, 1, 400, scale=6.0), None, 1.0, None)),
        case("a sure token", sure, None, 0.5, None),
        case("a sure token", sure, None, None, 0.5),
        edge(case("min-p 1: equals stay", torch.tensor([[2.0, 1.0, 2.0, 2.0]]), None, None, 1.0)),
        edge(case("tokens that are out already", missing, None, 0.6, None)),
        edge(case("tokens that are out already", missing, 2, 1.0, 0.9)),
        edge(case("tokens that are out already", missing, 4, 0.99, 0.01)),
        edge(case("k above the vocabulary", rows, 50, None, None)),
        edge(case("k above the vocabulary", rows, 9, 0.5, None)),
        case("k = 1", rows, 1, 1.0, 1.0),
        case("one token", torch.tensor([[-3.0], [5.0]]), 1, 0.1, 1.0),
        case("half precision", rows.half(), 4, 0.8, 0.05),
        case("half precision", (9 * rows).bfloat16(), None, 0.9, None),
        edge(case("half precision", torch.tensor([[6.6875, 9.0, 6.71875, 0.0]]).bfloat16(), None, None, 0.1)),
        case("double precision", rows.double(), 4, 0.8, 0.05),
        edge(case("large logits", 1e4 * rows, 3, 0.9, 0.1)),
        edge(case("large logits", 1e4 + torch.tensor([[0.0, 2.0, 1.0, -3.0]]), None, 0.9, 0.01)),
        script("the input stays as it is", ALONE, x=2 * UNSORTED),
        *(
            case("bad input", FOUR, *rules)
            for rules in ((0, None, None), (-2, None, None), (None, 0.0, None), (None, 1.5, None), (None, -0.1, None))
        ),
        *(case("bad input", FOUR, 1, 0.5, share) for share in (0.0, 1.01, -0.2)),
        case("other rows", normal(random, 6, 8), random.randint(2, 6), None, None),
        case("other rows", normal(random, 6, 8), None, random.uniform(0.6, 0.9), None),
    ]


filter_logits = Exercise(
    "filter_logits",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_in_lists,
    cases=[
        case("top-k: the best two, where they stand", UNSORTED, 2, None, None),
        case("top-p 0.9 of 0.85, 0.1, 0.05", _logs(0.85, 0.1, 0.05), None, 0.9, None),
        case("top-p 0.4, unsorted", UNSORTED, None, 0.4, None),
        edge(case("top-p 1 behind a sure token", torch.tensor([[60.0, 0.0, 1.0]]), None, 1.0, None)),
        case("min-p 0.1", _logs(0.5, 0.3, 0.15, 0.04, 0.01), None, None, 0.1),
        case("min-p 0.35, two rows", torch.cat([UNSORTED, _logs(0.1, 0.35, 0.15, 0.4)]), None, None, 0.35),
        case("top-k 2, then top-p 0.6", UNSORTED, 2, 0.6, None),
        case("top-p 0.75, then min-p 0.3", _logs(0.4, 0.3, 0.2, 0.1), None, 0.75, 0.3),
        case("a token that is out already", torch.tensor([[OUT, 1.0, 0.0, 0.0]]), 2, None, 0.5),
        script("the input stays as it is", ALONE, x=UNSORTED),
        edge(case("min-p 1: equals stay", torch.tensor([[0.0, 1.0, 1.0, 0.0]]), None, None, 1.0)),
        edge(case("top-k 1", UNSORTED, 1, None, None)),
        edge(case("min-p 0.1 in bf16", torch.tensor([[7.6875, 10.0, 7.71875, 1.0]]).bfloat16(), None, None, 0.1)),
        edge(case("k above the vocabulary", UNSORTED, 9, None, None)),
        case("half precision, top-k 2", UNSORTED.half(), 2, None, None),
        edge(case("half precision, top-p of 512", torch.linspace(-1, 1, 512)[None].half(), None, 0.9, None)),
        edge(case("bf16, top-p of 128", torch.linspace(0, 4, 128)[None].bfloat16(), None, 0.95, None)),
        case("top-k 0", UNSORTED, 0, None, None),
        case("top-p 0", UNSORTED, None, 0.0, None),
        case("min-p above 1", UNSORTED, None, None, 1.5),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write one function per rule: each takes logits and returns logits, with −∞ for tokens that are out. Begin "
        "with min-p, which needs no sorting. A fraction of the best token's probability is, in logits, the best logit "
        "plus ln(fraction).",
        "For top-k: with `order = logits.argsort(dim=-1, descending=True)`, `logits.scatter(-1, order[:, k:], "
        "-math.inf)` removes everything after the k best, at its original place.",
        "For top-p: over the sorted probabilities p, `before = p.cumsum(-1) - p` is the sum before each token. A token "
        "is out if `before >= top_p`; put this mask back in place with scatter. Rounded sums may reach 1 too early: "
        "with top_p = 1 do nothing.",
    ],
)


@filter_logits.variant
def rule_by_rule(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if (top_k is not None and top_k < 1) or any(share is not None and not 0 < share <= 1 for share in (top_p, min_p)):
        raise ValueError("an argument is out of range")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        logits = logits.scatter(-1, order[:, top_k:], -math.inf)
    if top_p is not None and top_p < 1:
        p = logits.double().softmax(dim=-1).gather(-1, order)
        before = p.cumsum(dim=-1) - p
        out = before >= top_p
        logits = logits.masked_fill(torch.zeros_like(out).scatter(-1, order, out), -math.inf)
    if min_p is not None:
        limit = logits.double().amax(dim=-1, keepdim=True) + math.log(min_p)
        logits = logits.masked_fill(logits.double() < limit, -math.inf)
    return logits


@filter_logits.variant
def from_the_least_likely(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if (top_k is not None and top_k < 1) or any(share is not None and not 0 < share <= 1 for share in (top_p, min_p)):
        raise ValueError("an argument is out of range")
    if top_k is not None:
        last = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]
        logits = logits.masked_fill(logits < last, -float("inf"))
    if top_p is not None and top_p < 1:
        sorted_logits, sorted_ids = torch.sort(logits.float(), descending=False)
        removed = sorted_logits.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        removed[..., -1:] = False
        logits = logits.masked_fill(removed.scatter(1, sorted_ids, removed), -float("inf"))
    if min_p is not None:
        p = logits.float().softmax(dim=-1)
        logits = logits.masked_fill(p < min_p * p.max(dim=-1, keepdim=True)[0], -float("inf"))
    return logits


filter_logits.slips(
    rule_by_rule,
    {
        "before >= top_p → before + p > top_p": "You drop the token that crosses `top_p`. It belongs to the set: "
        "look at the sum of the tokens *before* it.",
        "before >= top_p → (before + p > top_p) & (before > 0)": "You keep the best token, and drop a later one that "
        "crosses `top_p`. It stays, too: only the tokens *before* it count.",
        "before >= top_p → before - p.roll(1, -1) >= top_p": "You keep one token more than the one that reaches p. A "
        "token stays if those *before* it have less than p.",
        "torch.zeros_like(out).scatter(-1, order, out), -math.inf) → torch.zeros_like(out).scatter(-1, order, out), "
        "0.0)": "Top-p sets logits to 0. A logit of 0 is still a probability: use −∞.",
        "p = logits.double().softmax(dim=-1) → p = logits.softmax(dim=-1)": "Your probabilities have the dtype of "
        "the logits, and in half precision their sum rounds. Compute them in float32.",
        "p = logits → order = logits.argsort(dim=-1, descending=True, stable=True)\n        p = logits ;; "
        "torch.zeros_like(out).scatter(-1, order, out) → out.gather(-1, order)": "You put the mask back with "
        "`gather`. That sorts it once more: use `scatter`, or gather by `order.argsort()`.",
        "torch.zeros_like(out).scatter(-1, order, out) → out.gather(-1, order)": "You put the mask back with "
        "`gather`. That sorts it once more: use `scatter`, or gather by `order.argsort()`.",
        "before = p.cumsum(dim=-1) - p → before = p.flip(-1).cumsum(dim=-1).flip(-1) - p": "You sort from the least "
        "likely token on, so top-p keeps the tail. Begin with the likeliest.",
        "not 0 < share → not 0 <= share": "You accept a share of 0, which keeps no token. Raise ValueError.",
        "share <= 1 → share": "You accept a share above 1. Raise ValueError.",
        "before >= top_p → p < top_p": "You compare each token's own probability with top_p. It limits what the kept "
        "tokens have *together*.",
        " and top_p < 1 → ": "Your rounded sum reaches 1 too early. With top-p 1 every token stays.",
        "top_k:] → min(top_k, logits.shape[-1]) - 1 :]": "You drop the k-th best token itself. It belongs to the k "
        "tokens that stay.",
        "torch.zeros_like(out).scatter(-1, order, out) → out": "You sort, and apply the mask to logits that are not "
        "sorted. Put the mask back in place first, with `scatter`.",
        "order = → if min_p and (top_k or top_p):\n        logits = rule_by_rule(logits, None, None, min_p)\n    "
        "order =": "You apply min-p before the others. The order is top-k, top-p, min-p.",
        "logits.double() < limit → logits.softmax(dim=-1) < min_p": "You compare probabilities with min_p itself. "
        "The limit is min_p times the *best* token's probability.",
        "+ math.log(min_p) → * min_p": "You multiply the best *logit* by min_p. The fraction is of its probability: "
        "in logits, add ln(min_p).",
        "return logits → return logits.sort(dim=-1, descending=True).values": "Your results are in sorted order. Put "
        "each one back at its token's place, with `scatter`.",
        "return logits → return logits.nan_to_num(neginf=0.0)": "You set logits to 0 for tokens that are out. A "
        "logit of 0 is still a probability: use −∞.",
        "return logits → return logits.softmax(dim=-1)": "You return probabilities. Return logits.",
        "order = → given = logits\n    order = ;; p = logits → p = given": "Your top-p does not start from what "
        "top-k left. Each rule works on the tokens that the rule before it left, normalised again.",
        "order = → given = logits\n    order = ;; return logits → return given.copy_(logits)": "You change the "
        "logits that you were given. Work on a copy.",
        'raise ValueError("an argument is out of range") → top_k = None if top_k is None else max(top_k, 1)': "You "
        "accept a k below 1, or a top_p or min_p that is not above 0 and at most 1. Raise ValueError.",
        "before >= top_p → p.flip(-1).cumsum(-1).flip(-1) <= top_p": "You add up from the least likely token, and "
        "remove tokens that have up to `top_p` together. Add up from the likeliest.",
        "logits.double() < limit → (p := logits.double().softmax(dim=-1)) < min_p * p.max()": "You compare with the "
        "best token of all rows. min_p times the best probability of the *same* row is the limit.",
        "< limit → <= limit": "You drop a token with exactly min_p times the best probability. It stays: the rule "
        "says *at least*.",
        "order = → logits = logits.float()\n    order =": "Your logits come back in float32. Compare in float32, and "
        "return them in the dtype that they had.",
        "return logits → return logits.log_softmax(dim=-1)": "You return log-probabilities. Leave the logits that "
        "stay as they came.",
    },
)


filter_logits.slips(
    from_the_least_likely,
    {
        "min(top_k, logits.size(-1)) → top_k": "`topk` stops if k is larger than the vocabulary. Then all tokens "
        "stay: take the smaller of both.",
    },
)


filter_logits.equivalent_mutant(
    "out = p.cumsum(dim=1) - p >= top_p → out = p.cumsum(dim=1) - p > top_p", "The text leaves a tie open."
)
