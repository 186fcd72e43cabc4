"""BLOOM, MPT and Falcon: positions as a bias, or as a rotation in Falcon's larger models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.models.interop.config_schema import (
    ConfigJson,
    ConfigKey,
    ConfigSchema,
    DerivedField,
    FieldValues,
    FixedKey,
    IgnoredKeys,
)
from lmcourse.models.interop.families.common import (
    ALL_HEADS,
    ATTENTION_DROPOUT,
    CONTEXT,
    EVEN_HEADS,
    activation,
    eps,
    four_widths,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig, ModelConfig, flatten
from lmcourse.models.interop.layer_entries import RopeEntry
from lmcourse.models.interop.weight_layouts import FusedGroupedQKV, Unchanged, WeightLayout
from lmcourse.nn.position_bias import AlibiConfig

BLOCK = "transformer.h.*."
BLOOM_WEIGHTS: Mapping[str, WeightLayout] = {
    "embedding.tokens": Unchanged("transformer.word_embeddings"),
    "blocks.*.attention.input_norm": Unchanged(BLOCK + "input_layernorm"),
    "blocks.*.attention.qkv": FusedGroupedQKV(BLOCK + "self_attention.query_key_value"),
    "blocks.*.attention.out": Unchanged(BLOCK + "self_attention.dense"),
    "blocks.*.feed_forward.input_norm": Unchanged(BLOCK + "post_attention_layernorm"),
    "blocks.*.feed_forward.up": Unchanged(BLOCK + "mlp.dense_h_to_4h"),
    "blocks.*.feed_forward.down": Unchanged(BLOCK + "mlp.dense_4h_to_h"),
    "norm": Unchanged("transformer.ln_f"),
    "head.linear": Unchanged("lm_head"),
}
"""Falcon's code grew out of BLOOM's, and so did its names."""
BLOOM_COPIES = {"lm_head.weight": "transformer.word_embeddings.weight"}

BLOOM = Family(
    "bloom",
    "BloomForCausalLM",
    ConfigSchema(
        (
            *sizes(layers="n_layer", heads="n_head"),
            *ALL_HEADS,
            DerivedField("d_ff", four_widths),
            ConfigKey("seq_length", "context", None),
            FixedKey("n_inner", None),
            ATTENTION_DROPOUT,
            ConfigKey("hidden_dropout", "dropout", 0.0),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            FixedKey("apply_residual_connection_post_layernorm", False),
        ),
        {
            "norm": "layer",
            "norm_bias": True,
            "embedding_norm": True,
            "position_bias": AlibiConfig(),
            "activation": "gelu_tanh",
            "gated": False,
            "bias": True,
            "out_bias": True,
            "ff_bias": True,
        },
    ),
    {**BLOOM_WEIGHTS, "embedding.norm": Unchanged("transformer.word_embeddings_layernorm")},
    base_model_prefix="transformer.",
    tied_copies=BLOOM_COPIES,
)


@dataclass(frozen=True)
class MptAttentionEntry:
    """MPT's settings within a setting. `transformers` has one attention for all of them, so most are fixed."""

    keys: tuple[str, ...] = ("attn_config",)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        given = settings.get("attn_config") or {}
        fixed = {"attn_type": "multihead_attention", "alibi": True, "alibi_bias_max": 8, "prefix_lm": False}
        for key, value in {**fixed, "qk_ln": False, "clip_qkv": None}.items():
            if given.get(key, value) != value:
                raise CourseError(f"attn_config.{key}={given[key]!r} is not supported; supported: {value!r}")
        known["scale"] = given.get("softmax_scale")
        known["attention_dropout"] = known["dropout"] = float(given.get("attn_pdrop", 0))

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        usual = flat.scale is None or flat.scale == flat.d_head**-0.5
        told = {} if usual else {"softmax_scale": flat.scale}
        return {"attn_config": {"alibi": True, "attn_pdrop": flat.attention_dropout or 0, **told}}


MPT = Family(
    "mpt",
    "MptForCausalLM",
    ConfigSchema(
        (
            *sizes("d_model", "n_layers", "n_heads"),
            *ALL_HEADS,
            DerivedField("d_ff", four_widths),
            FixedKey("expansion_ratio", 4),
            ConfigKey("max_seq_len", "context", None),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            MptAttentionEntry(),
            FixedKey("no_bias", True),
            FixedKey("logit_scale", None),
            IgnoredKeys("learned_pos_emb", "norm_type", "embedding_fraction", "emb_pdrop", "resid_pdrop", "verbose"),
        ),
        {"norm": "layer", "position_bias": AlibiConfig(), "activation": "gelu", "gated": False},
    ),
    {
        "embedding.tokens": Unchanged("transformer.wte"),
        "blocks.*.attention.input_norm": Unchanged("transformer.blocks.*.norm_1"),
        "blocks.*.attention.qkv": Unchanged("transformer.blocks.*.attn.Wqkv"),
        "blocks.*.attention.out": Unchanged("transformer.blocks.*.attn.out_proj"),
        "blocks.*.feed_forward.input_norm": Unchanged("transformer.blocks.*.norm_2"),
        "blocks.*.feed_forward.up": Unchanged("transformer.blocks.*.ffn.up_proj"),
        "blocks.*.feed_forward.down": Unchanged("transformer.blocks.*.ffn.down_proj"),
        "norm": Unchanged("transformer.norm_f"),
        "head.linear": Unchanged("lm_head"),
    },
    base_model_prefix="transformer.",
    tied_copies={"lm_head.weight": "transformer.wte.weight"},
)


@dataclass(frozen=True)
class FalconEntry:
    """Falcon's five keys for two flat fields: the number of key heads, and serial or parallel branches."""

    keys: tuple[str, ...] = (
        "new_decoder_architecture",
        "multi_query",
        "parallel_attn",
        "num_kv_heads",
        "num_ln_in_parallel_attn",
    )

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        heads = known["heads"]
        new = settings.get("new_decoder_architecture", False)
        if new:
            known["kv_heads"] = settings.get("num_kv_heads") or heads
        else:
            known["kv_heads"] = 1 if settings.get("multi_query", True) else heads
        two_norms = new and (settings.get("num_ln_in_parallel_attn") or 2) == 2
        parallel = "parallel_two_norms" if two_norms else "parallel"
        known["branches"] = parallel if settings.get("parallel_attn", True) else "serial"

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        two_norms = flat.branches == "parallel_two_norms"
        new = two_norms or flat.kv_heads not in (1, flat.heads)
        return {
            "new_decoder_architecture": new,
            "multi_query": flat.kv_heads == 1,
            "parallel_attn": flat.branches != "serial",
            "num_kv_heads": flat.kv_heads,
            "num_ln_in_parallel_attn": (2 if two_norms else 1) if new else None,
        }


def _two_norms(config: ModelConfig) -> Mapping[str, WeightLayout]:
    """Weight names of the norms where attention and feed-forward each have one."""
    if flatten(config).branches != "parallel_two_norms":
        return {}
    return {"blocks.*.norm": Unchanged(BLOCK + "ln_attn"), "blocks.*.norm_feed_forward": Unchanged(BLOCK + "ln_mlp")}


FALCON = Family(
    "falcon",
    "FalconForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            FalconEntry(),
            EVEN_HEADS,
            ConfigKey("ffn_hidden_size", "d_ff", four_widths),
            CONTEXT,
            activation("activation", "gelu"),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            ConfigKey("bias", "bias", False),
            DerivedField("out_bias", same_as("bias")),
            DerivedField("ff_bias", same_as("bias")),
            # Their dropouts stand where ours do not, and no published model has any.
            FixedKey("hidden_dropout", 0.0),
            FixedKey("attention_dropout", 0.0),
            RopeEntry(),
            ConfigKey(
                "alibi",
                "position_bias",
                None,
                lambda used, known: AlibiConfig(falcon_bf16=True) if used else None,
                lambda bias, flat: bias is not None,
            ),
            DerivedField("rotary", lambda known: None if known["position_bias"] else known["rotary"]),
        ),
        {"norm": "layer", "norm_bias": True, "gated": False},
    ),
    {**BLOOM_WEIGHTS, "blocks.*.norm": Unchanged(BLOCK + "input_layernorm")},
    extra_weights=_two_norms,
    base_model_prefix="transformer.",
    tied_copies=BLOOM_COPIES,
)
