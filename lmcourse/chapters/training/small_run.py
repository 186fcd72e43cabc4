"""The smallest run that has all the parts of a real one, and functions that make the parts: settings, model, text."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.data.batch import Batch
from lmcourse.data.loader import Loader
from lmcourse.models.loss import next_token_loss
from lmcourse.training.schedules import Cosine

VOCAB_SIZE = 8
"""Number of different tokens in the text."""


class SmallRun:
    """A run with its own text: a few hundred parameters, dropout, AdamW, a cosine, a shuffled text.

    Args:
        seed: the seed of weights and dropout. The text and its order are the same for all seeds.
        optimizer: an optimizer class of torch.optim.
        rate: the learning rate at the peak.

    Attributes:
        model, optimizer, loader: each with a `state_dict()` and a `load_state_dict(...)`.
        step: the number of updates so far; the learning rate follows from it.
    """

    def __init__(
        self, seed: int = 0, optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW, rate: float = 0.1
    ) -> None:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed writes a traceback for each kind of absent device
        self.model = nn.Sequential(nn.Embedding(VOCAB_SIZE, 12), nn.Dropout(0.25), nn.Linear(12, VOCAB_SIZE))
        self.optimizer = optimizer(self.model.parameters(), lr=rate)  # type: ignore[call-arg]
        self.loader = Loader(_text(), batch=2, seq_len=8, seed=0, prefetch=0)
        self.step, self._rate, self._factor = 0, rate, Cosine(steps=40, warmup_steps=4)

    def train(self, steps: int) -> list[float]:
        """Make this many updates; return the loss of each in nats per token. Dropout uses torch's generator."""
        return [self._update() for _ in range(steps)]

    def _update(self) -> float:
        batch = next(self.loader)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate * self._factor(self.step)
        self.optimizer.zero_grad()
        loss = next_token_loss(self.model(batch.inputs), batch.targets)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        return loss.item()


@dataclass
class Settings:
    """The settings of a run.

    Attributes:
        steps: number of updates of the whole run.
        rate: the learning rate at the peak.
        norms: names of the parameters that belong to norms.
        warmup, decay: steps of the first and the last phase.
        micro_batches: batches of the loader that make one update.
        weight_decay: the weight decay of the matrices.
        limit: the largest norm of a gradient.
        every: the number of updates between two snapshots.
        snapshots: the list to which the snapshots are added.
        report: called after every update with its number, from 1 on, and its loss.
    """

    steps: int
    rate: float
    norms: list[str]
    warmup: int = 0
    decay: int = 0
    micro_batches: int = 1
    weight_decay: float = 0.1
    limit: float = 1.0
    every: int = 100
    snapshots: list[Any] = field(default_factory=list)
    report: Callable[[int, float], None] = lambda step, loss: None


NORMS = ["1.weight", "1.bias"]
"""Names of the norm's parameters in `small_model`."""


def small_model(seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    """Return a model of 224 parameters in fp64 for the text of `small_loader`."""
    torch.default_generator.manual_seed(seed)
    parts = nn.Embedding(VOCAB_SIZE, 12), nn.LayerNorm(12), nn.Dropout(dropout), nn.Linear(12, VOCAB_SIZE)
    return nn.Sequential(*parts).double()


class PowerCutError(Exception):
    """Raised when the simulated machine loses power in the middle of a run."""


class FailingLoader(Loader):
    """A loader on a machine that loses power after some batches: from then on, `next` raises PowerCutError."""

    batches_left = 0

    def __next__(self) -> Batch:
        if self.batches_left < 1:
            raise PowerCutError("the power failed")
        self.batches_left -= 1
        return super().__next__()


def small_loader(batch: int = 2, fails_after: int | None = None) -> Loader:
    """Return a loader of a learnable text, in batches of this many windows of 8 tokens."""
    if fails_after is None:
        return Loader(_text(), batch, seq_len=8, seed=0, prefetch=0)
    loader = FailingLoader(_text(), batch, seq_len=8, seed=0, prefetch=0)
    loader.batches_left = fails_after
    return loader


def resumed_without(part: str) -> list[float]:
    """Return the errors of 20 losses of a resumed run if a part is not restored.

    Args:
        part: "model", "optimizer", "loader", "step" or "chance"; or an empty text to restore all of them.
    """
    run = SmallRun()
    run.train(8)
    names = [name for name in ("model", "optimizer", "loader") if name != part]
    kept, step = deepcopy({name: getattr(run, name).state_dict() for name in names}), run.step
    chance = torch.get_rng_state()
    right, other = run.train(20), SmallRun()
    for name in names:
        getattr(other, name).load_state_dict(kept[name])
    other.step = 0 if part == "step" else step
    if part != "chance":
        torch.set_rng_state(chance)
    return [abs(a - b) for a, b in zip(other.train(20), right, strict=True)]


def _text() -> Tensor:
    """A text that can be learned: each token is the one before it plus 1 or 3."""
    jumps = torch.randint(2, (400,), generator=torch.Generator().manual_seed(0))
    return (1 + 2 * jumps).cumsum(0) % VOCAB_SIZE
