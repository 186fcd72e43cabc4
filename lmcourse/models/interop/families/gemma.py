"""Gemma 1, 2 and 3."""

from __future__ import annotations

from lmcourse.models.interop.facts import Facts
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    LLAMA_ATTENTION,
    LLAMA_MLP,
    LLAMA_SETTINGS,
    LLAMA_WEIGHTS,
    TIED_HEAD,
    activation,
    eps,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layer_settings import Kinds, Rope
from lmcourse.models.interop.layouts import Same
from lmcourse.models.interop.settings import Clauses, Derived, Fixed, Setting


def _scalar(scale: float | None, facts: Facts) -> int | float:
    """What the scores are divided by the root of: a whole number, where rounding allows one."""
    exact = facts.d_head if scale is None else scale**-2
    return round(exact) if abs(exact - round(exact)) < 1e-6 else exact


SETTINGS = (
    *(clause for clause in LLAMA_SETTINGS if clause.keys != ("hidden_act",)),
    *ATTENTION_BIAS,
    eps("rms_norm_eps", 1e-6),
    tied(True),
    Derived("embedding_scale", lambda known: known["d_model"] ** 0.5),
    Fixed("use_bidirectional_attention", None, False),
)
QUERY_SCALE = Setting("query_pre_attn_scalar", "scale", 256**-0.5, lambda d, known: d**-0.5, _scalar)

DOUBLE_NORMS = {
    **LLAMA_ATTENTION,
    **LLAMA_MLP,
    "blocks.*.attention.input_norm": Same("model.layers.*.input_layernorm"),
    "blocks.*.attention.output_norm": Same("model.layers.*.post_attention_layernorm"),
    "blocks.*.feed_forward.input_norm": Same("model.layers.*.pre_feedforward_layernorm"),
    "blocks.*.feed_forward.output_norm": Same("model.layers.*.post_feedforward_layernorm"),
}

GEMMA = Family(
    "gemma",
    "GemmaForCausalLM",
    Clauses(
        (
            *SETTINGS,
            activation("hidden_act", "gelu_tanh"),
            Fixed("hidden_activation", None, "gelu_pytorch_tanh"),
            Rope(),
        ),
        {"unit_offset": True},
    ),
    LLAMA_WEIGHTS,
    copies=TIED_HEAD,
)

GEMMA2 = Family(
    "gemma2",
    "Gemma2ForCausalLM",
    Clauses(
        (
            *SETTINGS,
            activation("hidden_activation", "gelu_tanh"),
            Fixed("hidden_act", "gelu_pytorch_tanh"),  # a copy in old files
            Rope(),
            QUERY_SCALE,
            Kinds(every=2),
            Setting("attn_logit_softcapping", "soft_cap", None),
            Setting("final_logit_softcapping", "logit_cap", None),
        ),
        {"unit_offset": True, "placement": "double"},
    ),
    DOUBLE_NORMS,
    copies=TIED_HEAD,
)

GEMMA3 = Family(
    "gemma3_text",
    "Gemma3ForCausalLM",
    Clauses(
        (
            *SETTINGS,
            activation("hidden_activation", "gelu_tanh"),
            Rope(theta=1_000_000.0, local_key="rope_local_base_freq"),
            QUERY_SCALE,
            Kinds(every=6, pattern_key="sliding_window_pattern"),
            Fixed("attn_logit_softcapping", None),
            Setting("final_logit_softcapping", "logit_cap", None),
        ),
        {"unit_offset": True, "placement": "double", "qk_norm": "head"},
    ),
    DOUBLE_NORMS,
    copies=TIED_HEAD,
)
