"""Phi-3 and Phi-4-mini, GLM-4, StarCoder 2 and OLMo 3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmcourse.models.interop.config_schema import (
    ConfigJson,
    ConfigKey,
    ConfigSchema,
    DerivedField,
    FieldValues,
    FixedKey,
)
from lmcourse.models.interop.families.common import (
    ATTENTION_DROPOUT,
    CONTEXT,
    D_FF,
    EVEN_HEADS,
    KV_HEADS,
    LLAMA_ATTENTION,
    LLAMA_SETTINGS,
    LLAMA_WEIGHTS,
    PRE_NORMS,
    TIED_HEAD,
    activation,
    eps,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.families.llama import OLMO2
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import LayerTypesEntry, RopeEntry
from lmcourse.models.interop.rope_scalings import ORIGINAL_CONTEXT
from lmcourse.models.interop.weight_layouts import Unchanged

GATE_UP = {
    "blocks.*.feed_forward.gate_up": Unchanged("model.layers.*.mlp.gate_up_proj"),
    "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.down_proj"),
}
"""Gate above up in one matrix, as ours are."""


@dataclass(frozen=True)
class Phi3RopeEntry:
    """Phi-3's RoPE: the length before LongRoPE stands beside the context, and "su" is LongRoPE's name in old files."""

    rope: RopeEntry = field(default_factory=lambda: RopeEntry(fraction=1.0))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        return (*self.rope.keys, ORIGINAL_CONTEXT)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        original = settings.get(ORIGINAL_CONTEXT)
        told = dict(settings)
        for key in ("rope_scaling", "rope_parameters"):
            given = dict(settings.get(key) or {})
            kind = given.get("rope_type") or given.pop("type", None)
            if kind in ("su", "yarn", "longrope"):
                told[key] = {ORIGINAL_CONTEXT: original, **given, "rope_type": "longrope"}
        self.rope.read(told, known)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        scaling = None if flat.rotary is None else flat.rotary.scaling
        original = flat.context if scaling is None else scaling.original_context
        return {**self.rope.write(flat), ORIGINAL_CONTEXT: original}


PHI3 = Family(
    "phi3",
    "Phi3ForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "silu"),
            ATTENTION_DROPOUT,
            ConfigKey("resid_pdrop", "dropout", 0.0),
            # Never read by their code.
            FixedKey("embd_pdrop", 0.0),
            eps("rms_norm_eps", 1e-5),
            Phi3RopeEntry(),
            tied(False),
            LayerTypesEntry(every=0, listed=False),
            FixedKey("attention_bias", False),
        )
    ),
    {
        **LLAMA_ATTENTION,
        **PRE_NORMS,
        **GATE_UP,
        "blocks.*.attention.qkv": Unchanged("model.layers.*.self_attn.qkv_proj"),
    },
    tied_copies=TIED_HEAD,
)

GLM = Family(
    "glm",
    "GlmForCausalLM",
    ConfigSchema(
        (
            *LLAMA_SETTINGS,
            ConfigKey("attention_bias", "bias", True),
            eps("rms_norm_eps", 1.5625e-7),
            RopeEntry("interleaved", fraction=0.5),
            tied(False),
        ),
        {"out_bias": False},
    ),
    {**LLAMA_ATTENTION, **PRE_NORMS, **GATE_UP},
    tied_copies=TIED_HEAD,
)

STARCODER2 = Family(
    "starcoder2",
    "Starcoder2ForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "gelu_tanh"),
            ATTENTION_DROPOUT,
            ConfigKey("residual_dropout", "dropout", 0.0),
            ConfigKey("embedding_dropout", "embedding_dropout", 0.0),
            eps("norm_epsilon", 1e-5),
            ConfigKey("use_bias", "bias", True),
            DerivedField("out_bias", same_as("bias")),
            DerivedField("ff_bias", same_as("bias")),
            RopeEntry(),
            tied(True),
            LayerTypesEntry(every=0, listed=False),
            # Copies of what "model_type" says, in their first files.
            FixedKey("mlp_type", "default"),
            FixedKey("norm_type", "layer_norm"),
        ),
        {"norm": "layer", "norm_bias": True, "gated": False},
    ),
    {
        **LLAMA_WEIGHTS,
        "blocks.*.feed_forward.up": Unchanged("model.layers.*.mlp.c_fc"),
        "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.c_proj"),
    },
    tied_copies=TIED_HEAD,
)


OLMO3 = Family(
    "olmo3",
    "Olmo3ForCausalLM",
    ConfigSchema(
        (
            *(entry for entry in OLMO2.schema.entries if not isinstance(entry, RopeEntry)),
            RopeEntry(theta=500_000.0, local_key="", local_theta=500_000.0),
            LayerTypesEntry(every=4),
        ),
        OLMO2.schema.constants,
    ),
    OLMO2.weights,
    tied_copies=TIED_HEAD,
)
