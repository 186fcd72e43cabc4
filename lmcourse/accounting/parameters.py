"""Count the parameters of a model by part, from its configuration alone.

No model is built: every formula uses only numbers from the configuration. Tests compare each part with
the tensors of the model itself, for every model of the zoo.
"""

from __future__ import annotations

from collections.abc import Iterable

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.matrices import LinearShape
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig


def count_parameters(config: TransformerConfig | EncoderDecoderConfig) -> Breakdown[int]:
    """Return the number of parameters of each part of a model; their total is the size on a model card.

    A bias counts with its matrix. A tied head uses the embedding's matrix, so its part contains only its bias, if any.
    Parts that the model does not have are left out. Encoder and decoder share the token embedding; their other parts
    are added up."""
    if isinstance(config, EncoderDecoderConfig):
        halves = _without_ends(config.encoder) + _without_ends(config.decoder, cross=True)
        return _token_embedding(config.decoder) + halves + _head(config.decoder)
    return _token_embedding(config) + _without_ends(config) + _head(config)


def matmul_parameters(config: TransformerConfig) -> int:
    """Return the number of weights that every token is multiplied by: N of the rules 2ND and 6ND.

    The head counts, even if it is tied; look-ups of embeddings and positions, norms and biases do not count. An
    encoder–decoder has no such number, because its two texts use different matrices.
    """
    matrices = config.matrices
    return block_weights(config) + sum(matrix.weights for matrix in matrices.embedding + matrices.head)


def block_weights(config: TransformerConfig) -> int:
    """Return the number of weights in the matrices of all layers, which are the weights that Muon updates."""
    return sum(times * matrix.weights for matrix, times in config.matrices.of_blocks())


def _token_embedding(config: TransformerConfig) -> Breakdown[int]:
    return Breakdown({"embedding": config.vocab_size * (config.embedding.width or config.d_model)})


def _without_ends(config: TransformerConfig, *, cross: bool = False) -> Breakdown[int]:
    """Count all parameters except the token embedding and the head."""
    matrices = config.matrices
    rows = config.embedding.max_positions + config.embedding.position_offset if config.embedding.max_positions else 0
    places = {"positions": rows * config.d_model, "position bias": _position_bias(config)}
    count = _parameters(matrices.embedding) + _present(places)
    for group in matrices.layers:
        layer = _parameters(group.all) + _besides_matrices(group.layer.attention, config, cross)
        if cross:
            layer += Breakdown({f"cross-{part}": size for part, size in _parameters(group.attention)})
        count += layer * group.times
    outer = [norm for norm in (config.embedding.norm, config.final_norm) if norm is not None]
    return count + _present({"norms": sum(_norm(norm, config.d_model) for norm in outer)})


def _parameters(matrices: Iterable[LinearShape]) -> Breakdown[int]:
    sizes: dict[str, int] = {}
    for matrix in matrices:
        sizes[matrix.part] = sizes.get(matrix.part, 0) + matrix.parameters
    return Breakdown(sizes)


def _head(config: TransformerConfig) -> Breakdown[int]:
    shared = _token_embedding(config)["embedding"] if config.head.tied else 0
    return _parameters(config.matrices.head) + Breakdown({"head": -shared})


def _besides_matrices(attention: AttentionConfig, config: TransformerConfig, cross: bool) -> Breakdown[int]:
    """Count the parameters of one layer outside its matrices; `cross`: the layer attends to an encoder, too."""
    norms = _norms_per_block(config.block, cross) * _norm(config.block.norm, config.d_model)
    norms += (2 if cross else 1) * _qk_norms(attention, config.d_model)
    sizes = {
        "relative positions": _relative_positions(attention, config.d_model),
        "value residual": int(attention.value_residual),
        "norms": norms,
    }
    return _present(sizes)


def _position_bias(config: TransformerConfig) -> int:
    """Count the parameters of a position bias: T5's has one number per bucket and head, ALiBi has none."""
    bias = config.position_bias
    return bias.buckets * config.layers[0].attention.heads if isinstance(bias, RelativePositionBiasConfig) else 0


def _relative_positions(config: AttentionConfig, d_model: int) -> int:
    """Count Shaw's vectors for the distances −max_distance … max_distance, on keys and perhaps on values."""
    vectors = config.relative_position_vectors
    return 0 if vectors is None else vectors.count * config.head_width(d_model)


def _norm(config: NormConfig, features: int) -> int:
    return (config.scale + config.bias) * features


def _norms_per_block(config: BlockConfig, cross: bool) -> int:
    """Count the norms of a block: parallel branches share one or have one each; serial branches have one or two
    each."""
    if config.branches != "serial":
        return 2 if config.branches == "parallel_two_norms" else 1
    return (3 if cross else 2) * (2 if config.placement == "double" else 1)


def _qk_norms(config: AttentionConfig, d_model: int) -> int:
    """Count the scales of QK norms: shared by all heads, or separate for every feature of every head."""
    if config.qk_norm is None:
        return 0
    heads = 2 if config.qk_norm.over == "head" else config.heads + config.key_heads
    return heads * _norm(config.qk_norm.norm, config.head_width(d_model))


def _present(sizes: dict[str, int]) -> Breakdown[int]:
    """Return the breakdown without parts of size 0."""
    return Breakdown({part: size for part, size in sizes.items() if size})
