"""Llama and the families that changed little of it: Mistral, Qwen, OLMo, Granite, Arcee."""

from __future__ import annotations

from lmcourse.models.interop.config_schema import ConfigKey, ConfigSchema, FixedKey
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
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
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layer_entries import LayerTypesEntry, RopeEntry
from lmcourse.models.interop.weight_layouts import Unchanged

LLAMA = Family(
    "llama",
    "LlamaForCausalLM",
    ConfigSchema((*LLAMA_SETTINGS, *ATTENTION_BIAS, MLP_BIAS, eps("rms_norm_eps", 1e-6), RopeEntry(), tied(False))),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

MISTRAL = Family(
    "mistral",
    "MistralForCausalLM",
    ConfigSchema(
        (*LLAMA_SETTINGS, eps("rms_norm_eps", 1e-6), RopeEntry(), tied(False), LayerTypesEntry(every=0, listed=False))
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

SWITCHED_WINDOW = LayerTypesEntry(switch_key="use_sliding_window")

QWEN2 = Family(
    "qwen2",
    "Qwen2ForCausalLM",
    ConfigSchema(
        (*LLAMA_SETTINGS, eps("rms_norm_eps", 1e-6), RopeEntry(), tied(False), SWITCHED_WINDOW),
        {"bias": True, "out_bias": False},
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

QWEN3 = Family(
    "qwen3",
    "Qwen3ForCausalLM",
    ConfigSchema(
        (*LLAMA_SETTINGS, *ATTENTION_BIAS, eps("rms_norm_eps", 1e-6), RopeEntry(), tied(False), SWITCHED_WINDOW),
        {"qk_norm": "head"},
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

OLMO = Family(
    "olmo",
    "OlmoForCausalLM",
    ConfigSchema(
        (*LLAMA_SETTINGS, *ATTENTION_BIAS, RopeEntry(), tied(False), FixedKey("clip_qkv", None)),
        {"norm": "layer", "norm_scale": False, "eps": 1e-5},
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

OLMO2 = Family(
    "olmo2",
    "Olmo2ForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SETTINGS,
            *ATTENTION_BIAS,
            eps("rms_norm_eps", 1e-5),
            RopeEntry(),
            tied(False),
            FixedKey("clip_qkv", None),
        ),
        {"placement": "output", "qk_norm": "width"},
    ),
    {
        **LLAMA_ATTENTION,
        **LLAMA_MLP,
        "blocks.*.attention.qk_transform.norm_q.norm": Unchanged("model.layers.*.self_attn.q_norm"),
        "blocks.*.attention.qk_transform.norm_k.norm": Unchanged("model.layers.*.self_attn.k_norm"),
        "blocks.*.attention.output_norm": Unchanged("model.layers.*.post_attention_layernorm"),
        "blocks.*.feed_forward.output_norm": Unchanged("model.layers.*.post_feedforward_layernorm"),
    },
    tied_copies=TIED_HEAD,
)

GRANITE = Family(
    "granite",
    "GraniteForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SETTINGS,
            *ATTENTION_BIAS,
            MLP_BIAS,
            eps("rms_norm_eps", 1e-6),
            RopeEntry(),
            tied(False),
            ConfigKey("embedding_multiplier", "embedding_scale", 1.0),
            ConfigKey("residual_multiplier", "residual_scale", 1.0),
            ConfigKey("attention_multiplier", "scale", 1.0, write_as=lambda scale, flat: scale or flat.d_head**-0.5),
            ConfigKey("logits_scaling", "logit_scale", 1.0, lambda s, known: 1 / s, lambda s, flat: 1 / s),
        )
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

ARCEE = Family(
    "arcee",
    "ArceeForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SIZES,
            activation("hidden_act", "relu2"),
            *ATTENTION_BIAS,
            MLP_BIAS,
            eps("rms_norm_eps", 1e-5),
            RopeEntry(),
            tied(False),
        ),
        {"gated": False},
    ),
    {**LLAMA_ATTENTION, **UNGATED_MLP, **PRE_NORMS},
    tied_copies=TIED_HEAD,
)
