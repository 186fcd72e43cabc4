"""Configuration of a training run: model preset and its changes, corpus, tokenizer, training settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from lmcourse.base.errors import CourseError
from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.models.zoo import find_model
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.checks import check_choice
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.training_config import TrainingConfig

TOKENIZER_KINDS = ("bpe", "bytes", "characters")

NUM_BYTE_TOKENS = 256
"""Number of tokens for single bytes, with which every byte-pair vocabulary begins."""

FeedForwardKind = Literal["swiglu", "gelu", "relu2"]


MOST = {"layers": 10_000, "d_model": 2**20}
"""Largest allowed settings, far beyond any existing model; a longer list of layers would take hours to create."""


@dataclass(frozen=True)
class ModelChanges:
    """Differences between a run's model and its preset; by default there is none.

    Attributes:
        feed_forward: "swiglu", 8/3 as wide as the model, rounded up to a multiple of 32; or "gelu" or "relu2" (squared
            ReLU: So et al., 2021), 4 times as wide as the model and without a gate
        qk_norm: normalise queries and keys, in a preset that does not (Dehghani et al., 2023)
        untied: give the output head its own matrix, in a preset that ties it to the embedding
        value_residual: mix the first layer's values into those of every other layer (Zhou et al., 2024)
        logit_cap: limit logits to ±logit_cap with a tanh (Gemma 2)
        rotary_theta: base of the rotary embedding
        zero_outputs: start with zeros in the matrices that write to the residual stream, and in an untied head, so that
            every block is the identity at first (Zhang et al., 2019)
        layers: number of blocks; the preset's kinds of blocks repeat
        d_model: width of the model. The width of a head stays the same, so the number of heads changes; the
            feed-forward layer changes in proportion, rounded up to a multiple of 32

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
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, not {value}")
        for name in ("layers", "d_model"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
            if value is not None and value > MOST[name]:
                raise ValueError(f"{name} must be at most {MOST[name]:,}, not {value}")

    def apply(self, config: TransformerConfig) -> TransformerConfig:
        """Return a preset with these changes.

        CourseError is raised if a layer lacks the rotary embedding to change, or if the preset cannot have this width.
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
    """Return a preset with another width and heads of the same width; raise CourseError if that is impossible."""
    if config.embedding.scale != 1 or config.embedding.width is not None or config.head.scale != 1:
        raise CourseError("d_model can change only in presets whose embedding and head do not depend on it, like nano")

    def widen(layer: LayerConfig) -> LayerConfig:
        attention, feed_forward = layer.attention, layer.feed_forward
        heads, left = divmod(attention.heads * d_model, config.d_model)
        if left or (attention.kv_heads is not None and heads % attention.kv_heads):
            raise CourseError(
                f"heads of {attention.head_width(config.d_model)} features do not fit evenly into "
                f"a d_model of {d_model}: choose a multiple of {config.d_model}"
            )
        width = -(-feed_forward.width * d_model // config.d_model // 32) * 32
        return LayerConfig(replace(attention, heads=heads), replace(feed_forward, width=width))

    return config.with_(d_model=d_model, layers=tuple(widen(layer) for layer in config.layers))


UNCHANGED = ModelChanges()
"""No changes to the preset."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything needed to reproduce a run.

    Attributes:
        preset: a decoder of the zoo, such as nano, micro, mini, course-124m or gpt-2; its vocabulary and context are
            changed to those of the run
        corpus: synthetic, course-text, python-docs, python-code, tiny-shakespeare, tinystories, or the path of a text
            file or folder
        tokenizer: how text is split into tokens: "bytes"; "bpe" or "characters", learned from the training part of the
            corpus; or the path of a tokenizer.json
        vocab_size: largest number of tokens that "bpe" learns
        held_out: fraction of the corpus that is held out for validation; 0 for none
        validation_tokens: largest number of tokens per evaluation
        model: changes to the preset
        training: how the model is trained

    Raises:
        ValueError: a setting is out of range.
        CourseError: there is no such preset.
    """

    preset: str = "nano"
    corpus: str = "python-docs"
    tokenizer: str = "bpe"
    vocab_size: int = 512
    held_out: float = 0.1
    validation_tokens: int = 65_536
    model: ModelChanges = UNCHANGED
    training: TrainingConfig

    def __post_init__(self) -> None:
        if self.tokenizer not in TOKENIZER_KINDS and not self.tokenizer.endswith(".json"):
            kinds = ", ".join(TOKENIZER_KINDS)
            raise ValueError(f"tokenizer must be {kinds} or the path of a .json file, not {self.tokenizer!r}")
        if self.vocab_size < NUM_BYTE_TOKENS:
            raise ValueError(f"vocab_size must be at least {NUM_BYTE_TOKENS}, the bytes alone, not {self.vocab_size}")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out must be at least 0 and below 1, not {self.held_out}")
        if self.validation_tokens < 2:
            raise ValueError(f"validation_tokens must be at least 2, not {self.validation_tokens}")
        if self.training.seed >= 2**63:
            raise ValueError(f"seed must be below 2⁶³, not {self.training.seed}")
        find_decoder(self.preset)

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """Return the changed preset for windows of this run's length and a vocabulary of this size."""
        config, seq_len = find_decoder(self.preset), self.training.seq_len
        embedding = config.embedding
        if embedding.max_positions is not None:
            embedding = replace(embedding, max_positions=seq_len)
        return self.model.apply(config.with_(vocab_size=vocab_size, context=seq_len, embedding=embedding))


def find_decoder(name: str) -> TransformerConfig:
    """Return the configuration of a model; raise CourseError if it is unknown or does not predict the next token."""
    entry = find_model(name)
    config = entry.config
    if isinstance(config, TransformerConfig) and all(layer.attention.pattern.causal for layer in config.layers):
        return config
    raise CourseError(f"{entry.name} does not predict the next token: use a decoder, such as nano.")
