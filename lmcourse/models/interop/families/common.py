"""Config entries and weight names that many families share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.models.interop.config_schema import REQUIRED, ConfigEntry, ConfigKey, DerivedField, FieldValues
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.weight_layouts import Concatenated, Unchanged, WeightLayout
from lmcourse.nn.feed_forward import Activation

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}
"""Their names and ours."""


def activation(key: str, default: Activation, tanh: str = "gelu_pytorch_tanh") -> ConfigKey:
    """The setting for the feed-forward layer's activation; `tanh` is what the family calls GELU with tanh."""

    def ours(value: str, known: FieldValues) -> Activation:
        if value not in ACTIVATIONS:
            raise CourseError(f"{key}={value!r} is not supported; supported: {', '.join(map(repr, ACTIVATIONS))}")
        return ACTIVATIONS[value]

    def theirs(value: Activation, flat: FlatConfig) -> str:
        return tanh if value == "gelu_tanh" else value

    return ConfigKey(key, "activation", default, ours, theirs)


def sizes(
    width: str = "hidden_size", layers: str = "num_hidden_layers", heads: str = "num_attention_heads"
) -> tuple[ConfigEntry, ...]:
    """Vocabulary, width, depth and heads."""
    return (
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey(width, "d_model"),
        ConfigKey(layers, "layers"),
        ConfigKey(heads, "heads"),
    )


def same_as(name: str) -> Any:
    """A default: the value of another field."""
    return lambda known: known[name]


def per_head(known: FieldValues) -> int:
    """A default: d_head = d_model / heads."""
    return int(known["d_model"] // known["heads"])


def four_widths(known: FieldValues) -> int:
    """A default: the feed-forward layer is four times as wide as the model."""
    return int(4 * known["d_model"])


KV_HEADS = ConfigKey("num_key_value_heads", "kv_heads", same_as("heads"))
D_HEAD = ConfigKey("head_dim", "d_head", per_head)
EVEN_HEADS = DerivedField("d_head", per_head)
ALL_HEADS = (DerivedField("kv_heads", same_as("heads")), EVEN_HEADS)
D_FF = ConfigKey("intermediate_size", "d_ff")
CONTEXT = ConfigKey("max_position_embeddings", "context", None)
ATTENTION_DROPOUT = ConfigKey("attention_dropout", "attention_dropout", 0.0)
ATTENTION_BIAS = (ConfigKey("attention_bias", "bias", False), DerivedField("out_bias", same_as("bias")))
MLP_BIAS = ConfigKey("mlp_bias", "ff_bias", False)


def tied(default: bool) -> ConfigKey:
    """Whether the output matrix is the embedding."""
    return ConfigKey("tie_word_embeddings", "tied", default)


def eps(key: str, default: Any = REQUIRED) -> ConfigKey:
    """The norm's epsilon."""
    return ConfigKey(key, "eps", default)


LLAMA_SIZES: tuple[ConfigEntry, ...] = (*sizes(), KV_HEADS, D_HEAD, D_FF, CONTEXT, ATTENTION_DROPOUT)
LLAMA_SETTINGS: tuple[ConfigEntry, ...] = (*LLAMA_SIZES, activation("hidden_act", "silu"))
"""What the many descendants of Llama have in common."""

LLAMA_ATTENTION: Mapping[str, WeightLayout] = {
    "embedding.tokens": Unchanged("model.embed_tokens"),
    "blocks.*.attention.qkv": Concatenated(*(f"model.layers.*.self_attn.{x}_proj" for x in "qkv")),
    "blocks.*.attention.out": Unchanged("model.layers.*.self_attn.o_proj"),
    "blocks.*.attention.qk_transform.norm_q": Unchanged("model.layers.*.self_attn.q_norm"),
    "blocks.*.attention.qk_transform.norm_k": Unchanged("model.layers.*.self_attn.k_norm"),
    "norm": Unchanged("model.norm"),
    "head.linear": Unchanged("lm_head"),
}
LLAMA_MLP: Mapping[str, WeightLayout] = {
    "blocks.*.feed_forward.gate_up": Concatenated("model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"),
    "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.down_proj"),
}
UNGATED_MLP: Mapping[str, WeightLayout] = {
    "blocks.*.feed_forward.up": Unchanged("model.layers.*.mlp.up_proj"),
    "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.down_proj"),
}
PRE_NORMS: Mapping[str, WeightLayout] = {
    "blocks.*.attention.input_norm": Unchanged("model.layers.*.input_layernorm"),
    "blocks.*.feed_forward.input_norm": Unchanged("model.layers.*.post_attention_layernorm"),
}
LLAMA_WEIGHTS: Mapping[str, WeightLayout] = {**LLAMA_ATTENTION, **LLAMA_MLP, **PRE_NORMS}
TIED_HEAD = {"lm_head.weight": "model.embed_tokens.weight"}
