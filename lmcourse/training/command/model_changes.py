"""What a run changes in its preset: its size, and what short runs were found to learn faster with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lmcourse.errors import CourseError
from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.checks import check_choice
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.qk_norm import QKNormConfig

FeedForwardKind = Literal["swiglu", "gelu", "relu2"]


@dataclass(frozen=True)
class ModelChanges:
    """What is not the preset's.

    Attributes:
        feed_forward: "swiglu", of 8/3 of the model's width, rounded up to a multiple of 32; "gelu" or "relu2" (squared
            ReLU: So et al., 2021), of 4 times its width and without a gate; None is the preset's.
        qk_norm: whether queries and keys are normalised, in a preset that does not (Dehghani et al., 2023).
        untied: whether the head has a matrix of its own, in a preset where it is the embedding.
        value_residual: whether every layer mixes the first one's values into its own (Zhou et al., 2024).
        logit_cap: logits are squeezed into ±logit_cap by a tanh (Gemma 2); None is the preset's.
        rotary_theta: the base of the rotary embedding; None is the preset's.
        zero_outputs: whether the matrices that write to the residual stream, and an untied head, are 0 at first, so
            that every block is the identity (Zhang et al., 2019).
        layers: how many blocks there are; the preset's, over and over. None is the preset's number.
        d_model: the model's width. Heads stay as wide, so there are more of them or fewer; the feed-forward grows in
            proportion, rounded up to a multiple of 32. None is the preset's.

    Raises:
        ValueError: a setting is out of range.
    """

    feed_forward: FeedForwardKind | None = None
    qk_norm: bool = False
    untied: bool = False
    value_residual: bool = False
    logit_cap: float | None = None
    rotary_theta: float | None = None
    zero_outputs: bool = False
    layers: int | None = None
    d_model: int | None = None

    def __post_init__(self) -> None:
        if self.feed_forward is not None:
            check_choice("feed_forward", self.feed_forward, FeedForwardKind)
        for name in ("logit_cap", "rotary_theta"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        for name in ("layers", "d_model"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")

    def apply(self, config: TransformerConfig) -> TransformerConfig:
        """A preset with these changes.

        Raises:
            CourseError: a layer has no rotary embedding whose base could be changed, or the preset cannot be made so
                wide.
        """
        config = config.with_(layers=repeat_layers(config.layers, self.layers or len(config.layers)))
        if self.d_model is not None:
            config = with_width(config, self.d_model)
        layers = tuple(self._layer(layer, config.d_model) for layer in config.layers)
        if self.value_residual:
            layers = (layers[0], *(replace(x, attention=replace(x.attention, value_residual=True)) for x in layers[1:]))
        head = config.head
        if self.untied:
            head = replace(head, tied=False)
        if self.logit_cap is not None:
            head = replace(head, soft_cap=self.logit_cap)
        return config.with_(layers=layers, head=head)

    def _layer(self, layer: LayerConfig, d_model: int) -> LayerConfig:
        attention, feed_forward = layer.attention, layer.feed_forward
        if self.qk_norm and attention.qk_norm is None:
            attention = replace(attention, qk_norm=QKNormConfig())
        if self.rotary_theta is not None:
            if attention.rotary is None:
                raise CourseError("rotary_theta is for presets with a rotary embedding, such as nano")
            attention = replace(attention, rotary=replace(attention.rotary, theta=self.rotary_theta))
        if self.feed_forward == "swiglu":
            feed_forward = FeedForwardConfig(-(-8 * d_model // 3 // 32) * 32, bias=feed_forward.bias)
        elif self.feed_forward is not None:
            feed_forward = FeedForwardConfig(4 * d_model, self.feed_forward, gated=False, bias=feed_forward.bias)
        return LayerConfig(attention, feed_forward)


def with_width(config: TransformerConfig, d_model: int) -> TransformerConfig:
    """A preset as wide as this, with heads of the same width.

    Raises:
        CourseError: they do not fit in, or the ends of the model are made for its width.
    """
    if config.embedding.scale != 1 or config.embedding.width is not None or config.head.scale != 1:
        raise CourseError("d_model is for presets whose embedding and head do not depend on it, such as nano")

    def widen(layer: LayerConfig) -> LayerConfig:
        attention, feed_forward = layer.attention, layer.feed_forward
        heads, left = divmod(attention.heads * d_model, config.d_model)
        if left or (attention.kv_heads is not None and heads % attention.kv_heads):
            raise CourseError(
                f"heads of {attention.head_width(config.d_model)} features do not fill a d_model of {d_model}"
            )
        width = -(-feed_forward.width * d_model // config.d_model // 32) * 32
        return LayerConfig(replace(attention, heads=heads), replace(feed_forward, width=width))

    return config.with_(d_model=d_model, layers=tuple(widen(layer) for layer in config.layers))


UNCHANGED = ModelChanges()
"""The preset as it is."""
