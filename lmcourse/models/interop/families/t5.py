"""T5 and T5 v1.1, an encoder–decoder.

Their dropout is in more places than ours (inside the feed-forward layer, after the last norm); only training shows
the difference.
"""

from __future__ import annotations

from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.config_schema import (
    ConfigEntry,
    ConfigJson,
    FieldValues,
    config_key,
    derived_field,
    ignored_keys,
)
from lmcourse.models.interop.families.common import ACTIVATIONS, eps, same_as
from lmcourse.models.interop.family import HEAD, Family
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.weight_layouts import WeightLayout, concatenated
from lmcourse.nn.position_bias import RelativePositionBiasConfig

BUCKET_KEYS = ("relative_attention_num_buckets", "relative_attention_max_distance")


def _read_buckets(settings: ConfigJson, known: FieldValues) -> None:
    buckets, max_distance = (settings.get(key, value) for key, value in zip(BUCKET_KEYS, (32, 128), strict=True))
    known["position_bias"] = RelativePositionBiasConfig(buckets, max_distance)


def _write_buckets(flat: FlatConfig) -> dict[str, Any]:
    bias = flat.position_bias
    if not isinstance(bias, RelativePositionBiasConfig):
        return {}
    return dict(zip(BUCKET_KEYS, (bias.buckets, bias.max_distance), strict=True))


def _read_feed_forward(settings: ConfigJson, known: FieldValues) -> None:
    """Read activation and gate from one word: "relu", "gated-gelu" (GELU in its tanh form) or "gated-silu"."""
    word = settings.get("feed_forward_proj", "relu")
    gated, name = word.startswith("gated-"), word.removeprefix("gated-")
    if name not in ACTIVATIONS:
        raise CourseError(f"feed_forward_proj={word!r} is not supported; supported: 'relu', 'gated-gelu', …")
    known["gated"], known["activation"] = gated, "gelu_tanh" if word == "gated-gelu" else ACTIVATIONS[name]


def _write_feed_forward(flat: FlatConfig) -> dict[str, Any]:
    name = "gelu" if flat.gated and flat.activation == "gelu_tanh" else flat.activation
    return {"feed_forward_proj": f"gated-{name}" if flat.gated else name}


TIED_KEYS = ("tie_word_embeddings", "scale_decoder_outputs")
"""Keys for a tied output matrix with scaled logits, as in v1.0; v1.1 has neither. A file uses one of the keys."""


def _read_output(settings: ConfigJson, known: FieldValues) -> None:
    known["tied"] = all(settings.get(key, True) for key in TIED_KEYS)
    known["logit_scale"] = known["d_model"] ** -0.5 if known["tied"] else 1.0


def _stack(ours: str, theirs: str, feed_forward: int) -> dict[str, str | WeightLayout]:
    block = f"{theirs}block.*.layer."
    dense = f"{block}{feed_forward}.DenseReluDense."
    return {
        ours + "position_bias.table": f"{theirs}block.0.layer.0.SelfAttention.relative_attention_bias",
        ours + "blocks.*.attention.input_norm": f"{block}0.layer_norm",
        ours + "blocks.*.attention.qkv": concatenated(*(f"{block}0.SelfAttention.{x}" for x in "qkv")),
        ours + "blocks.*.attention.out": f"{block}0.SelfAttention.o",
        ours + "blocks.*.feed_forward.input_norm": f"{block}{feed_forward}.layer_norm",
        ours + "blocks.*.feed_forward.up": f"{dense}wi",
        ours + "blocks.*.feed_forward.gate_up": concatenated(f"{dense}wi_0", f"{dense}wi_1"),
        ours + "blocks.*.feed_forward.down": f"{dense}wo",
        ours + "norm": f"{theirs}final_layer_norm",
    }


T5 = Family(
    "t5",
    "T5ForConditionalGeneration",
    (
        config_key("vocab_size", "vocab_size"),
        config_key("d_model", "d_model"),
        config_key("num_layers", "encoder_layers"),
        config_key("num_decoder_layers", "layers", same_as("encoder_layers")),
        config_key("num_heads", "heads"),
        derived_field("kv_heads", same_as("heads")),
        config_key("d_kv", "d_head", 64),
        config_key("d_ff", "d_ff"),
        eps("layer_norm_epsilon", 1e-6),
        ConfigEntry(BUCKET_KEYS, _read_buckets, _write_buckets),
        ConfigEntry(("feed_forward_proj",), _read_feed_forward, _write_feed_forward),
        ConfigEntry(TIED_KEYS, _read_output, lambda flat: dict.fromkeys(TIED_KEYS, flat.tied)),
        config_key("dropout_rate", "dropout", 0.0),
        derived_field("attention_dropout", same_as("dropout")),
        derived_field("embedding_dropout", same_as("dropout")),
        config_key("n_positions", "context", None),
        ignored_keys("dense_act_fn", "is_gated_act"),
    ),
    {
        "encoder.embedding.tokens": "shared",
        **_stack("encoder.", "encoder.", 1),
        **_stack("", "decoder.", 2),
        "blocks.*.cross.input_norm": "decoder.block.*.layer.1.layer_norm",
        "blocks.*.cross.q": "decoder.block.*.layer.1.EncDecAttention.q",
        "blocks.*.cross.kv": concatenated(*(f"decoder.block.*.layer.1.EncDecAttention.{x}" for x in "kv")),
        "blocks.*.cross.out": "decoder.block.*.layer.1.EncDecAttention.o",
        "head.linear": "lm_head",
    },
    base_model_prefix="",
    copies=("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", HEAD),
    old_settings={
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    dropped_pattern=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    constants={"scale": 1.0},
)
