"""Inputs that several exercises share, and what none of them may use."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

NO_AUTOGRAD = [".backward", ".requires_grad_", "torch.autograd", "torch.func", "torch.nn"]
"""For exercises that ask for a gradient by hand."""


def normal(random: Random, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A tensor of standard normal numbers from Python's generator, which is what a grader seeds."""
    numbers = [random.gauss(0, 1) for _ in range(math.prod(shape))]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).to(dtype)


def grads_of(loss: Tensor, *tensors: Tensor) -> list[Tensor]:
    """What torch's own autograd says."""
    return list(torch.autograd.grad(loss, tensors))


def tracked(*tensors: Tensor) -> list[Tensor]:
    """Copies whose gradients torch can be asked for."""
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]
