"""Initialize weights by published rules."""

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
        model: a model of `lmcourse.models`. Every list of blocks in it (`blocks`) has its own residual stream.
        rule: "gpt2": normal with `std`, and std / √N for the layers that write to a residual stream, where N is the
            number of additions to that stream, so that its variance does not grow with depth (Radford et al., 2019,
            §2.3). A block adds 2, also when it is parallel; a decoder block that attends to an encoder adds 3.
            "fan_in": normal with standard deviation 1/√fan_in, truncated at three standard deviations.
        std: the standard deviation for "gpt2".
        zero_outputs: whether to set the layers that write to a residual stream, and an untied head, to 0 instead. Then
            every block is the identity at first (Zhang et al., 2019) and all tokens are equally likely.

    Example:
        >>> model = Transformer(llama_like(2, 64, 4, 192, vocab_size=256, context=128))
        >>> initialize(model, "gpt2", std=0.02)
        >>> f"{model.embedding.tokens.weight.std().item():.2f}"
        '0.02'
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
    """Return the layers that write to a residual stream, each with the number of layers that write to the same one."""
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
