"""Random configurations with unusual sizes, in which every variant is combined with every other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.attention import AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

LONGEST = 9
"""Number of tokens that every configuration can read."""

SIZES = st.integers(1, 7)
D_HEADS = st.integers(2, 7)
"""Head widths. 1 is left out, because torch.einsum then uses no matrix product (see `counter`)."""
NORMS = st.builds(NormConfig, st.sampled_from(["layer", "rms"]), scale=st.booleans(), bias=st.booleans())
NARROW = st.builds(FeedForwardConfig, SIZES, gated=st.booleans(), bias=st.booleans())
QK_NORMS = st.builds(
    QKNormConfig,
    NORMS,
    st.sampled_from(["head", "heads", "width"]),
    st.booleans(),
)
BRANCHES = st.sampled_from(
    [(place, "serial") for place in ("pre", "post", "double", "output")]
    + [("pre", branches) for branches in ("parallel", "parallel_two_norms")]
)
POSITION_BIASES = (
    st.none() | st.just(AlibiConfig()) | st.builds(RelativePositionBiasConfig, st.sampled_from([4, 8]), st.just(16))
)


def patterns(causal: bool) -> st.SearchStrategy[AttentionPattern]:
    kinds = st.sampled_from(["window", "chunk", "strided", "fixed"])
    return st.just(AttentionPattern(causal=causal)) | st.builds(AttentionPattern, kinds, SIZES, st.just(causal))


@st.composite
def layers(draw: st.DrawFn, heads: int, d_model: int, d_head: int | None, causal: bool) -> LayerConfig:
    even = (d_head or d_model // heads) % 2 == 0
    attention = AttentionConfig(
        heads,
        draw(st.sampled_from([shared for shared in range(1, heads + 1) if heads % shared == 0])),
        d_head,
        draw(patterns(causal)),
        rotary=draw(st.none() | st.just(RotaryConfig())) if even else None,
        relative_position_vectors=draw(st.none() | st.builds(RelativePositionVectorsConfig, SIZES, st.booleans())),
        qk_norm=draw(st.none() | QK_NORMS),
        temperature=draw(st.sampled_from([None, AttentionTemperatureConfig(4, 0.1)])),
        soft_cap=draw(st.sampled_from([None, 20.0])),
        bias=draw(st.booleans()),
        out_bias=draw(st.booleans()),
    )
    return LayerConfig(attention, draw(NARROW))


@st.composite
def ends(draw: st.DrawFn, width: int | None, even: bool) -> EmbeddingConfig:
    kinds: list[dict[str, Any]] = [
        {},
        {"positions": "learned", "max_positions": LONGEST, "position_offset": draw(st.integers(0, 2))},
    ]
    if even:
        kinds.append({"positions": "sinusoidal"})
    return EmbeddingConfig(width=width, norm=draw(st.none() | NORMS), **draw(st.sampled_from(kinds)))


@st.composite
def transformers(
    draw: st.DrawFn,
    *,
    vocab_size: int | None = None,
    d_model: int | None = None,
    width: int | None = None,
    causal: bool | None = None,
    serial: bool = False,
) -> TransformerConfig:
    """Draw a decoder or encoder with the given fields; all other fields are random."""
    heads = draw(st.sampled_from([1, 2, 3, 4, 6]))
    d_head = draw(st.none() | D_HEADS) if d_model is None else draw(D_HEADS)
    d_model = d_model or (draw(st.integers(1, 20)) if d_head else heads * draw(D_HEADS))
    width = width or draw(st.sampled_from([None, 5, d_model]))
    causal = draw(st.booleans()) if causal is None else causal
    count = draw(st.integers(1, 3))
    placement, branches = draw(BRANCHES.filter(lambda both: not serial or both[1] == "serial"))
    return TransformerConfig(
        vocab_size or draw(st.integers(1, 30)),
        d_model,
        tuple(draw(layers(heads, d_model, d_head, causal)) for _ in range(count)),
        BlockConfig(draw(NORMS), placement, branches),
        draw(ends(width, d_model % 2 == 0)),
        draw(st.builds(HeadConfig, st.booleans(), st.booleans(), soft_cap=st.sampled_from([None, 30.0]))),
        draw(POSITION_BIASES),
        draw(st.none() | NORMS),
    )


@st.composite
def encoder_decoders(draw: st.DrawFn) -> EncoderDecoderConfig:
    shared = {"vocab_size": draw(st.integers(1, 30)), "d_model": draw(st.integers(1, 20)), "width": draw(SIZES)}
    encoder = draw(transformers(causal=False, **shared))
    return EncoderDecoderConfig(encoder, draw(transformers(causal=True, serial=True, **shared)))
