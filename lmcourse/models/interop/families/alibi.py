"""BLOOM, MPT and Falcon: positions as a bias, or as a rotation in Falcon's larger models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.models.interop.facts import Facts, ModelConfig, facts_of
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
from lmcourse.models.interop.layer_settings import Rope
from lmcourse.models.interop.layouts import Grouped, Layout, Same
from lmcourse.models.interop.settings import Clauses, Derived, Fixed, Ignored, Known, Setting, Settings
from lmcourse.nn.position_bias import AlibiConfig

BLOCK = "transformer.h.*."
BLOOM_WEIGHTS: Mapping[str, Layout] = {
    "embedding.tokens": Same("transformer.word_embeddings"),
    "blocks.*.attention.input_norm": Same(BLOCK + "input_layernorm"),
    "blocks.*.attention.qkv": Grouped(BLOCK + "self_attention.query_key_value"),
    "blocks.*.attention.out": Same(BLOCK + "self_attention.dense"),
    "blocks.*.feed_forward.input_norm": Same(BLOCK + "post_attention_layernorm"),
    "blocks.*.feed_forward.up": Same(BLOCK + "mlp.dense_h_to_4h"),
    "blocks.*.feed_forward.down": Same(BLOCK + "mlp.dense_4h_to_h"),
    "norm": Same("transformer.ln_f"),
    "head.linear": Same("lm_head"),
}
"""Falcon's code grew out of BLOOM's, and so did its names."""
BLOOM_COPIES = {"lm_head.weight": "transformer.word_embeddings.weight"}

BLOOM = Family(
    "bloom",
    "BloomForCausalLM",
    Clauses(
        (
            *sizes(layers="n_layer", heads="n_head"),
            *ALL_HEADS,
            Derived("d_ff", four_widths),
            Setting("seq_length", "context", None),
            Fixed("n_inner", None),
            ATTENTION_DROPOUT,
            Setting("hidden_dropout", "dropout", 0.0),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            Fixed("apply_residual_connection_post_layernorm", False),
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
    {**BLOOM_WEIGHTS, "embedding.norm": Same("transformer.word_embeddings_layernorm")},
    base="transformer.",
    copies=BLOOM_COPIES,
)


@dataclass(frozen=True)
class MptAttention:
    """MPT's settings within a setting. `transformers` has one attention for all of them, so most are fixed."""

    keys: tuple[str, ...] = ("attn_config",)

    def read(self, settings: Settings, known: Known) -> None:
        given = settings.get("attn_config") or {}
        fixed = {"attn_type": "multihead_attention", "alibi": True, "alibi_bias_max": 8, "prefix_lm": False}
        for key, value in {**fixed, "qk_ln": False, "clip_qkv": None}.items():
            if given.get(key, value) != value:
                raise CourseError(f"attn_config.{key}={given[key]!r} is not supported; supported: {value!r}")
        known["scale"] = given.get("softmax_scale")
        known["attention_dropout"] = known["dropout"] = float(given.get("attn_pdrop", 0))

    def write(self, facts: Facts) -> dict[str, Any]:
        usual = facts.scale is None or facts.scale == facts.d_head**-0.5
        told = {} if usual else {"softmax_scale": facts.scale}
        return {"attn_config": {"alibi": True, "attn_pdrop": facts.attention_dropout or 0, **told}}


MPT = Family(
    "mpt",
    "MptForCausalLM",
    Clauses(
        (
            *sizes("d_model", "n_layers", "n_heads"),
            *ALL_HEADS,
            Derived("d_ff", four_widths),
            Fixed("expansion_ratio", 4),
            Setting("max_seq_len", "context", None),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            MptAttention(),
            Fixed("no_bias", True),
            Fixed("logit_scale", None),
            Ignored("learned_pos_emb", "norm_type", "embedding_fraction", "emb_pdrop", "resid_pdrop", "verbose"),
        ),
        {"norm": "layer", "position_bias": AlibiConfig(), "activation": "gelu", "gated": False},
    ),
    {
        "embedding.tokens": Same("transformer.wte"),
        "blocks.*.attention.input_norm": Same("transformer.blocks.*.norm_1"),
        "blocks.*.attention.qkv": Same("transformer.blocks.*.attn.Wqkv"),
        "blocks.*.attention.out": Same("transformer.blocks.*.attn.out_proj"),
        "blocks.*.feed_forward.input_norm": Same("transformer.blocks.*.norm_2"),
        "blocks.*.feed_forward.up": Same("transformer.blocks.*.ffn.up_proj"),
        "blocks.*.feed_forward.down": Same("transformer.blocks.*.ffn.down_proj"),
        "norm": Same("transformer.norm_f"),
        "head.linear": Same("lm_head"),
    },
    base="transformer.",
    copies={"lm_head.weight": "transformer.wte.weight"},
)


@dataclass(frozen=True)
class FalconShape:
    """Three switches and two numbers for what is two facts: how many key heads, and how the branches lie."""

    keys: tuple[str, ...] = (
        "new_decoder_architecture",
        "multi_query",
        "parallel_attn",
        "num_kv_heads",
        "num_ln_in_parallel_attn",
    )

    def read(self, settings: Settings, known: Known) -> None:
        heads = known["heads"]
        new = settings.get("new_decoder_architecture", False)
        if new:
            known["kv_heads"] = settings.get("num_kv_heads") or heads
        else:
            known["kv_heads"] = 1 if settings.get("multi_query", True) else heads
        two_norms = new and (settings.get("num_ln_in_parallel_attn") or 2) == 2
        parallel = "parallel_two_norms" if two_norms else "parallel"
        known["branches"] = parallel if settings.get("parallel_attn", True) else "serial"

    def write(self, facts: Facts) -> dict[str, Any]:
        two_norms = facts.branches == "parallel_two_norms"
        new = two_norms or facts.kv_heads not in (1, facts.heads)
        return {
            "new_decoder_architecture": new,
            "multi_query": facts.kv_heads == 1,
            "parallel_attn": facts.branches != "serial",
            "num_kv_heads": facts.kv_heads,
            "num_ln_in_parallel_attn": (2 if two_norms else 1) if new else None,
        }


def _two_norms(config: ModelConfig) -> Mapping[str, Layout]:
    """The norms' other names, where attention and feed-forward each have one."""
    if facts_of(config).branches != "parallel_two_norms":
        return {}
    return {"blocks.*.norm": Same(BLOCK + "ln_attn"), "blocks.*.norm_feed_forward": Same(BLOCK + "ln_mlp")}


FALCON = Family(
    "falcon",
    "FalconForCausalLM",
    Clauses(
        (
            *sizes(),
            FalconShape(),
            EVEN_HEADS,
            Setting("ffn_hidden_size", "d_ff", four_widths),
            CONTEXT,
            activation("activation", "gelu"),
            eps("layer_norm_epsilon", 1e-5),
            tied(True),
            Setting("bias", "bias", False),
            Derived("out_bias", same_as("bias")),
            Derived("ff_bias", same_as("bias")),
            # Their dropouts stand where ours do not, and no published model has any.
            Fixed("hidden_dropout", 0.0),
            Fixed("attention_dropout", 0.0),
            Rope(),
            Setting(
                "alibi",
                "position_bias",
                None,
                lambda used, known: AlibiConfig(rounded=True) if used else None,
                lambda bias, facts: bias is not None,
            ),
            Derived("rotary", lambda known: None if known["position_bias"] else known["rotary"]),
        ),
        {"norm": "layer", "norm_bias": True, "gated": False},
    ),
    {**BLOOM_WEIGHTS, "blocks.*.norm": Same(BLOCK + "input_layernorm")},
    special=_two_norms,
    base="transformer.",
    copies=BLOOM_COPIES,
)
