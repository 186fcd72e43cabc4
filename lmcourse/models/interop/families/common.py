"""Config entries and weight names that many families share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.config_schema import REQUIRED, ConfigEntry, FieldValues, config_key, derived_field
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.weight_layouts import WeightTable, concatenated
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
"""Hugging Face's names of activations, and our names for them."""


def activation(key: str, default: Activation, tanh: str = "gelu_pytorch_tanh") -> ConfigEntry:
    """Entry for the activation of the feed-forward layer; `tanh` is the family's name for GELU with tanh."""

    def ours(value: str, known: FieldValues) -> Activation:
        if value not in ACTIVATIONS:
            raise CourseError(f"{key}={value!r} is not supported; supported: {', '.join(map(repr, ACTIVATIONS))}")
        return ACTIVATIONS[value]

    def theirs(value: Activation, flat: FlatConfig) -> str:
        return tanh if value == "gelu_tanh" else value

    return config_key(key, "activation", default, ours, theirs)


def sizes(
    width: str = "hidden_size", layers: str = "num_hidden_layers", heads: str = "num_attention_heads"
) -> tuple[ConfigEntry, ...]:
    """Entries for vocabulary, width, depth and heads."""
    return (
        config_key("vocab_size", "vocab_size"),
        config_key(width, "d_model"),
        config_key(layers, "layers"),
        config_key(heads, "heads"),
    )


def same_as(name: str) -> Any:
    """Return a default: the value of another field."""
    return lambda known: known[name]


def per_head(known: FieldValues) -> int:
    """Default: d_head = d_model / heads."""
    return int(known["d_model"] // known["heads"])


def four_widths(known: FieldValues) -> int:
    """Default: the feed-forward layer is four times as wide as the model."""
    return int(4 * known["d_model"])


KV_HEADS = config_key("num_key_value_heads", "kv_heads", same_as("heads"))
D_HEAD = config_key("head_dim", "d_head", per_head)
EVEN_HEADS = derived_field("d_head", per_head)
ALL_HEADS = (derived_field("kv_heads", same_as("heads")), EVEN_HEADS)
D_FF = config_key("intermediate_size", "d_ff")
CONTEXT = config_key("max_position_embeddings", "context", None)
ATTENTION_DROPOUT = config_key("attention_dropout", "attention_dropout", 0.0)
ATTENTION_BIAS = (config_key("attention_bias", "bias", False), derived_field("out_bias", same_as("bias")))
MLP_BIAS = config_key("mlp_bias", "ff_bias", False)


def tied(default: bool) -> ConfigEntry:
    """Entry for weight tying: the output matrix is the embedding."""
    return config_key("tie_word_embeddings", "tied", default)


def eps(key: str, default: Any = REQUIRED) -> ConfigEntry:
    """Entry for the norm's epsilon."""
    return config_key(key, "eps", default)


LLAMA_SIZES: tuple[ConfigEntry, ...] = (*sizes(), KV_HEADS, D_HEAD, D_FF, CONTEXT, ATTENTION_DROPOUT)
LLAMA_SETTINGS: tuple[ConfigEntry, ...] = (*LLAMA_SIZES, activation("hidden_act", "silu"))
"""Settings shared by Llama and its many descendants."""
EVEN_SIZES: tuple[ConfigEntry, ...] = (*sizes(), KV_HEADS, EVEN_HEADS, D_FF, CONTEXT, ATTENTION_DROPOUT)
"""The same sizes for families whose heads divide the width."""

BIASED = {"norm": "layer", "norm_bias": True, "gated": False, "ff_bias": True}
ALL_BIASES = {**BIASED, "bias": True, "out_bias": True}

LLAMA_ATTENTION: WeightTable = {
    "embedding.tokens": "model.embed_tokens",
    "blocks.*.attention.qkv": concatenated(*(f"model.layers.*.self_attn.{x}_proj" for x in "qkv")),
    "blocks.*.attention.out": "model.layers.*.self_attn.o_proj",
    "blocks.*.attention.qk_transform.norm_q": "model.layers.*.self_attn.q_norm",
    "blocks.*.attention.qk_transform.norm_k": "model.layers.*.self_attn.k_norm",
    "norm": "model.norm",
    "head.linear": "lm_head",
}
LLAMA_MLP: WeightTable = {
    "blocks.*.feed_forward.gate_up": concatenated("model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"),
    "blocks.*.feed_forward.down": "model.layers.*.mlp.down_proj",
}
UNGATED_MLP: WeightTable = {
    "blocks.*.feed_forward.up": "model.layers.*.mlp.up_proj",
    "blocks.*.feed_forward.down": "model.layers.*.mlp.down_proj",
}
PRE_NORMS: WeightTable = {
    "blocks.*.attention.input_norm": "model.layers.*.input_layernorm",
    "blocks.*.feed_forward.input_norm": "model.layers.*.post_attention_layernorm",
}
LLAMA_WEIGHTS: WeightTable = {**LLAMA_ATTENTION, **LLAMA_MLP, **PRE_NORMS}


def unless_all(rotary_layers: Iterable[Any]) -> tuple[bool, ...]:
    """Return one flag per layer, or no flags if all layers rotate, which is the usual case."""
    flags = tuple(bool(flag) for flag in rotary_layers)
    return () if all(flags) else flags


def parallel_switch(branches: str) -> ConfigEntry:
    """Entry for a switch between serial and parallel branches."""

    def read(parallel: bool, known: FieldValues) -> Any:
        return branches if parallel else "serial"

    return config_key("use_parallel_residual", "branches", "serial", read, lambda b, flat: b != "serial")


def qk_norm_switch(key: str, over: str, default: str | None = None) -> ConfigEntry:
    """Entry for a switch that turns on norms for queries and keys."""
    return config_key(
        key, "qk_norm", default, lambda used, known: over if used else None, lambda kept, flat: bool(kept)
    )
