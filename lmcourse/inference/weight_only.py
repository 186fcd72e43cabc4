"""Store weights in fewer bytes for generation: int8 with a scale for each output, or bf16.

A decoding step of one text reads every weight once and does two FLOPs with it, so its time depends on the bytes of the
weights (see `lmcourse.accounting.latency`). A quarter of the bytes takes a quarter of the time. Activations, norms,
softmax and the residual stream keep their precision, so the loss of accuracy is small (Dettmers et al., 2022; Frantar
et al., 2022).
"""

from __future__ import annotations

import copy
from typing import Literal, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice

WeightFormat = Literal["bf16", "int8"]
Module = TypeVar("Module", bound=nn.Module)

INT8_MAX = 127

KERNEL_BLOCK = 32
"""Block size of the CPU kernel for int8 weights. The kernel reads beyond the end of inputs that do not fill a block."""


class Bf16Linear(nn.Module):
    """A linear layer with bf16 weights, 2 bytes each, made from the layer to replace."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("weight", linear.weight.detach().bfloat16())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Return W x + b in the format of x; the product also rounds x to bf16, and sums in fp32."""
        y = F.linear(x.bfloat16(), self.weight).to(x.dtype)
        return y if self.bias is None else y + self.bias


class Int8Linear(nn.Module):
    """A linear layer with int8 weights, 1 byte each, and a scale for each output, made from the layer to replace.

    A row of W is scale · w with integers w from −127 to 127, where scale is the largest magnitude of the row ÷ 127.
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        rows = linear.weight.detach().float()
        # The CPU kernel needs scales in bf16. They are rounded before the weights are divided by them, so that this
        # rounding adds no further error.
        scale = (rows.abs().amax(dim=1) / INT8_MAX).clamp(min=torch.finfo(torch.float32).tiny).bfloat16()
        steps = (rows / scale.float()[:, None]).round().clamp(-INT8_MAX, INT8_MAX)
        self.register_buffer("weight", steps.to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Return W x + b in the format of x. A CPU rounds x to bf16 if the width of x is a multiple of 32; sums are in
        fp32.
        """
        if x.device.type == "cpu" and x.shape[-1] % KERNEL_BLOCK == 0:
            rows = x.flatten(0, -2).bfloat16()
            y = torch._weight_int8pack_mm(rows, self.weight, self.scale).view(*x.shape[:-1], -1).to(x.dtype)
        else:
            y = F.linear(x, self.weight.to(x.dtype)) * self.scale.to(x.dtype)
        return y if self.bias is None else y + self.bias


FORMATS: dict[WeightFormat, type[Bf16Linear | Int8Linear]] = {"bf16": Bf16Linear, "int8": Int8Linear}


def narrow_weights(model: Module, format: WeightFormat) -> Module:
    """Return a copy of a model that stores the weights of its linear layers, including the head, in fewer bytes.

    The table of token vectors does not change, because a step reads only one row of it for each text. A tied head gets
    its own matrix. The copy is for inference; it cannot be trained. An unknown format raises ValueError.
    """
    check_choice("format", format, WeightFormat)
    # Do not copy the replaced layers, or a large model's weights would be in memory twice.
    linear = [module for module in model.modules() if type(module) is nn.Linear]
    return copy.deepcopy(model, {id(module): FORMATS[format](module) for module in linear})
