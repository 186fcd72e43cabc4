"""Divide a model among the processes of a run: pipeline stages, then tensor, then data parallelism."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from lmcourse.models.transformer import Transformer
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallel.checks import check_divisible
from lmcourse.training.parallel.data_parallel import wrap_data_parallel
from lmcourse.training.parallel.pipeline_parallel import ModelStage, Pipeline
from lmcourse.training.parallel.split_linear import find_fused, unfuse
from lmcourse.training.parallel.tensor_parallel import apply_plan


def parallelize(model: nn.Module, config: TrainingConfig, mesh: DeviceMesh) -> tuple[nn.Module, nn.Module]:
    """Divide a model, in place. Every process has to call this with the same model; the first one's weights count.

    Returns:
        The module that has this process's weights, and the one to call in a step.

    Raises:
        ValueError: the model cannot be divided like this.
    """
    check_divisible(model, config)
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    parallel = config.parallel
    part = model
    if parallel.pipeline_parallel > 1:
        assert isinstance(model, Transformer)
        sequence_shards = parallel.tensor_parallel if parallel.sequence_parallel else 1
        part = ModelStage(model, mesh.get_local_rank("pipeline_parallel"), parallel.pipeline_parallel, sequence_shards)
    if parallel.fsdp * parallel.tensor_parallel > 1:
        unfuse(part, find_fused(part))
    if parallel.tensor_parallel > 1:
        apply_plan(part, mesh["tensor_parallel"], sequence=parallel.sequence_parallel)
    call = wrap_data_parallel(part, mesh)
    if isinstance(part, ModelStage):
        call = Pipeline(part, call, config, mesh)
    return part, call
