"""Short training runs of a tiny transformer with feed-forward layers of the learner's, or mixtures of experts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.exercises.measured import one_thread
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.schedules import Cosine

D_MODEL, CONTEXT = 64, 32

Moe = Callable[..., tuple[Tensor, Tensor]]
"""`moe(x, w_router, w_gate, w_value, w_down, k, capacity)`, as Exercise 12 defines it."""


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


class OwnLayer(nn.Module):
    """A feed-forward layer that a given function computes, with random weights and biases of 0.

    Args:
        function: takes the tokens, the weights, and for a gated layer the kind.
        width: the number of hidden units.
        kind: the kind of a gated layer; None for `function(x, w1, b1, w2, b2)`.
    """

    def __init__(self, function: Callable[..., Tensor], width: int, kind: str | None = None) -> None:
        super().__init__()
        self.function, self.kind = function, kind
        up, down, bias = partial(_weights, D_MODEL, width), partial(_weights, width, D_MODEL), torch.zeros
        plain = (up, partial(bias, width), down, partial(bias, D_MODEL))
        self.weights = nn.ParameterList([nn.Parameter(make()) for make in ((up, up, down) if kind else plain)])

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the function to each token's vector."""
        return self.function(x, *self.weights, *([self.kind] if self.kind else []))


@dataclass
class ShortRun:
    """The result of one short run.

    Attributes:
        model: the trained model.
        loss: the loss on new text, in nats per byte.
        shares: per step and layer the fraction of the choices that each expert got, (steps, layers, experts).
    """

    model: Transformer
    loss: float = float("nan")
    shares: list[Tensor] = field(default_factory=list)


@cache
def story_text(count: int) -> Int[Tensor, " bytes"]:
    """Return the bytes of 400 stories to train on, or of 20 others to test on."""
    stories, source = story_grammar(), random.Random(0)
    texts = {n: torch.tensor(list("".join(stories.generate(source) for _ in range(n)).encode())) for n in (400, 20)}
    return texts[count]


@one_thread()
def train_layers(
    make: Callable[[], nn.Module] | None,
    seed: int = 0,
    steps: int = 100,
    batch: int = 8,
    *,
    width: int = 64,
    heads: int = 4,
    balance: float = 0.0,
) -> ShortRun:
    """Train two layers on our stories, byte by byte, and measure the loss on new text.

    Args:
        make: makes the feed-forward layer of each block; None for dense SwiGLU layers of this `width`.
        seed: the seed of the first weights and of the order of the texts.
        steps, batch: the number of updates, and the windows of 32 bytes in each.
        heads: the number of heads, which are together as wide as the model.
        balance: the weight of the balance loss of mixtures, summed over the layers.
    """
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, D_MODEL, heads, width, vocab_size=128, context=CONTEXT, tied=True))
    initialize(model, "fan_in")
    blocks: list[Any] = [*model.blocks]
    layers: list[Any] = [make() for _ in blocks] if make else []
    for block, layer in zip(blocks, layers, strict=False):
        block.feed_forward.layer = layer
    mixtures = [layer for layer in layers if isinstance(layer, MixtureOfExperts)]
    optimizer = torch.optim.AdamW(model.parameters())
    rate = Cosine(steps, warmup_steps=10)
    run = ShortRun(model)
    with Loader(story_text(400), batch=batch, seq_len=CONTEXT, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 0.01 * rate(step)
            windows = next(batches)
            loss = F.cross_entropy(model(windows.inputs).flatten(0, 1), windows.targets.flatten())
            loss = loss + sum(balance * layer.balance for layer in mixtures)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if mixtures:
                run.shares.append(torch.stack([layer.shares for layer in mixtures]))
    precision = MixedPrecision("fp32", torch.device("cpu"))
    run.loss = evaluate(model, story_text(20), batch=64, seq_len=CONTEXT, precision=precision)
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
"""Results of `train_layers` with experts of width 32, 150 steps and 16 windows. Each entry has the losses of the seeds
0, 1 and 2, and a text about the routing, averaged over seeds and layers: the largest share of one expert in the last
ten steps, or the fraction of choices dropped in all steps."""
