"""Weight initialization: published rules."""

from __future__ import annotations

import math
from typing import Literal

from torch import nn

from lmcourse.nn.checks import check_type
from lmcourse.nn.embedding import Head

RESIDUAL_OUTPUTS = ("out", "down")
"""The layers whose results are added to the residual stream."""


def initialize(
    model: nn.Module, rule: Literal["gpt2", "fan_in"] = "gpt2", std: float = 0.02, *, zero_outputs: bool = False
) -> None:
    """Draw new weights for all layers, in place; biases become 0, norms are unchanged.

    Args:
        model: a model of `lmcourse.models`. Every list of blocks in it (`blocks`) has a residual stream of its own.
        rule: "gpt2": normal with `std`, and std / √N for the layers that write to a residual stream, where N counts
            what is added to that stream, so that its variance does not grow with depth (Radford et al., 2019, §2.3).
            N is 2 a block, in parallel blocks too, and 3 in a decoder's that attend to an encoder. "fan_in": normal
            with 1/√fan_in, cut off at three standard deviations.
        std: for "gpt2".
        zero_outputs: whether the layers that write to a residual stream, and a head that is not tied, are 0 instead:
            then every block is the identity at first (Zhang et al., 2019) and all tokens are equally likely.
    """
    check_type("model", model, nn.Module, "such as Transformer(config)")
    additions = _additions(model)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            _draw(module, rule, std / math.sqrt(additions.get(module, 1)), module.in_features)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            _draw(module, rule, std, module.embedding_dim)
    if zero_outputs:
        embeddings = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
        heads = [module.linear for module in model.modules() if isinstance(module, Head)]
        for layer in [*additions, *(head for head in heads if head.weight not in embeddings)]:
            nn.init.zeros_(layer.get_parameter("weight"))


def _additions(model: nn.Module) -> dict[nn.Module, int]:
    """Yield the layers that write to a residual stream, each with the number of layers that write to the same
    stream.
    """
    found: dict[nn.Module, int] = {}
    for module in model.modules():
        blocks = getattr(module, "blocks", None)
        if isinstance(blocks, nn.ModuleList):
            named = blocks.named_modules()
            writers = [layer for name, layer in named if name.rsplit(".", 1)[-1] in RESIDUAL_OUTPUTS]
            found |= dict.fromkeys(writers, len(writers))
    return found


def _draw(module: nn.Linear | nn.Embedding, rule: str, std: float, fan_in: int) -> None:
    if rule == "gpt2":
        nn.init.normal_(module.weight, std=std)
    else:
        spread = fan_in**-0.5
        nn.init.trunc_normal_(module.weight, std=spread, a=-3 * spread, b=3 * spread)
