"""Gradients that lie on several processes, as one of them has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor


def by_mesh(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Parameters in groups that lie on the same processes: torch's operations on lists do not mix them."""
    groups: dict[DeviceMesh | None, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
    return list(groups.values())


def add_up(parameter: nn.Parameter) -> None:
    """DTensor leaves some sums over processes open: gradients of norms that see a part of the tokens."""
    if isinstance(parameter, DTensor) and isinstance(parameter.grad, DTensor):
        parameter.grad = parameter.grad.redistribute(placements=parameter.placements)


def by_pieces(parameters: Sequence[nn.Parameter]) -> dict[int, list[Tensor]]:
    """What this process has of the gradients, by the number of pieces that each is cut into."""
    groups: dict[int, list[Tensor]] = {}
    for gradient in (p.grad for p in parameters):
        if isinstance(gradient, DTensor):
            mesh, placements = gradient.device_mesh, gradient.placements
            cuts = [mesh.size(side) for side, placement in enumerate(placements) if not placement.is_replicate()]
            groups.setdefault(math.prod(cuts), []).append(gradient.to_local())
        elif gradient is not None:
            groups.setdefault(1, []).append(gradient)
    return groups
