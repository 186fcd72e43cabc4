"""What an optimiser remembers of each parameter, by the parameter's name: the same however a model is divided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

Moments = dict[str, dict[str, Tensor]]
"""For each parameter: AdamW's number of steps, and its means of gradients and of their squares."""


def get_moments(optimiser: torch.optim.Optimizer, model: nn.Module) -> Moments:
    """What the optimiser remembers; nothing of parameters that never had a gradient."""
    return {name: optimiser.state[p] for name, p in model.named_parameters() if p in optimiser.state}


def set_moments(optimiser: torch.optim.Optimizer, model: nn.Module, moments: Moments) -> None:
    """Let the optimiser remember; its settings stay as they are."""
    names = {p: name for name, p in model.named_parameters()}
    state: dict[int, Any] = {
        index: moments[names[p]] for index, p in enumerate(_in_order(optimiser)) if names[p] in moments
    }
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def begin_moments(optimiser: torch.optim.AdamW) -> None:
    """Remember of every parameter what AdamW does before the first step: so there is a place for what is read."""
    for p in _in_order(optimiser):
        if p not in optimiser.state:
            step = torch.zeros((), dtype=torch.float32, device=p.device)
            optimiser.state[p] = {"step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}


def _in_order(optimiser: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    """The parameters, as torch numbers them."""
    return (p for group in optimiser.param_groups for p in group["params"])
