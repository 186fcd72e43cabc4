"""A source whose words belong to hidden kinds, and the loss of a table of log-probabilities on its text."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.models.ngram import NGram


def kinds_source(words: int, kinds: int, seed: int) -> Float[Tensor, "v v"]:
    """Return the probability of each of v words after each. It depends only on the kind of the first word."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(kinds, (words,), generator=generator)
    kind[:kinds] = torch.arange(kinds)
    follows = (2 * torch.randn(kinds, kinds, generator=generator, dtype=torch.float64)).softmax(dim=1)
    weight = torch.rand(words, generator=generator, dtype=torch.float64) + 0.2
    within = weight / torch.zeros(kinds, dtype=torch.float64).index_add(0, kind, weight)[kind]
    return follows[kind][:, kind] * within


def write(P: Float[Tensor, "v v"], length: int, seed: int) -> Int[Tensor, " length"]:
    """Return a text of the source that begins after word 0."""
    random, word, text = Random(seed), 0, []
    rows = [list(accumulate(row)) for row in P.tolist()]
    for _ in range(length):
        word = min(bisect_right(rows[word], random.random()), len(rows) - 1)
        text.append(word)
    return torch.tensor(text)


def word_shares(P: Float[Tensor, "v v"]) -> Float[Tensor, " v"]:
    """Return the frequency of each word in an endless text: π(I − P + 1) = 1, where 1 is all ones."""
    ones = torch.ones_like(P)
    shares: Tensor = torch.linalg.solve((torch.eye(len(P), dtype=P.dtype) - P + ones).T, ones[0])
    return shares


def new_text_price(log_p: Float[Tensor, "v v"], P: Float[Tensor, "v v"]) -> float:
    """Return the loss in nats per word of a table of log-probabilities on endless new text of the source."""
    surprise = torch.where(P > 0, -P * log_p.double(), 0)
    return float(word_shares(P) @ surprise.sum(dim=1))


def counted_table(text: Int[Tensor, " n"], words: int) -> Float[Tensor, "v v"]:
    """Return the log-probability of each word after each, by counts smoothed as Witten and Bell do."""
    model = NGram(2, words, witten_bell=True).count(text.tolist())
    return torch.stack([model.probabilities([word]) for word in range(words)]).log()


class Curves(NamedTuple):
    """Nats per word at each step of training, on the training pairs and on endless new text, and a step: where the
    held-out pairs cost least."""

    train: list[float]
    new: list[float]
    stopped: int


def train_table(
    P: Float[Tensor, "v v"], text: Int[Tensor, " n"], rank: int | None, seed: int = 0, steps: int = 300
) -> Curves:
    """Train log-probabilities on the first nine tenths of a text, and return the losses at each step.

    `rank` is the number of features of a word; None trains the whole table of logits. `P` serves only to compute the
    loss on new text.
    """
    v, generator = len(P), torch.Generator().manual_seed(seed)
    first, second = text[:-1], text[1:]
    kept = len(first) // 10
    weights = [torch.zeros(v, v)]
    if rank is not None:
        weights = [0.1 * torch.randn(v, rank, generator=generator), torch.zeros(rank, v), torch.zeros(v)]
    for weight in weights:
        weight.requires_grad_()
    optimizer = torch.optim.Adam(weights, lr=0.03, foreach=False)
    frequencies = (word_shares(P)[:, None] * P).float()
    train, held_out, new = list[float](), list[float](), list[float]()
    for _ in range(steps):
        logits = weights[0] if rank is None else weights[0] @ weights[1] + weights[2]
        log_p = logits.log_softmax(dim=1)
        prices = -log_p[first, second]
        loss = prices[:-kept].mean()
        train.append(loss.item())
        held_out.append(prices[-kept:].mean().item())
        new.append(-(frequencies * log_p.detach()).sum().item())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return Curves(train, new, held_out.index(min(held_out)))
