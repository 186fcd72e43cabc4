"""One update of the weights: sum the gradients of a few micro-batches, clip them and call the optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor, nn

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.models.loss import next_token_loss
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.precision import MixedPrecision


@dataclass(frozen=True)
class StepResult:
    """Loss of one step in nats per token, with the z-loss, and the norm of all gradients before clipping."""

    loss: float
    gradient_norm: float

    @property
    def skipped(self) -> bool:
        """True if fp16 gradients overflowed, so that there was no update."""
        return not math.isfinite(self.gradient_norm)


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or NaN. The weights have not been changed."""


def training_step(
    model: nn.Module,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    precision: MixedPrecision,
    *,
    grad_clip: float | None = None,
    z_loss: float = 0.0,
    distributed: DistributedContext = SINGLE_PROCESS,
) -> StepResult:
    """Do one optimizer step.

    Raises NotFiniteError if the loss is not finite, or the gradient is not, unless it overflowed in fp16.

    Args:
        model: maps tokens to logits; its gradients are reset.
        batches: micro-batches on the model's device. Each is weighted by its number of targets that are not
            IGNORE_INDEX, so the result equals the gradient of one large batch.
        optimizer: the optimizer of the model's parameters, with the learning rate of this step.
        precision: precision of the forward pass.
        grad_clip: largest norm of the gradient; a larger gradient is scaled down to it (Pascanu et al., 2013).
        z_loss: as in `next_token_loss`.
        distributed: the context of the processes that share the step; each has its own micro-batches or its own part of
            the model. All get the same result.
    """
    optimizer.zero_grad(set_to_none=True)
    loss = accumulate_gradients(model, batches, precision, z_loss, distributed)
    precision.scaler.unscale_(optimizer)
    norm = distributed.clip_grad_norm([p for group in optimizer.param_groups for p in group["params"]], grad_clip)
    # Reading a number waits for the device, so both are read at once. This must happen before the update: with numbers
    # that are not finite, the update would spoil the weights.
    result = StepResult(*torch.stack([loss, norm.to(loss)]).tolist())
    if not math.isfinite(result.loss):
        raise NotFiniteError(f"the loss is {result.loss}")
    if result.skipped and not precision.scaler.is_enabled():
        raise NotFiniteError(f"the norm of the gradient is {result.gradient_norm}")
    precision.scaler.step(optimizer)
    precision.scaler.update()
    return result


@singledispatch
def accumulate_gradients(
    model: nn.Module,
    batches: Sequence[Batch],
    precision: MixedPrecision,
    z_loss: float,
    distributed: DistributedContext = SINGLE_PROCESS,
) -> Tensor:
    """Add the gradient of the mean loss over all batches to the parameters' gradients; return the loss.

    A model in pipeline stages has its own version (`lmcourse.training.parallel.pipeline_parallel`).
    """
    weights = target_weights(batches, distributed)
    whole = torch.zeros((), device=weights.device)
    for number, (batch, weight) in enumerate(zip(batches, weights, strict=True), start=1):
        with distributed.no_sync(model, last=number == len(batches)):
            loss = weight * mean_loss(model, batch, precision, z_loss)
            # DDP and FSDP average gradients over the data-parallel processes, but we need the sum.
            precision.scaler.scale(loss * distributed.dp_size).backward()
        whole += loss.detach()
    return distributed.all_reduce_sum(whole)


@singledispatch
def mean_loss(model: nn.Module, batch: Batch, precision: MixedPrecision, z_loss: float = 0.0) -> Tensor:
    """Return the mean loss of a batch, in nats per target."""
    with precision.autocast():
        logits = model(batch.inputs)
    return next_token_loss(logits, batch.targets, z_loss=z_loss)


def target_weights(batches: Sequence[Batch], distributed: DistributedContext) -> Tensor:
    """Return the weight of each micro-batch: its fraction of the step's targets over all data-parallel processes."""
    counts = torch.stack([(batch.targets != IGNORE_INDEX).sum() for batch in batches])
    return counts / distributed.all_reduce_sum(counts.sum()).clamp(min=1)
