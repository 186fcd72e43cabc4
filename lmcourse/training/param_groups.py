"""The optimizer of a run, and its parameter groups: with and without weight decay, and the matrices for Muon."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW

from lmcourse.nn.norm import Norm
from lmcourse.training.activation_checkpointing import find_blocks
from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.optimizers.muon import MuonAdamW
from lmcourse.training.parallel.split_linear import find_fused
from lmcourse.training.training_config import TrainingConfig


def make_optimizer(model: nn.Module, config: TrainingConfig, distributed: DistributedContext) -> AdamW | MuonAdamW:
    """Return AdamW, or Muon with AdamW. "initial_lr" of each group is its learning rate at the peak of the schedule.

    Muon for a model without blocks raises ValueError.
    """
    matrices = matrix_groups(model) if config.optimizer == "muon" else []
    taken = {p for group in matrices for p in group["params"]}
    groups: list[dict[str, Any]] = [
        {**group, "params": parameters}
        for group in parameter_groups(model, config.weight_decay)
        for parameters in distributed.group_by_mesh([p for p in group["params"] if p not in taken])
    ]
    rest = torch.optim.AdamW(groups, config.learning_rate, config.betas, config.eps, fused=True)
    optimizer: AdamW | MuonAdamW = rest
    if config.optimizer == "muon":
        muon = distributed.muon(
            matrices,
            config.muon_learning_rate,
            config.muon_momentum,
            weight_decay=config.weight_decay,
            iterations=config.muon_iterations,
        )
        optimizer = MuonAdamW(muon, rest)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return optimizer


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return a model's parameters in two groups for an optimizer: matrices with weight decay, all others without.

    A parameter with two or more axes counts as a matrix, embeddings included, as in Megatron-LM (Shoeybi et al., 2019);
    OLMo 2 (2025) leaves its token embedding out. Biases and the scales of norms do not decay: pulling a scale to 0
    gains nothing, because the next matrix can undo it. This also holds for a norm with a scale per head, although that
    scale has two axes.

    Every parameter is in exactly one group, a tied one once. Frozen parameters are included, because optimizers skip
    parameters without a gradient.
    """
    scales = {p for module in model.modules() if isinstance(module, Norm) for p in module.parameters()}
    matrices = [p for p in model.parameters() if p.dim() >= 2 and p not in scales]
    others = [p for p in model.parameters() if p.dim() < 2 or p in scales]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def matrix_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Return the matrices of a model's blocks in groups for Muon, one group for each way in which matrices are fused.

    Embedding and head, whose rows stand for tokens, are left out, and so are tables of position vectors (Jordan et al.,
    2024). A fused matrix counts as several: "rows" has the number of rows of each, so that queries, keys and values are
    three matrices even if they are stored in one parameter.
    """
    fused = {name: tuple(rows.values()) for name, rows in find_fused(model).items()}
    names = {module: name for name, module in model.named_modules()}
    layers = [layer for block in find_blocks(model) for layer in block.modules() if isinstance(layer, nn.Linear)]
    groups: dict[tuple[int, ...] | None, list[nn.Parameter]] = defaultdict(list)
    for layer in layers:
        groups[fused.get(names[layer])].append(layer.get_parameter("weight"))
    if not groups:
        raise ValueError(f"muon is for the matrices of blocks, and a {type(model).__name__} has none: use adamw")
    return [{"params": weights, "rows": rows} for rows, weights in groups.items()]
