"""Settings for a tiny model of every family in `transformers`, for the tests and the parity table.

The models are small and deliberately irregular: uneven head counts, widths that are not powers of two, windows and
chunks shorter than the text, layers of every kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SEQ_LEN = 40
"""Number of tokens in a text."""
VOCAB_SIZE = 97


@dataclass(frozen=True)
class Sample:
    """A sample of a family: its own name and the family's, the settings that differ from the family's defaults, and the
    implementation of attention in `transformers` that serves as reference.
    """

    name: str
    model_type: str
    settings: dict[str, Any]
    attention: str = "sdpa"


def _rope(theta: float, fraction: float | None = None, **more: Any) -> dict[str, Any]:
    share = {} if fraction is None else {"partial_rotary_factor": fraction}
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **share, **more}}


def _eps(key: str | None) -> dict[str, float]:
    """Return a norm epsilon that is large enough to matter, if the family has such a setting."""
    return {} if key is None else {key: 1e-3}


def _llama(eps: str | None = "rms_norm_eps", **changes: Any) -> dict[str, Any]:
    """Return settings of a Llama-like model: six query heads share two key heads, and the heads do not fill the
    width."""
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 14}
    sizes = {"vocab_size": VOCAB_SIZE, "hidden_size": 60, "num_hidden_layers": 3, "intermediate_size": 70, **heads}
    return {**sizes, "max_position_embeddings": 64, "pad_token_id": None, **_eps(eps), **_rope(10_000.0), **changes}


def _even(eps: str | None, **changes: Any) -> dict[str, Any]:
    """Return settings for families that divide the width among heads."""
    settings = _llama(eps, **{"hidden_size": 72, **changes})
    del settings["head_dim"]
    return settings


def _mha(eps: str, **changes: Any) -> dict[str, Any]:
    """Return settings for multi-head attention: five heads, each with its own key head."""
    settings = _even(eps, **{"hidden_size": 60, "num_attention_heads": 5, **changes})
    del settings["num_key_value_heads"]
    return settings


def _gpt(**changes: Any) -> dict[str, Any]:
    names = {"n_embd": 60, "n_layer": 3, "n_head": 5, "n_positions": 64, "n_inner": 70}
    dropouts = {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
    return {"vocab_size": VOCAB_SIZE, **names, **dropouts, **_eps("layer_norm_epsilon"), **changes}


def _with_alibi(**sizes: int) -> dict[str, Any]:
    return {"vocab_size": VOCAB_SIZE, **_eps("layer_norm_epsilon"), **sizes}


def _falcon(**changes: Any) -> dict[str, Any]:
    settings = _mha("layer_norm_epsilon", **{"ffn_hidden_size": 70, **changes})
    del settings["intermediate_size"]
    return settings


def _opt(**changes: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 60, "num_hidden_layers": 3, "num_attention_heads": 5, "ffn_dim": 70}
    return {"vocab_size": VOCAB_SIZE, "max_position_embeddings": 64, "word_embed_proj_dim": 60, **sizes, **changes}


def _t5(**changes: Any) -> dict[str, Any]:
    sizes = {"d_model": 60, "d_kv": 14, "d_ff": 70, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 5}
    buckets = {"relative_attention_num_buckets": 12, "relative_attention_max_distance": 25}
    return {"vocab_size": VOCAB_SIZE, **sizes, **buckets, **_eps("layer_norm_epsilon"), **changes}


FIVE_LAYERS: dict[str, Any] = {"num_hidden_layers": 5}
GROUPED = {"num_attention_heads": 6, "num_kv_heads": 2, "new_decoder_architecture": True}

TRAINED = {"original_max_position_embeddings": 24}

# All three cases occur: pairs that rotate often, rarely and in between.
LLAMA3_SCALING = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **TRAINED}

# Of the seven pairs the first is unchanged, the last four are slowed down, and two are in between.
YARN = {"factor": 4.0, "beta_fast": 3.0, "beta_slow": 0.1, **TRAINED}
# Longer than one prompt and shorter than its continuation, so that a text changes to the other list.
LONGROPE = {
    "short_factor": [1.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
    "long_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
    **TRAINED,
    "factor": 3.0,
}

PHI_LONGROPE = TRAINED | _rope(
    1e4, 0.5, rope_type="longrope", short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 2.0, 5.0]
)

SAMPLES: tuple[Sample, ...] = (
    Sample("llama2", "llama", _llama()),
    Sample("llama3", "llama", _llama(**_rope(500_000.0), attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    Sample("llama-linear", "llama", _llama(rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0})),
    Sample("llama3.1", "llama", _llama(rope_parameters={"rope_theta": 5e5, "rope_type": "llama3", **LLAMA3_SCALING})),
    Sample("llama-yarn", "llama", _llama(rope_parameters={"rope_theta": 1e4, "rope_type": "yarn", **YARN})),
    Sample("llama-longrope", "llama", _llama(rope_parameters={"rope_theta": 1e4, "rope_type": "longrope", **LONGROPE})),
    Sample("mistral", "mistral", _llama(sliding_window=11)),
    Sample("gpt2", "gpt2", _gpt()),
    Sample("qwen2", "qwen2", _llama()),
    Sample("qwen2-window", "qwen2", _llama(use_sliding_window=True, sliding_window=9, max_window_layers=1)),
    Sample("qwen3", "qwen3", _llama(**_rope(1_000_000.0))),
    Sample("olmo", "olmo", _even(None)),
    Sample("olmo2", "olmo2", _even("rms_norm_eps")),
    Sample("gemma", "gemma", _llama()),
    Sample(
        "gemma2",
        "gemma2",
        _llama(sliding_window=11, query_pre_attn_scalar=20, attn_logit_softcapping=5.0, final_logit_softcapping=9.0),
        "eager",
    ),
    Sample(
        "gemma3",
        "gemma3_text",
        _llama(
            num_hidden_layers=7,
            sliding_window=11,
            query_pre_attn_scalar=20,
            rope_parameters={
                "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
                "full_attention": {"rope_type": "linear", "rope_theta": 1_000_000.0, "factor": 8.0},
            },
        ),
    ),
    Sample("gpt-neox", "gpt_neox", _mha("layer_norm_eps", hidden_size=80, **_rope(10_000.0, 0.25))),
    Sample("gpt-neox-serial", "gpt_neox", _mha("layer_norm_eps", **_rope(1e4, 0.5), use_parallel_residual=False)),
    Sample("gpt-j", "gptj", _gpt(rotary_dim=6), "eager"),
    Sample("phi-2", "phi", _even("layer_norm_eps", **_rope(10_000.0, 0.5))),
    Sample("falcon-7b", "falcon", _falcon()),
    Sample("falcon-40b", "falcon", _falcon(**GROUPED)),
    Sample("falcon-11b", "falcon", _falcon(**GROUPED, num_ln_in_parallel_attn=1)),
    Sample("falcon-rw", "falcon", _falcon(alibi=True, multi_query=False, parallel_attn=False, bias=True)),
    Sample("bloom", "bloom", _with_alibi(hidden_size=60, n_layer=3, n_head=6), "eager"),
    Sample("opt", "opt", _opt()),
    Sample("opt-350m", "opt", _opt(do_layer_norm_before=False, word_embed_proj_dim=24)),
    Sample("cohere", "cohere", _llama("layer_norm_eps", logit_scale=0.3)),
    Sample("cohere-plus", "cohere", _llama("layer_norm_eps", logit_scale=0.3, use_qk_norm=True)),
    Sample("cohere2", "cohere2", _llama("layer_norm_eps", **FIVE_LAYERS, sliding_window=11, logit_scale=0.3)),
    Sample("mpt", "mpt", _with_alibi(d_model=60, n_heads=6, n_layers=3, max_seq_len=64), "eager"),
    Sample("nemotron", "nemotron", _llama("norm_eps", **_rope(10_000.0, 0.5) | {"head_dim": 16})),
    Sample("stablelm", "stablelm", _even("layer_norm_eps", **_rope(10_000.0, 0.5), use_qkv_bias=True)),
    Sample(
        "stablelm-parallel",
        "stablelm",
        _even("layer_norm_eps", **_rope(1e4, 0.5), use_parallel_residual=True, qk_layernorm=True),
    ),
    Sample("phi3", "phi3", _even("rms_norm_eps", sliding_window=11)),
    Sample("phi4-mini", "phi3", _even("rms_norm_eps", **PHI_LONGROPE, tie_word_embeddings=True)),
    Sample("glm-4", "glm", _llama(**_rope(10_000.0, 0.5) | {"head_dim": 16})),
    Sample("starcoder2", "starcoder2", _even("norm_epsilon", sliding_window=11)),
    Sample(
        "olmo3",
        "olmo3",
        _even(
            "rms_norm_eps",
            **FIVE_LAYERS,
            sliding_window=11,
            rope_parameters={
                "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
                "full_attention": {"rope_type": "yarn", "rope_theta": 10_000.0, **YARN},
            },
        ),
    ),
    Sample("smollm3", "smollm3", _llama(**FIVE_LAYERS, **_rope(2_000_000.0))),
    Sample("t5-v1.0", "t5", _t5()),
    Sample("t5-v1.1", "t5", _t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    Sample("arcee", "arcee", _llama()),
    Sample("nanochat", "nanochat", _even("rms_norm_eps", final_logit_softcapping=3.0)),
    Sample(
        "granite",
        "granite",
        _llama(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=1.7),
    ),
    Sample(
        "llama4-dense",
        "llama4_text",
        _llama(
            **FIVE_LAYERS,
            intermediate_size_mlp=76,
            moe_layers=[],
            attention_chunk_size=11,
            floor_scale=8,
            attn_scale=0.4,
        ),
        "eager",
    ),
)
