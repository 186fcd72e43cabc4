"""Attention-only models that learn to continue repeating texts, and the tokens that their heads then look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.attention.in_model import Mask, MultiHead

Change = Callable[[int, Tensor], Tensor]
"""Takes a layer's index and its heads' results, (b, heads, s, d / heads); returns the results to use in their place."""

Looks = list[list[tuple[float, float]]]
"""By layer and head, the average weight on the previous token and on the token after an earlier copy."""

Weights = Callable[[Tensor, Tensor], Tensor]
"""Takes queries and keys, (b, heads, s, d) and (b, heads, t, d); returns the weights, (b, heads, s, t)."""

VOCABULARY, D_MODEL, HEADS = 32, 32, 2
SHORTEST, LONGEST = 8, 16
LENGTH = 2 * LONGEST

_BASE = 100.0
_RATE, _WARMUP, _BATCH = 0.01, 20, 32
_NOTED = 20


def repeating_texts(
    count: int, generator: torch.Generator
) -> tuple[Int[Tensor, "count length"], Int[Tensor, " count"]]:
    """Return texts of random tokens, each repeating with its own period, and the periods."""
    periods = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    tokens = torch.randint(VOCABULARY, (count, LONGEST), generator=generator)
    return tokens.gather(1, torch.arange(LENGTH) % periods[:, None]), periods


def triangle(s: int, t: int) -> Bool[Tensor, "s t"]:
    """Return the causal mask of the last s of t tokens."""
    return torch.ones(s, t, dtype=torch.bool).tril(t - s)


def softmax_weights(q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h s t"]:
    """Return the weights of attention without a mask."""
    scores: Tensor = q @ k.mT / q.shape[-1] ** 0.5
    return scores.softmax(dim=-1)


class AttentionOnly(nn.Module):
    """An embedding, layers of attention with a norm before each, and a head; nothing else.

    Args:
        attention: computes multi-head attention, as Exercise 4 asks for it.
        layers: the number of attention layers.
        mask: makes the mask of s queries and t keys, as Exercise 2 asks for it.
    """

    def __init__(self, attention: MultiHead, layers: int, mask: Mask = triangle) -> None:
        super().__init__()
        self.attention, self.mask = attention, mask
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        weights = (torch.randn(4, D_MODEL, D_MODEL) / D_MODEL**0.5 for _ in range(layers))
        self.layers = nn.ParameterList([nn.Parameter(each) for each in weights])
        self.head = nn.Linear(D_MODEL, VOCABULARY, bias=False)

    def forward(self, tokens: Int[Tensor, "b s"], change: Change | None = None) -> Float[Tensor, "b s v"]:
        """Return the logits of the next token after each token; `change` replaces the heads' results of each layer."""
        logits: Tensor = self.head(_norm(self._streams(tokens, change)[-1]))
        return logits

    def _streams(self, tokens: Int[Tensor, "b s"], change: Change | None = None) -> list[Tensor]:
        visible = self.mask(tokens.shape[1], tokens.shape[1])
        streams = [self.embedding(tokens)]
        for layer, weights in enumerate(self.layers):
            x, options = _norm(streams[-1]), {"change": partial(change, layer)} if change else {}
            streams.append(streams[-1] + self.attention(x, x, *weights, HEADS, visible=visible, turn=turn, **options))
        return streams

    @torch.no_grad()
    def maps(
        self, tokens: Int[Tensor, "b s"], weights: Weights = softmax_weights
    ) -> Float[Tensor, "layers b heads s s"]:
        """Return the weights of every head in every layer. Each query gets the keys up to its own, and no mask."""
        length = tokens.shape[1]
        found = torch.zeros(len(self.layers), len(tokens), HEADS, length, length)
        for layer, ((w_q, w_k, *_), stream) in enumerate(zip(self.layers, self._streams(tokens), strict=False)):
            x = _norm(stream)
            q, k = (turn((x @ w.T).unflatten(-1, (HEADS, -1)).transpose(1, 2)) for w in (w_q, w_k))
            for i in range(length):
                found[layer, :, :, i, : i + 1] = weights(q[:, :, i : i + 1], k[:, :, : i + 1])[:, :, 0]
        return found


def _norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, (D_MODEL,))


def turn(x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s d"]:
    """Rotate pairs of features by their position, as notebook 09 does."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * _BASE ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


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
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = CopyingRun(AttentionOnly(attention, layers, mask))
    optimizer = torch.optim.AdamW(run.model.parameters(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    for step in range(steps):
        if weights and step % _NOTED == 0:
            run.looks[step] = looks(run.model, weights)
        optimizer.param_groups[0]["lr"] = _RATE * min(1.0, (step + 1) / _WARMUP)
        tokens, periods = repeating_texts(_BATCH, generator)
        losses = F.cross_entropy(run.model(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none")
        optimizer.zero_grad()
        torch.autograd.backward(losses.mean())
        optimizer.step()
        run.losses.append(losses.detach()[torch.arange(LENGTH - 1) >= periods[:, None]].mean().item())
    torch.set_num_threads(threads)
    return run


def looks(model: AttentionOnly, weights: Weights = softmax_weights, texts: int = 64) -> Looks:
    """Return where each head looks, averaged over the tokens of new texts that have an earlier copy."""
    tokens, periods = repeating_texts(texts, torch.Generator().manual_seed(1000))
    position = torch.arange(LENGTH)
    counts = position >= periods[:, None]  # (b, s)
    one_back = (position - 1).clamp(min=0).expand(texts, -1)
    after_copy = (position - periods[:, None] + 1).clamp(min=0)
    maps = model.maps(tokens, weights)
    shares = []
    for place in (one_back, after_copy):
        index = place[None, :, None, :, None].expand(*maps.shape[:-1], 1)
        seen = maps.gather(-1, index).squeeze(-1).permute(0, 2, 1, 3)  # layers, heads, b, s
        shares.append(seen[..., counts].mean(dim=-1))
    return [list(zip(*(share[layer].tolist() for share in shares), strict=True)) for layer in range(len(maps))]
