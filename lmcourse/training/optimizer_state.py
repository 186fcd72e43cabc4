"""Optimizer state by parameter name, in a form that does not depend on how a model is divided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.training.optimizers.muon_adamw import MuonAdamW

OptimizerState = dict[str, dict[str, Tensor]]
"""For each parameter: AdamW's number of steps, and its means of gradients and of their squares; or Muon's mean."""


def get_optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> OptimizerState:
    """The state tensors of each parameter, by its name; none for parameters that never had a gradient."""
    return {name: optimizer.state[p] for name, p in model.named_parameters() if p in optimizer.state}


def set_optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module, moments: OptimizerState) -> None:
    """Load state into an optimizer; its settings (learning rate, betas, …) stay as they are."""
    names = {p: name for name, p in model.named_parameters()}
    state: dict[int, Any] = {
        index: moments[names[p]] for index, p in enumerate(_in_order(optimizer)) if names[p] in moments
    }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def init_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Create the state that AdamW and Muon have before the first step, to load saved state into its tensors."""
    muon = set(_in_order(optimizer.muon)) if isinstance(optimizer, MuonAdamW) else set()
    for p in _in_order(optimizer):
        if p not in optimizer.state:
            optimizer.state[p] = {"b": torch.zeros_like(p)} if p in muon else _first_adamw_state(p)


def _first_adamw_state(p: nn.Parameter) -> dict[str, Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=p.device)
    return {"step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}


def _in_order(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    """The parameters, as torch numbers them."""
    return (p for group in optimizer.param_groups for p in group["params"])
