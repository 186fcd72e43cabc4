"""Count the parameters of a model by part, from its configuration alone.

No model is built: every formula uses only numbers from the configuration. Tests compare each part with
the tensors of the model itself, for every model of the zoo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.matrices import LayerMatrices, LinearShape
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
    """Return the number of weights that every token is multiplied by: N of the rule 6ND.

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
    """Count all parameters except the token embedding and the head; `cross`: layers attend to an encoder, too."""
    embedding, bias = config.embedding, config.position_bias
    rows = embedding.max_positions + embedding.position_offset if embedding.max_positions else 0
    # T5's bias has one number per bucket and head, ALiBi's has none.
    buckets = bias.buckets if isinstance(bias, RelativePositionBiasConfig) else 0
    ends = {"positions": rows * config.d_model, "position bias": buckets * config.layers[0].attention.heads}
    count = _parameters(config.matrices.embedding) + _present(ends)
    for group in config.matrices.layers:
        layer = _parameters(group.all) + _outside_matrices(group, config, cross)
        if cross:
            layer += Breakdown({f"cross-{part}": size for part, size in _parameters(group.attention)})
        count += layer * group.times
    outer = [norm for norm in (embedding.norm, config.final_norm) if norm is not None]
    return count + _present({"norms": sum(_norm(norm, config.d_model) for norm in outer)})


def _parameters(matrices: Iterable[LinearShape]) -> Breakdown[int]:
    sizes: Counter[str] = Counter()
    for matrix in matrices:
        sizes[matrix.part] += matrix.parameters
    return Breakdown(sizes)


def _head(config: TransformerConfig) -> Breakdown[int]:
    shared = _token_embedding(config)["embedding"] if config.head.tied else 0
    return _parameters(config.matrices.head) + Breakdown({"head": -shared})


def _outside_matrices(group: LayerMatrices, config: TransformerConfig, cross: bool) -> Breakdown[int]:
    """Count the parameters of one layer outside its matrices: norms, QK norms, Shaw's vectors, value residual."""
    attention, d_head = group.layer.attention, group.attention[0].outputs // group.layer.attention.heads
    norms = _norms_per_block(config.block, cross) * _norm(config.block.norm, config.d_model)
    if attention.qk_norm is not None:  # scales shared by all heads, or separate for every feature of every head
        heads = 2 if attention.qk_norm.over == "head" else attention.heads + attention.key_heads
        norms += (1 + cross) * heads * _norm(attention.qk_norm.norm, d_head)
    vectors = attention.relative_position_vectors
    sizes = {
        "relative positions": 0 if vectors is None else vectors.count * d_head,
        "value residual": int(attention.value_residual),
        "norms": norms,
    }
    return _present(sizes)


def _norm(config: NormConfig, features: int) -> int:
    return (config.scale + config.bias) * features


def _norms_per_block(config: BlockConfig, cross: bool) -> int:
    """Count the norms of a block: parallel branches share one or have one each; serial ones have one or two each."""
    if config.branches != "serial":
        return 2 if config.branches == "parallel_two_norms" else 1
    return (2 + cross) * (2 if config.placement == "double" else 1)


def _present(sizes: dict[str, int]) -> Breakdown[int]:
    """Return the breakdown without parts of size 0."""
    return Breakdown({part: size for part, size in sizes.items() if size})
