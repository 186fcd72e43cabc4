"""The smallest run that has all the parts of a real one."""

from __future__ import annotations

import torch
from torch import nn

from lmcourse.data.loader import Loader
from lmcourse.models.loss import next_token_loss
from lmcourse.training.schedules import Cosine
from lmcourse.training.small_model import VOCAB_SIZE, small_text


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
        self.loader = Loader(small_text(), batch=2, seq_len=8, seed=0, prefetch=0)
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
