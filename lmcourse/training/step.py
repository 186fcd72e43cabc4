"""One update of the weights: gradients of a few micro-batches, added up, clipped, and given to the optimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmcourse.data.batch import IGNORED, Batch
from lmcourse.models.loss import next_token_loss
from lmcourse.training.precision import MixedPrecision


@dataclass(frozen=True)
class StepResult:
    """What a step found.

    Attributes:
        loss: what was minimised, in nats per token; the z-loss is part of it.
        gradient_norm: of all gradients together, before clipping.
    """

    loss: float
    gradient_norm: float

    @property
    def skipped(self) -> bool:
        """Whether fp16 gradients overflowed, so that there was no update."""
        return not math.isfinite(self.gradient_norm)


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or no number. The weights have not been changed."""


def training_step(
    model: nn.Module,
    batches: Sequence[Batch],
    optimiser: torch.optim.Optimizer,
    precision: MixedPrecision,
    *,
    clip: float | None = None,
    z_loss: float = 0.0,
) -> StepResult:
    """Update a model once.

    Args:
        model: from tokens to logits; its gradients are lost.
        batches: micro-batches on the model's device. Each counts by its targets that are not IGNORED, so the gradient
            is that of one large batch.
        optimiser: of the model's parameters, with the learning rate of this step.
        precision: of the forward pass.
        clip: if the norm of the gradient is larger, it is scaled down to this (Pascanu et al., 2013).
        z_loss: as in `next_token_loss`.

    Raises:
        NotFiniteError: the loss is not finite, or the gradient is not, unless it overflowed in fp16.
    """
    optimiser.zero_grad(set_to_none=True)
    loss = accumulate(model, batches, precision, z_loss)
    precision.scaler.unscale_(optimiser)
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    norm = nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
    # To look at numbers is to wait for the device. It must be before the update: afterwards the weights are lost.
    result = StepResult(loss.item(), norm.item())
    if not math.isfinite(result.loss):
        raise NotFiniteError(f"the loss is {result.loss}")
    if result.skipped and not precision.scaler.is_enabled():
        raise NotFiniteError(f"the norm of the gradient is {result.gradient_norm}")
    precision.scaler.step(optimiser)
    precision.scaler.update()
    return result


def accumulate(model: nn.Module, batches: Sequence[Batch], precision: MixedPrecision, z_loss: float) -> Tensor:
    """Add the gradient of the mean loss over all batches to that of the parameters; return the loss."""
    counts = torch.stack([(batch.targets != IGNORED).sum() for batch in batches])
    shares = counts / counts.sum().clamp(min=1)
    whole = torch.zeros((), device=shares.device)
    for batch, share in zip(batches, shares, strict=True):
        with precision.autocast():
            logits = model(batch.inputs)
        loss = share * next_token_loss(logits, batch.targets, z_loss=z_loss)
        precision.scaler.scale(loss).backward()
        whole += loss.detach()
    return whole
