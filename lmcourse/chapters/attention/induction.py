"""Attention-only models that learn to continue repeating texts, and the tokens that their heads then look at."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.attention.in_model import MultiHead

VOCABULARY, D_MODEL, HEADS = 32, 32, 2
SHORTEST, LONGEST = 8, 16
LENGTH = 2 * LONGEST

_BASE = 100.0
_RATE, _WARMUP, _BATCH = 0.01, 20, 32


def repeating_texts(
    count: int, generator: torch.Generator
) -> tuple[Int[Tensor, "count length"], Int[Tensor, " count"]]:
    """Return texts of random tokens, each repeating with its own period, and the periods."""
    periods = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    tokens = torch.randint(VOCABULARY, (count, LONGEST), generator=generator)
    return tokens.gather(1, torch.arange(LENGTH) % periods[:, None]), periods


class AttentionOnly(nn.Module):
    """An embedding, layers of attention with a norm before each, and a head; nothing else.

    Args:
        attention: computes multi-head attention, as Exercise 4 asks for it.
        layers: the number of attention layers.
    """

    def __init__(self, attention: MultiHead, layers: int) -> None:
        super().__init__()
        self.attention = attention
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        weights = (torch.randn(4, D_MODEL, D_MODEL) / D_MODEL**0.5 for _ in range(layers))
        self.layers = nn.ParameterList([nn.Parameter(each) for each in weights])
        self.head = nn.Linear(D_MODEL, VOCABULARY, bias=False)

    def forward(self, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "b s v"]:
        """Return the logits of the next token after each token."""
        logits: Tensor = self.head(_norm(self._streams(tokens)[-1]))
        return logits

    def _streams(self, tokens: Int[Tensor, "b s"]) -> list[Tensor]:
        visible = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        streams = [self.embedding(tokens)]
        for weights in self.layers:
            x = _norm(streams[-1])
            streams.append(streams[-1] + self.attention(x, x, *weights, HEADS, visible=visible, turn=turn))
        return streams

    @torch.no_grad()
    def maps(self, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "layers b heads s s"]:
        """Return the weights of every head in every layer."""
        future = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        found = []
        for (w_q, w_k, *_), stream in zip(self.layers, self._streams(tokens), strict=False):
            x = _norm(stream)
            q, k = (turn((x @ w.T).unflatten(-1, (HEADS, -1)).transpose(1, 2)) for w in (w_q, w_k))
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
            found.append(scores.softmax(dim=-1))
        return torch.stack(found)


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
    """

    model: AttentionOnly
    losses: list[float] = field(default_factory=list)

    @property
    def end(self) -> float:
        """The mean loss of the last twenty steps."""
        return sum(self.losses[-20:]) / 20


def learn_to_copy(attention: MultiHead, layers: int, seed: int = 0, steps: int = 300) -> CopyingRun:
    """Train a model of this many layers on repeating texts, on one thread, which is faster for matrices this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = CopyingRun(AttentionOnly(attention, layers))
    optimizer = torch.optim.AdamW(run.model.parameters(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = _RATE * min(1.0, (step + 1) / _WARMUP)
        tokens, periods = repeating_texts(_BATCH, generator)
        losses = F.cross_entropy(run.model(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none")
        optimizer.zero_grad()
        torch.autograd.backward(losses.mean())
        optimizer.step()
        run.losses.append(losses.detach()[torch.arange(LENGTH - 1) >= periods[:, None]].mean().item())
    torch.set_num_threads(threads)
    return run


def looks(model: AttentionOnly, texts: int = 64) -> list[list[tuple[float, float]]]:
    """Return how much each head attends to the previous token and to the token after an earlier copy.

    The result is by layer and head, averaged over the tokens of new texts that have an earlier copy.
    """
    tokens, periods = repeating_texts(texts, torch.Generator().manual_seed(1000))
    position = torch.arange(LENGTH)
    counts = position >= periods[:, None]  # (b, s)
    one_back = (position - 1).clamp(min=0).expand(texts, -1)
    after_copy = (position - periods[:, None] + 1).clamp(min=0)
    maps = model.maps(tokens)
    shares = []
    for place in (one_back, after_copy):
        index = place[None, :, None, :, None].expand(*maps.shape[:-1], 1)
        seen = maps.gather(-1, index).squeeze(-1).permute(0, 2, 1, 3)  # layers, heads, b, s
        shares.append(seen[..., counts].mean(dim=-1))
    return [list(zip(*(share[layer].tolist() for share in shares), strict=True)) for layer in range(len(maps))]
