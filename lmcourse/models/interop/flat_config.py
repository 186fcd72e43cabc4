"""A model as a flat list of fields, the form of Hugging Face's configurations.

A `TransformerConfig` is nested: it has layers, which have attention, which has a rotation. A config.json is a flat
list, and every family names the same number differently. `FlatConfig` is the form in between: `unflatten` makes a
nested configuration of it, and `flatten` converts back. So a family only has to name its key for each field.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isclose
from typing import Any, Literal

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.attention import AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, Branches, LayerConfig, Placement
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import Activation, FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

ModelConfig = TransformerConfig | EncoderDecoderConfig


@dataclass(frozen=True)
class FlatConfig:
    """A flat list of the fields in which published models differ. The defaults are Llama's.

    Attributes:
        local_layers: for each layer, whether its attention is limited to `local_span` tokens: a window or a chunk,
            depending on `local_kind`.
        rotary_layers: for each layer, whether it rotates queries and keys. An empty tuple means the usual case for both
            fields: no layer is local, and all layers rotate if there is a rotation.
        rotary, local_rotary: the rotation, and the rotation of the local layers if it differs.
        qk_norm: the norm on queries and keys; with `qk_norm_after_rotary`, only on layers that rotate. It has the same
            kind and eps as `norm`; `qk_norm_scale` says if it has parameters.
        value_residual: whether layers mix in the values of the first layer. Only our models can do this.
        encoder_layers: the number of layers of the encoder in an encoder–decoder.
    All other fields have the names of the configurations in `lmcourse.nn`.
    """

    vocab_size: int
    d_model: int
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    d_ff: int
    context: int | None = None
    # norms and blocks
    norm: Literal["layer", "rms"] = "rms"
    eps: float = 1e-6
    norm_scale: bool = True
    norm_bias: bool = False
    unit_offset: bool = False
    placement: Placement = "pre"
    branches: Branches = "serial"
    final_norm: bool = True
    residual_scale: float = 1.0
    # positions
    max_positions: int | None = None
    position_offset: int = 0
    position_bias: AlibiConfig | RelativePositionBiasConfig | None = None
    rotary: RotaryConfig | None = None
    local_rotary: RotaryConfig | None = None
    rotary_layers: tuple[bool, ...] = ()
    # attention
    local_layers: tuple[bool, ...] = ()
    local_kind: Literal["window", "chunk"] = "window"
    local_span: int | None = None
    scale: float | None = None
    soft_cap: float | None = None
    bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["head", "heads", "width"] | None = None
    qk_norm_scale: bool = True
    qk_norm_after_rotary: bool = False
    temperature: AttentionTemperatureConfig | None = None
    value_residual: bool = False
    # feed-forward
    activation: Activation = "silu"
    gated: bool = True
    ff_bias: bool = False
    # embedding and head
    tied: bool = False
    embedding_scale: float = 1.0
    embedding_width: int | None = None
    embedding_norm: bool = False
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_cap: float | None = None
    # training
    attention_dropout: float = 0.0
    dropout: float = 0.0
    embedding_dropout: float = 0.0
    encoder_layers: int | None = None


def unflatten(flat: FlatConfig) -> ModelConfig:
    """Make the nested configuration of a flat one; raise ValueError if some fields contradict each other."""
    decoder = _transformer(flat, flat.layers, causal=True)
    if flat.encoder_layers is None:
        return decoder
    return EncoderDecoderConfig(encoder=_transformer(flat, flat.encoder_layers, causal=False), decoder=decoder)


def _transformer(f: FlatConfig, layers: int, *, causal: bool) -> TransformerConfig:
    norm = NormConfig(f.norm, f.eps, scale=f.norm_scale, bias=f.norm_bias, unit_offset=f.unit_offset)
    bias = f.position_bias
    return TransformerConfig(
        vocab_size=f.vocab_size,
        d_model=f.d_model,
        layers=tuple(_layer(f, index, causal) for index in range(layers)),
        block=BlockConfig(norm, f.placement, f.branches, f.dropout, f.residual_scale),
        embedding=EmbeddingConfig(
            positions="none" if f.max_positions is None else "learned",
            max_positions=f.max_positions,
            position_offset=f.position_offset,
            scale=f.embedding_scale,
            width=f.embedding_width,
            norm=norm if f.embedding_norm else None,
            dropout=f.embedding_dropout,
        ),
        head=HeadConfig(tied=f.tied, bias=f.head_bias, scale=f.logit_scale, soft_cap=f.logit_cap),
        position_bias=RelativePositionBiasConfig(bias.buckets, bias.max_distance, causal)
        if isinstance(bias, RelativePositionBiasConfig)
        else bias,
        final_norm=norm if f.final_norm else None,
        context=f.context,
    )


def _layer(f: FlatConfig, index: int, causal: bool) -> LayerConfig:
    local = bool(f.local_layers) and f.local_layers[index]
    rotates = f.rotary is not None and (not f.rotary_layers or f.rotary_layers[index])
    rotary = f.local_rotary if local and f.local_rotary else f.rotary
    # A norm after the rotation is used only on layers that rotate; the other layers have a temperature (Llama 4).
    normed = f.qk_norm is not None and (rotates or not f.qk_norm_after_rotary)
    qk = NormConfig(f.norm, f.eps, scale=f.qk_norm_scale, unit_offset=f.unit_offset)
    attention = AttentionConfig(
        heads=f.heads,
        kv_heads=f.kv_heads,
        d_head=f.d_head,
        pattern=AttentionPattern(f.local_kind, f.local_span) if local else AttentionPattern(causal=causal),
        rotary=rotary if rotates else None,
        qk_norm=QKNormConfig(qk, f.qk_norm, f.qk_norm_after_rotary) if normed and f.qk_norm else None,
        temperature=None if rotates else f.temperature,
        scale=f.scale,
        soft_cap=f.soft_cap,
        bias=f.bias,
        out_bias=f.out_bias,
        dropout=f.attention_dropout,
        value_residual=f.value_residual and index > 0,
    )
    return LayerConfig(attention, FeedForwardConfig(f.d_ff, f.activation, gated=f.gated, bias=f.ff_bias))


def flatten(config: ModelConfig) -> FlatConfig:
    """Return the fields of a configuration, as far as they describe it: `unflatten` of them may differ from it."""
    encoder_layers = len(config.encoder.layers) if isinstance(config, EncoderDecoderConfig) else None
    model = config.decoder if isinstance(config, EncoderDecoderConfig) else config
    layers = [layer.attention for layer in model.layers]
    first, ff, norm = layers[0], model.layers[0].feed_forward, model.block.norm
    local = [layer for layer in layers if layer.pattern.kind != "full"]
    rotating = [layer for layer in layers if layer.rotary is not None]
    rotaries = [layer.rotary for layer in sorted(rotating, key=lambda layer: layer.pattern.kind != "full")]
    nearby = [layer.rotary for layer in local if layer.rotary is not None]
    rotary = rotaries[0] if rotaries else None
    normed = [layer.qk_norm for layer in layers if layer.qk_norm is not None]
    temperatures = [layer.temperature for layer in layers if layer.temperature is not None]
    return FlatConfig(
        vocab_size=model.vocab_size,
        d_model=model.d_model,
        layers=len(layers),
        heads=first.heads,
        kv_heads=first.key_heads,
        d_head=first.head_width(model.d_model),
        d_ff=ff.width,
        context=model.context,
        norm=norm.kind,
        eps=norm.eps,
        norm_scale=norm.scale,
        norm_bias=norm.bias,
        unit_offset=norm.unit_offset,
        placement=model.block.placement,
        branches=model.block.branches,
        final_norm=model.final_norm is not None,
        residual_scale=model.block.residual_scale,
        max_positions=model.embedding.max_positions,
        position_offset=model.embedding.position_offset,
        position_bias=model.position_bias,
        rotary=rotary,
        local_rotary=nearby[0] if nearby and nearby[0] != rotary else None,
        rotary_layers=tuple(layer.rotary is not None for layer in layers) if 0 < len(rotating) < len(layers) else (),
        local_layers=tuple(layer.pattern.kind != "full" for layer in layers) if local else (),
        local_kind="chunk" if local and local[0].pattern.kind == "chunk" else "window",
        local_span=local[0].pattern.size if local else None,
        scale=first.scale,
        soft_cap=first.soft_cap,
        bias=first.bias,
        out_bias=first.out_bias,
        qk_norm=normed[0].over if normed else None,
        qk_norm_scale=normed[0].norm.scale if normed else True,
        qk_norm_after_rotary=bool(normed) and normed[0].after_rotary,
        temperature=temperatures[0] if temperatures else None,
        value_residual=any(layer.value_residual for layer in layers),
        activation=ff.activation,
        gated=ff.gated,
        ff_bias=ff.bias,
        tied=model.head.tied,
        embedding_scale=model.embedding.scale,
        embedding_width=model.embedding.width,
        embedding_norm=model.embedding.norm is not None,
        head_bias=model.head.bias,
        logit_scale=model.head.scale,
        logit_cap=model.head.soft_cap,
        attention_dropout=first.dropout,
        dropout=model.block.dropout,
        embedding_dropout=model.embedding.dropout,
        encoder_layers=encoder_layers,
    )


def differences(ours: FlatConfig, theirs: FlatConfig) -> list[str]:
    """Return the names of the fields that differ by more than rounding: 1/(1/x) is not always x."""
    return [f.name for f in fields(FlatConfig) if not _same(_plain(ours, f.name), _plain(theirs, f.name))]


def _plain(flat: FlatConfig, name: str) -> Any:
    """Return a field's value; a missing value is replaced by the default that follows from other fields."""
    value = getattr(flat, name)
    if name == "scale" and value is None:
        return flat.d_head**-0.5
    return flat.d_model if name == "embedding_width" and value is None else value


def _same(a: Any, b: Any) -> bool:
    return isclose(a, b, rel_tol=1e-12) if isinstance(a, float) and isinstance(b, float) else bool(a == b)
