"""The device mesh of a run: its processes in a grid with a dimension for every kind of parallelism."""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from lmcourse.training.parallelism import PARALLEL_DIMS, Parallelism


def make_mesh(parallel: Parallelism, device: str) -> DeviceMesh:
    """The mesh of a run; dimensions of size 1 are there too. Every process of the group has to call this.

    Args:
        parallel: the sizes of the dimensions.
        device: "cpu" or "cuda".
    """
    sizes = tuple(getattr(parallel, name) for name in PARALLEL_DIMS)
    return init_device_mesh(device, sizes, mesh_dim_names=PARALLEL_DIMS)
