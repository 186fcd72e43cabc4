"""A block as the formulas of notebook 14 assume it, a small model of such blocks, and a recorded step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmcourse.accounting.live import memory_events


def drop(x: Tensor) -> Tensor:
    """Dropout that keeps a mask of one byte per number, as on a GPU."""
    return x * (torch.rand_like(x) > 0.1) / 0.9


class Block(nn.Module):
    """A block as the formulas assume it: nothing fused, as many key heads as query heads."""

    def __init__(self, D: int, A: int, dropout: bool = True) -> None:
        super().__init__()
        self.A, self.drop = A, drop if dropout else nn.Identity()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def attention(self, x: Float[Tensor, "b s d"]) -> Float[Tensor, "b s d"]:
        """Every token gathers from all tokens of its text."""
        q, k, v = (rearrange(linear(x), "b s (a d) -> b a s d", a=self.A) for linear in (self.q, self.k, self.v))
        weights = self.drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1))
        result: Tensor = self.out(rearrange(weights @ v, "b a s d -> b s (a d)"))
        return result

    def forward(self, x: Float[Tensor, "b s d"]) -> Float[Tensor, "b s d"]:
        """Add attention and the feed-forward layer to the stream."""
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class SmallModel(nn.Module):
    """An embedding, blocks without dropout, and a head."""

    def __init__(self, V: int = 4096, D: int = 64, A: int = 4, L: int = 4) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, D), nn.Linear(D, V, bias=False)
        self.blocks = nn.ModuleList(Block(D, A, dropout=False) for _ in range(L))

    def features(self, x: Int[Tensor, "b s"]) -> Float[Tensor, "b s d"]:
        """Return what the head reads: the embedding, then all blocks."""
        h: Tensor = self.embed(x)
        for block in self.blocks:
            h = block(h)
        return h

    def forward(self, x: Int[Tensor, "b s"]) -> Float[Tensor, "b s v"]:
        """The logits of the next token."""
        logits: Tensor = self.head(self.features(x))
        return logits


def measured_step(
    blocks: Sequence[Block],
    head: nn.Linear,
    x: Float[Tensor, "b s d"],
    y: Int[Tensor, " n"],
    recompute: bool = False,
    keep_logits: bool = False,
) -> list[list[int]]:
    """Run a step twice, because the first also allocates the gradients, and record the second.

    Returns:
        The sizes of all allocations and releases in three phases: blocks forward, head and loss, backward pass.
    """
    for _ in range(2):
        held: dict[str, Tensor] = {}

        def forward(held: dict[str, Tensor] = held) -> None:
            held["h"] = x
            for block in blocks:
                held["h"] = checkpoint(block, held["h"], use_reentrant=False) if recompute else block(held["h"])

        def loss(held: dict[str, Tensor] = held) -> None:
            logits = head(held.pop("h")).flatten(0, 1)
            held["loss"] = F.cross_entropy(logits, y)
            if keep_logits:
                held["logits"] = logits

        def backward(held: dict[str, Tensor] = held) -> None:
            held["loss"].backward()  # type: ignore[no-untyped-call]

        phases = [memory_events(phase) for phase in (forward, loss, backward)]
    return phases


def block_alone(block: Block, x: Float[Tensor, "b s d"]) -> int:
    """The most bytes in use while a block runs forward and backward."""
    x = x.clone().requires_grad_()

    def step() -> None:
        block(x).sum().backward()

    step()
    return max(accumulate(memory_events(step)))
