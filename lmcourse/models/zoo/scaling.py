"""Models of 2021 to 2024: large decoders from before LLaMA's architecture became standard."""

from __future__ import annotations

from functools import partial

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import LAYER_NORM_NO_BIAS, RMS, gpt_like, llama_like
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig
from lmcourse.nn.rotary import RotaryConfig

NO_POSITIONS = EmbeddingConfig()
UNTIED = HeadConfig(tied=False)


gopher = partial(gpt_like, vocab_size=32_000, context=2048, norm=RMS, embedding=NO_POSITIONS)
"""Gopher and Chinchilla, as a function of layers, d_model and heads: GPT-2 with RMSNorm, without learned positions."""


def palm(layers: int, d_model: int, heads: int) -> TransformerConfig:
    """Make a PaLM: parallel branches, multi-query attention, SwiGLU with a width of 4 d, no biases, logits / √d."""
    return llama_like(
        layers,
        d_model,
        heads,
        4 * d_model,
        vocab_size=256_000,
        context=2048,
        norm=LAYER_NORM_NO_BIAS,
        head=HeadConfig(scale=d_model**-0.5),
        block={"branches": "parallel"},
        d_head=256,
        kv_heads=1,
    )


def opt(layers: int, d_model: int, heads: int, *, narrow: int | None = None) -> TransformerConfig:
    """Make an OPT: GPT-3 with ReLU; with `narrow`, post-norm and a narrower embedding."""
    return gpt_like(
        layers,
        d_model,
        heads,
        vocab_size=50_272,
        context=2048,
        embedding=EmbeddingConfig("learned", max_positions=2048, position_offset=2, width=narrow, dropout=0.1),
        block={"placement": "post"} if narrow else None,
        feed_forward={"activation": "relu"},
        dropout=0.1,
    )


def bloom(layers: int, d_model: int, heads: int) -> TransformerConfig:
    """Make a BLOOM: ALiBi, and a norm on the embedding."""
    normed = EmbeddingConfig(norm=NormConfig("layer", bias=True))
    shape = gpt_like(layers, d_model, heads, vocab_size=250_880, context=2048, embedding=normed)
    return shape.with_(position_bias=AlibiConfig())


def neox(layers: int, d_model: int, heads: int, vocab_size: int, activation: str) -> TransformerConfig:
    """Make a GPT-NeoX or Pythia: parallel branches with two norms, RoPE on a quarter of each head."""
    return gpt_like(
        layers,
        d_model,
        heads,
        vocab_size=vocab_size,
        context=2048,
        embedding=NO_POSITIONS,
        head=UNTIED,
        block={"branches": "parallel_two_norms"},
        feed_forward={"activation": activation},
        rotary=RotaryConfig(fraction=0.25),
    )


def falcon(
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    branches: str,
    *,
    context: int = 2048,
    theta: float = 10_000.0,
    tied: bool = True,
) -> TransformerConfig:
    """Make a Falcon: parallel branches, RoPE, few key heads, no biases in linear layers."""
    return gpt_like(
        layers,
        d_model,
        heads,
        vocab_size=65_024,
        context=context,
        embedding=NO_POSITIONS,
        head=HeadConfig(tied=tied),
        block={"branches": branches},
        feed_forward={"activation": "gelu", "bias": False},
        rotary=RotaryConfig(theta),
        kv_heads=kv_heads,
        bias=False,
        out_bias=False,
    )


LAMDA = gpt_like(
    64,
    8192,
    128,
    vocab_size=32_000,
    context=1,
    embedding=NO_POSITIONS,
    feed_forward={"gated": True, "activation": "gelu", "bias": False, "width": 8 * 8192},
    d_head=128,
    bias=False,
    out_bias=False,
).with_(position_bias=RelativePositionBiasConfig(), context=None)
"""T5's position buckets, GeGLU of width 8 d, and heads that together are twice as wide as the model."""

GPT_J = gpt_like(
    28,
    4096,
    16,
    vocab_size=50_400,
    context=2048,
    embedding=NO_POSITIONS,
    head=HeadConfig(tied=False, bias=True),
    block={"branches": "parallel"},
    rotary=RotaryConfig(fraction=0.25, layout="interleaved"),
    bias=False,
    out_bias=False,
)

MPT_7B = gpt_like(
    32,
    4096,
    32,
    vocab_size=50_432,
    context=2048,
    norm=LAYER_NORM_NO_BIAS,
    embedding=NO_POSITIONS,
    feed_forward={"activation": "gelu", "bias": False},
    bias=False,
    out_bias=False,
).with_(position_bias=AlibiConfig())

PALM_SOURCE = "Chowdhery et al. 2022, PaLM, §2 and Table 1"
OPT_SOURCE = "Zhang et al. 2022, OPT, Table 1; facebook/opt config.json"
BLOOM_SOURCE = "Le Scao et al. 2022, BLOOM, Table 3; bigscience/bloom config.json"
GPT_NEOX_SOURCE = "Black et al. 2022, GPT-NeoX-20B, §2; EleutherAI/gpt-neox-20b config.json"
PYTHIA_SOURCE = "Biderman et al. 2023, Pythia; EleutherAI/pythia config.json"
FALCON_SOURCE = "Almazrouei et al. 2023, The Falcon series of open language models; tiiuae/falcon config.json"
MPT_SOURCE = "mosaicml/mpt-7b, model card and config.json"

GOPHER_NOTE = (
    "Not said: activation, biases and tying, taken from GPT-2, and the norm's eps. "
    "Left out: the relative positions of Transformer-XL (Dai et al., 2019), so our model has none."
)
TRANSFORMER_XL_NOTE = "Transformer-XL's positions have a d × d projection per layer, left out here"
GOPHER_CELLS = {"position": "Transformer-XL", "activation": "not said"}
PALM_NOTE = "Not said: eps, and which features RoPE pairs. The paper writes LayerNorm; its code was not released."

ENTRIES = (
    Entry(
        "gpt-j-6b",
        2021,
        "EleutherAI/gpt-j-6b, model card and config.json",
        GPT_J,
        6_053_381_344,
        "The vocab_size of 50,257 is padded to 50,400.",
        "the card counts 2.5M more; the released weights have ours",
    ),
    Entry(
        "gopher-280b",
        2021,
        "Rae et al. 2021, Scaling language models, Table 1",
        gopher(80, 16_384, 128),
        280_000_000_000,
        GOPHER_NOTE,
        TRANSFORMER_XL_NOTE,
        GOPHER_CELLS,
    ),
    Entry(
        "chinchilla-70b",
        2022,
        "Hoffmann et al. 2022, Training compute-optimal large language models, Table 4",
        gopher(80, 8192, 64),
        70_000_000_000,
        GOPHER_NOTE + " The vocab_size is said to be close to Gopher's; its size is taken.",
        TRANSFORMER_XL_NOTE,
        GOPHER_CELLS,
    ),
    Entry(
        "lamda-137b",
        2022,
        "Thoppilan et al. 2022, LaMDA: language models for dialog applications, §3",
        LAMDA,
        137_000_000_000,
        "Not said: norm, biases, tying, and the context. The paper counts 137B without the embedding. "
        "The vocab_size is given as 32K.",
        survey_overrides={"norm": "not said", "placement": "not said"},
    ),
    Entry("palm-8b", 2022, PALM_SOURCE, palm(32, 4096, 16), 8_630_000_000, PALM_NOTE),
    Entry("palm-62b", 2022, PALM_SOURCE, palm(64, 8192, 32), 62_500_000_000, PALM_NOTE),
    Entry("palm-540b", 2022, PALM_SOURCE, palm(118, 18_432, 48), 540_350_000_000, PALM_NOTE),
    Entry("opt-125m", 2022, OPT_SOURCE, opt(12, 768, 12), 125_000_000),
    Entry(
        "opt-350m",
        2022,
        OPT_SOURCE,
        opt(24, 1024, 16, narrow=512),
        350_000_000,
        "Post-norm, and an embedding of 512: unlike all other sizes.",
        "named after GPT-3's 350M; the narrow embedding saves 26M",
    ),
    Entry("opt-6.7b", 2022, OPT_SOURCE, opt(32, 4096, 32), 6_700_000_000),
    Entry("opt-175b", 2022, OPT_SOURCE, opt(96, 12_288, 96), 175_000_000_000),
    Entry("gpt-neox-20b", 2022, GPT_NEOX_SOURCE, neox(44, 6144, 64, 50_432, "gelu_tanh"), 20_554_567_680),
    Entry("bloom-560m", 2022, BLOOM_SOURCE, bloom(24, 1024, 16), 559_214_592),
    Entry("bloom-176b", 2022, BLOOM_SOURCE, bloom(70, 14_336, 112), 176_247_271_424),
    Entry("pythia-160m", 2023, PYTHIA_SOURCE, neox(12, 768, 12, 50_304, "gelu"), 162_322_944),
    Entry("pythia-6.9b", 2023, PYTHIA_SOURCE, neox(32, 4096, 32, 50_432, "gelu"), 6_857_302_016),
    Entry("mpt-7b", 2023, MPT_SOURCE, MPT_7B, 6_649_286_656),
    Entry("falcon-7b", 2023, FALCON_SOURCE, falcon(32, 4544, 71, 1, "parallel"), 7_000_000_000),
    Entry("falcon-40b", 2023, FALCON_SOURCE, falcon(60, 8192, 128, 8, "parallel_two_norms"), 40_000_000_000),
    Entry("falcon-180b", 2023, FALCON_SOURCE, falcon(80, 14_848, 232, 8, "parallel_two_norms"), 180_000_000_000),
    Entry(
        "falcon-2-11b",
        2024,
        "Malartic et al. 2024, Falcon2-11B technical report; tiiuae/falcon-11B config.json",
        falcon(60, 4096, 32, 8, "parallel", context=8192, theta=500_042.0, tied=False),
        11_100_000_000,
    ),
)
