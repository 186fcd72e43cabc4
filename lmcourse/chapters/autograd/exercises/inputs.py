"""Inputs that several exercises share, and names that none of them may use."""

from __future__ import annotations

import torch
from torch import Tensor


def grads_of(loss: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Return the gradients by torch's own autograd."""
    return list(torch.autograd.grad(loss, tensors))


def tracked(*tensors: Tensor) -> list[Tensor]:
    """Copies that require gradients."""
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]
