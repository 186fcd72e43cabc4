"""The table of architectures of all models. Every cell is read off a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.position_bias import AlibiConfig

NORM_NAMES = {"layer": "LayerNorm", "rms": "RMSNorm"}
GATED_NAMES = {
    "relu": "ReGLU",
    "gelu": "GeGLU",
    "gelu_tanh": "GeGLU",
    "silu": "SwiGLU",
    "sigmoid": "GLU",
    "identity": "LiGLU",
}
UNGATED_NAMES = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "silu": "SiLU",
    "relu2": "ReLU²",
    "elu": "ELU",
    "selu": "SELU",
    "sigmoid": "sigmoid",
    "identity": "none",
}


@dataclass(frozen=True)
class SurveyRow:
    """One row of the table: a model, or an encoder–decoder's decoder.

    Attributes:
        name, year, parameters: which model; parameters are counted.
        layers, d_model: sizes.
        norm: LayerNorm or RMSNorm.
        placement: "pre", "post", "double", "output".
        position: how it knows the order; several, if layers differ.
        attention: MHA, GQA or MQA, and what layers see if not everything.
        activation: of the feed-forward; …GLU if gated.
        ff_ratio: d_ff / d_model.
        head_ratio: heads · d_head / d_model.
    """

    name: str
    year: int
    parameters: int
    layers: int
    d_model: int
    norm: str
    placement: str
    position: str
    attention: str
    activation: str
    ff_ratio: float
    head_ratio: float

    @property
    def aspect(self) -> float:
        """d_model / layers."""
        return self.d_model / self.layers


def survey_row(entry: Entry) -> SurveyRow:
    """Return the row of a model."""
    config = entry.decoder
    attention, feed_forward = config.layers[0].attention, config.layers[0].feed_forward
    row = SurveyRow(
        name=entry.name,
        year=entry.year,
        parameters=count_parameters(entry.config).total,
        layers=len(config.layers),
        d_model=config.d_model,
        norm=NORM_NAMES[config.block.norm.kind],
        placement=config.block.placement,
        position=position(config),
        attention=attention_kind(config),
        activation=activation(feed_forward),
        ff_ratio=feed_forward.width / config.d_model,
        head_ratio=attention.heads * attention.head_width(config.d_model) / config.d_model,
    )
    return replace(row, **entry.survey_overrides)  # type: ignore[arg-type]  # the keys are those of text columns


def position(config: TransformerConfig) -> str:
    """How the model knows the order of tokens."""
    if config.embedding.positions != "none":
        return config.embedding.positions
    if config.position_bias is not None:
        return "ALiBi" if isinstance(config.position_bias, AlibiConfig) else "T5 buckets"
    return " + ".join(_each_once(_layer_position(layer.attention) for layer in config.layers))


def _layer_position(attention: AttentionConfig) -> str:
    if attention.rotary is None:
        return "none"
    return "RoPE" if attention.rotary.fraction == 1 else f"RoPE on {attention.rotary.fraction:.0%}"


def attention_kind(config: TransformerConfig) -> str:
    """How many heads share a key, and what the layers see."""
    attention = config.layers[0].attention
    sharing = {attention.heads: "MHA", 1: "MQA"}.get(attention.key_heads, "GQA")
    patterns = _each_once(layer.attention.pattern.kind for layer in config.layers)
    return sharing if patterns == ["full"] else f"{sharing}, {' + '.join(patterns)}"


def activation(feed_forward: FeedForwardConfig) -> str:
    """The feed-forward layer's non-linearity."""
    plain = UNGATED_NAMES[feed_forward.activation]
    return GATED_NAMES.get(feed_forward.activation, f"gated {plain}") if feed_forward.gated else plain


def _each_once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
