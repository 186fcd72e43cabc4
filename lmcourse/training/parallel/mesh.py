"""The device mesh: processes in a box, with a side for every way to divide the work."""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from lmcourse.training.parallelism import Parallelism

SIDES = ("pipeline", "replicate", "shard", "tensor")
"""From far to near: the processes along the last side talk most, and their numbers follow each other, so that they are
on one machine."""


def make_mesh(parallel: Parallelism, device: str) -> DeviceMesh:
    """The mesh of a run; its sides that are 1 long are there too. Every process of the group has to call this.

    Args:
        parallel: the lengths of the sides.
        device: "cpu" or "cuda".
    """
    return init_device_mesh(device, tuple(getattr(parallel, side) for side in SIDES), mesh_dim_names=SIDES)
