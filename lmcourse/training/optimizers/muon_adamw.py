"""Muon for some parameters and AdamW for the others: two optimisers behind the interface of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import torch
from torch.optim import AdamW, Optimizer

from lmcourse.training.optimizers.muon import Muon


class MuonAdamW(Optimizer):
    """Two optimisers whose groups, states and steps are those of one: for the trainer, loss scaling and checkpoints.

    Args:
        muon: of the matrices of the blocks.
        adamw: of all other parameters.
    """

    def __init__(self, muon: Muon, adamw: AdamW) -> None:
        super().__init__([*muon.param_groups, *adamw.param_groups], {})
        self.muon, self.adamw = muon, adamw
        self._share()

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update every parameter that has a gradient; `closure` as in every optimiser of torch."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.muon.step()
        self.adamw.step()
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was loaded: `load_state_dict` makes new groups and states."""
        super().__setstate__(state)
        self._share()

    def _share(self) -> None:
        """Let both have the groups and states of this optimiser, not copies."""
        first = len(self.muon.param_groups)
        self.muon.param_groups, self.adamw.param_groups = self.param_groups[:first], self.param_groups[first:]
        self.muon.state = self.adamw.state = self.state
