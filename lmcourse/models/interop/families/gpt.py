"""The families before Llama: GPT-2, GPT-J, GPT-NeoX and OPT; and BLOOM, MPT and Falcon."""

from __future__ import annotations

from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.config_schema import (
    ConfigEntry,
    ConfigJson,
    FieldValues,
    config_key,
    derived_field,
    fixed_key,
    ignored_keys,
)
from lmcourse.models.interop.families.common import (
    ALL_BIASES,
    ALL_HEADS,
    ATTENTION_DROPOUT,
    BIASED,
    CONTEXT,
    D_FF,
    EVEN_HEADS,
    activation,
    eps,
    four_widths,
    parallel_switch,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import FlatConfig, ModelConfig, flatten
from lmcourse.models.interop.layer_entries import rope_entry
from lmcourse.models.interop.weight_layouts import WeightTable, concatenated, fused_grouped_qkv, transposed
from lmcourse.nn.position_bias import AlibiConfig
from lmcourse.nn.rotary import RotaryConfig

DROPOUTS = (
    config_key("attn_pdrop", "attention_dropout", 0.0),
    config_key("resid_pdrop", "dropout", 0.0),
    config_key("embd_pdrop", "embedding_dropout", 0.0),
)
GPT_SETTINGS = (
    *sizes("n_embd", "n_layer", "n_head"),
    *ALL_HEADS,
    config_key("n_inner", "d_ff", four_widths),
    config_key("n_positions", "context"),
    activation("activation_function", "gelu_tanh", tanh="gelu_new"),
    *DROPOUTS,
    eps("layer_norm_epsilon", 1e-5),
)

GPT_NAMES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
"""The names that other families use for these settings, from `attribute_map` of transformers."""

GPT2 = Family(
    "gpt2",
    "GPT2LMHeadModel",
    (
        *GPT_SETTINGS,
        derived_field("max_positions", same_as("context")),
        tied(True),
        fixed_key("scale_attn_weights", True),
        fixed_key("scale_attn_by_inverse_layer_idx", False),
        fixed_key("add_cross_attention", False),
    ),
    {
        "embedding.tokens": "transformer.wte",
        "embedding.positions": "transformer.wpe",
        "blocks.*.attention.input_norm": "transformer.h.*.ln_1",
        "blocks.*.attention.qkv": transposed("transformer.h.*.attn.c_attn"),
        "blocks.*.attention.out": transposed("transformer.h.*.attn.c_proj"),
        "blocks.*.feed_forward.input_norm": "transformer.h.*.ln_2",
        "blocks.*.feed_forward.up": transposed("transformer.h.*.mlp.c_fc"),
        "blocks.*.feed_forward.down": transposed("transformer.h.*.mlp.c_proj"),
        "norm": "transformer.ln_f",
        "head.linear": "lm_head",
    },
    base_model_prefix="transformer.",
    old_settings=GPT_NAMES,
    dropped_pattern=r".*\.attn\.(masked_)?bias",
    constants=ALL_BIASES,
)

GPTJ = Family(
    "gptj",
    "GPTJForCausalLM",
    (
        *GPT_SETTINGS,
        config_key(
            "rotary_dim",
            "rotary",
            RotaryConfig(layout="interleaved"),
            lambda width, known: RotaryConfig(fraction=width / known["d_head"], layout="interleaved"),
            lambda rotary, flat: rotary and rotary.width(flat.d_head),
        ),
        tied(False),
        fixed_key("rotary", True),
        ignored_keys("scale_attn_weights"),
    ),
    {
        "embedding.tokens": "transformer.wte",
        "blocks.*.norm": "transformer.h.*.ln_1",
        "blocks.*.attention.qkv": concatenated(*(f"transformer.h.*.attn.{x}_proj" for x in "qkv")),
        "blocks.*.attention.out": "transformer.h.*.attn.out_proj",
        "blocks.*.feed_forward.up": "transformer.h.*.mlp.fc_in",
        "blocks.*.feed_forward.down": "transformer.h.*.mlp.fc_out",
        "norm": "transformer.ln_f",
        "head.linear": "lm_head",
    },
    base_model_prefix="transformer.",
    old_settings=GPT_NAMES,
    dropped_pattern=r".*\.attn\.(bias|masked_bias|embed_positions)",
    constants={**BIASED, "branches": "parallel", "head_bias": True},
)

NEOX = Family(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    (
        *sizes(),
        *ALL_HEADS,
        D_FF,
        CONTEXT,
        activation("hidden_act", "gelu"),
        ATTENTION_DROPOUT,
        config_key("hidden_dropout", "dropout", 0.0),
        derived_field("embedding_dropout", same_as("dropout")),
        eps("layer_norm_eps", 1e-5),
        rope_entry(theta_key="rotary_emb_base", fraction=0.25, fraction_key="rotary_pct"),
        tied(False),
        config_key("attention_bias", "bias", True),
        derived_field("out_bias", same_as("bias")),
        parallel_switch("parallel_two_norms"),
    ),
    {
        "embedding.tokens": "gpt_neox.embed_in",
        "blocks.*.norm": "gpt_neox.layers.*.input_layernorm",
        "blocks.*.norm_feed_forward": "gpt_neox.layers.*.post_attention_layernorm",
        "blocks.*.attention.input_norm": "gpt_neox.layers.*.input_layernorm",
        "blocks.*.feed_forward.input_norm": "gpt_neox.layers.*.post_attention_layernorm",
        "blocks.*.attention.qkv": fused_grouped_qkv("gpt_neox.layers.*.attention.query_key_value"),
        "blocks.*.attention.out": "gpt_neox.layers.*.attention.dense",
        "blocks.*.feed_forward.up": "gpt_neox.layers.*.mlp.dense_h_to_4h",
        "blocks.*.feed_forward.down": "gpt_neox.layers.*.mlp.dense_4h_to_h",
        "norm": "gpt_neox.final_layer_norm",
        "head.linear": "lm_head",
    },
    base_model_prefix="gpt_neox.",
    old_names={"embed_out.weight": "lm_head.weight"},
    dropped_pattern=r".*\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
    constants=BIASED,
)

LAYER = "model.decoder.layers.*."

OPT = Family(
    "opt",
    "OPTForCausalLM",
    (
        *sizes(),
        *ALL_HEADS,
        config_key("ffn_dim", "d_ff"),
        config_key("max_position_embeddings", "context"),
        derived_field("max_positions", same_as("context")),
        activation("activation_function", "relu"),
        ATTENTION_DROPOUT,
        config_key("dropout", "dropout", 0.0),
        fixed_key("layerdrop", 0.0),
        config_key(
            "do_layer_norm_before",
            "placement",
            "pre",
            lambda before, known: "pre" if before else "post",
            lambda placement, flat: placement == "pre",
        ),
        config_key(
            "_remove_final_layer_norm",
            "final_norm",
            lambda known: known["placement"] == "pre",
            lambda removed, known: known["placement"] == "pre" and not removed,
            lambda kept, flat: flat.placement == "pre" and not kept,
        ),
        config_key(
            "word_embed_proj_dim",
            "embedding_width",
            None,
            lambda width, known: None if width == known["d_model"] else width,
            lambda width, flat: width or flat.d_model,
        ),
        config_key("enable_bias", "bias", True),
        derived_field("out_bias", same_as("bias")),
        derived_field("ff_bias", same_as("bias")),
        config_key("layer_norm_elementwise_affine", "norm_scale", True),
        derived_field("norm_bias", same_as("norm_scale")),
        tied(True),
    ),
    {
        "embedding.tokens": "model.decoder.embed_tokens",
        "embedding.positions": "model.decoder.embed_positions",
        "embedding.project": "model.decoder.project_in",
        "blocks.*.attention.input_norm": LAYER + "self_attn_layer_norm",
        "blocks.*.attention.post_norm": LAYER + "self_attn_layer_norm",
        "blocks.*.attention.qkv": concatenated(*(f"{LAYER}self_attn.{x}_proj" for x in "qkv")),
        "blocks.*.attention.out": LAYER + "self_attn.out_proj",
        "blocks.*.feed_forward.input_norm": LAYER + "final_layer_norm",
        "blocks.*.feed_forward.post_norm": LAYER + "final_layer_norm",
        "blocks.*.feed_forward.up": LAYER + "fc1",
        "blocks.*.feed_forward.down": LAYER + "fc2",
        "norm": "model.decoder.final_layer_norm",
        "head.project": "model.decoder.project_out",
        "head.linear": "lm_head",
    },
    constants={"norm": "layer", "eps": 1e-5, "gated": False, "position_offset": 2},
)

BLOCK = "transformer.h.*."
BLOOM_WEIGHTS: WeightTable = {
    "embedding.tokens": "transformer.word_embeddings",
    "blocks.*.attention.input_norm": BLOCK + "input_layernorm",
    "blocks.*.attention.qkv": fused_grouped_qkv(BLOCK + "self_attention.query_key_value"),
    "blocks.*.attention.out": BLOCK + "self_attention.dense",
    "blocks.*.feed_forward.input_norm": BLOCK + "post_attention_layernorm",
    "blocks.*.feed_forward.up": BLOCK + "mlp.dense_h_to_4h",
    "blocks.*.feed_forward.down": BLOCK + "mlp.dense_4h_to_h",
    "norm": "transformer.ln_f",
    "head.linear": "lm_head",
}
"""Weight names of BLOOM, which Falcon shares because its code grew out of BLOOM's."""

BLOOM = Family(
    "bloom",
    "BloomForCausalLM",
    (
        *sizes(layers="n_layer", heads="n_head"),
        *ALL_HEADS,
        derived_field("d_ff", four_widths),
        config_key("seq_length", "context", None),
        fixed_key("n_inner", None),
        ATTENTION_DROPOUT,
        config_key("hidden_dropout", "dropout", 0.0),
        eps("layer_norm_epsilon", 1e-5),
        tied(True),
        fixed_key("apply_residual_connection_post_layernorm", False),
    ),
    {**BLOOM_WEIGHTS, "embedding.norm": "transformer.word_embeddings_layernorm"},
    base_model_prefix="transformer.",
    old_settings={"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    constants={**ALL_BIASES, "embedding_norm": True, "position_bias": AlibiConfig(), "activation": "gelu_tanh"},
)


def _read_mpt_attention(settings: ConfigJson, known: FieldValues) -> None:
    """Read MPT's nested attention settings. `transformers` supports only one value for most of them."""
    given = settings.get("attn_config") or {}
    fixed = {"attn_type": "multihead_attention", "alibi": True, "alibi_bias_max": 8, "prefix_lm": False}
    for key, value in {**fixed, "qk_ln": False, "clip_qkv": None}.items():
        if given.get(key, value) != value:
            raise CourseError(f"attn_config.{key}={given[key]!r} is not supported; supported: {value!r}")
    known["scale"] = given.get("softmax_scale")
    known["attention_dropout"] = known["dropout"] = float(given.get("attn_pdrop", 0))


def _write_mpt_attention(flat: FlatConfig) -> dict[str, Any]:
    usual = flat.scale is None or flat.scale == flat.d_head**-0.5
    told = {} if usual else {"softmax_scale": flat.scale}
    return {"attn_config": {"alibi": True, "attn_pdrop": flat.attention_dropout or 0, **told}}


MPT = Family(
    "mpt",
    "MptForCausalLM",
    (
        *sizes("d_model", "n_layers", "n_heads"),
        *ALL_HEADS,
        derived_field("d_ff", four_widths),
        fixed_key("expansion_ratio", 4),
        config_key("max_seq_len", "context", None),
        eps("layer_norm_epsilon", 1e-5),
        tied(True),
        ConfigEntry(("attn_config",), _read_mpt_attention, _write_mpt_attention),
        fixed_key("no_bias", True),
        fixed_key("logit_scale", None),
        ignored_keys("learned_pos_emb", "norm_type", "embedding_fraction", "emb_pdrop", "resid_pdrop", "verbose"),
    ),
    {
        "embedding.tokens": "transformer.wte",
        "blocks.*.attention.input_norm": "transformer.blocks.*.norm_1",
        "blocks.*.attention.qkv": "transformer.blocks.*.attn.Wqkv",
        "blocks.*.attention.out": "transformer.blocks.*.attn.out_proj",
        "blocks.*.feed_forward.input_norm": "transformer.blocks.*.norm_2",
        "blocks.*.feed_forward.up": "transformer.blocks.*.ffn.up_proj",
        "blocks.*.feed_forward.down": "transformer.blocks.*.ffn.down_proj",
        "norm": "transformer.norm_f",
        "head.linear": "lm_head",
    },
    base_model_prefix="transformer.",
    old_settings={"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    constants={"norm": "layer", "position_bias": AlibiConfig(), "activation": "gelu", "gated": False},
)


FALCON_KEYS = ("new_decoder_architecture", "multi_query", "parallel_attn", "num_kv_heads", "num_ln_in_parallel_attn")
"""Five keys that set two fields: the number of key heads, and serial or parallel branches."""


def _read_falcon(settings: ConfigJson, known: FieldValues) -> None:
    heads, new = known["heads"], settings.get("new_decoder_architecture", False)
    if new:
        known["kv_heads"] = settings.get("num_kv_heads") or heads
    else:
        known["kv_heads"] = 1 if settings.get("multi_query", True) else heads
    two_norms = new and (settings.get("num_ln_in_parallel_attn") or 2) == 2
    parallel = "parallel_two_norms" if two_norms else "parallel"
    known["branches"] = parallel if settings.get("parallel_attn", True) else "serial"


def _write_falcon(flat: FlatConfig) -> dict[str, Any]:
    two_norms = flat.branches == "parallel_two_norms"
    new = two_norms or flat.kv_heads not in (1, flat.heads)
    norms = (2 if two_norms else 1) if new else None
    return dict(
        zip(FALCON_KEYS, (new, flat.kv_heads == 1, flat.branches != "serial", flat.kv_heads, norms), strict=True)
    )


def _two_norms(config: ModelConfig) -> WeightTable:
    """Return the weight names of the norms if attention and feed-forward each have one."""
    if flatten(config).branches != "parallel_two_norms":
        return {}
    return {"blocks.*.norm": BLOCK + "ln_attn", "blocks.*.norm_feed_forward": BLOCK + "ln_mlp"}


FALCON = Family(
    "falcon",
    "FalconForCausalLM",
    (
        *sizes(),
        ConfigEntry(FALCON_KEYS, _read_falcon, _write_falcon),
        EVEN_HEADS,
        config_key("ffn_hidden_size", "d_ff", four_widths),
        CONTEXT,
        activation("activation", "gelu"),
        eps("layer_norm_epsilon", 1e-5),
        tied(True),
        config_key("bias", "bias", False),
        derived_field("out_bias", same_as("bias")),
        derived_field("ff_bias", same_as("bias")),
        # Falcon applies dropout in other places than our model, and no published Falcon uses any.
        fixed_key("hidden_dropout", 0.0),
        fixed_key("attention_dropout", 0.0),
        rope_entry(),
        config_key(
            "alibi",
            "position_bias",
            None,
            lambda used, known: AlibiConfig(falcon_bf16=True) if used else None,
            lambda bias, flat: bias is not None,
        ),
        derived_field("rotary", lambda known: None if known["position_bias"] else known["rotary"]),
    ),
    {**BLOOM_WEIGHTS, "blocks.*.norm": BLOCK + "input_layernorm"},
    extra_weights=_two_norms,
    base_model_prefix="transformer.",
    constants={"norm": "layer", "norm_bias": True, "gated": False},
)
