"""Llama and the families that differ little from it: Mistral, Qwen, OLMo, Granite, SmolLM3, Llama 4, Phi-3, GLM."""

from __future__ import annotations

from typing import Any

from lmcourse.models.interop.config_schema import (
    ConfigEntry,
    ConfigJson,
    FieldValues,
    config_key,
    fixed_key,
    ignored_keys,
    repeated_keys,
)
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_HEAD,
    EVEN_SIZES,
    KV_HEADS,
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
    qk_norm_switch,
    sizes,
    tied,
    unless_all,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import ORIGINAL_CONTEXT, layer_types_entry, rope_entry
from lmcourse.models.interop.weight_layouts import concatenated
from lmcourse.nn.attention import AttentionTemperatureConfig

LLAMA = Family(
    "llama",
    "LlamaForCausalLM",
    (
        *LLAMA_SETTINGS,
        *ATTENTION_BIAS,
        MLP_BIAS,
        eps("rms_norm_eps", 1e-6),
        rope_entry(),
        tied(False),
        repeated_keys(activation="swiglu"),  # Falcon 3
    ),
    LLAMA_WEIGHTS,
)

MISTRAL = Family(
    "mistral",
    "MistralForCausalLM",
    (*LLAMA_SETTINGS, eps("rms_norm_eps", 1e-6), rope_entry(), tied(False), layer_types_entry(every=0, listed=False)),
    LLAMA_WEIGHTS,
)

SWITCHED_WINDOW = layer_types_entry(switch_key="use_sliding_window")

QWEN2 = Family(
    "qwen2",
    "Qwen2ForCausalLM",
    (*LLAMA_SETTINGS, eps("rms_norm_eps", 1e-6), rope_entry(), tied(False), SWITCHED_WINDOW),
    LLAMA_WEIGHTS,
    constants={"bias": True, "out_bias": False},
)

QWEN3 = Family(
    "qwen3",
    "Qwen3ForCausalLM",
    (*LLAMA_SETTINGS, *ATTENTION_BIAS, eps("rms_norm_eps", 1e-6), rope_entry(), tied(False), SWITCHED_WINDOW),
    LLAMA_WEIGHTS,
    constants={"qk_norm": "head"},
)

OLMO = Family(
    "olmo",
    "OlmoForCausalLM",
    (*LLAMA_SETTINGS, *ATTENTION_BIAS, rope_entry(), tied(False), fixed_key("clip_qkv", None)),
    LLAMA_WEIGHTS,
    constants={"norm": "layer", "norm_scale": False, "eps": 1e-5},
)

OLMO2 = Family(
    "olmo2",
    "Olmo2ForCausalLM",
    (
        *LLAMA_SETTINGS,
        *ATTENTION_BIAS,
        eps("rms_norm_eps", 1e-5),
        rope_entry(),
        tied(False),
        fixed_key("clip_qkv", None),
    ),
    {
        **LLAMA_ATTENTION,
        **LLAMA_MLP,
        "blocks.*.attention.qk_transform.norm_q.norm": "model.layers.*.self_attn.q_norm",
        "blocks.*.attention.qk_transform.norm_k.norm": "model.layers.*.self_attn.k_norm",
        "blocks.*.attention.output_norm": "model.layers.*.post_attention_layernorm",
        "blocks.*.feed_forward.output_norm": "model.layers.*.post_feedforward_layernorm",
    },
    constants={"placement": "output", "qk_norm": "width"},
)

GRANITE = Family(
    "granite",
    "GraniteForCausalLM",
    (
        *LLAMA_SETTINGS,
        *ATTENTION_BIAS,
        MLP_BIAS,
        eps("rms_norm_eps", 1e-6),
        rope_entry(),
        tied(False),
        config_key("embedding_multiplier", "embedding_scale", 1.0),
        config_key("residual_multiplier", "residual_scale", 1.0),
        config_key("attention_multiplier", "scale", 1.0, write_as=lambda scale, flat: scale or flat.d_head**-0.5),
        config_key("logits_scaling", "logit_scale", 1.0, lambda s, known: 1 / s, lambda s, flat: 1 / s),
    ),
    LLAMA_WEIGHTS,
)

ARCEE = Family(
    "arcee",
    "ArceeForCausalLM",
    (
        *LLAMA_SIZES,
        activation("hidden_act", "relu2"),
        *ATTENTION_BIAS,
        MLP_BIAS,
        eps("rms_norm_eps", 1e-5),
        rope_entry(),
        tied(False),
    ),
    {**LLAMA_ATTENTION, **UNGATED_MLP, **PRE_NORMS},
    constants={"gated": False},
)


def _every_fourth_not(known: FieldValues) -> tuple[bool, ...]:
    return unless_all((index + 1) % 4 for index in range(known["layers"]))


def _one_for_each_layer(rotary_layers: tuple[bool, ...], flat: FlatConfig) -> list[int]:
    return [int(flag) for flag in rotary_layers or (flat.rotary is not None,) * flat.layers]


# Despite its name, "no_rope_layers" has a 1 for each layer that rotates.
ROTARY_LAYERS = config_key(
    "no_rope_layers", "rotary_layers", _every_fourth_not, lambda flags, known: unless_all(flags), _one_for_each_layer
)

SMOLLM3 = Family(
    "smollm3",
    "SmolLM3ForCausalLM",
    (
        *LLAMA_SETTINGS,
        *ATTENTION_BIAS,
        MLP_BIAS,
        eps("rms_norm_eps", 1e-6),
        rope_entry(theta=2_000_000.0),
        tied(True),
        ROTARY_LAYERS,
        SWITCHED_WINDOW,
    ),
    LLAMA_WEIGHTS,
)


def _read_temperature(settings: ConfigJson, known: FieldValues) -> None:
    """Read Llama 4's attention temperature, on the layers that do not rotate."""
    if settings.get("attn_temperature_tuning", True):
        floor_scale, slope = settings.get("floor_scale", 8192), settings.get("attn_scale", 0.1)
        known["temperature"] = AttentionTemperatureConfig(int(floor_scale), float(slope))


def _write_temperature(flat: FlatConfig) -> dict[str, Any]:
    told = flat.temperature
    numbers = {} if told is None else {"floor_scale": told.floor_scale, "attn_scale": told.slope}
    return {"attn_temperature_tuning": told is not None, **numbers}


EXPERTS = ignored_keys(
    "intermediate_size",
    "num_experts_per_tok",
    "num_local_experts",
    "interleave_moe_layer_step",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
)

LLAMA4 = Family(
    "llama4_text",
    "Llama4ForCausalLM",
    (
        *sizes(),
        KV_HEADS,
        D_HEAD,
        config_key("intermediate_size_mlp", "d_ff"),
        CONTEXT,
        activation("hidden_act", "silu"),
        ATTENTION_DROPOUT,
        *ATTENTION_BIAS,
        eps("rms_norm_eps", 1e-5),
        rope_entry("interleaved", theta=500_000.0),
        tied(False),
        ROTARY_LAYERS,
        layer_types_entry("attention_chunk_size", every=4, local_name="chunked_attention"),
        ConfigEntry(("attn_temperature_tuning", "floor_scale", "attn_scale"), _read_temperature, _write_temperature),
        qk_norm_switch("use_qk_norm", "head", default="head"),
        fixed_key("moe_layers", [], stated=True),
        EXPERTS,
    ),
    {
        **LLAMA_ATTENTION,
        **PRE_NORMS,
        "blocks.*.feed_forward.gate_up": concatenated(
            "model.layers.*.feed_forward.gate_proj", "model.layers.*.feed_forward.up_proj"
        ),
        "blocks.*.feed_forward.down": "model.layers.*.feed_forward.down_proj",
    },
    constants={"local_kind": "chunk", "qk_norm_after_rotary": True, "qk_norm_scale": False},
)

GATE_UP = {
    "blocks.*.feed_forward.gate_up": "model.layers.*.mlp.gate_up_proj",
    "blocks.*.feed_forward.down": "model.layers.*.mlp.down_proj",
}
"""Gate and up in one matrix, gate first, as in our model."""


PHI3_ROPE = rope_entry(fraction=1.0)


def _read_phi3_rope(settings: ConfigJson, known: FieldValues) -> None:
    """Read Phi-3's RoPE: the original context is a separate key, and old files call LongRoPE "su"."""
    original = settings.get(ORIGINAL_CONTEXT)
    told = dict(settings)
    for key in ("rope_scaling", "rope_parameters"):
        given = dict(settings.get(key) or {})
        kind = given.get("rope_type") or given.pop("type", None)
        if kind in ("su", "yarn", "longrope"):
            told[key] = {ORIGINAL_CONTEXT: original, **given, "rope_type": "longrope"}
    PHI3_ROPE.read(told, known)


def _write_phi3_rope(flat: FlatConfig) -> dict[str, Any]:
    scaling = None if flat.rotary is None else flat.rotary.scaling
    original = flat.context if scaling is None else scaling.original_context
    return {**PHI3_ROPE.write(flat), ORIGINAL_CONTEXT: original}


PHI3 = Family(
    "phi3",
    "Phi3ForCausalLM",
    (
        *EVEN_SIZES,
        activation("hidden_act", "silu"),
        config_key("resid_pdrop", "dropout", 0.0),
        # The code of Phi-3 never reads this setting.
        fixed_key("embd_pdrop", 0.0),
        eps("rms_norm_eps", 1e-5),
        ConfigEntry((*PHI3_ROPE.keys, ORIGINAL_CONTEXT), _read_phi3_rope, _write_phi3_rope),
        tied(False),
        layer_types_entry(every=0, listed=False),
        fixed_key("attention_bias", False),
        repeated_keys(full_attn_mod=1),
    ),
    {
        **LLAMA_ATTENTION,
        **PRE_NORMS,
        **GATE_UP,
        "blocks.*.attention.qkv": "model.layers.*.self_attn.qkv_proj",
    },
)

GLM = Family(
    "glm",
    "GlmForCausalLM",
    (
        *LLAMA_SETTINGS,
        config_key("attention_bias", "bias", True),
        eps("rms_norm_eps", 1.5625e-7),
        rope_entry("interleaved", fraction=0.5),
        tied(False),
    ),
    {**LLAMA_ATTENTION, **PRE_NORMS, **GATE_UP},
    constants={"out_bias": False},
)

OLMO3 = Family(
    "olmo3",
    "Olmo3ForCausalLM",
    (
        *(entry for entry in OLMO2.entries if "rope_parameters" not in entry.keys),
        rope_entry(theta=500_000.0, local_key="", local_theta=500_000.0),
        layer_types_entry(every=4),
    ),
    OLMO2.weights,
    constants=OLMO2.constants,
)
