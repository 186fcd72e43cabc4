"""The exercise on attention from a decoder to its source."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64


def _by_torch(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    """Compute with torch's own attention in double precision, with a scale of 1."""
    keys = h.double()[None, None]
    visible = real[None, None, None].expand(1, 1, len(s), -1)
    found = F.scaled_dot_product_attention(s.double()[None, None], keys, keys, attn_mask=visible, scale=1.0)
    return torch.cat([found[0, 0].to(s.dtype), s], dim=-1)


def _texts(random: Random, t: int, n: int, d: int, *, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """States of t decoder steps and of n source words, of width d; the last `padding` words are padding."""
    real = torch.tensor([place < n - padding for place in range(n)])
    return normal64(random, t, d), normal64(random, n, d), real


def _large(t: int, n: int, padding: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of hundreds, exact in single precision because all are products of integers."""
    seen = Random(13)  # no two scores are equal, so the logarithm of the sum is exact, too
    return 16 * integers(seen, t, 8), 16 * integers(seen, n, 8), torch.arange(n) < n - padding


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    s, h, _ = _texts(seen, 3, 5, 4)
    below = torch.full((2, 3), -30.0), torch.tensor([[10.0] * 3, [10.5] * 3, [9.0] * 3]), torch.tensor([True] * 3)
    cases = [
        *(case("other sizes", *_texts(seen, *sizes)) for sizes in ((2, 6, 3), (5, 2, 1))),
        case("one word", *_texts(seen, 3, 1, 2)),
        case("one step", *_texts(seen, 1, 4, 3)),
        case("much padding", *_texts(seen, 2, 6, 3, padding=5)),
        case("real words with very low scores", 16 * _LOW[0], *_LOW[1:]),
        case("padding in front", s, h, torch.tensor([False, False, True, True, True])),
        case("padding in between", s, h, torch.tensor([True, False, True, False, True])),
        case("padding that would win", s, torch.cat([h, 1e6 * s[:1]]), torch.tensor([True] * 5 + [False])),
        case("large scores", *_large(4, 6, 2)),
        case("scores far below zero", *below),
        case("scores far below zero", *below[:2], torch.tensor([True, True, False])),
        case("single precision", *(each.float() for each in (s, h)), torch.tensor([True] * 4 + [False])),
    ]
    for padding in (0, 1, 2):
        t, d = random.sample(range(3, 8), 2)  # with a single word, even wrong scores give it all the weight
        cases.append(case("other sizes", *_texts(random, t, 6, d, padding=padding)))
    return cases


_FIXED = Random(4)
_TWO = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
_LOW = torch.tensor([[50.0, 0.0]]), torch.tensor([[-100.0, 0.0], [0.0, 1.0]]), torch.tensor([True, False])

attend_source = Exercise(
    "attend_source",
    points=4,
    minutes=8,
    difficulty=2,
    reference=_by_torch,
    cases=[
        case("one step, two words", torch.tensor([[1.0, 0.0]]), _TWO, torch.tensor([True, True])),
        case("two steps, three words", *_texts(_FIXED, 2, 3, 2)),
        case("three steps, five words", *_texts(_FIXED, 3, 5, 4)),
        case("one word and padding", torch.tensor([[1.0, 0.0]]), _TWO, torch.tensor([False, True])),
        case("two of four words are padding", *_texts(_FIXED, 3, 4, 3, padding=2)),
        case("large scores", *_large(2, 3, 0)),
        case("a real word with a very low score", *_LOW),
        case("a real word with an even lower score", 4 * _LOW[0], *_LOW[1:]),
    ],
    hidden_cases=_hidden,
    hints=[
        "Three steps: scores s @ h.T of shape (t, n), a softmax along each row, a product with h.",
        "Padding must get a weight of exactly 0, and the others still sum to one: hide its *scores*, with −inf, before "
        "the softmax.",
        "scores.masked_fill(~real, -torch.inf) does that for every row. Then torch.cat([found, s], dim=-1).",
    ],
    forbid=[
        ".scaled_dot_product_attention",
        "._scaled_dot_product_attention_math",
        ".multi_head_attention_forward",
        "torch.nn.MultiheadAttention",
    ],
)


@attend_source.variant
def scores_hidden(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    scores = (s @ h.T).masked_fill(~real, -torch.inf)
    weights = scores.softmax(dim=-1)
    found = weights @ h
    return torch.cat([found, s], dim=-1)


attend_source.slips(
    scores_hidden,
    {
        "(s @ h.T) → (s @ h.T / s.shape[1] ** 0.5)": "You divide the scores by √d. These are Luong's scores: plain dot "
        "products.",
        "found, s] → s, found]": "You swapped the halves: the blend of source states comes first, then the decoder's "
        "own state.",
        ".masked_fill(~real, -torch.inf) → ": "You read padding as if it were words. It must get no weight: set its "
        "scores to −∞.",
        ".masked_fill(~real, -torch.inf) →  ;; softmax(dim=-1) → softmax(dim=-1) * real": "You hide padding after the "
        "softmax: the weights that are left do not sum to one.",
        ".masked_fill(~real, -torch.inf) →  * real || -torch.inf → 1e-9": "You make the scores of padding 0 or nearly "
        "0, and e⁰ is 1: padding still gets weight. Set its scores to −∞.",
        "scores = ( → h = h[: real.sum()]\n    scores = ( ;; .masked_fill(~real, -torch.inf) → ": "You keep the first "
        "words, as many as are real. Padding may be anywhere: use `real` for each word.",
        ".masked_fill(~real, -torch.inf) →  - 10_000.0 * ~real": "The scores of padding stay finite, and a real word "
        "can have a lower one. Set them to −∞.",
        "-torch.inf → -100.0": "You set the scores of padding to a fixed number, and a real word may have a lower "
        "score. Make them −∞.",
        "~real → real": "You hide the words and keep the padding: `real` is True where there is a word.",
        "~real, -torch.inf → real, -1e9": "You lower the scores of the real words, not those of the padding: `real` is "
        "True where there is a word.",
        "weights @ h → h[scores.argmax(dim=-1)]": "You take only the best match. Average the real words, weighted by "
        "softmax(scores).",
        "scores = ( → h = h * real[:, None]\n    scores = ( ;; .masked_fill(~real, -torch.inf) → ": "You set the "
        "padding's states to 0. Their scores are then 0, and e⁰ is 1: they get weight.",
        "s @ h.T → F.normalize(s, dim=-1) @ F.normalize(h, dim=-1).T": "You divide the vectors by their lengths. The "
        "scores here are plain dot products.",
        "weights @ h → h[real].mean(dim=0).expand(len(s), -1)": "You give all real words the same weight. Weight them "
        "by the softmax of their scores.",
        "-torch.inf → -1e9 ;; softmax(dim=-1) → softmax(dim=0)": "Your softmax runs over the decoder's steps. It "
        "should run over the words, for each step separately.",
        "softmax(dim=-1) → softmax(dim=0) || softmax(dim=-1) → softmax(dim=0).nan_to_num()": "Your weights sum to one "
        "over the decoder's steps. Each step distributes its *own* attention over the words.",
        "(s @ h.T).masked_fill(~real, -torch.inf) → s @ s.T ;; weights @ h → weights @ s": "You average the decoder's "
        "states. Average the states of the source, h.",
        "torch.cat([found, s], dim=-1) → torch.cat([found, s])": "You put the states below the blends. Put them beside "
        "each other: 2d numbers a row.",
        "(s @ h.T).masked_fill(~real, -torch.inf) → s @ (h * real[:, None]).T ;; weights = → scores = "
        "scores.masked_fill(scores == 0, -torch.inf)\n    weights =": "You hide every score of 0, and that of a real "
        "word may be 0. Hide the words that are not `real`.",
        "torch.cat([found, s], dim=-1) → found + s": "You add the two vectors. Concatenate them: 2d numbers.",
        "torch.cat([found, s], dim=-1) → found": "You drop the decoder's own state. Concatenate it with the blend: 2d "
        "numbers in all.",
        "scores.softmax(dim=-1) → scores.exp() / scores.exp().sum(dim=-1, keepdim=True)": "Your exponentials overflow "
        "or underflow before you divide: subtract each row's largest score first.",
    },
)


@attend_source.variant
def words_alone(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    words = h[real]
    weights = torch.softmax(torch.einsum("td,nd->tn", s, words), dim=1)
    return torch.hstack((torch.einsum("tn,nd->td", weights, words), s))


@attend_source.variant
def by_numpy(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    scores = np.where(real.numpy(), s.double().numpy() @ h.double().numpy().T, -np.inf)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = raised @ h.double().numpy() / raised.sum(axis=1, keepdims=True)
    return torch.from_numpy(np.concatenate([found, s.double().numpy()], axis=1)).to(s.dtype)
