"""The architectures of all published models, and what each chose. Everything comes from their configurations."""

from __future__ import annotations

import math
from collections import Counter

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models
from lmcourse.models.zoo.course import COURSE_SOURCE
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


WEIGHT_DECAY = {
    "gpt-1": ("0.01", "Radford et al. 2018, §4.1"),
    "bert": ("0.01", "Devlin et al. 2019, A.2"),
    "gpt-3": ("0.1", "Brown et al. 2020, appendix B"),
    "gpt-j-6b": ("0.1", "mesh-transformer-jax, configs/6B_roto_256.json"),
    "palm": ("lr²", "Chowdhery et al. 2022, §5"),
    "opt": ("0.1", "Zhang et al. 2022, §2.2"),
    "gpt-neox-20b": ("0.01", "gpt-neox, configs/20B.yml"),
    "bloom-176b": ("0.1", "Le Scao et al. 2022, Table 3"),
    "pythia": ("0.1", "EleutherAI/pythia, models/6.9B/pythia-6.9b.yml"),
    "falcon-7b": ("0.1", "tiiuae/falcon-7b, model card"),
    "falcon-40b": ("0.1", "tiiuae/falcon-40b, model card"),
    "falcon-180b": ("0.1", "tiiuae/falcon-180B, model card"),
    "falcon-2-11b": ("0.1", "tiiuae/falcon-11B, model card"),
    "llama-7b": ("0.1", "Touvron et al. 2023, LLaMA, §2.3"),
    "llama-13b": ("0.1", "Touvron et al. 2023, LLaMA, §2.3"),
    "llama-33b": ("0.1", "Touvron et al. 2023, LLaMA, §2.3"),
    "llama-65b": ("0.1", "Touvron et al. 2023, LLaMA, §2.3"),
    "llama-2": ("0.1", "Touvron et al. 2023, Llama 2, §2.2"),
    "deepseek": ("0.1", "DeepSeek-AI 2024, DeepSeek LLM, §2.3"),
    "olmo-1b": ("0.1", "allenai/OLMo, configs/official/OLMo-1B.yaml"),
    "olmo-7b": ("0.1", "Groeneveld et al. 2024, OLMo"),
    "olmo-2": ("0.1", "allenai/OLMo, configs/official-1124/OLMo2-7B-stage1.yaml"),
    "phi-1.5": ("0.1", "Li et al. 2023, phi-1.5, §2.3"),
    "phi-4": ("0.1", "Abdin et al. 2024, Phi-4, §3"),
    "stablelm-3b": ("0.1", "Stability-AI/StableLM, configs/stablelm-3b-4e1t.yml"),
}
"""Weight decay in pre-training, which no configuration contains, and its source: by the name of a model or a prefix of
names, of which the longest match counts."""


def weight_decay(name: str) -> str:
    """Return a model's published weight decay; "" if we found none."""
    fitting = [start for start in WEIGHT_DECAY if name == start or name.startswith(f"{start}-")]
    return WEIGHT_DECAY[max(fitting, key=len)][0] if fitting else ""


_ENGLISH = "gpt-1 gpt-2 gpt-3 gpt-j gpt-neox pythia opt mpt olmo phi-1.5 phi-2 smollm2 gemma-2b gemma-7b gemma-2"
_MANY = "bloom palm qwen2 qwen2.5 qwen3 gemma-3 llama-4 nemotron-4 command phi-4-mini"
LANGUAGES = {"mostly English": _ENGLISH.split(), "ten languages or more": _MANY.split()}
"""Families of models by their authors' statements about the text: Gemma 1 and 2 primarily English, BLOOM 46 natural
languages, PaLM more than 100, Qwen2 about 30, Qwen2.5 29, Qwen3 119, Gemma 3 more than 140, Llama 4 200, Nemotron-4 53,
Command 23, Phi-4-mini 23. Other families are in between, or do not say."""


def languages(name: str) -> str:
    """Return the key of LANGUAGES of a model, or "" if it is in neither group."""
    for kind, families in LANGUAGES.items():
        if any(name == family or name.startswith(f"{family}-") for family in families):
            return kind
    return ""


def position(config: TransformerConfig) -> str:
    """The position scheme of the model."""
    if config.embedding.positions != "none":
        return config.embedding.positions
    if config.position_bias is not None:
        return "ALiBi" if isinstance(config.position_bias, AlibiConfig) else "T5 buckets"
    return " + ".join(dict.fromkeys(_layer_position(layer.attention) for layer in config.layers))


def _layer_position(attention: AttentionConfig) -> str:
    if attention.rotary is None:
        return "none"
    return "RoPE" if attention.rotary.fraction == 1 else f"RoPE on {attention.rotary.fraction:.0%}"


def activation(feed_forward: FeedForwardConfig) -> str:
    """The feed-forward layer's non-linearity."""
    plain = UNGATED_NAMES[feed_forward.activation]
    return GATED_NAMES.get(feed_forward.activation, f"gated {plain}") if feed_forward.gated else plain


def published() -> list[Entry]:
    """The zoo without the course's own models."""
    return [entry for entry in all_models() if entry.source != COURSE_SOURCE]


CHOICES = (
    *("norm", "placement", "positions", "activation", "biases", "dropout"),
    *("key heads", "QK-norm", "tied", "vocabulary", "d / L"),
)
BANDS: dict[str, tuple[tuple[float, str], ...]] = {
    "vocabulary": ((40_000, "up to 40,000"), (110_000, "40,000 to 110,000"), (math.inf, "more than 110,000")),
    "d / L": ((75, "below 75"), (160.0001, "75 to 160"), (math.inf, "above 160")),
}
"""For numeric choices: the exclusive upper end of each band, and its name."""
PERIODS = ((2017, 2019), (2020, 2021), (2022, 2022), (2023, 2023), (2024, 2024), (2025, 2026))


def choices(choice: str = "positions") -> dict[str, dict[str, int]]:
    """Count the published models of each period by their choice. ValueError for an unknown choice."""
    if choice not in CHOICES:
        raise ValueError(f"there is no choice {choice!r}; choose from {', '.join(CHOICES)}")
    found: dict[str, dict[str, int]] = {}
    for first, last in PERIODS:
        name = str(first) if first == last else f"{first}–{last % 100}"
        found[name] = dict(Counter(chosen(each, choice) for each in published() if first <= each.year <= last))
    return found


def chosen(entry: Entry, choice: str) -> str:
    """Return what a model chose, such as "RoPE" for "positions"."""
    config = entry.decoder
    attention, feed_forward = config.layers[0].attention, config.layers[0].feed_forward
    if override := entry.survey_overrides.get(choice.removesuffix("s")):
        return override
    if choice == "norm":
        return NORM_NAMES[config.block.norm.kind]
    if choice == "placement":
        return config.block.placement
    if choice == "positions":
        where = position(config)
        return "RoPE" if "RoPE" in where else where
    if choice == "activation":
        return activation(feed_forward)
    if choice == "biases":
        return "some" if attention.bias or feed_forward.bias else "none"
    if choice == "dropout":
        return "some" if config.block.dropout else "none"
    if choice == "key heads":
        return {attention.heads: "one for each (MHA)", 1: "one for all (MQA)"}.get(attention.key_heads, "shared (GQA)")
    if choice in ("QK-norm", "tied"):
        return "yes" if (config.head.tied if choice == "tied" else attention.qk_norm) else "no"
    number = config.vocab_size if choice == "vocabulary" else config.d_model / len(config.layers)
    return next(name for end, name in BANDS[choice] if number < end)
