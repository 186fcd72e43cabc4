"""The smallest run that has all the parts of a real one, and snapshots of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

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


class Kept:
    """A snapshot of a run: what the exercise asks for.

    Args:
        run: the run.
        without: the part that is not restored: "model", "optimizer", "loader", "step" or "chance"; with "copy", the
            model's tensors are kept themselves.
    """

    def __init__(self, run: Any, without: str = "") -> None:
        states = {name: getattr(run, name).state_dict() for name in ("model", "optimizer", "loader") if name != without}
        self.states = {**deepcopy(states), **({"model": states["model"]} if without == "copy" else {})}
        self.step, self.chance, self.without = run.step, torch.get_rng_state(), without

    def restore(self, run: Any) -> None:
        """Restore what was kept into a run."""
        for name, state in deepcopy(self.states).items():
            getattr(run, name).load_state_dict(state)
        if self.without != "step":
            run.step = self.step
        if self.without != "chance":
            torch.set_rng_state(self.chance)


def resumed_without(part: str) -> list[float]:
    """Return the errors of 20 losses of a resumed run if a part is not restored; "" restores all of them (see Kept)."""
    run = SmallRun()
    run.train(8)
    kept = Kept(run, part)
    right, other = run.train(20), SmallRun()
    kept.restore(other)
    return [abs(a - b) for a, b in zip(other.train(20), right, strict=True)]


def forgetful_runs() -> dict[str, list[float]]:
    """Return these errors by what was forgotten."""
    parts = {"nothing forgotten": "", "without the moments": "optimizer", "without the step": "step"}
    parts["without the place in the text"] = "loader"
    return {name: resumed_without(part) for name, part in parts.items()}
