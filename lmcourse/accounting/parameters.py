"""Parameter counts of a model by part, from its configuration alone.

Nothing is built: every formula here multiplies numbers that stand in the configuration. Tests compare each part with
the tensors of the model itself, for every model of the zoo.
"""

from __future__ import annotations

from collections import Counter

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.matrices import (
    add_up,
    attention_matrices,
    embedding_projection_matrices,
    head_matrices,
    layer_matrices,
    model_matrices,
)
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig


def count_parameters(config: TransformerConfig | EncoderDecoderConfig) -> Breakdown[int]:
    """The parameters of each part of a model; their total is the size that a model card prints.

    A bias counts with its matrix. A tied head is the embedding once more: its part holds its bias at most. Parts that
    the model does not have are left out. The halves of an encoder–decoder share the embedding of tokens; their other
    parts are added up.
    """
    if isinstance(config, EncoderDecoderConfig):
        halves = _without_ends(config.encoder) + _without_ends(config.decoder, cross=True)
        return _token_embedding(config.decoder) + halves + _head(config.decoder)
    return _token_embedding(config) + _without_ends(config) + _head(config)


def matmul_parameters(config: TransformerConfig) -> int:
    """The weights that every token is multiplied with: N of the rules 2ND and 6ND.

    The head counts, tied or not; look-ups of embeddings and positions, norms and biases do not. An encoder–decoder has
    no such number, because its two texts pass different matrices.
    """
    return sum(matrix.weights for matrix in model_matrices(config))


def layer_parameters(layer: LayerConfig, block: BlockConfig, d_model: int, *, cross: bool = False) -> Breakdown[int]:
    """The parameters of each part of one layer.

    Args:
        layer, block, d_model: from the model's configuration.
        cross: whether the layer attends to an encoder, too.
    """
    attention = layer.attention
    matrices = layer_matrices(layer, d_model)
    if cross:
        matrices += attention_matrices(attention, d_model, "cross-attention")
    norms = _norms_per_block(block, cross) * _norm(block.norm, d_model)
    norms += (2 if cross else 1) * _qk_norms(attention, d_model)
    rest = {
        "relative positions": _relative_positions(attention, d_model),
        "value residual": int(attention.value_residual),
        "norms": norms,
    }
    return add_up(matrices, lambda matrix: matrix.parameters) + _present(rest)


def _token_embedding(config: TransformerConfig) -> Breakdown[int]:
    return Breakdown({"embedding": config.vocab_size * (config.embedding.width or config.d_model)})


def _without_ends(config: TransformerConfig, *, cross: bool = False) -> Breakdown[int]:
    """All parameters except the token embedding and the head."""
    rows = config.embedding.max_positions + config.embedding.position_offset if config.embedding.max_positions else 0
    places = {"positions": rows * config.d_model, "position bias": _position_bias(config)}
    count = add_up(embedding_projection_matrices(config), lambda matrix: matrix.parameters) + _present(places)
    for layer, times in Counter(config.layers).items():
        count += layer_parameters(layer, config.block, config.d_model, cross=cross) * times
    outer = [norm for norm in (config.embedding.norm, config.final_norm) if norm is not None]
    return count + _present({"norms": sum(_norm(norm, config.d_model) for norm in outer)})


def _head(config: TransformerConfig) -> Breakdown[int]:
    count = add_up(head_matrices(config), lambda matrix: matrix.parameters)
    shared = _token_embedding(config)["embedding"] if config.head.tied else 0
    return count + Breakdown({"head": -shared})


def _position_bias(config: TransformerConfig) -> int:
    """T5's buckets are learned, one number per head; ALiBi's slopes are not."""
    bias = config.position_bias
    return bias.buckets * config.layers[0].attention.heads if isinstance(bias, RelativePositionBiasConfig) else 0


def _relative_positions(config: AttentionConfig, d_model: int) -> int:
    """Shaw's vectors for the distances −max_distance … max_distance, on keys and perhaps on values."""
    if config.relative_position_vectors is None:
        return 0
    return (
        (1 + config.relative_position_vectors.on_values)
        * (2 * config.relative_position_vectors.max_distance + 1)
        * config.head_width(d_model)
    )


def _norm(config: NormConfig, features: int) -> int:
    return (config.scale + config.bias) * features


def _norms_per_block(config: BlockConfig, cross: bool) -> int:
    """Parallel branches share one norm or have two; serial ones have one each, or two each."""
    if config.branches != "serial":
        return 2 if config.branches == "parallel_two_norms" else 1
    return (3 if cross else 2) * (2 if config.placement == "double" else 1)


def _qk_norms(config: AttentionConfig, d_model: int) -> int:
    """One scale for all heads, or one for every feature of every head."""
    if config.qk_norm is None:
        return 0
    heads = 2 if config.qk_norm.over == "head" else config.heads + config.key_heads
    return heads * _norm(config.qk_norm.norm, config.head_width(d_model))


def _present(sizes: dict[str, int]) -> Breakdown[int]:
    """The breakdown without parts of size 0."""
    return Breakdown({part: size for part, size in sizes.items() if size})
