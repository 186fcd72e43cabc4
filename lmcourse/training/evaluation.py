"""Evaluate a model: its loss on a validation text."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.data.loader import Tokens, evaluation_batches
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import mean_loss


@torch.no_grad()
def evaluate(
    model: nn.Module,
    tokens: Tokens,
    batch: int,
    seq_len: int,
    precision: MixedPrecision,
    distributed: DistributedContext = SINGLE_PROCESS,
) -> float:
    """Return mean −log p(token | tokens before it in its window), in nats; every token but the first is predicted once.

    Dropout is off during the evaluation, and no random numbers are drawn. Raises ValueError if the text has no token to
    predict.

    Args:
        model: maps tokens to logits.
        tokens: the tokens of the text.
        batch: number of windows at once, divided among the data-parallel processes.
        seq_len: tokens per window.
        precision: precision of the forward pass, set up for the model's device.
        distributed: the context of the processes that evaluate the model together. All get the same result.
    """
    training = model.training
    model.eval()
    losses, counts = [], []
    try:
        for whole in evaluation_batches(tokens, batch, seq_len, device=precision.device):
            part = _part(whole, distributed)
            counts.append((part.targets != IGNORE_INDEX).sum())
            losses.append(mean_loss(model, part, precision))
    finally:
        model.train(training)
    # Read all losses together at the end, because reading one waits for the device.
    pairs = list(zip(torch.stack(losses).tolist(), torch.stack(counts).tolist(), strict=True))
    total, count = sum(loss * targets for loss, targets in pairs), sum(targets for _, targets in pairs)
    sums = distributed.all_reduce_sum(torch.tensor([total, count], dtype=torch.float64))
    return (sums[0] / sums[1]).item()


def _part(batch: Batch, distributed: DistributedContext) -> Batch:
    """Return the rows of this data-parallel rank. Without rows it gets an empty tensor, to take part in collectives."""
    missing = -len(batch.inputs) % distributed.dp_size
    inputs = F.pad(batch.inputs, (0, 0, 0, missing))
    targets = F.pad(batch.targets, (0, 0, 0, missing), value=IGNORE_INDEX)
    return Batch(*(rows.chunk(distributed.dp_size)[distributed.dp_rank] for rows in (inputs, targets)))
