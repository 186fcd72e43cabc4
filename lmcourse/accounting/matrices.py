"""The matrices of a model that tokens are multiplied with, by its configuration.

Parameters and FLOPs are counted from this one list: a matrix from i to o features has i·o weights, and every token that
passes costs 2·i·o FLOPs, a product and a sum per weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.feed_forward import FeedForwardConfig


@dataclass(frozen=True)
class LinearShape:
    """The shape of a linear layer.

    Attributes:
        part: of the model that it belongs to; several matrices may make one part.
        inputs, outputs: how many features go in and come out.
        bias: whether it adds one.
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


def add_up(matrices: Iterable[LinearShape], size: Callable[[LinearShape], int]) -> Breakdown[int]:
    """Sum `size` of every linear layer by part of the model."""
    sizes: dict[str, int] = {}
    for matrix in matrices:
        sizes[matrix.part] = sizes.get(matrix.part, 0) + size(matrix)
    return Breakdown(sizes)


def attention_matrices(config: AttentionConfig, d_model: int, name: str = "attention") -> list[LinearShape]:
    """The projections q, k, v and out. With fewer key heads than query heads, k and v are narrower."""
    width = config.head_width(d_model)
    queries, keys = config.heads * width, config.key_heads * width
    return [
        LinearShape(f"{name} q", d_model, queries, config.bias),
        LinearShape(f"{name} k", d_model, keys, config.bias),
        LinearShape(f"{name} v", d_model, keys, config.bias),
        LinearShape(f"{name} out", queries, d_model, config.out_bias),
    ]


def feed_forward_matrices(config: FeedForwardConfig, d_model: int) -> list[LinearShape]:
    """The projections up and down, and gate where there is one."""
    up = LinearShape("feed-forward", d_model, config.width, config.bias)
    down = LinearShape("feed-forward", config.width, d_model, config.bias)
    return [up, up, down] if config.gated else [up, down]


def layer_matrices(layer: LayerConfig, d_model: int) -> list[LinearShape]:
    """Those of one layer, without cross-attention."""
    return attention_matrices(layer.attention, d_model) + feed_forward_matrices(layer.feed_forward, d_model)


def embedding_projection_matrices(config: TransformerConfig) -> list[LinearShape]:
    """The projection from an embedding narrower than the model to d_model; usually none. The embedding itself is looked
    up, not multiplied with."""
    width = config.embedding.width
    if width is None or width == config.d_model:
        return []
    return [LinearShape("embedding projection", width, config.d_model)]


def head_matrices(config: TransformerConfig) -> list[LinearShape]:
    """Those from the last layer to the logits. A tied head takes the same product as an untied one."""
    width = config.embedding.width or config.d_model
    head = LinearShape("head", width, config.vocab_size, config.head.bias)
    return [head] if width == config.d_model else [LinearShape("head projection", config.d_model, width), head]


def model_matrices(config: TransformerConfig) -> list[LinearShape]:
    """All linear layers of a decoder or encoder, in forward order."""
    layers = [matrix for layer in config.layers for matrix in layer_matrices(layer, config.d_model)]
    return embedding_projection_matrices(config) + layers + head_matrices(config)
