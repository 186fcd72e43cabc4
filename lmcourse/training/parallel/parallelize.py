"""Divide a model among the processes of a run: pipeline stages, then tensor, then data parallelism.

With data parallelism every process has the whole model (DDP) or a part of every weight (FSDP2). HSDP combines both:
each group of processes has the whole model, divided among its members.
"""

from __future__ import annotations

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig
from lmcourse.training.activation_checkpointing import find_blocks
from lmcourse.training.parallel.pipeline_parallel import ModelStage, Pipeline
from lmcourse.training.parallel.split_linear import find_fused, unfuse
from lmcourse.training.parallel.tensor_parallel import apply_plan
from lmcourse.training.training_config import PARALLEL_DIMS, Parallelism, TrainingConfig


def make_mesh(parallel: Parallelism, device: str) -> DeviceMesh:
    """Return the device mesh of a run, including dimensions of size 1. Every process of the group must call this."""
    sizes = tuple(getattr(parallel, name) for name in PARALLEL_DIMS)
    return init_device_mesh(device, sizes, mesh_dim_names=PARALLEL_DIMS)


def parallelize(model: nn.Module, config: TrainingConfig, mesh: DeviceMesh) -> tuple[nn.Module, nn.Module]:
    """Do what `DistributedContext.parallelize` does. Every process must call this with the same model; rank 0's weights
    are used.
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


def wrap_data_parallel(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Wrap a model or a stage of it in DDP or FSDP2, which average its gradients over the data-parallel processes.

    Returns the module to call in a step: with DDP a module around the model; with FSDP2 the model itself, changed in
    place. FSDP2 gathers a block's weights before the block is computed and frees them afterwards; all weights outside
    the blocks together are treated like one more block.
    """
    ddp, fsdp, tensor = (mesh[dim].size() for dim in ("data_parallel", "fsdp", "tensor_parallel"))
    if ddp * fsdp == 1:
        return model
    if fsdp * tensor == 1:
        return DistributedDataParallel(model, process_group=mesh.get_group("data_parallel"))
    dp_mesh = mesh["data_parallel", "fsdp"] if ddp > 1 else mesh["fsdp"]
    for block in find_blocks(model):
        fully_shard(block, mesh=dp_mesh)
    # By default torch would keep the weights outside the blocks unsharded until the backward pass. An evaluation has no
    # backward pass, and a checkpoint after it needs the shards.
    fully_shard(model, mesh=dp_mesh, reshard_after_forward=True)
    return model


def check_divisible(model: nn.Module, config: TrainingConfig) -> None:
    """Check that a model can be divided as `TrainingConfig.parallel` says; the ValueError names a setting to change."""
    parallel = config.parallel
    if config.precision == "fp16" and parallel.world_size > parallel.data_parallel:
        raise ValueError("fp16 on several processes needs all gradients on each: use bf16, or only data_parallel")
    if config.compile and parallel.tensor_parallel * parallel.pipeline_parallel > 1:
        raise ValueError(
            "compile works only on one process, or with data_parallel or fsdp: "
            "leave it out with tensor_parallel or pipeline_parallel"
        )
    if parallel.tensor_parallel == parallel.pipeline_parallel == 1:
        return
    if not isinstance(model, Transformer):
        raise ValueError(
            f"tensor_parallel and pipeline_parallel divide a Transformer, not a {type(model).__name__}: "
            "use data_parallel or fsdp"
        )
    if parallel.tensor_parallel > 1:
        _check_matrices(model.config, parallel, config.seq_len)
    if parallel.pipeline_parallel > 1:
        _check_stages(model.config, config)


def _check_matrices(model: TransformerConfig, parallel: Parallelism, seq_len: int) -> None:
    n = parallel.tensor_parallel
    if model.position_bias is not None:
        raise ValueError("tensor_parallel divides heads, and a position bias covers all of them: use rotary positions")
    if model.embedding.width is not None:
        raise ValueError("tensor_parallel does not divide an embedding whose width differs from d_model")
    if parallel.sequence_parallel and seq_len % n:
        raise ValueError(
            f"sequence_parallel divides the tokens: a seq_len of {seq_len} cannot be divided evenly among {n} processes"
        )
    _divides("the vocabulary", model.vocab_size, n)
    for index, layer in enumerate(model.layers):
        _check_layer(index, layer, n)


def _check_layer(index: int, layer: LayerConfig, n: int) -> None:
    attention = layer.attention
    _divides(f"layer {index}: the key heads", attention.key_heads, n)
    _divides(f"layer {index}: the feed-forward width", layer.feed_forward.width, n)
    if attention.relative_position_vectors is not None:
        raise ValueError(
            f"layer {index}: tensor_parallel divides heads, but all heads share Shaw's vectors: use rotary positions"
        )
    if attention.value_residual:
        raise ValueError(
            f"layer {index}: tensor_parallel divides heads, but all heads share the weight of a value residual"
        )
    if attention.qk_norm is not None and attention.qk_norm.over != "head":
        raise ValueError(f"layer {index}: tensor_parallel divides heads, so a QK-norm must be over 'head'")


def _divides(what: str, size: int, n: int) -> None:
    if size % n:
        raise ValueError(f"{what}, {size}, cannot be divided among {n} processes: tensor_parallel must divide it")


def _check_stages(model: TransformerConfig, config: TrainingConfig) -> None:
    parallel, layers = config.parallel, len(model.layers)
    if layers < parallel.pipeline_parallel:
        raise ValueError(f"{layers} layers are too few for {parallel.pipeline_parallel} stages: each needs one")
    if isinstance(model.position_bias, RelativePositionBiasConfig):
        raise ValueError("a learned position bias is shared by all layers: pipeline_parallel cannot divide it")
    if any(layer.attention.value_residual for layer in model.layers):
        raise ValueError(
            "every layer of a value residual needs the first layer's values, which pipeline_parallel keeps on another "
            "process"
        )
    if parallel.pipeline_schedule == "1f1b" and config.grad_accum_steps < parallel.pipeline_parallel:
        raise ValueError(
            f"1f1b needs at least as many micro-batches as stages, {parallel.pipeline_parallel}: "
            f"set grad_accum_steps to at least {parallel.pipeline_parallel}, or use gpipe"
        )
