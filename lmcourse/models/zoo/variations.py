"""Models of 2023 to 2025 whose norms, blocks, activations or attention differ from LLaMA's."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import LAYER_NORM, LAYER_NORM_NO_BIAS, RMS_1E6, gpt_like, llama_like, window
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

GEMMA_NORM = NormConfig("rms", eps=1e-6, unit_offset=True)
GEGLU = {"activation": "gelu_tanh"}


def gemma(layers: int, d_model: int, heads: int, d_ff: int, **others: Any) -> TransformerConfig:
    """Make the parts that all Gemmas share: GeGLU, scales stored as 1 + w, tied embeddings multiplied by √d."""
    shared = {
        "norm": GEMMA_NORM,
        "feed_forward": GEGLU,
        "embedding": EmbeddingConfig(scale=math.sqrt(d_model)),
        "tied": True,
        "d_head": 256,
    }
    return llama_like(layers, d_model, heads, d_ff, **{**shared, **others})


gemma1 = partial(gemma, vocab_size=256_000, context=8192)
"""Gemma, as a function of layers, d_model, heads and d_ff, like the other families here."""

gemma2 = partial(
    gemma1,
    head=HeadConfig(soft_cap=30.0),
    block={"placement": "double"},
    layer_pattern=window(4096, 2),
    soft_cap=50.0,
)
"""Gemma 2: four norms per block, a window in every other layer, soft caps on scores and logits."""


def gemma3(
    layers: int, d_model: int, heads: int, kv_heads: int, d_ff: int, *, wide: bool = True, **others: Any
) -> TransformerConfig:
    """Make a Gemma 3: norms on queries and keys instead of the caps, five window layers for each full layer.

    `wide` is for the sizes that also read images: 64 more tokens, a wider window, and positions divided by 8 in the
    full layers.
    """
    slow = RotaryConfig(1_000_000.0, linear_factor=8.0 if wide else 1.0)
    return gemma(
        layers,
        d_model,
        heads,
        d_ff,
        vocab_size=262_208 if wide else 262_144,
        context=131_072 if wide else 32_768,
        block={"placement": "double"},
        layer_pattern=window(1024 if wide else 512, 6, rotary=slow),
        kv_heads=kv_heads,
        qk_norm=QKNormConfig(GEMMA_NORM),
        **others,
    )


olmo1 = partial(llama_like, vocab_size=50_304, context=2048, norm=NormConfig("layer", scale=False))
"""OLMo: a LayerNorm without parameters."""

olmo2 = partial(
    llama_like,
    vocab_size=100_352,
    context=4096,
    norm=RMS_1E6,
    theta=500_000.0,
    block={"placement": "output"},
    qk_norm=QKNormConfig(RMS_1E6, over="width"),
)
"""OLMo 2: norms on each branch's output, and on queries and keys over their full width."""


def command(
    layers: int, d_model: int, heads: int, d_ff: int, logit_scale: float, context: int = 131_072, **others: Any
) -> TransformerConfig:
    """Make a Command R or a successor: parallel branches, LayerNorm without bias, tied embeddings, scaled logits."""
    return llama_like(
        layers,
        d_model,
        heads,
        d_ff,
        vocab_size=256_000,
        context=context,
        norm=LAYER_NORM_NO_BIAS,
        rotary={"layout": "interleaved"},
        block={"branches": "parallel"},
        head=HeadConfig(scale=logit_scale),
        **others,
    )


def nemotron4(layers: int, d_model: int, heads: int) -> TransformerConfig:
    """Make a Nemotron-4: squared ReLU without a gate, LayerNorm with 1 + w, RoPE on half of each head."""
    return llama_like(
        layers,
        d_model,
        heads,
        4 * d_model,
        vocab_size=256_000,
        context=4096,
        norm=replace(LAYER_NORM, unit_offset=True),
        rotary={"fraction": 0.5},
        feed_forward={"activation": "relu2", "gated": False},
        kv_heads=8,
    )


def early_phi(layers: int, d_model: int, heads: int, fraction: float) -> TransformerConfig:
    """Make a Phi-1.5 or Phi-2: parallel branches, biases everywhere, RoPE on part of each head."""
    return gpt_like(
        layers,
        d_model,
        heads,
        vocab_size=51_200,
        context=2048,
        embedding=EmbeddingConfig(),
        head=HeadConfig(tied=False, bias=True),
        block={"branches": "parallel"},
        rotary=RotaryConfig(fraction=fraction),
    )


PHI_3_MINI = llama_like(32, 3072, 32, 8192, vocab_size=32_064, context=4096, pattern=AttentionPattern("window", 2047))
PHI_4 = llama_like(40, 5120, 40, 17_920, vocab_size=100_352, context=16_384, theta=250_000.0, kv_heads=10)
PHI_4_MINI = llama_like(
    32, 3072, 24, 8192, vocab_size=200_064, context=131_072, tied=True, rotary={"fraction": 0.75}, kv_heads=8
)
STABLELM_3B = llama_like(
    32, 2560, 32, 6912, vocab_size=50_304, context=4096, norm=LAYER_NORM, rotary={"fraction": 0.25}
)
PER_HEAD = QKNormConfig(LAYER_NORM_NO_BIAS, over="heads")
COMMAND_A_LAYERS = window(4096, 4, rotary=None)

GEMMA1_SOURCE = "Gemma Team 2024, Gemma, Table 1; google/gemma config.json"
GEMMA2_SOURCE = "Gemma Team 2024, Gemma 2, Table 1; google/gemma-2 config.json"
GEMMA3_SOURCE = "Gemma Team 2025, Gemma 3 technical report, Table 1; google/gemma-3 config.json"
OLMO1_SOURCE = "Groeneveld et al. 2024, OLMo, Table 1; allenai/OLMo config.json"
OLMO2_SOURCE = "OLMo Team 2025, 2 OLMo 2 Furious, Table 3; allenai/OLMo-2 config.json"
COMMAND_R_SOURCE = "CohereForAI/c4ai-command-r-v01, model card and config.json"
NEMOTRON_15B_SOURCE = "Parmar et al. 2024, Nemotron-4 15B technical report, Table 1"
NEMOTRON_340B_SOURCE = "Adler et al. 2024, Nemotron-4 340B technical report, Table 1; nvidia/Nemotron-4-340B config"
PHI1_SOURCE = "microsoft/phi-1_5, model card and config.json"
PHI2_SOURCE = "microsoft/phi-2, model card and config.json"
PHI3_SOURCE = "Abdin et al. 2024, Phi-3 technical report; microsoft/Phi-3-mini-4k-instruct config.json"
PHI4_SOURCE = "Abdin et al. 2024, Phi-4 technical report; microsoft/phi-4 config.json"
PHI4_MINI_SOURCE = "Microsoft 2025, Phi-4-Mini technical report; microsoft/Phi-4-mini-instruct config.json"
STABLELM_SOURCE = "stabilityai/stablelm-3b-4e1t, model card and config.json"

TEXT_ONLY_NOTE = "The text model; the picture encoder of 417M is left out."
NEMOTRON_NOTE = "eps and the half of each head that RoPE turns are from the released code; the report says RoPE only."
LONG_ROPE_NOTE = "Left out: RoPE's factors for contexts beyond 4,096."

ENTRIES = (
    Entry("gemma-2b", 2024, GEMMA1_SOURCE, gemma1(18, 2048, 8, 16_384, kv_heads=1), 2_506_172_416),
    Entry("gemma-7b", 2024, GEMMA1_SOURCE, gemma1(28, 3072, 16, 24_576, kv_heads=16), 8_537_680_896),
    Entry("gemma-2-2b", 2024, GEMMA2_SOURCE, gemma2(26, 2304, 8, 9216, kv_heads=4), 2_614_341_888),
    Entry("gemma-2-9b", 2024, GEMMA2_SOURCE, gemma2(42, 3584, 16, 14_336, kv_heads=8), 9_241_705_984),
    Entry(
        "gemma-2-27b",
        2024,
        GEMMA2_SOURCE,
        gemma2(46, 4608, 32, 36_864, kv_heads=16, d_head=128, scale=144**-0.5),
        27_227_128_320,
    ),
    Entry("gemma-3-1b", 2025, GEMMA3_SOURCE, gemma3(26, 1152, 4, 1, 6912, wide=False), 999_885_952),
    Entry("gemma-3-4b", 2025, GEMMA3_SOURCE, gemma3(34, 2560, 8, 4, 10_240), 3_884_000_000, TEXT_ONLY_NOTE),
    Entry("gemma-3-12b", 2025, GEMMA3_SOURCE, gemma3(48, 3840, 16, 8, 15_360), 11_771_000_000, TEXT_ONLY_NOTE),
    Entry(
        "gemma-3-27b",
        2025,
        GEMMA3_SOURCE,
        gemma3(62, 5376, 32, 16, 21_504, d_head=128, scale=168**-0.5),
        27_016_000_000,
        TEXT_ONLY_NOTE,
    ),
    Entry("olmo-1b", 2024, OLMO1_SOURCE, olmo1(16, 2048, 16, 8192, tied=True), 1_176_764_416),
    Entry("olmo-7b", 2024, OLMO1_SOURCE, olmo1(32, 4096, 32, 11_008, tied=False), 6_888_095_744),
    Entry("olmo-2-1b", 2025, OLMO2_SOURCE, olmo2(16, 2048, 16, 8192), 1_484_916_736),
    Entry("olmo-2-7b", 2024, OLMO2_SOURCE, olmo2(32, 4096, 32, 11_008), 7_298_617_344),
    Entry("olmo-2-13b", 2024, OLMO2_SOURCE, olmo2(40, 5120, 40, 13_824), 13_716_198_400),
    Entry("olmo-2-32b", 2025, OLMO2_SOURCE, olmo2(64, 5120, 40, 27_648, kv_heads=8), 32_234_279_936),
    Entry("command-r", 2024, COMMAND_R_SOURCE, command(40, 8192, 64, 22_528, 0.0625, theta=8e6), 34_980_831_232),
    Entry(
        "command-r-plus",
        2024,
        "CohereForAI/c4ai-command-r-plus, model card and config.json",
        command(64, 12_288, 96, 33_792, 0.8333333333333334, theta=75e6, kv_heads=8, qk_norm=PER_HEAD),
        103_810_674_688,
    ),
    Entry(
        "command-r7b",
        2024,
        "CohereForAI/c4ai-command-r7b-12-2024, model card and config.json",
        command(32, 4096, 32, 14_336, 0.25, theta=50_000.0, kv_heads=8, layer_pattern=COMMAND_A_LAYERS),
        8_000_000_000,
        "The name counts 7B without the embedding.",
    ),
    Entry(
        "command-a",
        2025,
        "Cohere 2025, Command A, §2; CohereForAI/c4ai-command-a-03-2025 config.json",
        command(64, 12_288, 96, 36_864, 0.25, 262_144, theta=50_000.0, kv_heads=8, layer_pattern=COMMAND_A_LAYERS),
        111_000_000_000,
        "The context is given as 256k.",
    ),
    Entry("nemotron-4-15b", 2024, NEMOTRON_15B_SOURCE, nemotron4(32, 6144, 48), 15_700_000_000, NEMOTRON_NOTE),
    Entry("nemotron-4-340b", 2024, NEMOTRON_340B_SOURCE, nemotron4(96, 18_432, 96), 341_000_000_000, NEMOTRON_NOTE),
    Entry("phi-1.5", 2023, PHI1_SOURCE, early_phi(24, 2048, 32, 0.5), 1_418_270_720),
    Entry("phi-2", 2023, PHI2_SOURCE, early_phi(32, 2560, 32, 0.4), 2_779_683_840),
    Entry("phi-3-mini", 2024, PHI3_SOURCE, PHI_3_MINI, 3_821_079_552),
    Entry("phi-4", 2024, PHI4_SOURCE, PHI_4, 14_659_507_200),
    Entry("phi-4-mini", 2025, PHI4_MINI_SOURCE, PHI_4_MINI, 3_836_021_760, LONG_ROPE_NOTE),
    Entry("stablelm-3b", 2023, STABLELM_SOURCE, STABLELM_3B, 2_795_443_200),
)
