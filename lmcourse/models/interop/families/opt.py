"""OPT, and its 350M member: post-norm, and an embedding narrower than the model."""

from __future__ import annotations

from lmcourse.models.interop.config_schema import ConfigKey, ConfigSchema, DerivedField, FixedKey
from lmcourse.models.interop.families.common import (
    ALL_HEADS,
    ATTENTION_DROPOUT,
    activation,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.weight_layouts import Concatenated, Unchanged

LAYER = "model.decoder.layers.*."

OPT = Family(
    "opt",
    "OPTForCausalLM",
    ConfigSchema(
        (
            *sizes(),
            *ALL_HEADS,
            ConfigKey("ffn_dim", "d_ff"),
            ConfigKey("max_position_embeddings", "context"),
            DerivedField("max_positions", same_as("context")),
            activation("activation_function", "relu"),
            ATTENTION_DROPOUT,
            ConfigKey("dropout", "dropout", 0.0),
            FixedKey("layerdrop", 0.0),
            ConfigKey(
                "do_layer_norm_before",
                "placement",
                "pre",
                lambda before, known: "pre" if before else "post",
                lambda placement, flat: placement == "pre",
            ),
            ConfigKey(
                "_remove_final_layer_norm",
                "final_norm",
                lambda known: known["placement"] == "pre",
                lambda removed, known: known["placement"] == "pre" and not removed,
                lambda kept, flat: flat.placement == "pre" and not kept,
            ),
            ConfigKey(
                "word_embed_proj_dim",
                "embedding_width",
                None,
                lambda width, known: None if width == known["d_model"] else width,
                lambda width, flat: width or flat.d_model,
            ),
            ConfigKey("enable_bias", "bias", True),
            DerivedField("out_bias", same_as("bias")),
            DerivedField("ff_bias", same_as("bias")),
            ConfigKey("layer_norm_elementwise_affine", "norm_scale", True),
            DerivedField("norm_bias", same_as("norm_scale")),
            tied(True),
        ),
        {"norm": "layer", "eps": 1e-5, "gated": False, "position_offset": 2},
    ),
    {
        "embedding.tokens": Unchanged("model.decoder.embed_tokens"),
        "embedding.positions": Unchanged("model.decoder.embed_positions"),
        "embedding.project": Unchanged("model.decoder.project_in"),
        "blocks.*.attention.input_norm": Unchanged(LAYER + "self_attn_layer_norm"),
        "blocks.*.attention.post_norm": Unchanged(LAYER + "self_attn_layer_norm"),
        "blocks.*.attention.qkv": Concatenated(*(f"{LAYER}self_attn.{x}_proj" for x in "qkv")),
        "blocks.*.attention.out": Unchanged(LAYER + "self_attn.out_proj"),
        "blocks.*.feed_forward.input_norm": Unchanged(LAYER + "final_layer_norm"),
        "blocks.*.feed_forward.post_norm": Unchanged(LAYER + "final_layer_norm"),
        "blocks.*.feed_forward.up": Unchanged(LAYER + "fc1"),
        "blocks.*.feed_forward.down": Unchanged(LAYER + "fc2"),
        "norm": Unchanged("model.decoder.final_layer_norm"),
        "head.project": Unchanged("model.decoder.project_out"),
        "head.linear": Unchanged("lm_head"),
    },
    tied_copies={"lm_head.weight": "model.decoder.embed_tokens.weight"},
)
