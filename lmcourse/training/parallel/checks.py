"""What cannot be divided, in one line each."""

from __future__ import annotations

from torch import nn

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallelism import Parallelism


def check_divisible(model: nn.Module, config: TrainingConfig) -> None:
    """Whether a run can share this model as it says.

    Raises:
        ValueError: it cannot.
    """
    parallel = config.parallel
    if config.precision == "fp16" and parallel.processes > parallel.replicate:
        raise ValueError("fp16 on many processes needs whole gradients on each: use bf16, or only replicate")
    if config.compile and parallel.tensor * parallel.pipeline > 1:
        raise ValueError("compile is for one process, replicate and shard: leave it out with tensor and pipeline")
    if parallel.tensor == parallel.pipeline == 1:
        return
    if not isinstance(model, Transformer):
        raise ValueError(
            f"tensor and pipeline divide a Transformer, not a {type(model).__name__}: use replicate or shard"
        )
    if parallel.tensor > 1:
        _check_matrices(model.config, parallel, config.length)
    if parallel.pipeline > 1:
        _check_stages(model.config, config)


def _check_matrices(model: TransformerConfig, parallel: Parallelism, length: int) -> None:
    n = parallel.tensor
    if model.position_bias is not None:
        raise ValueError("tensor divides heads, and a position bias is made for all of them: use rotary positions")
    if model.embedding.width is not None:
        raise ValueError("tensor does not divide an embedding with a width of its own")
    if parallel.sequence and length % n:
        raise ValueError(f"sequence divides the tokens: a length of {length} does not divide among {n} processes")
    _divides("the vocabulary", model.vocab_size, n)
    for index, layer in enumerate(model.layers):
        _check_layer(index, layer, n)


def _check_layer(index: int, layer: LayerConfig, n: int) -> None:
    attention = layer.attention
    _divides(f"layer {index}: the key heads", attention.key_heads, n)
    _divides(f"layer {index}: the feed-forward width", layer.feed_forward.width, n)
    if attention.relative_position_vectors is not None:
        raise ValueError(f"layer {index}: tensor divides heads, and Shaw's vectors are shared by all of them")
    if attention.qk_norm is not None and attention.qk_norm.over != "head":
        raise ValueError(f"layer {index}: tensor divides heads, so a QK-norm must be over 'head'")


def _divides(what: str, size: int, n: int) -> None:
    if size % n:
        raise ValueError(f"{what}, {size}, cannot be divided among {n} processes: tensor must divide it")


def _check_stages(model: TransformerConfig, config: TrainingConfig) -> None:
    parallel, layers = config.parallel, len(model.layers)
    if layers < parallel.pipeline:
        raise ValueError(f"{layers} layers are too few for {parallel.pipeline} stages: each needs one")
    if isinstance(model.position_bias, RelativePositionBiasConfig):
        raise ValueError("a learned position bias is shared by all layers: pipeline cannot divide it")
    if parallel.schedule == "1f1b" and config.accumulate < parallel.pipeline:
        raise ValueError(
            f"1f1b keeps {parallel.pipeline} stages busy with as many micro-batches: set accumulate to at least "
            f"{parallel.pipeline}, or use gpipe"
        )
