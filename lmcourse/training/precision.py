"""Mixed precision: matrix products in 16 bits, weights and their updates in 32 (Micikevicius et al., 2018)."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["fp32", "bf16", "fp16"]

_DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def default_precision(device: torch.device) -> Precision:
    """Return bf16 if a GPU has units for it, otherwise fp32. Most CPUs are slower in bf16."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return "bf16"
    return "fp32"


def allow_tf32(device: torch.device) -> None:
    """Let an NVIDIA GPU multiply fp32 matrices in TF32: 8 times as fast since Ampere, with 10 bits of fraction."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")


class MixedPrecision:
    """The format of a model's matrix products (autocast) and the loss scale; its weights stay fp32.

    bf16 has the range of fp32. fp16 does not: small gradients would become 0. So the loss is multiplied by a large
    number before the backward pass, and gradients are divided by it before the update. If a gradient overflows, the
    update is skipped and the number is halved.

    Attributes:
        scaler: multiplies the loss and divides the gradients; does nothing unless the precision is "fp16".
    """

    def __init__(self, precision: Precision, device: torch.device) -> None:
        self.precision, self.device = precision, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")

    def autocast(self) -> torch.autocast:
        """Return the autocast context for a forward pass."""
        return torch.autocast(self.device.type, _DTYPES[self.precision], enabled=self.precision != "fp32")
