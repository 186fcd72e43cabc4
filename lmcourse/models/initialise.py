"""Where weights start: published rules."""

from __future__ import annotations

import math
from typing import Literal

from torch import nn

RESIDUAL_OUTPUTS = ("out", "down")
"""The layers whose results are added to the residual stream."""


def initialise(model: nn.Module, rule: Literal["gpt2", "fan_in"] = "gpt2", std: float = 0.02) -> None:
    """Draw all weights anew, in place; biases become 0, norms stay as they are.

    Args:
        model: a model whose blocks are in `model.blocks`.
        rule: "gpt2": normal with `std`, and std / √(2 L) for the layers that write to the residual stream, so that
            its variance does not grow with depth (Radford et al., 2019, §2.3). "fan_in": normal with 1/√fan_in, cut
            off at three
            standard deviations.
        std: for "gpt2".
    """
    depth = len(model.blocks)  # type: ignore[arg-type]
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            residual = name.rsplit(".", 1)[-1] in RESIDUAL_OUTPUTS
            spread = std / math.sqrt(2 * depth) if residual else std
            _draw(module, rule, spread, module.in_features)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            _draw(module, rule, std, module.embedding_dim)


def _draw(module: nn.Linear | nn.Embedding, rule: str, std: float, fan_in: int) -> None:
    if rule == "gpt2":
        nn.init.normal_(module.weight, std=std)
    else:
        spread = fan_in**-0.5
        nn.init.trunc_normal_(module.weight, std=spread, a=-3 * spread, b=3 * spread)
