"""OPT, and its 350M member: norms after the sum, and an embedding narrower than the model."""

from __future__ import annotations

from lmcourse.models.interop.families.common import (
    ALL_HEADS,
    ATTENTION_DROPOUT,
    activation,
    same_as,
    sizes,
    tied,
)
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layouts import Same, Stacked
from lmcourse.models.interop.settings import Clauses, Derived, Fixed, Setting

LAYER = "model.decoder.layers.*."

OPT = Family(
    "opt",
    "OPTForCausalLM",
    Clauses(
        (
            *sizes(),
            *ALL_HEADS,
            Setting("ffn_dim", "d_ff"),
            Setting("max_position_embeddings", "context"),
            Derived("max_positions", same_as("context")),
            activation("activation_function", "relu"),
            ATTENTION_DROPOUT,
            Setting("dropout", "dropout", 0.0),
            Fixed("layerdrop", 0.0),
            Setting(
                "do_layer_norm_before",
                "placement",
                "pre",
                lambda before, known: "pre" if before else "post",
                lambda placement, facts: placement == "pre",
            ),
            Setting(
                "_remove_final_layer_norm",
                "final_norm",
                lambda known: known["placement"] == "pre",
                lambda removed, known: known["placement"] == "pre" and not removed,
                lambda kept, facts: facts.placement == "pre" and not kept,
            ),
            Setting(
                "word_embed_proj_dim",
                "embedding_width",
                None,
                lambda width, known: None if width == known["d_model"] else width,
                lambda width, facts: width or facts.d_model,
            ),
            Setting("enable_bias", "bias", True),
            Derived("out_bias", same_as("bias")),
            Derived("ff_bias", same_as("bias")),
            Setting("layer_norm_elementwise_affine", "norm_scale", True),
            Derived("norm_bias", same_as("norm_scale")),
            tied(True),
        ),
        {"norm": "layer", "eps": 1e-5, "gated": False, "position_offset": 2},
    ),
    {
        "embedding.tokens": Same("model.decoder.embed_tokens"),
        "embedding.positions": Same("model.decoder.embed_positions"),
        "embedding.project": Same("model.decoder.project_in"),
        "blocks.*.attention.input_norm": Same(LAYER + "self_attn_layer_norm"),
        "blocks.*.attention.post_norm": Same(LAYER + "self_attn_layer_norm"),
        "blocks.*.attention.qkv": Stacked(*(f"{LAYER}self_attn.{x}_proj" for x in "qkv")),
        "blocks.*.attention.out": Same(LAYER + "self_attn.out_proj"),
        "blocks.*.feed_forward.input_norm": Same(LAYER + "final_layer_norm"),
        "blocks.*.feed_forward.post_norm": Same(LAYER + "final_layer_norm"),
        "blocks.*.feed_forward.up": Same(LAYER + "fc1"),
        "blocks.*.feed_forward.down": Same(LAYER + "fc2"),
        "norm": Same("model.decoder.final_layer_norm"),
        "head.project": Same("model.decoder.project_out"),
        "head.linear": Same("lm_head"),
    },
    copies={"lm_head.weight": "model.decoder.embed_tokens.weight"},
)
