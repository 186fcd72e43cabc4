"""The list of a model's matrices, from its configuration.

`lmcourse.accounting` sums parameters, FLOPs, traffic, saved activations and the KV cache over this one list. A matrix
from i to o features has i·o weights. Every token costs 2·i·o FLOPs: one multiplication and one addition per weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig


@dataclass(frozen=True)
class LinearShape:
    """The shape of a linear layer.

    Attributes:
        part: the part of the model that the layer belongs to; a part may have several matrices.
        inputs, outputs: the numbers of input and output features.
        bias: whether the layer adds a bias.
    """

    part: str
    inputs: int
    outputs: int
    bias: bool = False

    @property
    def weights(self) -> int:
        """Number of weights, without the bias."""
        return self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return self.weights + self.bias * self.outputs


@dataclass(frozen=True)
class LayerMatrices:
    """The matrices of one layer, and the number of layers with the same configuration.

    Attributes:
        layer: the layer's configuration.
        times: how many layers of the model have this configuration.
        attention: the matrices q, k, v and out.
        feed_forward: the matrices up, gate if there is one, and down.
    """

    layer: LayerConfig
    times: int
    attention: tuple[LinearShape, ...]
    feed_forward: tuple[LinearShape, ...]

    @property
    def all(self) -> tuple[LinearShape, ...]:
        """All matrices of the layer, in forward order."""
        return self.attention + self.feed_forward


@dataclass(frozen=True)
class ModelMatrices:
    """All matrices of a decoder or encoder, without cross-attention.

    Attributes:
        embedding: the projection to d_model if the embedding is narrower than the model; usually empty. The embedding
            itself is a lookup, not a product.
        layers: the matrices of each kind of layer, once per kind.
        head: the matrix from the last layer to the logits. A tied head needs the same product as an untied head.
    """

    embedding: tuple[LinearShape, ...]
    layers: tuple[LayerMatrices, ...]
    head: tuple[LinearShape, ...]

    def of_blocks(self) -> Iterator[tuple[LinearShape, int]]:
        """Return each matrix of the layers with the number of layers that have it."""
        return ((matrix, group.times) for group in self.layers for matrix in group.all)


def list_matrices(
    vocab_size: int, d_model: int, layers: Sequence[LayerConfig], embedding: EmbeddingConfig, head: HeadConfig
) -> ModelMatrices:
    """List the matrices of a decoder or encoder; `TransformerConfig.matrices` keeps the list."""
    width = embedding.width or d_model
    narrow = width != d_model
    last = LinearShape("head", width, vocab_size, head.bias)
    return ModelMatrices(
        (LinearShape("embedding projection", width, d_model),) if narrow else (),
        tuple(
            LayerMatrices(
                layer,
                times,
                tuple(attention_matrices(layer.attention, d_model)),
                tuple(feed_forward_matrices(layer.feed_forward, d_model)),
            )
            for layer, times in Counter(layers).items()
        ),
        (LinearShape("head projection", d_model, width), last) if narrow else (last,),
    )


def attention_matrices(config: AttentionConfig, d_model: int) -> list[LinearShape]:
    """Return the projections q, k, v and out. With fewer key heads than query heads, k and v are narrower."""
    width = config.head_width(d_model)
    queries, keys = config.heads * width, config.key_heads * width
    return [
        LinearShape("attention q", d_model, queries, config.bias),
        LinearShape("attention k", d_model, keys, config.bias),
        LinearShape("attention v", d_model, keys, config.bias),
        LinearShape("attention out", queries, d_model, config.out_bias),
    ]


def feed_forward_matrices(config: FeedForwardConfig, d_model: int) -> list[LinearShape]:
    """Return the projections up and down, and gate if there is one."""
    up = LinearShape("feed-forward", d_model, config.width, config.bias)
    down = LinearShape("feed-forward", config.width, d_model, config.bias)
    return [up, up, down] if config.gated else [up, down]
