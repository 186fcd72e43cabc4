"""Families in which some layers do not rotate: SmolLM3 and Llama 4 (NoPE layers, Kazemnejad et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lmcourse.models.interop.config_schema import (
    ConfigJson,
    ConfigKey,
    ConfigSchema,
    FieldValues,
    FixedKey,
    IgnoredKeys,
)
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_HEAD,
    KV_HEADS,
    LLAMA_ATTENTION,
    LLAMA_SETTINGS,
    LLAMA_WEIGHTS,
    MLP_BIAS,
    PRE_NORMS,
    TIED_HEAD,
    activation,
    eps,
    sizes,
    tied,
)
from lmcourse.models.interop.families.llama import SWITCHED_WINDOW
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import LayerTypesEntry, RopeEntry
from lmcourse.models.interop.weight_layouts import Concatenated, Unchanged
from lmcourse.nn.attention_temperature import AttentionTemperatureConfig


def unless_all(rotary_layers: Iterable[Any]) -> tuple[bool, ...]:
    """A flag per layer, or none at all if all layers rotate, which is the usual."""
    flags = tuple(bool(flag) for flag in rotary_layers)
    return () if all(flags) else flags


def _every_fourth_not(known: FieldValues) -> tuple[bool, ...]:
    return unless_all((index + 1) % 4 for index in range(known["layers"]))


def _one_for_each_layer(rotary_layers: tuple[bool, ...], flat: FlatConfig) -> list[int]:
    return [int(flag) for flag in rotary_layers or (flat.rotary is not None,) * flat.layers]


# 1 for a layer that rotates, whatever the name says.
ROTARY_LAYERS = ConfigKey(
    "no_rope_layers", "rotary_layers", _every_fourth_not, lambda flags, known: unless_all(flags), _one_for_each_layer
)

SMOLLM3 = Family(
    "smollm3",
    "SmolLM3ForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SETTINGS,
            *ATTENTION_BIAS,
            MLP_BIAS,
            eps("rms_norm_eps", 1e-6),
            RopeEntry(theta=2_000_000.0),
            tied(True),
            ROTARY_LAYERS,
            SWITCHED_WINDOW,
        )
    ),
    LLAMA_WEIGHTS,
    tied_copies=TIED_HEAD,
)


@dataclass(frozen=True)
class AttentionTemperatureEntry:
    """Llama 4's attention temperature, on the layers that do not rotate."""

    keys: tuple[str, ...] = ("attn_temperature_tuning", "floor_scale", "attn_scale")

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        if settings.get("attn_temperature_tuning", True):
            floor_scale, slope = settings.get("floor_scale", 8192), settings.get("attn_scale", 0.1)
            known["temperature"] = AttentionTemperatureConfig(int(floor_scale), float(slope))

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        told = flat.temperature
        return (
            {"attn_temperature_tuning": False}
            if told is None
            else {"attn_temperature_tuning": True, "floor_scale": told.floor_scale, "attn_scale": told.slope}
        )


EXPERTS = IgnoredKeys(
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
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            D_HEAD,
            ConfigKey("intermediate_size_mlp", "d_ff"),
            CONTEXT,
            activation("hidden_act", "silu"),
            ATTENTION_DROPOUT,
            *ATTENTION_BIAS,
            eps("rms_norm_eps", 1e-5),
            RopeEntry("interleaved", theta=500_000.0),
            tied(False),
            ROTARY_LAYERS,
            LayerTypesEntry("attention_chunk_size", every=4, local_name="chunked_attention"),
            AttentionTemperatureEntry(),
            ConfigKey(
                "use_qk_norm",
                "qk_norm",
                "head",
                lambda used, known: "head" if used else None,
                lambda over, flat: over is not None,
            ),
            FixedKey("moe_layers", [], stated=True),
            EXPERTS,
        ),
        {"local_kind": "chunk", "qk_norm_after_rotary": True, "qk_norm_scale": False},
    ),
    {
        **LLAMA_ATTENTION,
        **PRE_NORMS,
        "blocks.*.feed_forward.gate_up": Concatenated(
            "model.layers.*.feed_forward.gate_proj", "model.layers.*.feed_forward.up_proj"
        ),
        "blocks.*.feed_forward.down": Unchanged("model.layers.*.feed_forward.down_proj"),
    },
    tied_copies=TIED_HEAD,
)
