"""What every lane of `quality.py` has: the same text, the same evaluation, and a clock that stands while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch._dynamo  # what every optimiser of torch does at its first step, which would be in the first lane's seconds
from torch import Tensor, nn

from lmcourse.training.command.settings import new_run
from lmcourse.training.command.training_data import tokenize_corpus
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision

WINDOW = 64
EVALUATED = 65_536
CPU = MixedPrecision("fp32", torch.device("cpu"))

Curve = list[tuple[float, float]]
"""CPU seconds and the loss then."""


@dataclass(frozen=True)
class Text:
    training: Tensor
    validation: Tensor
    vocab_size: int

    def loss(self, model: nn.Module) -> float:
        """Nats per character, on average over the held-out part."""
        return evaluate(model, self.validation, 64, WINDOW, CPU)


def read_text() -> Text:
    parts = tokenize_corpus(new_run({"tokenizer": "characters", "seq_len": WINDOW}))
    assert parts.validation is not None
    training, validation = (
        torch.tensor([token for document in part for token in document]) for part in (parts.training, parts.validation)
    )
    return Text(training, validation[: EVALUATED + 1], parts.tokenizer.vocab_size)


class Clock:
    """CPU seconds of this process, but for what is done while it stands."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._begin = time.process_time()

    def now(self) -> float:
        return time.process_time() - self._begin

    def outside(self, work: Callable[[], float]) -> tuple[float, float]:
        """The time, and what `work` returns without any passing."""
        now = self.now()
        result = work()
        self._begin += self.now() - now
        return now, result


def seconds_until(curve: Curve, loss: float) -> float | None:
    """CPU seconds until a curve is at a loss, on straight lines between its points; None if it never is."""
    for (before, above), (after, below) in pairwise(curve):
        if below <= loss:
            return before + (after - before) * (above - loss) / (above - below) if above > loss else before
    return None
