"""The smallest run that has all the parts of a real one, for trying out what a checkpoint must hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmcourse.data.loader import Loader
from lmcourse.models.loss import next_token_loss
from lmcourse.training.schedules import Cosine

VOCAB_SIZE = 8
"""Different tokens of its text."""


class SmallRun:
    """A run on a text of its own: a few hundred parameters, dropout, AdamW, a cosine, a shuffled text.

    Args:
        seed: of weights and dropout. The text and its order are the same for all.
        optimizer: a class of torch.optim.
        rate: at the peak.

    Attributes:
        model, optimizer, loader: each with a `state_dict()` and a `load_state_dict(...)`.
        step: how many updates were made; the learning rate follows from it.
    """

    def __init__(
        self, seed: int = 0, optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW, rate: float = 0.1
    ) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Embedding(VOCAB_SIZE, 12), nn.Dropout(0.25), nn.Linear(12, VOCAB_SIZE))
        self.optimizer = optimizer(self.model.parameters(), lr=rate)  # type: ignore[call-arg]
        self.loader = Loader(_text(), batch=2, seq_len=8, seed=0, prefetch=0)
        self.step, self._rate, self._factor = 0, rate, Cosine(steps=40, warmup_steps=4)

    def train(self, steps: int) -> list[float]:
        """Make so many updates; returns the loss of each, nats per token. Dropout draws from torch's generator."""
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


def _text() -> Tensor:
    """Tokens that can be learned: each is the one before it plus 1 or 3."""
    jumps = torch.randint(2, (400,), generator=torch.Generator().manual_seed(0))
    return (1 + 2 * jumps).cumsum(0) % VOCAB_SIZE
