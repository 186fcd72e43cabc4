"""Parameter groups with and without weight decay."""

from __future__ import annotations

from typing import Any

from torch import nn

from lmcourse.nn.norm import Norm


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters of a model in two groups for an optimizer: matrices with weight decay, all others without.

    A matrix is what has two axes or more, embeddings included, as in Megatron-LM (Shoeybi et al., 2019); OLMo 2 (2025)
    leaves its token embedding out. Biases and norms' scales do not decay: to pull a scale to 0 gains nothing, since the
    next matrix can undo it. That holds too for a norm that has a scale per head, and so two axes.

    Returns:
        First the group that decays, then the other. Every parameter is in exactly one of them, a tied one once, frozen
        ones too: optimisers skip what has no gradient.

    Raises:
        ValueError: the decay is negative.
    """
    if weight_decay < 0:
        raise ValueError(f"weight_decay must be at least 0, not {weight_decay}")
    scales = {p for module in model.modules() if isinstance(module, Norm) for p in module.parameters()}
    matrices = [p for p in model.parameters() if p.dim() >= 2 and p not in scales]
    others = [p for p in model.parameters() if p.dim() < 2 or p in scales]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
