"""Matrices that are several, one under the other: queries, keys and values; gate and up.

In one product they are faster on one device. Cut into equal parts as they are, a process would get queries without
their keys. So a model whose matrices are cut has them apart, and so has every sharded checkpoint: what is read is then
the same however it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.nn.attention import Attention
from lmcourse.nn.feed_forward import GatedFeedForward

Cuts = dict[str, dict[str, int]]
"""The name of each fused layer in a model, and its parts with their rows."""


class Apart(nn.Module):
    """Linear layers whose results stand side by side.

    Args:
        fused: the layer whose weights they take over.
        rows: how many rows of it each of them gets, by its name.
    """

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
        return torch.cat([part(x) for part in self.children()], dim=-1)


def find_cuts(model: nn.Module) -> Cuts:
    """Where the fused layers of a model can be taken apart, or where they were."""
    found: Cuts = {}
    for name, module in model.named_modules():
        if isinstance(module, Apart):
            found[name] = {part: child.get_parameter("weight").shape[0] for part, child in module.named_children()}
        elif isinstance(module, Attention) and isinstance(module.qkv, nn.Linear):
            q, kv = module.heads * module.d_head, module.kv_heads * module.d_head
            found[f"{name}.qkv"] = {"q": q, "k": kv, "v": kv}
        elif isinstance(module, GatedFeedForward) and isinstance(module.gate_up, nn.Linear):
            found[f"{name}.gate_up"] = dict.fromkeys(("gate", "up"), module.gate_up.out_features // 2)
    return found


def take_apart(model: nn.Module, cuts: Cuts) -> None:
    """Replace the fused layers of a model, in place."""
    for name, rows in cuts.items():
        fused = model.get_submodule(name)
        assert isinstance(fused, nn.Linear)
        model.set_submodule(name, Apart(fused, rows))


def pieces(name: str, value: Tensor, cuts: Cuts) -> Iterator[tuple[str, Tensor]]:
    """A tensor that belongs to a parameter, under the names that it has in a model that was taken apart.

    Args:
        name: of the parameter.
        value: as large as the parameter: each piece is a view of it. Or a single number: it belongs to all pieces.
        cuts: of the model.
    """
    layer, _, leaf = name.rpartition(".")
    if layer not in cuts:
        yield name, value
        return
    first = 0
    for part, rows in cuts[layer].items():
        yield f"{layer}.{part}.{leaf}", value.narrow(0, first, rows) if value.dim() else value
        first += rows
