"""Muon for matrices of which each process has a shard (DTensor)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate

from lmcourse.training.optimizers.base import Group
from lmcourse.training.optimizers.muon import Muon


class ShardedMuon(Muon):
    """Muon whose momentum is sharded as its matrix is.

    To make a matrix orthogonal takes all of it. So every process gathers it, computes the same products as the others,
    and keeps its shard of the result.
    """

    def average(self, gradient: Tensor, state: dict[str, Any], group: Group) -> Float[Tensor, "m n"]:
        """As in `Muon`, gathered."""
        x = super().average(gradient, state, group)
        return x.full_tensor() if isinstance(x, DTensor) else x

    def descend(self, w: Tensor, parts: Sequence[Float[Tensor, "m n"]], group: Group) -> None:
        """As in `Muon`, with this process's shard."""
        if not isinstance(w, DTensor):
            super().descend(w, parts, group)
            return
        [whole] = parts  # matrices that are sharded are not fused
        copies = [Replicate()] * w.device_mesh.ndim
        shard = DTensor.from_local(whole, w.device_mesh, copies, run_check=False).redistribute(placements=w.placements)
        w.to_local().mul_(1 - group["lr"] * group["weight_decay"])
        w.to_local().add_(shard.to_local(), alpha=-self.rate(whole, group))
