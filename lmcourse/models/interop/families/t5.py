"""T5 and T5 v1.1, an encoder–decoder.

Their dropout stands in more places than ours (inside the feed-forward layer, after the last norm); only training shows
the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.models.interop.facts import Facts
from lmcourse.models.interop.families.common import ACTIVATIONS, eps, same_as
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layouts import Layout, Same, Stacked
from lmcourse.models.interop.settings import Clauses, Derived, Ignored, Known, Setting, Settings
from lmcourse.nn.position_bias import RelativePositionBiasConfig


@dataclass(frozen=True)
class RelativePositionBias:
    """The learned bias by ranges of distances."""

    keys: tuple[str, ...] = ("relative_attention_num_buckets", "relative_attention_max_distance")

    def read(self, settings: Settings, known: Known) -> None:
        buckets, max_distance = (settings.get(key, value) for key, value in zip(self.keys, (32, 128), strict=True))
        known["position_bias"] = RelativePositionBiasConfig(buckets, max_distance)

    def write(self, facts: Facts) -> dict[str, Any]:
        bias = facts.position_bias
        return (
            dict(zip(self.keys, (bias.buckets, bias.max_distance), strict=True))
            if isinstance(bias, RelativePositionBiasConfig)
            else {}
        )


@dataclass(frozen=True)
class FeedForwardForm:
    """One word for activation and gate: "relu", "gated-gelu" (with tanh, whatever the word says), "gated-silu"."""

    keys: tuple[str, ...] = ("feed_forward_proj",)

    def read(self, settings: Settings, known: Known) -> None:
        word = settings.get("feed_forward_proj", "relu")
        gated, name = word.startswith("gated-"), word.removeprefix("gated-")
        if name not in ACTIVATIONS:
            raise CourseError(f"feed_forward_proj={word!r} is not supported; supported: 'relu', 'gated-gelu', …")
        known["gated"], known["activation"] = gated, "gelu_tanh" if word == "gated-gelu" else ACTIVATIONS[name]

    def write(self, facts: Facts) -> dict[str, Any]:
        name = "gelu" if facts.gated and facts.activation == "gelu_tanh" else facts.activation
        return {"feed_forward_proj": f"gated-{name}" if facts.gated else name}


@dataclass(frozen=True)
class Output:
    """v1.0 ties the output matrix to the embedding and scales for it; v1.1 does neither. Files say it in either key."""

    keys: tuple[str, ...] = ("tie_word_embeddings", "scale_decoder_outputs")

    def read(self, settings: Settings, known: Known) -> None:
        known["tied"] = all(settings.get(key, True) for key in self.keys)
        known["logit_scale"] = known["d_model"] ** -0.5 if known["tied"] else 1.0

    def write(self, facts: Facts) -> dict[str, Any]:
        return dict.fromkeys(self.keys, facts.tied)


def _stack(ours: str, theirs: str, feed_forward: int) -> dict[str, Layout]:
    block = f"{theirs}block.*.layer."
    dense = f"{block}{feed_forward}.DenseReluDense."
    return {
        ours + "position_bias.table": Same(f"{theirs}block.0.layer.0.SelfAttention.relative_attention_bias"),
        ours + "blocks.*.attention.input_norm": Same(f"{block}0.layer_norm"),
        ours + "blocks.*.attention.qkv": Stacked(*(f"{block}0.SelfAttention.{x}" for x in "qkv")),
        ours + "blocks.*.attention.out": Same(f"{block}0.SelfAttention.o"),
        ours + "blocks.*.feed_forward.input_norm": Same(f"{block}{feed_forward}.layer_norm"),
        ours + "blocks.*.feed_forward.up": Same(f"{dense}wi"),
        ours + "blocks.*.feed_forward.gate_up": Stacked(f"{dense}wi_0", f"{dense}wi_1"),
        ours + "blocks.*.feed_forward.down": Same(f"{dense}wo"),
        ours + "norm": Same(f"{theirs}final_layer_norm"),
    }


T5 = Family(
    "t5",
    "T5ForConditionalGeneration",
    Clauses(
        (
            Setting("vocab_size", "vocab_size"),
            Setting("d_model", "d_model"),
            Setting("num_layers", "encoder_layers"),
            Setting("num_decoder_layers", "layers", same_as("encoder_layers")),
            Setting("num_heads", "heads"),
            Derived("kv_heads", same_as("heads")),
            Setting("d_kv", "d_head", 64),
            Setting("d_ff", "d_ff"),
            eps("layer_norm_epsilon", 1e-6),
            RelativePositionBias(),
            FeedForwardForm(),
            Output(),
            Setting("dropout_rate", "dropout", 0.0),
            Derived("attention_dropout", same_as("dropout")),
            Derived("embedding_dropout", same_as("dropout")),
            Setting("n_positions", "context", None),
            Ignored("dense_act_fn", "is_gated_act"),
        ),
        {"scale": 1.0},
    ),
    {
        "encoder.embedding.tokens": Same("shared"),
        **_stack("encoder.", "encoder.", 1),
        **_stack("", "decoder.", 2),
        "blocks.*.cross.input_norm": Same("decoder.block.*.layer.1.layer_norm"),
        "blocks.*.cross.q": Same("decoder.block.*.layer.1.EncDecAttention.q"),
        "blocks.*.cross.kv": Stacked(*(f"decoder.block.*.layer.1.EncDecAttention.{x}" for x in "kv")),
        "blocks.*.cross.out": Same("decoder.block.*.layer.1.EncDecAttention.o"),
        "head.linear": Same("lm_head"),
    },
    base="",
    copies=dict.fromkeys(
        ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight"
    ),
    dropped=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
