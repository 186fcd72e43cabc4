"""Short training runs of a tiny transformer whose feed-forward layers are dense or mixtures of experts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.schedules import Cosine

D_MODEL, CONTEXT, BATCH = 64, 32, 16

Moe = Callable[..., tuple[Tensor, Tensor]]
"""`moe(x, w_router, w_gate, w_value, w_down, k, capacity)`, as Exercise 10 defines it."""


class MixtureOfExperts(nn.Module):
    """A feed-forward layer of small gated experts, computed by a given function.

    Attributes:
        balance: the balance loss of the last pass.
        shares: the fraction of the last pass's choices that each expert got, (experts,).
    """

    def __init__(self, moe: Moe, width: int, experts: int, k: int, capacity: float | None = None) -> None:
        super().__init__()
        self.moe, self.k, self.capacity = moe, k, capacity
        self.router = _weights(D_MODEL, experts)
        self.gate = _weights(experts, D_MODEL, width)
        self.value = _weights(experts, D_MODEL, width)
        self.down = _weights(experts, width, D_MODEL)
        self.balance = torch.zeros(())
        self.shares = torch.zeros(experts)

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Send each token's vector through its k experts."""
        tokens = x.reshape(-1, x.shape[-1])
        y, self.balance = self.moe(tokens, self.router, self.gate, self.value, self.down, self.k, self.capacity)
        chosen = (tokens @ self.router).topk(self.k).indices
        self.shares = chosen.flatten().bincount(minlength=len(self.gate)) / chosen.numel()
        return y.reshape(x.shape)


def _weights(*shape: int) -> nn.Parameter:
    """Return weights from N(0, 1/inputs)."""
    return nn.Parameter(torch.randn(shape) / shape[-2] ** 0.5)


@dataclass
class ShortRun:
    """The result of one short run.

    Attributes:
        loss: the loss on new text, in nats per byte.
        shares: per step and layer the fraction of the choices that each expert got, (steps, layers, experts).
    """

    loss: float
    shares: list[Tensor] = field(default_factory=list)


def train_experts(
    moe: Moe | None,
    seed: int = 0,
    *,
    width: int = 32,
    experts: int = 8,
    k: int = 1,
    balance: float = 0.0,
    capacity: float | None = None,
    steps: int = 150,
) -> ShortRun:
    """Train two layers on our stories, byte by byte, and measure the loss on new text.

    Args:
        moe: computes a mixture of experts; None for dense SwiGLU layers.
        seed: the seed of the first weights and of the order of the texts.
        width: the width of a dense layer, or of one expert.
        experts, k, capacity: the settings of each mixture.
        balance: the weight of the balance loss, summed over the layers.
        steps: the number of updates, each on 16 windows of 32 bytes.
    """
    stories, source = story_grammar(), random.Random(0)
    text, new_text = (
        torch.tensor(list("".join(stories.generate(source) for _ in range(count)).encode())) for count in (400, 20)
    )
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, D_MODEL, 4, width, vocab_size=128, context=CONTEXT, tied=True))
    initialize(model, "fan_in")
    blocks: list[Any] = [*model.blocks]
    layers = [MixtureOfExperts(moe, width, experts, k, capacity) for _ in blocks] if moe else []
    for block, layer in zip(blocks, layers, strict=False):
        block.feed_forward.layer = layer
    optimizer = torch.optim.AdamW(model.parameters())
    rate = Cosine(steps, warmup_steps=10)
    run = ShortRun(float("nan"))
    with Loader(text, batch=BATCH, seq_len=CONTEXT, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 0.01 * rate(step)
            batch = next(batches)
            loss = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
            loss = loss + sum(balance * layer.balance for layer in layers)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if layers:
                run.shares.append(torch.stack([layer.shares for layer in layers]))
    run.loss = evaluate(
        model, new_text, batch=64, seq_len=CONTEXT, precision=MixedPrecision("fp32", torch.device("cpu"))
    )
    return run


MEASURED: dict[str, tuple[tuple[float, float, float], str]] = {
    "dense, 64 wide": ((0.685, 0.707, 0.740), ""),
    "dense, 256 wide": ((0.580, 0.595, 0.603), ""),
    "8 experts, k = 2": ((0.681, 0.690, 0.650), "largest share 0.36"),
    "8 experts, k = 2, balance 0.01": ((0.675, 0.674, 0.643), "largest share 0.21"),
    "8 experts, k = 1": ((0.754, 0.740, 0.673), "largest share 0.44"),
    "8 experts, k = 1, balance 0.01": ((0.704, 0.729, 0.677), "largest share 0.19"),
    "8 experts, k = 1, capacity 1.25": ((0.763, 0.792, 0.735), "dropped 0.34"),
}
"""Results of `train_experts` with experts of width 32. Each entry has the losses of the seeds 0, 1 and 2, and a text
about the routing, averaged over seeds and layers: the largest share of one expert in the last ten steps, or the
fraction of choices dropped in all steps."""
