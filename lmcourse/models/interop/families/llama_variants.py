"""Families whose norms, blocks or activations differ from Llama's, from Gemma to nanochat."""

from __future__ import annotations

from lmcourse.models.interop.config_schema import (
    ConfigEntry,
    FieldValues,
    config_key,
    derived_field,
    fixed_key,
    ignored_keys,
    repeated_keys,
)
from lmcourse.models.interop.families.common import (
    ALL_BIASES,
    ATTENTION_BIAS,
    EVEN_SIZES,
    LLAMA_ATTENTION,
    LLAMA_MLP,
    LLAMA_SETTINGS,
    LLAMA_SIZES,
    LLAMA_WEIGHTS,
    MLP_BIAS,
    PRE_NORMS,
    UNGATED_MLP,
    activation,
    eps,
    parallel_switch,
    qk_norm_switch,
    same_as,
    tied,
    unless_all,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import layer_types_entry, rope_entry
from lmcourse.models.interop.weight_layouts import mirrored_qkv, per_head_modules, per_head_scale


def _scalar(scale: float | None, flat: FlatConfig) -> int | float:
    """Return query_pre_attn_scalar, whose square root divides the scores; an integer if rounding allows."""
    exact = flat.d_head if scale is None else scale**-2
    return round(exact) if abs(exact - round(exact)) < 1e-6 else exact


SETTINGS = (
    *LLAMA_SIZES,
    *ATTENTION_BIAS,
    eps("rms_norm_eps", 1e-6),
    tied(True),
    derived_field("embedding_scale", lambda known: known["d_model"] ** 0.5),
    fixed_key("use_bidirectional_attention", None, False),
)
QUERY_SCALE = config_key("query_pre_attn_scalar", "scale", 256**-0.5, lambda d, known: d**-0.5, _scalar)

DOUBLE_NORMS = {
    **LLAMA_ATTENTION,
    **LLAMA_MLP,
    "blocks.*.attention.input_norm": "model.layers.*.input_layernorm",
    "blocks.*.attention.output_norm": "model.layers.*.post_attention_layernorm",
    "blocks.*.feed_forward.input_norm": "model.layers.*.pre_feedforward_layernorm",
    "blocks.*.feed_forward.output_norm": "model.layers.*.post_feedforward_layernorm",
}

GEMMA = Family(
    "gemma",
    "GemmaForCausalLM",
    (
        *SETTINGS,
        activation("hidden_act", "gelu_tanh"),
        fixed_key("hidden_activation", None, "gelu_pytorch_tanh"),
        rope_entry(),
    ),
    LLAMA_WEIGHTS,
    constants={"unit_offset": True},
)

GEMMA2 = Family(
    "gemma2",
    "Gemma2ForCausalLM",
    (
        *SETTINGS,
        activation("hidden_activation", "gelu_tanh"),
        fixed_key("hidden_act", "gelu_pytorch_tanh"),  # old files repeat the activation under this key
        rope_entry(),
        QUERY_SCALE,
        layer_types_entry(every=2),
        config_key("attn_logit_softcapping", "soft_cap", None),
        config_key("final_logit_softcapping", "logit_cap", None),
    ),
    DOUBLE_NORMS,
    constants={"unit_offset": True, "placement": "double"},
)

GEMMA3 = Family(
    "gemma3_text",
    "Gemma3ForCausalLM",
    (
        *SETTINGS,
        activation("hidden_activation", "gelu_tanh"),
        rope_entry(theta=1_000_000.0, local_key="rope_local_base_freq"),
        QUERY_SCALE,
        layer_types_entry(every=6, pattern_key="sliding_window_pattern"),
        fixed_key("attn_logit_softcapping", None),
        config_key("final_logit_softcapping", "logit_cap", None),
    ),
    DOUBLE_NORMS,
    constants={"unit_offset": True, "placement": "double", "qk_norm": "head"},
)

ONE_NORM = {"blocks.*.norm": "model.layers.*.input_layernorm"}

COHERE_SETTINGS = (
    *LLAMA_SETTINGS,
    *ATTENTION_BIAS,
    eps("layer_norm_eps", 1e-5),
    config_key("logit_scale", "logit_scale", 0.0625),
    tied(True),
)

COHERE = Family(
    "cohere",
    "CohereForCausalLM",
    (*COHERE_SETTINGS, rope_entry("interleaved"), qk_norm_switch("use_qk_norm", "heads")),
    {
        **LLAMA_ATTENTION,
        **LLAMA_MLP,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": per_head_scale("model.layers.*.self_attn.q_norm"),
        "blocks.*.attention.qk_transform.norm_k": per_head_scale("model.layers.*.self_attn.k_norm"),
    },
    constants={"norm": "layer", "branches": "parallel"},
)


def _local_ones(known: FieldValues) -> tuple[bool, ...]:
    return unless_all(known.get("local_layers") or (False,) * known["layers"])


COHERE2 = Family(
    "cohere2",
    "Cohere2ForCausalLM",
    (
        *COHERE_SETTINGS,
        rope_entry("interleaved"),
        layer_types_entry(every=4, pattern_key="sliding_window_pattern"),
        derived_field("rotary_layers", _local_ones),
        repeated_keys(
            **{"order_of_interleaved_layers": "local_attn_first", "position_embedding_type": "rope_gptj"},
            **{"rotary_pct": 1.0, "use_gated_activation": True, "use_parallel_block": True},
        ),
        ignored_keys("use_parallel_embedding"),
    ),
    {**LLAMA_ATTENTION, **LLAMA_MLP, **ONE_NORM},
    old_settings={"layer_switch": "sliding_window_pattern", "use_embedding_sharing": "tie_word_embeddings"},
    constants={"norm": "layer", "branches": "parallel"},
)


STABLELM = Family(
    "stablelm",
    "StableLmForCausalLM",
    (
        *EVEN_SIZES,
        activation("hidden_act", "silu"),
        fixed_key("hidden_dropout", 0.0),
        eps("layer_norm_eps", 1e-5),
        rope_entry(fraction=0.25),
        tied(False),
        config_key("use_qkv_bias", "bias", False),
        qk_norm_switch("qk_layernorm", "heads"),
        parallel_switch("parallel"),
    ),
    {
        **LLAMA_WEIGHTS,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": per_head_modules(
            "model.layers.*.self_attn.q_layernorm.norms.{head}", lambda heads: heads.heads
        ),
        "blocks.*.attention.qk_transform.norm_k": per_head_modules(
            "model.layers.*.self_attn.k_layernorm.norms.{head}", lambda heads: heads.kv_heads
        ),
    },
    constants={"norm": "layer", "norm_bias": True},
)

NEMOTRON = Family(
    "nemotron",
    "NemotronForCausalLM",
    (
        *LLAMA_SIZES,
        activation("hidden_act", "relu2"),
        *ATTENTION_BIAS,
        MLP_BIAS,
        eps("norm_eps", 1e-5),
        rope_entry(fraction=0.5),
        tied(False),
        repeated_keys(kv_channels=same_as("d_head")),
    ),
    {**LLAMA_ATTENTION, **UNGATED_MLP, **PRE_NORMS},
    constants={"norm": "layer", "norm_bias": True, "unit_offset": True, "gated": False},
)

PHI = Family(
    "phi",
    "PhiForCausalLM",
    (
        *EVEN_SIZES,
        activation("hidden_act", "gelu_tanh", tanh="gelu_new"),
        config_key("resid_pdrop", "dropout", 0.0),
        config_key("embd_pdrop", "embedding_dropout", 0.0),
        eps("layer_norm_eps", 1e-5),
        rope_entry(fraction=0.5),
        tied(False),
        fixed_key("qk_layernorm", False),
    ),
    {
        **LLAMA_ATTENTION,
        **ONE_NORM,
        "blocks.*.attention.out": "model.layers.*.self_attn.dense",
        "blocks.*.feed_forward.up": "model.layers.*.mlp.fc1",
        "blocks.*.feed_forward.down": "model.layers.*.mlp.fc2",
        "norm": "model.final_layernorm",
    },
    constants={**ALL_BIASES, "branches": "parallel", "head_bias": True},
)

STARCODER2 = Family(
    "starcoder2",
    "Starcoder2ForCausalLM",
    (
        *EVEN_SIZES,
        activation("hidden_act", "gelu_tanh"),
        config_key("residual_dropout", "dropout", 0.0),
        config_key("embedding_dropout", "embedding_dropout", 0.0),
        eps("norm_epsilon", 1e-5),
        config_key("use_bias", "bias", True),
        derived_field("out_bias", same_as("bias")),
        derived_field("ff_bias", same_as("bias")),
        rope_entry(),
        tied(True),
        layer_types_entry(every=0, listed=False),
        repeated_keys(mlp_type="default", norm_type="layer_norm"),
    ),
    {
        **LLAMA_WEIGHTS,
        "blocks.*.feed_forward.up": "model.layers.*.mlp.c_fc",
        "blocks.*.feed_forward.down": "model.layers.*.mlp.c_proj",
    },
    constants={"norm": "layer", "norm_bias": True, "gated": False},
)


LOGIT_CAP = ConfigEntry(
    ("final_logit_softcapping",),
    # null means no cap; if the key is absent, the cap is 15.
    lambda settings, known: known.update(logit_cap=settings.get("final_logit_softcapping", 15.0)),
    lambda flat: {"final_logit_softcapping": flat.logit_cap},
)


NANOCHAT = Family(
    "nanochat",
    "NanoChatForCausalLM",
    (
        *EVEN_SIZES,
        activation("hidden_act", "relu2"),
        *ATTENTION_BIAS,
        eps("rms_norm_eps", 1e-6),
        rope_entry(),
        tied(False),
        LOGIT_CAP,
    ),
    {
        **LLAMA_ATTENTION,
        "blocks.*.attention.qkv": mirrored_qkv(*(f"model.layers.*.self_attn.{x}_proj" for x in "qkv")),
        "blocks.*.feed_forward.up": "model.layers.*.mlp.fc1",
        "blocks.*.feed_forward.down": "model.layers.*.mlp.fc2",
    },
    constants={
        **{"norm_scale": False, "embedding_norm": True, "gated": False},
        **{"qk_norm": "head", "qk_norm_scale": False, "qk_norm_after_rotary": True},
    },
)
