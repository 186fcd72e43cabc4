"""The exercise on scores from latent vectors, without keys."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _written_out(q: Tensor, latent: Tensor, w_uk: Tensor) -> Tensor:
    """Compute in fp64, with the sum over a head's features written out. A test compares this with scores from keys."""
    absorbed = (q.double()[..., None] * w_uk.double()[:, None]).sum(dim=2)
    return F.linear(absorbed, latent.double()).to(q.dtype)


def _inputs(random: Random, h: int, s: int, t: int, d: int, c: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Random inputs, scaled so that scores are near 1."""
    return [normal(random, *shape, dtype=dtype, scale=c**-0.5) for shape in ((h, s, d), (t, c), (h, d, c))]


def _without_keys(random: Random) -> Case:
    q, latent, w_uk = _inputs(random, 4, 1, 40, 16, 6)
    lines = """
from lmcourse.exercises.work import largest_tensor, multiplications
largest_tensor(absorbed_scores, q, latent, w_uk) < 4 * 40 * 16
largest_tensor(absorbed_scores, q, latent, w_uk) < 40 * 16
multiplications(absorbed_scores, q, latent, w_uk) <= 4 * 1 * 16 * 6 + 4 * 1 * 6 * 40
absorbed_scores(q, latent, w_uk)[:, 0, :3]
"""
    return script("no key is made: h = 4, s = 1, t = 40, d = 16, c = 6", lines, q=q, latent=latent, w_uk=w_uk)


def _cases(random: Random) -> list[Case]:
    seen = Random(7)
    h, s, t, d, c = (random.randint(2, 6) for _ in range(5))
    return [
        edge(case("one head, one token", *_inputs(seen, 1, 1, 1, 3, 2))),
        case("a latent as wide as a head", *_inputs(seen, 2, 3, 3, 3, 3)),
        case("a latent wider than a head", *_inputs(seen, 2, 2, 5, 3, 8)),
        case("double precision", *_inputs(seen, 2, 2, 5, 3, 4, torch.float64)),
        case("other sizes", *_inputs(random, h, s, t + s, d, c)),
        case("other sizes", *_inputs(random, h + 1, 1, t, d, c + 1)),
    ]


_FIXED = Random(8)

absorbed_scores = Exercise(
    "absorbed_scores",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_written_out,
    differentiable=True,
    cases=[
        case("two heads, one query, three tokens", *_inputs(_FIXED, 2, 1, 3, 4, 2)),
        case("two heads, three queries, five tokens", *_inputs(_FIXED, 2, 3, 5, 4, 3)),
        case("double precision", *_inputs(_FIXED, 1, 2, 2, 3, 2, torch.float64)),
        _without_keys(_FIXED),
    ],
    hidden_cases=_cases,
    hints=[
        "A score is q · (W c): three factors, and you may choose which two to multiply first.",
        "Multiply the query by the matrix. How many numbers does the query have then?",
        'First absorbed = einsum(q, w_uk, "h s d, h d c -> h s c"), then its dot products with the latents. An einsum '
        "of three tensors at once may multiply in the wrong order.",
    ],
)


@absorbed_scores.variant
def the_query_meets_the_matrix_first(q: Tensor, latent: Tensor, w_uk: Tensor) -> Tensor:
    absorbed = q @ w_uk
    return absorbed @ latent.T


absorbed_scores.slips(
    the_query_meets_the_matrix_first,
    {
        "absorbed = q @ w_uk → keys = latent @ w_uk.mT ;; absorbed @ latent.T → q @ keys.mT": "The scores are right, "
        "but you made h × t × d numbers on the way: the keys. Multiply the query with w_uk first.",
        "latent.T → latent.T / q.shape[-1] ** 0.5": "You divide by √d. Return the unscaled scores.",
        "latent.T → latent.T / latent.shape[-1] ** 0.5": "You divide by the root of the latent's width. Return the "
        "unscaled scores.",
        "q @ w_uk → q @ w_uk.sum(dim=0)": "You add the matrices of all heads up before the query meets them. Each "
        "head's query goes with its own matrix.",
        "absorbed @ latent.T → (absorbed @ latent.T).softmax(dim=-1)": "You return the weights after a softmax. Return "
        "the scores.",
        "q @ w_uk → q @ w_uk[:1]": "All your heads use the matrix of the first. Each head has its own.",
        "absorbed @ latent.T → (absorbed @ latent.T).sum(dim=0)": "You add up the heads. Each head has its own scores.",
        "latent.T → latent.reshape(-1, len(latent))": "You reshape where you should transpose. `reshape` keeps the "
        "numbers in their order; `.mT` swaps the axes.",
        "absorbed @ latent.T → latent @ absorbed.mT": "Your rows are tokens and your columns queries: the scores are h "
        "× s × t.",
    },
)


@absorbed_scores.variant
def head_after_head(q: Tensor, latent: Tensor, w_uk: Tensor) -> Tensor:
    rows = []
    for head in range(len(q)):
        absorbed = q[head] @ w_uk[head]
        rows.append(absorbed @ latent.transpose(0, 1))
    return torch.stack(rows)


absorbed_scores.slips(
    head_after_head,
    {
        "absorbed = q[head] @ w_uk[head] → keys = latent @ w_uk[head].T ;; absorbed @ latent.transpose(0, 1) → q[head] "
        "@ keys.T": "The scores are right, but you made t × d numbers for each head: its keys. Multiply the head's "
        "query with its matrix first.",
        "absorbed = q[head] @ w_uk[head] → keys = [w_uk[head] @ each for each in latent] ;; absorbed @ "
        "latent.transpose(0, 1) → torch.stack([q[head] @ key for key in keys], dim=-1)": "The scores are right, but "
        "you made a key for every token and head, and that took h · t · d · c multiplications. Multiply the query with "
        "w_uk first: then only h · s · d · c and h · s · c · t are left.",
    },
)


@absorbed_scores.variant
def two_einsums(q: Tensor, latent: Tensor, w_uk: Tensor) -> Tensor:
    absorbed = torch.einsum("hsd,hdc->hsc", q, w_uk)
    scores: Tensor = torch.einsum("hsc,tc->hst", absorbed, latent)
    return scores


@absorbed_scores.variant
def in_double_precision(q: Tensor, latent: Tensor, w_uk: Tensor) -> Tensor:
    heads = [
        torch.linalg.multi_dot([one.double(), w.double(), latent.double().T]) for one, w in zip(q, w_uk, strict=True)
    ]
    return torch.stack(heads).to(q.dtype)
