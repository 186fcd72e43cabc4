"""GPT-2, GPT-J and GPT-NeoX."""

from __future__ import annotations

from lmcourse.models.interop.config_schema import ConfigKey, ConfigSchema, DerivedField, FixedKey
from lmcourse.models.interop.families.common import (
    ALL_HEADS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_FF,
    activation,
    eps,
    four_widths,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.families.layer_norm import parallel_switch
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layer_entries import RopeEntry
from lmcourse.models.interop.weight_layouts import Concatenated, FusedGroupedQKV, Transposed, Unchanged
from lmcourse.nn.rotary import RotaryConfig

DROPOUTS = (
    ConfigKey("attn_pdrop", "attention_dropout", 0.0),
    ConfigKey("resid_pdrop", "dropout", 0.0),
    ConfigKey("embd_pdrop", "embedding_dropout", 0.0),
)
GPT_SETTINGS = (
    *sizes("n_embd", "n_layer", "n_head"),
    *ALL_HEADS,
    ConfigKey("n_inner", "d_ff", four_widths),
    ConfigKey("n_positions", "context"),
    activation("activation_function", "gelu_tanh", tanh="gelu_new"),
    *DROPOUTS,
    eps("layer_norm_epsilon", 1e-5),
)
BIASED = {"norm": "layer", "norm_bias": True, "gated": False, "ff_bias": True}

GPT2 = Family(
    "gpt2",
    "GPT2LMHeadModel",
    ConfigSchema(
        (
            *GPT_SETTINGS,
            DerivedField("max_positions", same_as("context")),
            tied(True),
            FixedKey("scale_attn_weights", True),
            FixedKey("scale_attn_by_inverse_layer_idx", False),
            FixedKey("add_cross_attention", False),
        ),
        {**BIASED, "bias": True, "out_bias": True},
    ),
    {
        "embedding.tokens": Unchanged("transformer.wte"),
        "embedding.positions": Unchanged("transformer.wpe"),
        "blocks.*.attention.input_norm": Unchanged("transformer.h.*.ln_1"),
        "blocks.*.attention.qkv": Transposed("transformer.h.*.attn.c_attn"),
        "blocks.*.attention.out": Transposed("transformer.h.*.attn.c_proj"),
        "blocks.*.feed_forward.input_norm": Unchanged("transformer.h.*.ln_2"),
        "blocks.*.feed_forward.up": Transposed("transformer.h.*.mlp.c_fc"),
        "blocks.*.feed_forward.down": Transposed("transformer.h.*.mlp.c_proj"),
        "norm": Unchanged("transformer.ln_f"),
        "head.linear": Unchanged("lm_head"),
    },
    base_model_prefix="transformer.",
    tied_copies={"lm_head.weight": "transformer.wte.weight"},
    dropped_pattern=r".*\.attn\.(masked_)?bias",
)

GPTJ = Family(
    "gptj",
    "GPTJForCausalLM",
    ConfigSchema(
        (
            *GPT_SETTINGS,
            ConfigKey(
                "rotary_dim",
                "rotary",
                RotaryConfig(layout="interleaved"),
                lambda width, known: RotaryConfig(fraction=width / known["d_head"], layout="interleaved"),
                lambda rotary, flat: rotary and rotary.width(flat.d_head),
            ),
            tied(False),
        ),
        {**BIASED, "branches": "parallel", "head_bias": True},
    ),
    {
        "embedding.tokens": Unchanged("transformer.wte"),
        "blocks.*.norm": Unchanged("transformer.h.*.ln_1"),
        "blocks.*.attention.qkv": Concatenated(*(f"transformer.h.*.attn.{x}_proj" for x in "qkv")),
        "blocks.*.attention.out": Unchanged("transformer.h.*.attn.out_proj"),
        "blocks.*.feed_forward.up": Unchanged("transformer.h.*.mlp.fc_in"),
        "blocks.*.feed_forward.down": Unchanged("transformer.h.*.mlp.fc_out"),
        "norm": Unchanged("transformer.ln_f"),
        "head.linear": Unchanged("lm_head"),
    },
    base_model_prefix="transformer.",
    dropped_pattern=r".*\.attn\.(bias|masked_bias|embed_positions)",
)

NEOX = Family(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            *ALL_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "gelu"),
            ATTENTION_DROPOUT,
            ConfigKey("hidden_dropout", "dropout", 0.0),
            DerivedField("embedding_dropout", same_as("dropout")),
            eps("layer_norm_eps", 1e-5),
            RopeEntry(theta_key="rotary_emb_base", fraction=0.25, fraction_key="rotary_pct"),
            tied(False),
            ConfigKey("attention_bias", "bias", True),
            DerivedField("out_bias", same_as("bias")),
            parallel_switch("parallel_two_norms"),
        ),
        BIASED,
    ),
    {
        "embedding.tokens": Unchanged("gpt_neox.embed_in"),
        "blocks.*.norm": Unchanged("gpt_neox.layers.*.input_layernorm"),
        "blocks.*.norm_feed_forward": Unchanged("gpt_neox.layers.*.post_attention_layernorm"),
        "blocks.*.attention.input_norm": Unchanged("gpt_neox.layers.*.input_layernorm"),
        "blocks.*.feed_forward.input_norm": Unchanged("gpt_neox.layers.*.post_attention_layernorm"),
        "blocks.*.attention.qkv": FusedGroupedQKV("gpt_neox.layers.*.attention.query_key_value"),
        "blocks.*.attention.out": Unchanged("gpt_neox.layers.*.attention.dense"),
        "blocks.*.feed_forward.up": Unchanged("gpt_neox.layers.*.mlp.dense_h_to_4h"),
        "blocks.*.feed_forward.down": Unchanged("gpt_neox.layers.*.mlp.dense_4h_to_h"),
        "norm": Unchanged("gpt_neox.final_layer_norm"),
        "head.linear": Unchanged("lm_head"),
    },
    base_model_prefix="gpt_neox.",
    tied_copies={"lm_head.weight": "gpt_neox.embed_in.weight"},
    old_names={"embed_out.weight": "lm_head.weight"},
    dropped_pattern=r".*\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
)
