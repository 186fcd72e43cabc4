"""Shared parts of all programs in `quality.py`: the text, the evaluation, and a clock that stops during evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch._dynamo  # torch's optimizers import this at their first step, which would count for the first program
from torch import Tensor, nn

from lmcourse.training.command.settings import new_run
from lmcourse.training.command.training_data import tokenize_corpus
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision

WINDOW = 64
EVALUATED = 65_536
CPU = MixedPrecision("fp32", torch.device("cpu"))

Curve = list[tuple[float, float]]
"""Pairs of CPU seconds and the loss at that time."""


@dataclass(frozen=True)
class Text:
    training: Tensor
    validation: Tensor
    vocab_size: int

    def loss(self, model: nn.Module) -> float:
        """Return the mean loss over the held-out part in nats per character."""
        return evaluate(model, self.validation, 64, WINDOW, CPU)


def read_text() -> Text:
    parts = tokenize_corpus(new_run({"tokenizer": "characters", "seq_len": WINDOW}))
    assert parts.validation is not None
    training, validation = (
        torch.tensor([token for document in part for token in document]) for part in (parts.training, parts.validation)
    )
    return Text(training, validation[: EVALUATED + 1], parts.tokenizer.vocab_size)


class Clock:
    """A clock for CPU seconds of this process, which can be stopped."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._begin = time.process_time()

    def now(self) -> float:
        return time.process_time() - self._begin

    def outside(self, work: Callable[[], float]) -> tuple[float, float]:
        """Run `work` with the clock stopped; return the time and the result."""
        now = self.now()
        result = work()
        self._begin += self.now() - now
        return now, result


def seconds_until(curve: Curve, loss: float) -> float | None:
    """Return the CPU seconds at which a curve reaches a loss, by linear interpolation; None if it never does."""
    for (before, above), (after, below) in pairwise(curve):
        if below <= loss:
            return before + (after - before) * (above - loss) / (above - below) if above > loss else before
    return None
