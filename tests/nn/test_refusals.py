"""An impossible configuration is rejected when it is created, in one line that names the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig, repeat_layers
from lmcourse.nn.attention import AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rope_scaling import Llama3RopeScaling, LongRope, Yarn
from lmcourse.nn.rotary import RotaryConfig

NORM = NormConfig()
WIDE = FeedForwardConfig(16)
AROUND = LayerConfig(AttentionConfig(2, pattern=AttentionPattern(causal=False)), WIDE)


def model(attention: AttentionConfig | None = None, d_model: int = 8, **changes: Any) -> TransformerConfig:
    layer = LayerConfig(attention or AttentionConfig(2), WIDE)
    return TransformerConfig(
        **{"vocab_size": 9, "d_model": d_model, "layers": (layer,), "block": BlockConfig(NORM)} | changes
    )


def translator(encoder: dict[str, Any], decoder: dict[str, Any]) -> EncoderDecoderConfig:
    return EncoderDecoderConfig(model(**{"layers": (AROUND,)} | encoder), model(**decoder))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: NormConfig("batch"), "there is no norm 'batch'; choose from 'layer', 'rms'"),  # type: ignore[arg-type]
    (lambda: NormConfig(eps=0.0), "eps must be positive, not 0.0"),
    (lambda: NormConfig(scale=False, unit_offset=True), "set scale=True"),
    (lambda: RotaryConfig(layout="both"), "there is no layout of RoPE's pairs 'both'"),  # type: ignore[arg-type]
    (lambda: RotaryConfig(theta=0.0), "RoPE needs theta > 0"),
    (lambda: RotaryConfig(fraction=1.5), "a fraction in \\(0, 1\\]"),
    (
        lambda: Llama3RopeScaling(8.0, 100, low_freq_factor=4.0, high_freq_factor=1.0),
        "0 < low_freq_factor <= high_freq_factor",
    ),
    (lambda: Yarn(8.0, 100, beta_slow=4.0, beta_fast=4.0), "0 < beta_slow < beta_fast"),
    (lambda: LongRope((1.0,), (0.0,), 100, 2.0), "positive divisors"),
    (lambda: LongRope((1.0,), (1.0, 2.0), 100, 2.0), "two lists of equal length, not 1 and 2"),
    (
        lambda: model(AttentionConfig(2, rotary=RotaryConfig(scaling=LongRope((1.0,), (2.0,), 100, 2.0)))),
        "layer 0: LongRoPE has 1 divisors, but 2 pairs are rotated",
    ),
    (lambda: RelativePositionVectorsConfig(0), "at least 1, not 0"),
    (lambda: AttentionPattern("all"), "there is no attention pattern 'all'"),  # type: ignore[arg-type]
    (lambda: RelativePositionBiasConfig(1), "each direction needs the same number of buckets, at least 2"),
    (lambda: RelativePositionBiasConfig(32, 16), "got 32 buckets and a max_distance of 16"),
    (lambda: QKNormConfig(over="layer"), "there is no QK-norm over 'layer'"),  # type: ignore[arg-type]
    (lambda: AttentionTemperatureConfig(0, 0.1), "at least 1 token, not 0"),
    (lambda: AttentionConfig(0), "0 query heads"),
    (lambda: AttentionConfig(6, kv_heads=4), "6 query heads cannot share 4 key heads evenly"),
    (lambda: AttentionConfig(2, d_head=0), "a head's width must be positive, not 0"),
    (lambda: AttentionConfig(2, soft_cap=0.0), "the soft cap must be positive"),
    (lambda: AttentionConfig(2, dropout=1.0), "dropout must be at least 0 and below 1, not 1.0"),
    (lambda: FeedForwardConfig(0), "width must be positive"),
    (lambda: FeedForwardConfig(8, "swish"), "unknown activation 'swish'; choose from relu"),  # type: ignore[arg-type]
    (lambda: BlockConfig(NORM, "sandwich"), "there is no placement 'sandwich'"),  # type: ignore[arg-type]
    (lambda: BlockConfig(NORM, branches="both"), "there is no way to branch 'both'"),  # type: ignore[arg-type]
    (lambda: BlockConfig(NORM, "post", "parallel"), "placement must be 'pre', not 'post'"),
    (lambda: EmbeddingConfig("rotary"), "there is no kind of position 'rotary'"),  # type: ignore[arg-type]
    (lambda: EmbeddingConfig("learned"), "set `max_positions` if and only if positions are learned"),
    (lambda: model(d_model=9), "layer 0: 2 heads do not divide the width 9 evenly: set d_head"),
    (lambda: model(AttentionConfig(2, d_head=5, rotary=RotaryConfig())), "layer 0: RoPE rotates features in pairs"),
    (lambda: model(vocab_size=0), "vocab_size and d_model must be at least 1"),
    (lambda: model(layers=()), "at least one layer"),
    (
        lambda: model(AttentionConfig(3), d_model=9, embedding=EmbeddingConfig("sinusoidal")),
        "sinusoidal positions need an even width, not 9",
    ),
    (
        lambda: model(
            layers=repeat_layers([LayerConfig(AttentionConfig(heads), WIDE) for heads in (2, 4)], 2),
            position_bias=AlibiConfig(),
        ),
        "layer 1: a position bias is shared",
    ),
    (
        lambda: model(
            AttentionConfig(2, pattern=AttentionPattern(causal=False)), position_bias=AlibiConfig(falcon_bf16=True)
        ),
        "layer 0 sees later tokens: rounded ALiBi is for causal attention",
    ),
    (lambda: translator({"vocab_size": 8}, {}), "give both the same vocabulary and width"),
    (lambda: EncoderDecoderConfig(model(), model()), "its attention must not be causal"),
    (lambda: translator({"embedding": EmbeddingConfig(width=4)}, {}), "the same width of token vectors"),
    (lambda: translator({}, {"block": BlockConfig(NORM, branches="parallel")}), "needs serial branches"),
]


@pytest.mark.parametrize(("make", "told"), REFUSED, ids=[told[:40] for _, told in REFUSED])
def test_invalid_settings_are_rejected_in_one_line(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refusal:
        make()
    assert "\n" not in str(refusal.value)
