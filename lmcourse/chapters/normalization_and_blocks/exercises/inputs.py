"""Inputs that several exercises of this notebook share."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.inputs import integers, normal

NOTES = torch.tensor([[100.0, 200.0, 100.0, 0.0]])
"""The worked example of the lecture notes: one token with four features."""

TEXT = NOTES[None]
"""The example as a text of one token: with three axes, so that axis 1 is not the last one."""

POWERS = torch.tensor([2.0, -0.5, 1.0, 4.0])
"""Scales that are exact in 16 bits."""

NO_NORM = [
    ".layer_norm",
    ".native_layer_norm",
    ".rms_norm",
    ".batch_norm",
    ".group_norm",
    ".instance_norm",
    "torch.nn.LayerNorm",
    "torch.nn.RMSNorm",
    "torch.nn.GroupNorm",
    "torch.nn.modules.normalization",
    "torch.nn.modules.batchnorm",
    "torch.nn.modules.instancenorm",
    "torch.nn.BatchNorm1d",
    "torch.nn.InstanceNorm1d",
]
"""Functions and modules that compute a norm or can imitate one."""


def in_bf16(seed: int, mean: float) -> tuple[Tensor, Tensor, Tensor]:
    """Two tokens of 64 features in bf16, and scale and shift in fp32, none of them a power of two.

    The seeds are chosen so that no exact result is near the middle between two bf16 numbers: each way to compute in
    fp32 rounds to the same bf16 numbers.
    """
    random = Random(seed)
    x = (normal(random, 2, 64) + mean).bfloat16()
    return x, 1 + 0.3 * normal(random, 64), normal(random, 64)


def scales(random: Random, d: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random scales around 1, none of them small."""
    return 1 + 0.3 * integers(random, d, low=-2, high=2, dtype=dtype)


def tokens(random: Random, *shape: int, mean: float = 0.5, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random features whose mean is not 0."""
    return normal(random, *shape, dtype=dtype) + mean
