"""nanochat: what small models are quickly trained with (Karpathy, 2025).

Squared ReLU without a gate, norms without scales, one of them on the embedding and two on queries and keys after their
rotation, and capped logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmcourse.models.interop.config_schema import ConfigJson, ConfigSchema, FieldValues
from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_FF,
    EVEN_HEADS,
    KV_HEADS,
    LLAMA_ATTENTION,
    TIED_HEAD,
    activation,
    eps,
    sizes,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.layer_entries import RopeEntry
from lmcourse.models.interop.weight_layouts import MirroredQKV, Unchanged


@dataclass(frozen=True)
class LogitCapEntry:
    """The cap on logits: null is none, and without the key there is one."""

    key: str = "final_logit_softcapping"
    default: float = 15.0

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        return (self.key,)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far."""
        known["logit_cap"] = settings.get(self.key, self.default)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return {self.key: flat.logit_cap}


NANOCHAT = Family(
    "nanochat",
    "NanoChatForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "relu2"),
            ATTENTION_DROPOUT,
            *ATTENTION_BIAS,
            eps("rms_norm_eps", 1e-6),
            RopeEntry(),
            tied(False),
            LogitCapEntry(),
        ),
        {
            **{"norm_scale": False, "embedding_norm": True, "gated": False},
            **{"qk_norm": "head", "qk_norm_scale": False, "qk_norm_after_rotary": True},
        },
    ),
    {
        **LLAMA_ATTENTION,
        "blocks.*.attention.qkv": MirroredQKV(*(f"model.layers.*.self_attn.{x}_proj" for x in "qkv")),
        "blocks.*.feed_forward.up": Unchanged("model.layers.*.mlp.fc1"),
        "blocks.*.feed_forward.down": Unchanged("model.layers.*.mlp.fc2"),
    },
    tied_copies=TIED_HEAD,
)
