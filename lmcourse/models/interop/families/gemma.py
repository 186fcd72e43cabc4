"""Gemma 1, 2 and 3."""

from __future__ import annotations

from lmcourse.models.interop.config_schema import ConfigKey, ConfigSchema, DerivedField, FixedKey
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    LLAMA_ATTENTION,
    LLAMA_MLP,
    LLAMA_SIZES,
    LLAMA_WEIGHTS,
    TIED_HEAD,
    activation,
    eps,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import LayerTypesEntry, RopeEntry
from lmcourse.models.interop.weight_layouts import Unchanged


def _scalar(scale: float | None, flat: FlatConfig) -> int | float:
    """What the scores are divided by the root of: a whole number, where rounding allows one."""
    exact = flat.d_head if scale is None else scale**-2
    return round(exact) if abs(exact - round(exact)) < 1e-6 else exact


SETTINGS = (
    *LLAMA_SIZES,
    *ATTENTION_BIAS,
    eps("rms_norm_eps", 1e-6),
    tied(True),
    DerivedField("embedding_scale", lambda known: known["d_model"] ** 0.5),
    FixedKey("use_bidirectional_attention", None, False),
)
QUERY_SCALE = ConfigKey("query_pre_attn_scalar", "scale", 256**-0.5, lambda d, known: d**-0.5, _scalar)

DOUBLE_NORMS = {
    **LLAMA_ATTENTION,
    **LLAMA_MLP,
    "blocks.*.attention.input_norm": Unchanged("model.layers.*.input_layernorm"),
    "blocks.*.attention.output_norm": Unchanged("model.layers.*.post_attention_layernorm"),
    "blocks.*.feed_forward.input_norm": Unchanged("model.layers.*.pre_feedforward_layernorm"),
    "blocks.*.feed_forward.output_norm": Unchanged("model.layers.*.post_feedforward_layernorm"),
}

GEMMA = Family(
    "gemma",
    "GemmaForCausalLM",
    ConfigSchema(
        (
            *SETTINGS,
            activation("hidden_act", "gelu_tanh"),
            FixedKey("hidden_activation", None, "gelu_pytorch_tanh"),
            RopeEntry(),
        ),
        {"unit_offset": True},
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)

GEMMA2 = Family(
    "gemma2",
    "Gemma2ForCausalLM",
    ConfigSchema(
        (
            *SETTINGS,
            activation("hidden_activation", "gelu_tanh"),
            FixedKey("hidden_act", "gelu_pytorch_tanh"),  # a copy in old files
            RopeEntry(),
            QUERY_SCALE,
            LayerTypesEntry(every=2),
            ConfigKey("attn_logit_softcapping", "soft_cap", None),
            ConfigKey("final_logit_softcapping", "logit_cap", None),
        ),
        {"unit_offset": True, "placement": "double"},
    ),
    DOUBLE_NORMS,
    tied_copies=TIED_HEAD,
)

GEMMA3 = Family(
    "gemma3_text",
    "Gemma3ForCausalLM",
    ConfigSchema(
        (
            *SETTINGS,
            activation("hidden_activation", "gelu_tanh"),
            RopeEntry(theta=1_000_000.0, local_key="rope_local_base_freq"),
            QUERY_SCALE,
            LayerTypesEntry(every=6, pattern_key="sliding_window_pattern"),
            FixedKey("attn_logit_softcapping", None),
            ConfigKey("final_logit_softcapping", "logit_cap", None),
        ),
        {"unit_offset": True, "placement": "double", "qk_norm": "head"},
    ),
    DOUBLE_NORMS,
    tied_copies=TIED_HEAD,
)
