"""T5 and T5 v1.1, an encoder–decoder.

Their dropout stands in more places than ours (inside the feed-forward layer, after the last norm); only training shows
the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.models.interop.config_schema import (
    ConfigJson,
    ConfigKey,
    ConfigSchema,
    DerivedField,
    FieldValues,
    IgnoredKeys,
)
from lmcourse.models.interop.families.common import ACTIVATIONS, eps, same_as
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.weight_layouts import Concatenated, Unchanged, WeightLayout
from lmcourse.nn.position_bias import RelativePositionBiasConfig


@dataclass(frozen=True)
class RelativePositionBiasEntry:
    """T5's relative position bias: number of buckets and largest distance."""

    keys: tuple[str, ...] = ("relative_attention_num_buckets", "relative_attention_max_distance")

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        buckets, max_distance = (settings.get(key, value) for key, value in zip(self.keys, (32, 128), strict=True))
        known["position_bias"] = RelativePositionBiasConfig(buckets, max_distance)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        bias = flat.position_bias
        return (
            dict(zip(self.keys, (bias.buckets, bias.max_distance), strict=True))
            if isinstance(bias, RelativePositionBiasConfig)
            else {}
        )


@dataclass(frozen=True)
class FeedForwardEntry:
    """One word for activation and gate: "relu", "gated-gelu" (with tanh, whatever the word says), "gated-silu"."""

    keys: tuple[str, ...] = ("feed_forward_proj",)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        word = settings.get("feed_forward_proj", "relu")
        gated, name = word.startswith("gated-"), word.removeprefix("gated-")
        if name not in ACTIVATIONS:
            raise CourseError(f"feed_forward_proj={word!r} is not supported; supported: 'relu', 'gated-gelu', …")
        known["gated"], known["activation"] = gated, "gelu_tanh" if word == "gated-gelu" else ACTIVATIONS[name]

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        name = "gelu" if flat.gated and flat.activation == "gelu_tanh" else flat.activation
        return {"feed_forward_proj": f"gated-{name}" if flat.gated else name}


@dataclass(frozen=True)
class OutputEntry:
    """v1.0 ties the output matrix to the embedding and scales for it; v1.1 does neither. Files say it in either key."""

    keys: tuple[str, ...] = ("tie_word_embeddings", "scale_decoder_outputs")

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        known["tied"] = all(settings.get(key, True) for key in self.keys)
        known["logit_scale"] = known["d_model"] ** -0.5 if known["tied"] else 1.0

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return dict.fromkeys(self.keys, flat.tied)


def _stack(ours: str, theirs: str, feed_forward: int) -> dict[str, WeightLayout]:
    block = f"{theirs}block.*.layer."
    dense = f"{block}{feed_forward}.DenseReluDense."
    return {
        ours + "position_bias.table": Unchanged(f"{theirs}block.0.layer.0.SelfAttention.relative_attention_bias"),
        ours + "blocks.*.attention.input_norm": Unchanged(f"{block}0.layer_norm"),
        ours + "blocks.*.attention.qkv": Concatenated(*(f"{block}0.SelfAttention.{x}" for x in "qkv")),
        ours + "blocks.*.attention.out": Unchanged(f"{block}0.SelfAttention.o"),
        ours + "blocks.*.feed_forward.input_norm": Unchanged(f"{block}{feed_forward}.layer_norm"),
        ours + "blocks.*.feed_forward.up": Unchanged(f"{dense}wi"),
        ours + "blocks.*.feed_forward.gate_up": Concatenated(f"{dense}wi_0", f"{dense}wi_1"),
        ours + "blocks.*.feed_forward.down": Unchanged(f"{dense}wo"),
        ours + "norm": Unchanged(f"{theirs}final_layer_norm"),
    }


T5 = Family(
    "t5",
    "T5ForConditionalGeneration",
    ConfigSchema(
        (
            ConfigKey("vocab_size", "vocab_size"),
            ConfigKey("d_model", "d_model"),
            ConfigKey("num_layers", "encoder_layers"),
            ConfigKey("num_decoder_layers", "layers", same_as("encoder_layers")),
            ConfigKey("num_heads", "heads"),
            DerivedField("kv_heads", same_as("heads")),
            ConfigKey("d_kv", "d_head", 64),
            ConfigKey("d_ff", "d_ff"),
            eps("layer_norm_epsilon", 1e-6),
            RelativePositionBiasEntry(),
            FeedForwardEntry(),
            OutputEntry(),
            ConfigKey("dropout_rate", "dropout", 0.0),
            DerivedField("attention_dropout", same_as("dropout")),
            DerivedField("embedding_dropout", same_as("dropout")),
            ConfigKey("n_positions", "context", None),
            IgnoredKeys("dense_act_fn", "is_gated_act"),
        ),
        {"scale": 1.0},
    ),
    {
        "encoder.embedding.tokens": Unchanged("shared"),
        **_stack("encoder.", "encoder.", 1),
        **_stack("", "decoder.", 2),
        "blocks.*.cross.input_norm": Unchanged("decoder.block.*.layer.1.layer_norm"),
        "blocks.*.cross.q": Unchanged("decoder.block.*.layer.1.EncDecAttention.q"),
        "blocks.*.cross.kv": Concatenated(*(f"decoder.block.*.layer.1.EncDecAttention.{x}" for x in "kv")),
        "blocks.*.cross.out": Unchanged("decoder.block.*.layer.1.EncDecAttention.o"),
        "head.linear": Unchanged("lm_head"),
    },
    base_model_prefix="",
    tied_copies=dict.fromkeys(
        ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight"
    ),
    dropped_pattern=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
