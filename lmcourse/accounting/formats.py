"""Number formats: bytes per number, and torch's dtypes."""

from __future__ import annotations

from typing import Literal

import torch

Format = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"]

BYTES_PER_NUMBER: dict[Format, float] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "bf16": 2,
    "fp16": 2,
    "fp8": 1,
    "int8": 1,
    "fp4": 0.5,
}
"""Bytes per number. TF32 numbers are stored as fp32; some GPU units multiply them with fewer digits."""

DTYPES: dict[Format, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""The torch dtypes of the formats in which a model can be built."""
