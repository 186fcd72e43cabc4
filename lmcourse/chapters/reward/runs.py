"""Runs measured by `experiments/rewards.py`, and the layers with two paths of the Further."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@cache
def stored() -> dict[str, Any]:
    """Return the file of measured runs; a rewarded run has lists over its noted steps."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("runs.json").read_text())
    return found


def run_lines(name: str) -> str:
    """Return the table of a rewarded run: one line per seed and noted step."""
    lines = [f"{name:24} seed  step  sums right  one of 8  larger right   reward  numbers     KL"]
    for seed, curves in enumerate(stored()["runs"][name]):
        for place, step in enumerate(curves["step"]):
            if step in (0, 5, 20, 50, 100, 150):
                row = {key: curves[key][place] for key in curves}
                numbers = f"{row['right']:12.3f}{row['of 8']:10.3f}{row['larger']:14.3f}{row['reward']:9.3f}"
                lines.append(f"{'':24}{seed:5}{step:6}{numbers}{row['numbers']:9.2f}{row['kl']:7.2f}")
    return "\n".join(lines)


class LowRank(nn.Module):
    """A model whose matrices get a change of low rank (LoRA); the model's own numbers stay as they are.

    Args:
        model: the trained model.
        merged: returns a matrix with its change, as the exercise defines it.
        rank: the number of rows of each A. `alpha` is twice that.
    """

    def __init__(self, model: nn.Module, merged: Callable[..., Tensor], rank: int) -> None:
        super().__init__()
        self.model, self.merged, self.rank = [model], merged, rank  # in a list: its parameters are not this module's
        self.fixed = {name: value.detach() for name, value in model.named_parameters()}
        self.names = [name for name in self.fixed if name.startswith("blocks.") and "norm" not in name]
        sizes = [self.fixed[name].shape for name in self.names]
        self.a = nn.ParameterList([nn.Parameter(torch.randn(rank, into) / into**0.5) for _, into in sizes])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(out, rank)) for out, _ in sizes])

    def forward(self, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "b s v"]:
        """Run the model with the changed matrices."""
        changed = {
            name: self.merged(self.fixed[name], a, b, 2.0 * self.rank)
            for name, a, b in zip(self.names, self.a, self.b, strict=True)
        }
        logits: Tensor = torch.func.functional_call(self.model[0], {**self.fixed, **changed}, (tokens,))
        return logits
