"""Small models of attention alone that learn to continue repeating texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Change = Callable[[int, Tensor], Tensor]
"""Takes a layer's index and its heads' results, (b, heads, s, d / heads); returns the results to use in their place."""

Texts = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
"""Draws this many repeating texts, (count, length); returns them and their periods."""

Scores = Callable[[Tensor, Tensor], Tensor]
"""Takes queries and keys that are not turned, (b, h, s, d); returns the scores before scale and mask."""

D_MODEL, HEADS = 32, 2

_BASE = 100.0
_BATCH = 32


def triangle(s: int, t: int) -> Bool[Tensor, "s t"]:
    """Return the causal mask of the last s of t tokens."""
    return torch.ones(s, t, dtype=torch.bool).tril(t - s)


def turn(x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s d"]:
    """Rotate pairs of features by their position, as notebook 09 does."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * _BASE ** (-torch.arange(half) / half)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def norm(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Apply the norm in front of each layer, which has no scale."""
    return F.rms_norm(x, (D_MODEL,))


class AttentionOnly(nn.Module):
    """An embedding, layers of attention with a norm before each, and a head; nothing else.

    Args:
        attention: takes (x, source, w_q, w_k, w_v, w_out, heads, visible=…, turn=…, change=…), as in notebook 08.
        layers: the number of attention layers.
        mask: makes the mask of s queries and t keys.
        vocabulary: the number of different tokens.
        turn: rotates queries and keys by their position.
    """

    def __init__(
        self,
        attention: Callable[..., Tensor],
        layers: int,
        mask: Callable[[int, int], Tensor] = triangle,
        vocabulary: int = 32,
        turn: Callable[[Tensor], Tensor] = turn,
    ) -> None:
        super().__init__()
        self.attention, self.mask, self.turn = attention, mask, turn
        self.embedding = nn.Embedding(vocabulary, D_MODEL)
        weights = (torch.randn(4, D_MODEL, D_MODEL) / D_MODEL**0.5 for _ in range(layers))
        self.layers = nn.ParameterList([nn.Parameter(each) for each in weights])
        self.head = nn.Linear(D_MODEL, vocabulary, bias=False)

    def forward(self, tokens: Int[Tensor, "b s"], change: Change | None = None) -> Float[Tensor, "b s v"]:
        """Return the logits of the next token after each token; `change` replaces the heads' results of each layer."""
        logits: Tensor = self.head(norm(self.streams(tokens, change)[-1]))
        return logits

    def streams(self, tokens: Int[Tensor, "b s"], change: Change | None = None) -> list[Tensor]:
        """Return the embedded tokens, and the stream after each layer."""
        visible = self.mask(tokens.shape[1], tokens.shape[1])
        streams = [self.embedding(tokens)]
        for layer, weights in enumerate(self.layers):
            x, options = norm(streams[-1]), {"change": partial(change, layer)} if change else {}
            mixed = self.attention(x, x, *weights, HEADS, visible=visible, turn=self.turn, **options)
            streams.append(streams[-1] + mixed)
        return streams


def attention_with(scores: Scores) -> Callable[..., Tensor]:
    """Return multi-head attention with these scores."""

    def attention(x: Tensor, _: Tensor, *weights: Tensor, visible: Tensor, **options: object) -> Tensor:
        w_q, w_k, w_v, w_out, heads = weights
        # Training knows pairs (i, i + d/2), which come as neighbours here.
        q, k = (rearrange(x @ w.T, "b s (h two pair) -> b h s (pair two)", h=heads, two=2) for w in (w_q, w_k))
        v = rearrange(x @ w_v.T, "b s (h d) -> b h s d", h=heads)
        shares = (scores(q, k) / q.shape[-1] ** 0.5).masked_fill(~visible, -torch.inf).softmax(dim=-1)
        result: Tensor = rearrange(shares @ v, "b h s d -> b s (h d)") @ w_out.T
        return result

    return attention


def train_copier(
    model: AttentionOnly,
    texts: Texts,
    seed: int,
    steps: int,
    before: Callable[[int], None] = lambda _: None,
    *,
    rate: float = 0.01,
    warmup: int = 20,
) -> list[float]:
    """Train on repeating texts; return the loss of each step over the tokens that an earlier copy predicts.

    `before` is called with the number of each step before it.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    found = []
    for step in range(steps):
        before(step)
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / warmup)
        tokens, periods = texts(_BATCH, generator)
        losses = losses_of(model, tokens)
        optimizer.zero_grad()
        torch.autograd.backward(losses.mean())
        optimizer.step()
        found.append(copied_loss(losses.detach(), periods))
    return found


def losses_of(model: AttentionOnly, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "b s-1"]:
    """Return the loss of each token after the first, in nats."""
    return F.cross_entropy(model(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none")


def copied_loss(losses: Float[Tensor, "b s"], periods: Int[Tensor, " b"]) -> float:
    """Return the mean loss of the tokens that an earlier copy predicts."""
    return losses[torch.arange(losses.shape[1]) >= periods[:, None]].mean().item()
