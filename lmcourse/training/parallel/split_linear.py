"""Split fused linear layers into their parts: queries, keys and values; gate and up.

Fused layers are faster on one device. But if a fused layer were sharded, a process could get queries without their
keys. So fused layers are split before the matrices of a model are sharded. Checkpoints store them under the fused
names.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.nn.attention import Attention
from lmcourse.nn.feed_forward import GatedFeedForward

FusedLinears = dict[str, dict[str, int]]
"""The name of each fused layer in a model, and its parts with their numbers of rows."""

SplitLayers = dict[str, tuple[str, int, int]]
"""The name of each part of a fused layer: the fused layer's name, the part's first row in it, and the rows of all."""


class SplitLinear(nn.Module):
    """The same function as a fused layer, with a matrix for each part; `rows` has the parts' numbers of rows."""

    def __init__(self, fused: nn.Linear, rows: dict[str, int]) -> None:
        super().__init__()
        first = 0
        for name, number in rows.items():
            with torch.device(fused.weight.device):
                part = nn.Linear(fused.in_features, number, bias=fused.bias is not None)
            for own, whole in zip(part.parameters(), fused.parameters(), strict=True):
                own.data.copy_(whole.data.narrow(0, first, number))
            self.add_module(name, part)
            first += number

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch sum"]:
        """Return the outputs of all parts, side by side."""
        return torch.cat([part(x) for part in self.children()], dim=-1)


def find_fused(model: nn.Module) -> FusedLinears:
    """Return the fused layers of a model, including those that `unfuse` has already split."""
    found: FusedLinears = {}
    for name, module in model.named_modules():
        if isinstance(module, SplitLinear):
            found[name] = {part: child.get_parameter("weight").shape[0] for part, child in module.named_children()}
        elif isinstance(module, Attention) and isinstance(module.qkv, nn.Linear):
            q, kv = module.heads * module.d_head, module.kv_heads * module.d_head
            found[f"{name}.qkv"] = {"q": q, "k": kv, "v": kv}
        elif isinstance(module, GatedFeedForward) and isinstance(module.gate_up, nn.Linear):
            found[f"{name}.gate_up"] = dict.fromkeys(("gate", "up"), module.gate_up.out_features // 2)
    return found


def unfuse(model: nn.Module, fused_linears: FusedLinears) -> None:
    """Replace fused layers of a model by `SplitLinear`, in place."""
    for name, rows in fused_linears.items():
        fused = model.get_submodule(name)
        assert isinstance(fused, nn.Linear)
        model.set_submodule(name, SplitLinear(fused, rows))


def find_split(model: nn.Module) -> SplitLayers:
    """Return the parts of the layers that `unfuse` has split."""
    found: SplitLayers = {}
    for name, module in model.named_modules():
        if isinstance(module, SplitLinear):
            rows = [child.get_parameter("weight").shape[0] for child in module.children()]
            for index, (part, _) in enumerate(module.named_children()):
                found[f"{name}.{part}"] = name, sum(rows[:index]), sum(rows)
    return found
