"""The loss on a text that is not trained on."""

from __future__ import annotations

import torch
from torch import nn

from lmcourse.data.batch import IGNORED
from lmcourse.data.loader import Tokens, evaluation_batches
from lmcourse.models.loss import next_token_loss
from lmcourse.training.precision import MixedPrecision


@torch.no_grad()
def evaluate(model: nn.Module, tokens: Tokens, batch: int, length: int, precision: MixedPrecision) -> float:
    """Mean −log p(token | those before it in its window), in nats; every token but the first is predicted once.

    Dropout is off meanwhile, and no random number is drawn.

    Args:
        model: from tokens to logits.
        tokens: the text.
        batch: windows at once.
        length: tokens per window.
        precision: of the forward pass; its device is the model's.

    Raises:
        ValueError: there is nothing to predict.
    """
    training = model.training
    model.eval()
    total, count = 0.0, 0
    try:
        for part in evaluation_batches(tokens, batch, length, device=precision.device):
            with precision.autocast():
                logits = model(part.inputs)
            targets = int((part.targets != IGNORED).sum())
            total += next_token_loss(logits, part.targets).item() * targets
            count += targets
    finally:
        model.train(training)
    return total / count
