"""The exercise on speculative decoding: which drafted tokens are kept, and which token follows them."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise


def _exactly(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    """Compute in fractions, entry by entry."""
    large, small = ([[Fraction(x) for x in row] for row in rows.tolist()] for rows in (p, q))
    kept = 0
    for token, u, above, below in zip(drafted.tolist(), chance.tolist(), large, small, strict=False):
        if not Fraction(u) * below[token] < above[token]:
            break
        kept += 1
    follows = large[kept]
    if kept < len(small):
        missing = [max(a - b, Fraction(0)) for a, b in zip(large[kept], small[kept], strict=True)]
        follows = [part / sum(missing) for part in missing]
    return kept, torch.tensor([float(x) for x in follows], dtype=p.dtype)


def _t(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _tokens(*tokens: int) -> Tensor:
    return torch.tensor(tokens, dtype=torch.long)


def _chance(*chance: float) -> Tensor:
    return torch.tensor(chance, dtype=torch.float64)


P = _t((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.3, 0.3, 0.4))
Q = _t((0.2, 0.3, 0.5), (0.6, 0.2, 0.2))
EIGHTHS = _t((0.5, 0.25, 0.25), (0.25, 0.5, 0.25))


def _parts(name: str, drafted: Tensor, chance: Tensor) -> list[Case]:
    """Return a case for the number of tokens and one for the distribution, so that each earns points by itself."""
    return [
        script(
            f"{name}: {part}", f"speculate(p, q, drafted, chance)[{place}]", p=P, q=Q, drafted=drafted, chance=chance
        )
        for place, part in enumerate(("how many stay", "the distribution"))
    ]


def _drawn(name: str, random: Random, n: int, v: int, low: int, high: int) -> Case:
    """A case with probabilities that are ratios of whole numbers, and random numbers far from any threshold."""

    def rows(count: int) -> Tensor:
        weights = [random.sample(range(1, 40 * v), v) for _ in range(count)]
        return _t(*(tuple(w / sum(row) for w in row) for row in weights)).reshape(count, v)

    drafted = [random.randrange(v) for _ in range(n)]
    chance = [random.randint(low, high) / 1000 + 0.00037 for _ in range(n)]
    return case(name, rows(n + 1), rows(n), _tokens(*drafted), _chance(*chance))


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    impossible = _t((0.0, 1.0, 0.0), (0.2, 0.3, 0.5), (1.0, 0.0, 0.0))
    none = torch.zeros(0, 3, dtype=torch.float64)
    single = P.float(), Q.float(), _tokens(2, 0), _chance(0.7, 0.1).float()
    return [
        case("nothing drafted", P[2:], none, _tokens(), _chance()),
        case("one draft", P[:2], Q[:1], _tokens(1), _chance(0.99)),
        case("one draft", P[:2], Q[:1], _tokens(2), _chance(0.41)),
        case("one draft", P[:2], Q[:1], _tokens(2), _chance(0.39)),
        case("a chance of 0", P, Q, _tokens(2, 0), _chance(0.0, 0.0)),
        case("a border, met exactly", EIGHTHS, EIGHTHS[1:], _tokens(1), _chance(0.5)),
        case("a border, met exactly", EIGHTHS.flip(0), EIGHTHS[:1], _tokens(0), _chance(0.5)),
        case("the draft is right", P, P[:2], _tokens(2, 0), _chance(0.999, 0.999)),
        case("the draft is right", EIGHTHS, EIGHTHS[:1], _tokens(0), _chance(0.96875)),
        case("a token that the model excludes", impossible, Q, _tokens(0, 1), _chance(0.0, 0.5)),
        case("a token that the model excludes", impossible, Q, _tokens(1, 2), _chance(0.9, 0.9)),
        case("a token that the draft excludes", P, impossible[:2], _tokens(0, 1), _chance(0.9, 0.1)),
        case("a token that both exclude", impossible, impossible[[0, 2]], _tokens(1, 1), _chance(0.5, 0.5)),
        case("a miss, then a hit", P, Q, _tokens(2, 1), _chance(0.9, 0.0)),
        case("a hit, then a miss", P, Q, _tokens(0, 0), _chance(0.2, 0.3)),
        case("single precision", *single),
        case("single precision", P.float(), Q.float(), _tokens(0, 1), _chance(0.7, 0.1).float()),
        *(_drawn("longer drafts", fixed, 6, 5, 0, 300) for _ in range(3)),
        *(_drawn("longer drafts", fixed, 9, 4, 0, 60) for _ in range(2)),
        script(
            "the input stays as it is",
            "speculate(p, q, d, c)\np\nq\nd\nc",
            p=P,
            q=Q,
            d=_tokens(0, 0),
            c=_chance(0.9, 0.5),
        ),
        _drawn("other drafts", random, 4, 3, 0, 500),
        _drawn("other drafts", random, 2, 6, 0, 100),
    ]


speculate = Exercise(
    "speculate",
    points=4,
    minutes=8,
    difficulty=3,
    reference=_exactly,
    cases=[
        *_parts("the first is rejected", _tokens(2, 1), _chance(0.7, 0.5)),
        *_parts("the second is rejected", _tokens(0, 0), _chance(0.9, 0.5)),
        case("both stay", P, Q, _tokens(1, 1), _chance(0.9, 0.9)),
        case(
            "two tokens are missing, in float32",
            _t((0.6, 0.3, 0.1), (0.2, 0.2, 0.6)).float(),
            _t((0.1, 0.1, 0.8)).float(),
            _tokens(2),
            _chance(0.5).float(),
        ),
        case("kept by luck", P, Q, _tokens(2, 0), _chance(0.3, 0.1)),
        case("nothing was drafted", P[1:2], Q[:0], _tokens(), _chance()),
        case(
            "exactly at the border",
            _t((0.25, 0.75, 0.0), (0.5, 0.25, 0.25)),
            _t((0.5, 0.25, 0.25)),
            _tokens(0),
            _chance(0.5),
        ),
        case(
            "a token of which the draft said 0",
            P,
            _t((0.0, 0.5, 0.5), (0.6, 0.2, 0.2)),
            _tokens(0, 0),
            _chance(0.9, 0.5),
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "By hand: kept guesses give each token the probability min(p, q). How much of p is missing?",
        "Go through the draft from the left, up to the first token that does not stay. After k kept tokens, row k of p "
        "is the large model's distribution at the next place. If k is the length of the draft, that row is the answer.",
        "After a rejection: p[k] − q[k] where that is positive, 0 elsewhere (`clamp(min=0)`), divided by its sum.",
    ],
)


@speculate.variant
def all_at_once(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    i = torch.arange(len(drafted))
    stays = chance * q[i, drafted] < p[i, drafted]
    kept = int(stays.cumprod(0).sum())
    if kept == len(drafted):
        return kept, p[kept]
    rest = (p[kept] - q[kept]).clamp(min=0)
    return kept, rest / rest.sum()


@speculate.variant
def with_numpy(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> list[object]:
    a, b = p.numpy(), q.numpy()
    kept = 0
    for token, u in zip(drafted.tolist(), chance.numpy(), strict=True):
        if u * b[kept, token] >= a[kept, token]:
            break
        kept += 1
    if kept == len(b):
        return [kept, p[-1].clone()]
    rest = a[kept] - np.minimum(a[kept], b[kept])
    return [kept, torch.from_numpy(rest / rest.sum())]


speculate.slips(
    all_at_once,
    {
        "rest / rest.sum() → p[-1]": "After a miss you return the last row of p. It is for the place after the whole "
        "draft.",
        "(p[kept] - q[kept]).clamp(min=0) → p[kept] * (p[kept] > q[kept])": "You take p where it is larger than q. "
        "Kept guesses give q of it already: only the difference is missing.",
        "< p[i, drafted] → < p[i + 1, drafted]": "You compare with the next row of p. Row i of p and row i of q belong "
        "to the same place.",
        "kept, p[kept]\n → kept + 1, p[kept]\n ;; return kept, rest → return kept + 1, rest": "You count the token "
        "that is drawn afterwards as well. Return how many *drafted* tokens stay.",
        "rest / rest.sum() → p[kept]": "After a miss you draw from p. Kept guesses already give a part of p: "
        "subtract what they give, and draw from the rest.",
        "chance * q[i, drafted] < p[i, drafted] → chance * p[i, drafted] < q[i, drafted]": "You keep a token with "
        "probability q/p. It is p/q: a token that the large model finds *more* likely always stays.",
        "drafted] < p → drafted] <= p": "You keep a token even when chance · q equals p. It must be less: a chance "
        "of 0 would keep tokens that p excludes.",
        "rest / rest.sum() → rest": "You do not divide what is left of p − q by its sum, so your distribution does "
        "not sum to one.",
        "stays.cumprod(0).sum() → stays.sum()": "You continue after the first miss. The later tokens were drafted "
        "after a token that was rejected.",
        "kept, p[kept]\n → kept, torch.zeros_like(p[kept])\n": "If all stay, you return no distribution. The last "
        "row of p is for the token after the whole draft.",
        "chance * q[i, drafted] < p[i, drafted] → p[i].argmax(-1) == drafted": "You keep a token only if it is the "
        "large model's best. Keep it with probability min(1, p/q).",
        "chance * q[i, drafted] < p → q[i, drafted] <= p": "You keep a token only if p is at least q. If p is "
        "smaller, keep it with probability p/q.",
        "chance * q[i, drafted] → chance": "You compare the chance with p alone. Compare it with p/q.",
        "kept == len(drafted) → kept + 1 >= len(drafted) ;; kept, p[kept]\n → kept, p[-1]\n ;; p[kept] - q[kept] → "
        "p[kept + 1] - q[kept + 1]": "After k kept tokens *row k* decides. You take the row after it.",
        "chance * q[i, drafted] < p[i, drafted] → chance < q[i, drafted]": "You compare the chance with q alone. "
        "Compare it with p/q.",
        "chance * q → (1 - chance) * q": "You compare 1 − `chance` with p/q. That is as likely, but the text says "
        "which tokens stay: those with `chance` · q < p.",
        "p[kept] - q[kept] → p[kept + 1] - q[kept]": "You subtract a row of q from the *next* row of p. Both belong "
        "to the place of the miss, row k.",
        "(p[kept] - q[kept]).clamp(min=0) → torch.minimum(p[kept], q[kept])": "You draw from min(p, q), which kept "
        "guesses give already. Draw from what p has beyond q.",
        "(p[kept] - q[kept]).clamp(min=0) → torch.maximum(p[kept], q[kept])": "You draw from max(p, q). Draw from "
        "max(p − q, 0): what p has beyond q.",
        "rest / rest.sum() → rest / (p[:-1] - q).clamp(min=0).sum()": "You divide by the sum over all places. The "
        "distribution is that of one place: divide by its own sum.",
        "kept == len(drafted) → not len(drafted) ;; (p[kept] - q[kept]) → (p[:-1] - q)[min(kept, len(q) - 1)]": "If "
        "all stay, you return what the last guess lacks. The place after the draft has no guess: there, p counts.",
        ".clamp(min=0) → .abs()": "You take |p − q|. Where q is larger than p, use 0.",
        "return kept, rest → return kept + 1, rest": "You count the rejected token as well.",
        "rest = (p[kept] - q[kept]).clamp(min=0) → rest = p[kept].clone()\n    rest[drafted[kept]] = 0": "You only "
        "remove the rejected token from p. Kept guesses already give a part of the other tokens: subtract q.",
        ".clamp(min=0) →  ;; rest.sum() → rest.abs().sum()": "You do not set negative differences to 0. Where q is "
        "larger than p, nothing is missing.",
        ".clamp(min=0) → ": "Your distribution has negative entries: p − q is below 0 where q is larger. Set those "
        "to 0, then divide.",
        "rest / rest.sum() → rest.softmax(dim=-1)": "You take the softmax of max(p − q, 0), which gives every token "
        "a chance. Divide by the sum instead.",
        "kept, p[kept]\n → kept, p[max(kept - 1, 0)]\n": "If all stay, you return the row of p for the last guess. "
        "The row after it is for the next token.",
        ".clamp(min=0) →  ;; rest / rest.sum() → rest.softmax(dim=-1)": "You make a distribution of p − q with a "
        "softmax. Set negative differences to 0, and divide by the sum.",
        "p[kept] - q[kept] → q[kept] - p[kept]": "You draw from max(q − p, 0). Draw from max(p − q, 0): what p has "
        "beyond q.",
        "kept == len(drafted) → not len(drafted) ;; q[kept]) → q[min(kept, len(q) - 1)])": "If all stay, you "
        "subtract a row of q as well. The place after the draft has no guess: the last row of p counts.",
        "kept, p[kept]\n → kept, None\n": "If all stay, you return None. The last row of p is for the token after "
        "the whole draft.",
    },
)
