"""Checks before a model is divided: a one-line error for each model or run that cannot be."""

from __future__ import annotations

from torch import nn

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallelism import Parallelism


def check_divisible(model: nn.Module, config: TrainingConfig) -> None:
    """Check that a model can be divided as `config.parallel` says.

    Raises:
        ValueError: it cannot be; the message says which part, and what to set instead.
    """
    parallel = config.parallel
    if config.precision == "fp16" and parallel.world_size > parallel.data_parallel:
        raise ValueError("fp16 on many processes needs whole gradients on each: use bf16, or only data_parallel")
    if config.compile and parallel.tensor_parallel * parallel.pipeline_parallel > 1:
        raise ValueError(
            "compile is for one process, data_parallel and fsdp: "
            "leave it out with tensor_parallel and pipeline_parallel"
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
        raise ValueError(
            "tensor_parallel divides heads, and a position bias is made for all of them: use rotary positions"
        )
    if model.embedding.width is not None:
        raise ValueError("tensor_parallel does not divide an embedding with a width of its own")
    if parallel.sequence_parallel and seq_len % n:
        raise ValueError(
            f"sequence_parallel divides the tokens: a seq_len of {seq_len} does not divide among {n} processes"
        )
    _divides("the vocabulary", model.vocab_size, n)
    for index, layer in enumerate(model.layers):
        _check_layer(index, layer, n)


def _check_layer(index: int, layer: LayerConfig, n: int) -> None:
    attention = layer.attention
    _divides(f"layer {index}: the key heads", attention.key_heads, n)
    _divides(f"layer {index}: the feed-forward width", layer.feed_forward.width, n)
    if attention.relative_position_vectors is not None:
        raise ValueError(f"layer {index}: tensor_parallel divides heads, and Shaw's vectors are shared by all of them")
    if attention.value_residual:
        raise ValueError(
            f"layer {index}: tensor_parallel divides heads, and a value residual's share is for all of them"
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
            "a value residual needs the first layer's values in all others: pipeline_parallel divides them"
        )
    if parallel.pipeline_schedule == "1f1b" and config.grad_accum_steps < parallel.pipeline_parallel:
        raise ValueError(
            f"1f1b keeps {parallel.pipeline_parallel} stages busy with as many micro-batches: "
            f"set grad_accum_steps to at least {parallel.pipeline_parallel}, or use gpipe"
        )
