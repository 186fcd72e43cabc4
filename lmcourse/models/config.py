"""Model configurations: the hyper-parameters of a whole transformer as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lmcourse.models.matrices import ModelMatrices, list_matrices
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.checks import check_type
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig


@dataclass(frozen=True)
class TransformerConfig:
    """Configuration of a transformer: a decoder or an encoder.

    Attributes:
        vocab_size: how many tokens there are.
        d_model: the width of the residual stream.
        layers: the configuration of each layer; `repeat_layers` makes them from a pattern.
        block: the settings that all blocks share: the norm, its placement, and serial or parallel branches.
        embedding, head: the first and the last part of the model.
        position_bias: positions as a bias on the scores of every layer.
        final_norm: whether a norm follows the last block; None leaves it out (post-norm models end with one anyway).
        context: the longest sequence that the model was made for, in tokens; None if nothing limits it.

    Example:
        >>> config = find_model("llama-3-8b").config
        >>> config.d_model, len(config.layers), config.layers[0].attention.kv_heads
        (4096, 32, 8)
    """

    vocab_size: int
    d_model: int
    layers: tuple[LayerConfig, ...]
    block: BlockConfig
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    position_bias: AlibiConfig | RelativePositionBiasConfig | None = None
    final_norm: NormConfig | None = None
    context: int | None = None

    def __post_init__(self) -> None:
        check_type("layers", self.layers, tuple, "repeat_layers([LayerConfig(...)], 12), or gpt_like and llama_like")
        check_type("block", self.block, BlockConfig, "BlockConfig(NormConfig()), or gpt_like and llama_like")
        if self.vocab_size < 1 or self.d_model < 1 or not self.layers:
            raise ValueError("vocab_size and d_model must be at least 1, and a model needs at least one layer")
        for index, layer in enumerate(self.layers):
            self._check_layer(index, layer)
        if self.embedding.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {self.d_model}")

    def _check_layer(self, index: int, layer: LayerConfig) -> None:
        try:
            width = layer.attention.head_width(self.d_model)
            if layer.attention.rotary is not None:
                layer.attention.rotary.width(width)
        except ValueError as error:
            raise ValueError(f"layer {index}: {error}") from None
        if self.position_bias is not None and layer.attention.heads != self.layers[0].attention.heads:
            raise ValueError(f"layer {index}: a position bias is shared, so all layers need the same number of heads")
        first = self.layers[0].attention
        same = (first.key_heads, first.head_width(self.d_model)) == (layer.attention.key_heads, width)
        if layer.attention.value_residual and (index == 0 or not same):
            why = "both need the same number of key heads, of the same width" if index else "layer 0 cannot have one"
            raise ValueError(f"layer {index}: a value residual mixes in the values of layer 0, so {why}")
        if self.position_bias == AlibiConfig(falcon_bf16=True) and not layer.attention.pattern.causal:
            raise ValueError(f"layer {index} sees later tokens: rounded ALiBi is for causal attention, use exact ALiBi")

    @cached_property
    def matrices(self) -> ModelMatrices:
        """The matrices that multiply the tokens; the list is made once per configuration."""
        return list_matrices(self.vocab_size, self.d_model, self.layers, self.embedding, self.head)

    def with_(self, **changes: Any) -> TransformerConfig:
        """The same model with some fields changed."""
        return replace(self, **changes)


def repeat_layers(pattern: Sequence[LayerConfig], layers: int) -> tuple[LayerConfig, ...]:
    """Repeat a layer pattern cyclically to `layers` layers: `repeat_layers([local, local, local, full], 12)`."""
    return tuple(pattern[index % len(pattern)] for index in range(layers))


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """Configuration of an encoder–decoder: the decoder attends to the encoder's output.

    Attributes:
        encoder, decoder: their configurations. Both have the same vocabulary and share the token embedding; the
            decoder's head is the model's head.
    """

    encoder: TransformerConfig
    decoder: TransformerConfig

    def __post_init__(self) -> None:
        if (self.encoder.vocab_size, self.encoder.d_model) != (self.decoder.vocab_size, self.decoder.d_model):
            raise ValueError("encoder and decoder share an embedding: give both the same vocabulary and width")
        if any(layer.attention.pattern.causal for layer in self.encoder.layers):
            raise ValueError("an encoder sees the whole text: its attention must not be causal")
        if self.encoder.embedding.width != self.decoder.embedding.width:
            raise ValueError("encoder and decoder share an embedding: give both the same width of token vectors")
        if any(layer.attention.value_residual for layer in self.encoder.layers + self.decoder.layers):
            raise ValueError("value residuals are for models with only a decoder, not for an encoder–decoder")
        if self.decoder.block.branches != "serial":
            raise ValueError("a decoder with cross-attention needs serial branches")
