"""A training run small enough to repeat in any number format: a function of the reader rounds all that it stores."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from lmcourse.data.grammar import story_grammar

Keep = Callable[[Tensor, str], Tensor]
"""Returns a tensor as it is stored; it also gets its role: "weight", "activation" or "gradient"."""


class Run(NamedTuple):
    """The losses of a run in nats per byte, the gradients of its first step as stored, and its skipped steps."""

    losses: list[float]
    gradients: list[Tensor]
    skipped: int

    @property
    def end(self) -> float:
        """The mean of the last ten losses."""
        return fmean(self.losses[-10:])


class _Stored(torch.autograd.Function):
    """Store a tensor on the way forward, and its gradient on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, role: str, keep: Keep) -> Tensor:
        ctx.keep = keep
        return keep(x, role)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.keep(gradients[0], "gradient"), None, None


def exact(x: Tensor, role: str) -> Tensor:
    """Store a tensor as it is."""
    return x


def store(x: Tensor, role: str, keep: Keep) -> Tensor:
    """Return a tensor as `keep` stores it; its gradient is stored, too."""
    stored: Tensor = _Stored.apply(x, role, keep)  # type: ignore[no-untyped-call]
    return stored


def loss_of(weights: list[Tensor], windows: Int[Tensor, "batch 9"], keep: Keep) -> Float[Tensor, ""]:
    """Predict the last of nine bytes. `keep` rounds what `store` writes to memory, and its gradient."""
    embedding, hidden, head = (store(weight, "weight", keep) for weight in weights)
    features = embedding[windows[:, :8]].flatten(1)
    active = store((features @ hidden).relu(), "activation", keep)
    logits = store(active @ head, "activation", keep)
    return cross_entropy(logits, windows[:, 8])


def tiny_run(
    keep: Keep, scale: float = 1.0, pieces: int = 16_384, seed: int = 0, halve: bool = False, steps: int = 100
) -> Run:
    """Train the model; `keep` rounds all that is stored, all else is computed in float64.

    A step with a gradient that is not finite is skipped; `halve` then halves the loss scale.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # fastest for a model this small
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # `keep` may round by chance
            return _train(keep, scale, pieces, torch.Generator().manual_seed(seed), halve, steps)
    finally:
        torch.set_num_threads(threads)


def _train(keep: Keep, scale: float, pieces: int, draw: torch.Generator, halve: bool, steps: int) -> Run:
    embedding, hidden, head = (torch.randn(128, width, generator=draw) for width in (16, 64, 128))
    starts = embedding, hidden / 128**0.5, 0.1 * head[:64] / 64**0.5
    weights = [start.double().requires_grad_() for start in starts]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    run = Run([], [], 0)
    for _ in range(steps):
        windows = _text()[torch.randint(len(_text()) - 8, (256, 1), generator=draw) + torch.arange(9)]
        loss = loss_of(weights, windows, keep)
        run.losses.append(loss.item())
        optimizer.zero_grad()
        torch.autograd.backward(loss / pieces * scale)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        run = run._replace(gradients=run.gradients or [gradient.clone() for gradient in gradients])
        if all(gradient.isfinite().all() for gradient in gradients):
            for gradient in gradients:
                gradient *= pieces / scale
            optimizer.step()
        else:  # an infinite gradient would ruin the weights
            run, scale = run._replace(skipped=run.skipped + 1), scale / 2 if halve else scale
    return run


@cache
def _text() -> Int[Tensor, " bytes"]:
    stories, source = story_grammar(), random.Random(0)
    return torch.tensor(list("".join(stories.generate(source) for _ in range(200)).encode()))
