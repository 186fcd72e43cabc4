"""Longer runs of notebook 04: a language of rare words, and the model of the race with many settings side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Optimizer

from lmcourse.chapters.optimization.race import BATCH, WINDOW, NextByte, story_bytes
from lmcourse.exercises.measured import one_thread

Setting = tuple[Callable[[int], float], float]

PEAK = 1.5e-3
WORDS, SHARES = 166, torch.tensor([0.5, 0.25, 0.15, 0.1], dtype=torch.float64)


def excess_loss(make: Callable[[list[Tensor]], Optimizer], seed: int, steps: int = 200) -> tuple[float, float]:
    """Train a table of scores on a language in which each word is followed by one of four, all of it in every step.

    Word r has a frequency in proportion to 1/r. Returns the loss above the language's entropy: after the 12 commonest
    words, and after the rarest tenth.
    """
    frequency = 1 / torch.arange(1, WORDS + 1, dtype=torch.float64)
    followers = torch.rand(WORDS, WORDS, generator=torch.Generator().manual_seed(seed)).argsort(dim=1)[:, :4]
    p = torch.zeros(WORDS, WORDS, dtype=torch.float64).scatter(1, followers, SHARES.expand(WORDS, 4))
    scores = torch.zeros(WORDS, WORDS, dtype=torch.float64, requires_grad=True)
    optimizer = make([scores])
    for _ in range(steps):
        scores.grad = (frequency / frequency.sum())[:, None] * (scores.detach().softmax(dim=1) - p)
        optimizer.step()
    entropy = -torch.special.xlogy(SHARES, SHARES).sum()
    above = -(p * scores.detach().log_softmax(dim=1)).sum(dim=1) - entropy
    return above[:12].mean().item(), above[-WORDS // 10 :].mean().item()


class DecayedRun(NamedTuple):
    """Training losses, the loss on held-out text, and the norm of the second layer's weights in the end."""

    losses: list[float]
    held_out: float
    norm: float

    def average(self, first: int, last: int) -> float:
        """Return the mean training loss over these steps."""
        return sum(self.losses[first:last]) / (last - first)


@one_thread()
def decayed_runs(settings: Mapping[str, Setting], seed: int, steps: int) -> dict[str, DecayedRun]:
    """Train a model for each schedule and decay with AdamW, all from the same weights and on the same batches.

    Only the two matrices before a norm decay.
    """
    torch.manual_seed(seed)
    weights = [p.detach().repeat(len(settings), 1, 1).requires_grad_() for p in NextByte().parameters()]
    means, squares = ([torch.zeros_like(p) for p in weights] for _ in range(2))
    decays = torch.tensor([decay for _, decay in settings.values()])[:, None, None]
    text = story_bytes()
    end, losses = int(0.9 * len(text)), []
    starts = torch.randperm(end - 12, generator=torch.Generator().manual_seed(seed))
    for k, at in enumerate(starts[: BATCH * steps].split(BATCH), 1):  # type: ignore[no-untyped-call]
        scores = _scores(weights, text[at[:, None] + WINDOW])
        loss = -scores.log_softmax(dim=-1)[:, torch.arange(len(at)), text[at + 12]].mean(dim=1)
        losses.append(loss.detach())
        rates = PEAK * torch.tensor([schedule(k - 1) for schedule, _ in settings.values()])[:, None, None]
        slopes = torch.autograd.grad(loss.sum(), weights)
        with torch.no_grad():  # AdamW, with a rate for each model
            for number, slope in enumerate(slopes):
                p, m, s = weights[number], means[number], squares[number]
                if number in (1, 2):
                    p.mul_(1 - rates * decays)
                m.lerp_(slope, 0.1)
                s.lerp_(slope.square(), 0.05)
                p.sub_(rates * (m / (1 - 0.9**k)) / ((s / (1 - 0.95**k)).sqrt() + 1e-8))
    at = torch.arange(end, len(text) - 12, 40)
    with torch.no_grad():
        ends = [F.cross_entropy(each, text[at + 12]).item() for each in _scores(weights, text[at[:, None] + WINDOW])]
    norms = [matrix.norm().item() for matrix in weights[2]]
    runs = map(DecayedRun, torch.stack(losses, dim=1).tolist(), ends, norms)
    return dict(zip(settings, runs, strict=True))


def _scores(weights: list[Tensor], context: Tensor) -> Tensor:
    """Return the scores of the next byte for several models at once: (n, 12) → (models, n, 128)."""
    table, first, second, head = weights
    x = F.rms_norm(table[:, context].flatten(2), (192,))
    for layer in (first, second):
        x = F.rms_norm((x @ layer.mT).relu(), (64,))
    return x @ head.mT
