"""Llama-like families with LayerNorm: Cohere (Command R), Cohere 2 (Command A), StableLM, Nemotron, Phi-2."""

from __future__ import annotations

from typing import Any

from lmcourse.models.interop.families.common import (
    ATTENTION_BIAS,
    ATTENTION_DROPOUT,
    CONTEXT,
    D_FF,
    EVEN_HEADS,
    KV_HEADS,
    LLAMA_ATTENTION,
    LLAMA_MLP,
    LLAMA_SETTINGS,
    LLAMA_WEIGHTS,
    MLP_BIAS,
    PRE_NORMS,
    TIED_HEAD,
    activation,
    eps,
    sizes,
    tied,
)
from lmcourse.models.interop.families.unturned import unless_all
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.layer_settings import Kinds, Rope
from lmcourse.models.interop.layouts import OnePerHead, PerHead, Same
from lmcourse.models.interop.settings import Clauses, Derived, Fixed, Known, Setting

ONE_NORM = {"blocks.*.norm": Same("model.layers.*.input_layernorm")}


def qk_norm_of_heads(key: str) -> Setting:
    """A switch for norms on queries and keys with a scale for each head."""
    return Setting(key, "qk_norm", None, lambda used, known: "heads" if used else None, lambda over, facts: bool(over))


COHERE_SETTINGS = (
    *LLAMA_SETTINGS,
    *ATTENTION_BIAS,
    eps("layer_norm_eps", 1e-5),
    Setting("logit_scale", "logit_scale", 0.0625),
    tied(True),
)

COHERE = Family(
    "cohere",
    "CohereForCausalLM",
    Clauses(
        (*COHERE_SETTINGS, Rope("interleaved"), qk_norm_of_heads("use_qk_norm")),
        {"norm": "layer", "branches": "parallel"},
    ),
    {
        **LLAMA_ATTENTION,
        **LLAMA_MLP,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": PerHead("model.layers.*.self_attn.q_norm"),
        "blocks.*.attention.qk_transform.norm_k": PerHead("model.layers.*.self_attn.k_norm"),
    },
    copies=TIED_HEAD,
)


def _local_ones(known: Known) -> tuple[bool, ...]:
    return unless_all(known.get("local") or (False,) * known["layers"])


COHERE2 = Family(
    "cohere2",
    "Cohere2ForCausalLM",
    Clauses(
        (
            *COHERE_SETTINGS,
            Rope("interleaved"),
            Kinds(every=4, pattern_key="sliding_window_pattern"),
            Derived("turned", _local_ones),
        ),
        {"norm": "layer", "branches": "parallel"},
    ),
    {**LLAMA_ATTENTION, **LLAMA_MLP, **ONE_NORM},
    copies=TIED_HEAD,
)


def parallel_switch(branches: str) -> Setting:
    """A switch between serial and parallel branches."""

    def read(parallel: bool, known: Known) -> Any:
        return branches if parallel else "serial"

    return Setting("use_parallel_residual", "branches", "serial", read, lambda b, facts: b != "serial")


STABLELM = Family(
    "stablelm",
    "StableLmForCausalLM",
    Clauses(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "silu"),
            ATTENTION_DROPOUT,
            Fixed("hidden_dropout", 0.0),
            eps("layer_norm_eps", 1e-5),
            Rope(fraction=0.25),
            tied(False),
            Setting("use_qkv_bias", "bias", False),
            qk_norm_of_heads("qk_layernorm"),
            parallel_switch("parallel"),
        ),
        {"norm": "layer", "norm_bias": True},
    ),
    {
        **LLAMA_WEIGHTS,
        **ONE_NORM,
        "blocks.*.attention.qk_transform.norm_q": OnePerHead(
            "model.layers.*.self_attn.q_layernorm.norms.{head}", "queries"
        ),
        "blocks.*.attention.qk_transform.norm_k": OnePerHead(
            "model.layers.*.self_attn.k_layernorm.norms.{head}", "keys"
        ),
    },
    copies=TIED_HEAD,
)

NEMOTRON = Family(
    "nemotron",
    "NemotronForCausalLM",
    Clauses(
        (
            *(clause for clause in LLAMA_SETTINGS if clause.keys != ("hidden_act",)),
            activation("hidden_act", "relu2"),
            *ATTENTION_BIAS,
            MLP_BIAS,
            eps("norm_eps", 1e-5),
            Rope(fraction=0.5),
            tied(False),
        ),
        {"norm": "layer", "norm_bias": True, "unit_offset": True, "gated": False},
    ),
    {
        **LLAMA_ATTENTION,
        **PRE_NORMS,
        "blocks.*.feed_forward.up": Same("model.layers.*.mlp.up_proj"),
        "blocks.*.feed_forward.down": Same("model.layers.*.mlp.down_proj"),
    },
    copies=TIED_HEAD,
)

PHI = Family(
    "phi",
    "PhiForCausalLM",
    Clauses(
        (
            *sizes(),
            KV_HEADS,
            EVEN_HEADS,
            D_FF,
            CONTEXT,
            activation("hidden_act", "gelu_tanh", tanh="gelu_new"),
            ATTENTION_DROPOUT,
            Setting("resid_pdrop", "dropout", 0.0),
            Setting("embd_pdrop", "embedding_dropout", 0.0),
            eps("layer_norm_eps", 1e-5),
            Rope(fraction=0.5),
            tied(False),
            Fixed("qk_layernorm", False),
        ),
        {
            "norm": "layer",
            "norm_bias": True,
            "branches": "parallel",
            "gated": False,
            "bias": True,
            "out_bias": True,
            "ff_bias": True,
            "head_bias": True,
        },
    ),
    {
        **LLAMA_ATTENTION,
        **ONE_NORM,
        "blocks.*.attention.out": Same("model.layers.*.self_attn.dense"),
        "blocks.*.feed_forward.up": Same("model.layers.*.mlp.fc1"),
        "blocks.*.feed_forward.down": Same("model.layers.*.mlp.fc2"),
        "norm": Same("model.final_layernorm"),
    },
)
