"""The architectures of all published models, and what each chose. Everything comes from their configurations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lmcourse.accounting.parameters import count_parameters
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


@dataclass(frozen=True)
class SurveyRow:
    """One row of the table: a model, or an encoder–decoder's decoder.

    Attributes:
        name, year, parameters: the model, its year, and its counted parameters.
        layers, d_model: depth and width.
        norm: LayerNorm or RMSNorm.
        placement: "pre", "post", "double", "output".
        position: the position scheme; several if layers differ.
        attention: MHA, GQA or MQA, and the limit of what layers see, if there is one.
        activation: the activation of the feed-forward layer; …GLU if gated.
        ff_ratio: d_ff / d_model.
        head_ratio: heads · d_head / d_model.
        vocabulary, context: tokens in the vocabulary, and in the longest text of pre-training; None without limit.
        sharing: query heads per key head.
        qk_norm: whether queries and keys are normalised.
        caps: soft caps on attention's scores and on logits, and the factor of a z-loss.
        biases: the layers with biases: "attention", "feed-forward", "both" or "none".
        tied: whether the head is the embedding.
        weight_decay: the weight decay in pre-training; "–" where we found no published value.
        dropout: the dropout on the branches in pre-training.
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
    vocabulary: int
    context: int | None
    sharing: int
    qk_norm: bool
    caps: str
    biases: str
    tied: bool
    weight_decay: str
    dropout: float

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
        vocabulary=config.vocab_size,
        context=config.context,
        sharing=attention.heads // attention.key_heads,
        qk_norm=attention.qk_norm is not None,
        caps=caps(entry),
        biases=biases(attention, feed_forward),
        tied=config.head.tied,
        weight_decay=recipe(entry.name).weight_decay,
        dropout=config.block.dropout,
    )
    return replace(row, **entry.survey_overrides)  # type: ignore[arg-type]  # the keys are those of text columns


@dataclass(frozen=True)
class Recipe:
    """Training settings that a configuration does not contain: published values and their source."""

    weight_decay: str = "–"
    z_loss: str = ""
    source: str = ""


RECIPES = {
    "gpt-1": Recipe("0.01", source="Radford et al. 2018, §4.1"),
    "bert": Recipe("0.01", source="Devlin et al. 2019, A.2"),
    "gpt-3": Recipe("0.1", source="Brown et al. 2020, appendix B"),
    "gpt-j-6b": Recipe("0.1", source="mesh-transformer-jax, configs/6B_roto_256.json"),
    "palm": Recipe("lr²", "10⁻⁴", "Chowdhery et al. 2022, §5"),
    "opt": Recipe("0.1", source="Zhang et al. 2022, §2.2"),
    "gpt-neox-20b": Recipe("0.01", source="gpt-neox, configs/20B.yml"),
    "bloom-176b": Recipe("0.1", source="Le Scao et al. 2022, Table 3"),
    "pythia": Recipe("0.1", source="EleutherAI/pythia, models/6.9B/pythia-6.9b.yml"),
    "falcon-7b": Recipe("0.1", "10⁻⁴", "tiiuae/falcon-7b, model card"),
    "falcon-40b": Recipe("0.1", "10⁻⁴", "tiiuae/falcon-40b, model card"),
    "falcon-180b": Recipe("0.1", "10⁻⁴", "tiiuae/falcon-180B, model card"),
    "falcon-2-11b": Recipe("0.1", "10⁻⁴", "tiiuae/falcon-11B, model card"),
    "llama-7b": Recipe("0.1", source="Touvron et al. 2023, LLaMA, §2.3"),
    "llama-13b": Recipe("0.1", source="Touvron et al. 2023, LLaMA, §2.3"),
    "llama-33b": Recipe("0.1", source="Touvron et al. 2023, LLaMA, §2.3"),
    "llama-65b": Recipe("0.1", source="Touvron et al. 2023, LLaMA, §2.3"),
    "llama-2": Recipe("0.1", source="Touvron et al. 2023, Llama 2, §2.2"),
    "deepseek": Recipe("0.1", source="DeepSeek-AI 2024, DeepSeek LLM, §2.3"),
    "olmo-1b": Recipe("0.1", source="allenai/OLMo, configs/official/OLMo-1B.yaml"),
    "olmo-7b": Recipe("0.1", source="Groeneveld et al. 2024, OLMo"),
    "olmo-2": Recipe("0.1", "10⁻⁵", "allenai/OLMo, configs/official-1124/OLMo2-7B-stage1.yaml"),
    "phi-1.5": Recipe("0.1", source="Li et al. 2023, phi-1.5, §2.3"),
    "phi-4": Recipe("0.1", source="Abdin et al. 2024, Phi-4, §3"),
    "stablelm-3b": Recipe("0.1", source="Stability-AI/StableLM, configs/stablelm-3b-4e1t.yml"),
}
"""Recipes by the name of a model or a prefix of names; the longest match counts."""


def recipe(name: str) -> Recipe:
    """Return the known training settings of a model."""
    fitting = [start for start in RECIPES if name == start or name.startswith(f"{start}-")]
    return RECIPES[max(fitting, key=len)] if fitting else Recipe()


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


def caps(entry: Entry) -> str:
    """Return the soft caps and the z-loss that keep scores and logits small."""
    config = entry.decoder
    found = {
        "scores ±{:g}": config.layers[0].attention.soft_cap,
        "logits ±{:g}": config.head.soft_cap,
    }
    named = [text.format(cap) for text, cap in found.items() if cap is not None]
    z_loss = recipe(entry.name).z_loss
    return ", ".join([*named, *([f"z-loss {z_loss}"] if z_loss else [])]) or "–"


def biases(attention: AttentionConfig, feed_forward: FeedForwardConfig) -> str:
    """Name the layers that have biases; "q, k, v" if only these projections have them."""
    inside = "both" if feed_forward.bias else "attention"
    if attention.bias and not attention.out_bias:
        return "q, k, v" + ", feed-forward" * feed_forward.bias
    return inside if attention.bias else "feed-forward" if feed_forward.bias else "none"


def position(config: TransformerConfig) -> str:
    """The position scheme of the model."""
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
    """The number of heads that share a key, and the limit of what the layers see."""
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
        found[name] = dict(Counter(_chosen(each, choice) for each in published() if first <= each.year <= last))
    return found


def _chosen(entry: Entry, choice: str) -> str:
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
