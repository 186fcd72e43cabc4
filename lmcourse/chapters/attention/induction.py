"""Runs of attention-only models that learn to continue repeating texts, and the tokens that their heads look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.chapters.attention.replace_attention import Mask, MultiHead
from lmcourse.exercises.measured import one_thread
from lmcourse.training.copying import HEADS, AttentionOnly, norm, train_copier, triangle, turn

Looks = list[list[tuple[float, float]]]
"""By layer and head, the average weight on the previous token and on the token after an earlier copy."""

Weights = Callable[[Tensor, Tensor], Tensor]
"""Takes queries and keys, (b, heads, s, d) and (b, heads, t, d); returns the weights, (b, heads, s, t)."""

VOCABULARY = 32
SHORTEST, LONGEST = 8, 16
LENGTH = 2 * LONGEST

_NOTED = 20


def repeating_texts(
    count: int, generator: torch.Generator
) -> tuple[Int[Tensor, "count length"], Int[Tensor, " count"]]:
    """Return texts of random tokens, each repeating with its own period, and the periods."""
    periods = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    tokens = torch.randint(VOCABULARY, (count, LONGEST), generator=generator)
    return tokens.gather(1, torch.arange(LENGTH) % periods[:, None]), periods


def softmax_weights(q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h s t"]:
    """Return the weights of attention without a mask."""
    scores: Tensor = q @ k.mT / q.shape[-1] ** 0.5
    return scores.softmax(dim=-1)


@torch.no_grad()
def maps(
    model: AttentionOnly, tokens: Int[Tensor, "b s"], weights: Weights = softmax_weights
) -> Float[Tensor, "layers b heads s s"]:
    """Return the weights of every head in every layer. Each query gets the keys up to its own, and no mask."""
    length = tokens.shape[1]
    found = torch.zeros(len(model.layers), len(tokens), HEADS, length, length)
    for layer, ((w_q, w_k, *_), stream) in enumerate(zip(model.layers, model.streams(tokens), strict=False)):
        x = norm(stream)
        q, k = (turn((x @ w.T).unflatten(-1, (HEADS, -1)).transpose(1, 2)) for w in (w_q, w_k))
        for i in range(length):
            found[layer, :, :, i, : i + 1] = weights(q[:, :, i : i + 1], k[:, :, : i + 1])[:, :, 0]
    return found


@dataclass
class CopyingRun:
    """A training run on repeating texts.

    Attributes:
        model: the model at the end of the run.
        losses: per step, over the tokens that an earlier copy predicts, nats per token.
        looks: for every 20th step, where the heads looked before it; empty if no weights were given.
    """

    model: AttentionOnly
    losses: list[float] = field(default_factory=list)
    looks: dict[int, Looks] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """The mean loss of the last twenty steps."""
        return sum(self.losses[-20:]) / 20

    def first_below(self, loss: float) -> int:
        """Return the first step with a loss below this one."""
        return next(step for step, each in enumerate(self.losses) if each < loss)


def learn_to_copy(
    attention: MultiHead,
    layers: int,
    seed: int = 0,
    steps: int = 300,
    *,
    mask: Mask = triangle,
    weights: Weights | None = None,
) -> CopyingRun:
    """Train a model of this many layers on repeating texts, on one thread, which is faster for matrices this small.

    If `weights` is given, it computes the heads' weights every 20 steps, for `CopyingRun.looks`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = CopyingRun(AttentionOnly(attention, layers, mask))

    def note(step: int) -> None:
        if weights and step % _NOTED == 0:
            run.looks[step] = looks(run.model, weights)

    with one_thread():
        run.losses = train_copier(run.model, repeating_texts, seed, steps, note)
    return run


def looks(model: AttentionOnly, weights: Weights = softmax_weights, texts: int = 64) -> Looks:
    """Return where each head looks, averaged over the tokens of new texts that have an earlier copy."""
    tokens, periods = repeating_texts(texts, torch.Generator().manual_seed(1000))
    position = torch.arange(LENGTH)
    counts = position >= periods[:, None]  # (b, s)
    one_back = (position - 1).clamp(min=0).expand(texts, -1)
    after_copy = (position - periods[:, None] + 1).clamp(min=0)
    found = maps(model, tokens, weights)
    shares = []
    for place in (one_back, after_copy):
        index = place[None, :, None, :, None].expand(*found.shape[:-1], 1)
        seen = found.gather(-1, index).squeeze(-1).permute(0, 2, 1, 3)  # layers, heads, b, s
        shares.append(seen[..., counts].mean(dim=-1))
    return [list(zip(*(share[layer].tolist() for share in shares), strict=True)) for layer in range(len(found))]
