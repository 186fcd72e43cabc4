"""LLaMA and the models with the same architecture: RMSNorm before each branch, RoPE, SwiGLU, no biases."""

from __future__ import annotations

from functools import partial

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import RMS, RMS_1E6, llama_like
from lmcourse.nn.attention import AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rope_scaling import Llama3RopeScaling

llama1 = partial(llama_like, vocab_size=32_000, context=2048, norm=RMS_1E6)
"""LLaMA, as a function of layers, d_model, heads and d_ff, like the other families here."""

llama2 = partial(llama_like, vocab_size=32_000, context=4096)
"""Llama 2: twice the context of LLaMA; the largest model shares key heads."""


def llama3(
    layers: int, d_model: int, heads: int, d_ff: int, *, longer: float | None = None, tied: bool = False
) -> TransformerConfig:
    """Make a Llama 3: four times the vocabulary, 8 key heads in all sizes, a slower RoPE.

    `longer` is the factor by which 3.1 and 3.2 stretch RoPE, for 131,072 tokens.
    """
    return llama_like(
        layers,
        d_model,
        heads,
        d_ff,
        vocab_size=128_256,
        context=131_072 if longer else 8192,
        theta=500_000.0,
        tied=tied,
        rotary={"scaling": Llama3RopeScaling(longer, original_context=8192)} if longer else None,
        kv_heads=8,
    )


LOCAL = {
    "pattern": AttentionPattern("chunk", 8192),
    "qk_norm": QKNormConfig(NormConfig("rms", scale=False), after_rotary=True),
}
GLOBAL = {"rotary": None, "temperature": AttentionTemperatureConfig(floor_scale=8192, slope=0.1)}

LLAMA_4_SCOUT_DENSE = llama_like(
    48,
    5120,
    40,
    8192,
    vocab_size=202_048,
    context=10_485_760,
    theta=500_000.0,
    rotary={
        "layout": "interleaved",
        "scaling": Llama3RopeScaling(16.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=1.0),
    },
    kv_heads=8,
    layer_pattern=[LOCAL, LOCAL, LOCAL, GLOBAL],
)

MISTRAL_7B = llama_like(
    32, 4096, 32, 14_336, vocab_size=32_000, context=8192, kv_heads=8, pattern=AttentionPattern("window", 4096)
)


deepseek = partial(llama_like, vocab_size=102_400, context=4096, norm=RMS_1E6)
"""DeepSeek LLM: LLaMA with more layers."""

yi = partial(llama_like, vocab_size=64_000, context=4096, theta=5_000_000.0)
"""Yi: LLaMA with few key heads and a very slow RoPE."""


def qwen2(
    layers: int, d_model: int, heads: int, kv_heads: int, d_ff: int, vocab_size: int, norm: NormConfig = RMS_1E6
) -> TransformerConfig:
    """Make a Qwen2 or 2.5: biases only on q, k and v. Sizes with 151,936 tokens have tied embeddings.

    All were trained on texts of up to 32,768 tokens; for longer texts, some scale RoPE after training.
    """
    return llama_like(
        layers,
        d_model,
        heads,
        d_ff,
        vocab_size=vocab_size,
        context=32_768,
        norm=norm,
        theta=1e6,
        tied=vocab_size == 151_936,
        kv_heads=kv_heads,
        bias=True,
    )


qwen3 = partial(
    llama_like,
    vocab_size=151_936,
    context=32_768,
    norm=RMS_1E6,
    theta=1e6,
    kv_heads=8,
    d_head=128,
    qk_norm=QKNormConfig(RMS_1E6),
)
"""Qwen3: a norm on each query and key in place of the biases; heads of 128 at every width."""

INTERNLM2_7B = llama_like(32, 4096, 32, 14_336, vocab_size=92_544, context=32_768, theta=1e6, kv_heads=8)

smollm2 = partial(llama_like, vocab_size=49_152, context=8192, tied=True)
"""SmolLM2: LLaMA for laptops."""

SMOLLM3_3B = llama_like(
    36,
    2048,
    16,
    11_008,
    vocab_size=128_256,
    context=65_536,
    norm=RMS_1E6,
    theta=5e6,
    tied=True,
    kv_heads=4,
    layer_pattern=[{}, {}, {}, {"rotary": None}],
)

LLAMA1_SOURCE = "Touvron et al. 2023, LLaMA, Table 2"
LLAMA2_SOURCE = "Touvron et al. 2023, Llama 2, Table 1; meta-llama/Llama-2 config.json"
LLAMA3_SOURCE = "Grattafiori et al. 2024, The Llama 3 herd of models, Table 3; meta-llama config.json"
LLAMA3_2_SOURCE = "meta-llama/Llama-3.2 model card and config.json"
LLAMA4_SOURCE = "meta-llama/Llama-4-Scout-17B-16E, model card and config.json"
MISTRAL_SOURCE = "Jiang et al. 2023, Mistral 7B, Table 1; mistralai/Mistral-7B-v0.1 config.json"
DEEPSEEK_SOURCE = "DeepSeek-AI 2024, DeepSeek LLM, Table 2; deepseek-ai/deepseek-llm config.json"
YI_SOURCE = "01.AI 2024, Yi, Table 1; 01-ai/Yi config.json"
QWEN2_SOURCE = "Yang et al. 2024, Qwen2 technical report, Table 1; Qwen config.json"
QWEN2_5_SOURCE = "Yang et al. 2024, Qwen2.5 technical report, Table 1; Qwen config.json"
QWEN3_SOURCE = "Yang et al. 2025, Qwen3 technical report, Table 1; Qwen config.json"
INTERNLM2_SOURCE = "Cai et al. 2024, InternLM2 technical report, Table 2; internlm/internlm2-7b config.json"
SMOLLM2_SOURCE = "Ben Allal et al. 2025, SmolLM2; HuggingFaceTB/SmolLM2 config.json"
SMOLLM3_SOURCE = "HuggingFaceTB/SmolLM3-3B-Base, model card and config.json"

SCOUT_NOTE = (
    "What every token passes: attention, and of each mixture of experts the shared expert. Left out: the 16 routed "
    "experts of each layer, of which a token visits one (6.04B more, which makes the 17B that the card calls active)."
)

ENTRIES = (
    Entry("llama-7b", 2023, LLAMA1_SOURCE, llama1(32, 4096, 32, 11_008), 6_700_000_000),
    Entry("llama-13b", 2023, LLAMA1_SOURCE, llama1(40, 5120, 40, 13_824), 13_000_000_000),
    Entry("llama-33b", 2023, LLAMA1_SOURCE, llama1(60, 6656, 52, 17_920), 32_500_000_000),
    Entry("llama-65b", 2023, LLAMA1_SOURCE, llama1(80, 8192, 64, 22_016, norm=RMS), 65_200_000_000),
    Entry("llama-2-7b", 2023, LLAMA2_SOURCE, llama2(32, 4096, 32, 11_008), 6_738_415_616),
    Entry("llama-2-13b", 2023, LLAMA2_SOURCE, llama2(40, 5120, 40, 13_824), 13_015_864_320),
    Entry("llama-2-70b", 2023, LLAMA2_SOURCE, llama2(80, 8192, 64, 28_672, kv_heads=8), 68_976_648_192),
    Entry("llama-3-8b", 2024, LLAMA3_SOURCE, llama3(32, 4096, 32, 14_336), 8_030_261_248),
    Entry("llama-3-70b", 2024, LLAMA3_SOURCE, llama3(80, 8192, 64, 28_672), 70_553_706_496),
    Entry("llama-3.1-405b", 2024, LLAMA3_SOURCE, llama3(126, 16_384, 128, 53_248, longer=8.0), 405_853_388_800),
    Entry("llama-3.2-1b", 2024, LLAMA3_2_SOURCE, llama3(16, 2048, 32, 8192, longer=32.0, tied=True), 1_235_814_400),
    Entry("llama-3.2-3b", 2024, LLAMA3_2_SOURCE, llama3(28, 3072, 24, 8192, longer=32.0, tied=True), 3_212_749_824),
    Entry("llama-4-scout-dense", 2025, LLAMA4_SOURCE, LLAMA_4_SCOUT_DENSE, note=SCOUT_NOTE),
    Entry("mistral-7b", 2023, MISTRAL_SOURCE, MISTRAL_7B, 7_241_732_096),
    Entry("deepseek-7b", 2024, DEEPSEEK_SOURCE, deepseek(30, 4096, 32, 11_008), 6_910_365_696),
    Entry("deepseek-67b", 2024, DEEPSEEK_SOURCE, deepseek(95, 8192, 64, 22_016, kv_heads=8), 67_000_000_000),
    Entry("yi-6b", 2023, YI_SOURCE, yi(32, 4096, 32, 11_008, kv_heads=4), 6_061_035_520),
    Entry("yi-34b", 2023, YI_SOURCE, yi(60, 7168, 56, 20_480, kv_heads=8), 34_388_917_248),
    Entry("qwen2-0.5b", 2024, QWEN2_SOURCE, qwen2(24, 896, 14, 2, 4864, 151_936), 494_032_768),
    Entry("qwen2-7b", 2024, QWEN2_SOURCE, qwen2(28, 3584, 28, 4, 18_944, 152_064), 7_615_616_512),
    Entry("qwen2.5-1.5b", 2024, QWEN2_5_SOURCE, qwen2(28, 1536, 12, 2, 8960, 151_936), 1_543_714_304),
    Entry("qwen2.5-3b", 2024, QWEN2_5_SOURCE, qwen2(36, 2048, 16, 2, 11_008, 151_936), 3_085_938_688),
    Entry("qwen2.5-14b", 2024, QWEN2_5_SOURCE, qwen2(48, 5120, 40, 8, 13_824, 152_064, RMS), 14_770_033_664),
    Entry("qwen2.5-32b", 2024, QWEN2_5_SOURCE, qwen2(64, 5120, 40, 8, 27_648, 152_064, RMS), 32_763_876_352),
    Entry("qwen2.5-72b", 2024, QWEN2_5_SOURCE, qwen2(80, 8192, 64, 8, 29_568, 152_064, RMS), 72_706_203_648),
    Entry("qwen3-0.6b", 2025, QWEN3_SOURCE, qwen3(28, 1024, 16, 3072, tied=True), 596_049_920),
    Entry("qwen3-1.7b", 2025, QWEN3_SOURCE, qwen3(28, 2048, 16, 6144, tied=True), 1_720_574_976),
    Entry("qwen3-4b", 2025, QWEN3_SOURCE, qwen3(36, 2560, 32, 9728, tied=True), 4_022_468_096),
    Entry("qwen3-8b", 2025, QWEN3_SOURCE, qwen3(36, 4096, 32, 12_288), 8_190_735_360),
    Entry("qwen3-14b", 2025, QWEN3_SOURCE, qwen3(40, 5120, 40, 17_408), 14_768_307_200),
    Entry("qwen3-32b", 2025, QWEN3_SOURCE, qwen3(64, 5120, 64, 25_600), 32_762_123_264),
    Entry(
        "internlm2-7b", 2024, INTERNLM2_SOURCE, INTERNLM2_7B, note="The name counts 7B; ours counts the embeddings too."
    ),
    Entry("smollm2-135m", 2025, SMOLLM2_SOURCE, smollm2(30, 576, 9, 1536, theta=1e5, kv_heads=3), 134_515_008),
    Entry("smollm2-360m", 2025, SMOLLM2_SOURCE, smollm2(32, 960, 15, 2560, theta=1e5, kv_heads=5), 361_821_120),
    Entry("smollm2-1.7b", 2025, SMOLLM2_SOURCE, smollm2(24, 2048, 32, 8192, theta=1.3e5, kv_heads=32), 1_711_376_384),
    Entry("smollm3-3b", 2025, SMOLLM3_SOURCE, SMOLLM3_3B, 3_075_098_624),
)
