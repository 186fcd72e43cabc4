"""The optimiser of a run."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import AdamW

from lmcourse.training.config import TrainingConfig
from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.optimizers.muon_adamw import MuonAdamW
from lmcourse.training.param_groups import matrix_groups, parameter_groups


def make_optimizer(model: nn.Module, config: TrainingConfig, distributed: DistributedContext) -> AdamW | MuonAdamW:
    """AdamW, or Muon with it. "initial_lr" of each group is its learning rate at the peak of the schedule.

    Args:
        model: what this process has of it.
        config: the run.
        distributed: the context of this process.

    Raises:
        ValueError: Muon is asked for, and the model has no blocks.
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
