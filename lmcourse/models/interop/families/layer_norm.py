"""Llama-like families with LayerNorm: Cohere (Command R), Cohere 2 (Command A), StableLM, Nemotron, Phi-2."""

from __future__ import annotations

from typing import Any

from lmcourse.models.interop.config_schema import ConfigKey, ConfigSchema, DerivedField, FieldValues, FixedKey
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_FF,
    EVEN_HEADS,
    KV_HEADS,
    LLAMA_ATTENTION,
    LLAMA_MLP,
    LLAMA_SETTINGS,
    LLAMA_SIZES,
    LLAMA_WEIGHTS,
    MLP_BIAS,
    PRE_NORMS,
    TIED_HEAD,
    UNGATED_MLP,
    activation,
    eps,
    sizes,
    tied,
)
from lmcourse.models.interop.families.smollm3_llama4 import unless_all
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layer_entries import LayerTypesEntry, RopeEntry
from lmcourse.models.interop.weight_layouts import PerHead, PerHeadModules, Unchanged

ONE_NORM = {"blocks.*.norm": Unchanged("model.layers.*.input_layernorm")}


def qk_norm_of_heads(key: str) -> ConfigKey:
    """A switch for norms on queries and keys with a scale for each head."""
    return ConfigKey(key, "qk_norm", None, lambda used, known: "heads" if used else None, lambda over, flat: bool(over))


COHERE_SETTINGS = (
    *LLAMA_SETTINGS,
    *ATTENTION_BIAS,
    eps("layer_norm_eps", 1e-5),
    ConfigKey("logit_scale", "logit_scale", 0.0625),
    tied(True),
)

COHERE = Family(
    "cohere",
    "CohereForCausalLM",
    ConfigSchema(
        (*COHERE_SETTINGS, RopeEntry("interleaved"), qk_norm_of_heads("use_qk_norm")),
        {"norm": "layer", "branches": "parallel"},
    ),
    {
        **LLAMA_ATTENTION,
        **LLAMA_MLP,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": PerHead("model.layers.*.self_attn.q_norm"),
        "blocks.*.attention.qk_transform.norm_k": PerHead("model.layers.*.self_attn.k_norm"),
    },
    tied_copies=TIED_HEAD,
)


def _local_ones(known: FieldValues) -> tuple[bool, ...]:
    return unless_all(known.get("local_layers") or (False,) * known["layers"])


COHERE2 = Family(
    "cohere2",
    "Cohere2ForCausalLM",
    ConfigSchema(
        (
            *COHERE_SETTINGS,
            RopeEntry("interleaved"),
            LayerTypesEntry(every=4, pattern_key="sliding_window_pattern"),
            DerivedField("rotary_layers", _local_ones),
        ),
        {"norm": "layer", "branches": "parallel"},
    ),
    {**LLAMA_ATTENTION, **LLAMA_MLP, **ONE_NORM},
    tied_copies=TIED_HEAD,
)


def parallel_switch(branches: str) -> ConfigKey:
    """A switch between serial and parallel branches."""

    def read(parallel: bool, known: FieldValues) -> Any:
        return branches if parallel else "serial"

    return ConfigKey("use_parallel_residual", "branches", "serial", read, lambda b, flat: b != "serial")


STABLELM = Family(
    "stablelm",
    "StableLmForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "silu"),
            ATTENTION_DROPOUT,
            FixedKey("hidden_dropout", 0.0),
            eps("layer_norm_eps", 1e-5),
            RopeEntry(fraction=0.25),
            tied(False),
            ConfigKey("use_qkv_bias", "bias", False),
            qk_norm_of_heads("qk_layernorm"),
            parallel_switch("parallel"),
        ),
        {"norm": "layer", "norm_bias": True},
    ),
    {
        **LLAMA_WEIGHTS,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": PerHeadModules(
            "model.layers.*.self_attn.q_layernorm.norms.{head}", "queries"
        ),
        "blocks.*.attention.qk_transform.norm_k": PerHeadModules(
            "model.layers.*.self_attn.k_layernorm.norms.{head}", "keys"
        ),
    },
    tied_copies=TIED_HEAD,
)

NEMOTRON = Family(
    "nemotron",
    "NemotronForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SIZES,
            activation("hidden_act", "relu2"),
            *ATTENTION_BIAS,
            MLP_BIAS,
            eps("norm_eps", 1e-5),
            RopeEntry(fraction=0.5),
            tied(False),
        ),
        {"norm": "layer", "norm_bias": True, "unit_offset": True, "gated": False},
    ),
    {**LLAMA_ATTENTION, **UNGATED_MLP, **PRE_NORMS},
    tied_copies=TIED_HEAD,
)

PHI = Family(
    "phi",
    "PhiForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "gelu_tanh", tanh="gelu_new"),
            ATTENTION_DROPOUT,
            ConfigKey("resid_pdrop", "dropout", 0.0),
            ConfigKey("embd_pdrop", "embedding_dropout", 0.0),
            eps("layer_norm_eps", 1e-5),
            RopeEntry(fraction=0.5),
            tied(False),
            FixedKey("qk_layernorm", False),
        ),
        {
            "norm": "layer",
            "norm_bias": True,
            "branches": "parallel",
            "gated": False,
            "bias": True,
            "out_bias": True,
            "ff_bias": True,
            "head_bias": True,
        },
    ),
    {
        **LLAMA_ATTENTION,
        **ONE_NORM,
        "blocks.*.attention.out": Unchanged("model.layers.*.self_attn.dense"),
        "blocks.*.feed_forward.up": Unchanged("model.layers.*.mlp.fc1"),
        "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.fc2"),
        "norm": Unchanged("model.final_layernorm"),
    },
)
