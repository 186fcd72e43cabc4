"""`transformers` and our code read settings of published folders, many with old names, in the same way."""

from __future__ import annotations

import json

import pytest
import torch
from torch.testing import assert_close

from lmcourse.base.errors import CourseError
from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop import FAMILIES, from_hugging_face
from lmcourse.models.interop.family import Family
from lmcourse.models.interop.flat_config import ModelConfig, flatten
from lmcourse.models.interop.hugging_face import import_transformers
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models

pytestmark = pytest.mark.prove

LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 4096,
    "initializer_range": 0.02,
    "torch_dtype": "float16",
    "transformers_version": "4.31.0.dev0",
    "use_cache": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BANDS = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
GEMMA = {
    "vocab_size": 256000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 8192,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "attention_bias": False,
}
PHI3 = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "embd_pdrop": 0.0,
    "hidden_act": "silu",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "original_max_position_embeddings": 4096,
    "resid_pdrop": 0.0,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
LAYER_NORM = {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"}
NEOX = {
    "hidden_act": "gelu",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
    "tie_word_embeddings": False,
    "use_parallel_residual": True,
    "vocab_size": 50304,
}
PUBLISHED = {
    "llama-2-7b": ("llama", {**LLAMA, "num_key_value_heads": 32, "pretraining_tp": 1, "rope_scaling": None}),
    "llama-3.1-8b": (
        "llama",
        {**LLAMA, "num_key_value_heads": 8, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", **BANDS}},
    ),
    "qwen2.5-7b, read beyond its context": (
        "qwen2",
        {
            **LLAMA,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            "rope_theta": 1e6,
        },
    ),
    "llama, as deepseek sharpens": (
        "llama",
        {
            **LLAMA,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 40.0,
                "original_max_position_embeddings": 4096,
                "beta_fast": 32,
                "beta_slow": 1,
                "mscale": 1.0,
                "mscale_all_dim": 0.7,
            },
        },
    ),
    "llama-4-scout": (
        "llama",
        {**LLAMA, "rope_scaling": {"rope_type": "llama3", **BANDS, "factor": 16.0, "high_freq_factor": 1.0}},
    ),
    "llama, linear": ("llama", {**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "mistral-7b-v0.1": ("mistral", {**LLAMA, "num_key_value_heads": 8, "sliding_window": 4096, "rope_theta": 10000.0}),
    "mistral-7b-v0.3": ("mistral", {**LLAMA, "num_key_value_heads": 8, "sliding_window": None, "rope_theta": 1e6}),
    "qwen2.5-0.5b": (
        "qwen2",
        {
            **LLAMA,
            "num_key_value_heads": 2,
            "max_window_layers": 24,
            "use_sliding_window": False,
            "sliding_window": 32768,
            "rope_theta": 1000000.0,
            "tie_word_embeddings": True,
        },
    ),
    "gemma-2-2b": (
        "gemma2",
        {
            **GEMMA,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "hidden_act": "gelu_pytorch_tanh",
            "rope_theta": 10000.0,
        },
    ),
    "gemma-3-1b": (
        "gemma3_text",
        {
            **GEMMA,
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
            "sliding_window_pattern": 6,
            "rope_theta": 1000000,
            "rope_local_base_freq": 10000,
            "rope_scaling": None,
            "cache_implementation": "hybrid",
        },
    ),
    "gpt2": (
        "gpt2",
        {
            "activation_function": "gelu_new",
            "attn_pdrop": 0.1,
            "embd_pdrop": 0.1,
            "resid_pdrop": 0.1,
            "layer_norm_epsilon": 1e-5,
            "n_ctx": 1024,
            "n_embd": 768,
            "n_head": 12,
            "n_layer": 12,
            "n_positions": 1024,
            "summary_type": "cls_index",
            "summary_use_proj": True,
            "task_specific_params": {"text-generation": {"do_sample": True}},
            "vocab_size": 50257,
        },
    ),
    "pythia-160m": ("gpt_neox", NEOX),
    "phi-2": (
        "phi",
        {
            "vocab_size": 51200,
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "hidden_act": "gelu_new",
            "layer_norm_eps": 1e-5,
            "max_position_embeddings": 2048,
            "partial_rotary_factor": 0.4,
            "qk_layernorm": False,
            "resid_pdrop": 0.1,
            "embd_pdrop": 0.0,
            "rope_theta": 10000.0,
            "rope_scaling": None,
        },
    ),
    "phi-3-mini-4k": ("phi3", {**PHI3, "rope_scaling": None, "sliding_window": 2047}),
    "phi-3-mini-128k": (
        "phi3",
        {
            **PHI3,
            "max_position_embeddings": 131072,
            "rope_scaling": {"type": "longrope", "short_factor": [1.05] * 48, "long_factor": [1.5] * 24 + [40.0] * 24},
            "sliding_window": 262144,
        },
    ),
    "phi-4-mini": (
        "phi3",
        {
            **PHI3,
            "num_attention_heads": 24,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "partial_rotary_factor": 0.75,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1.1] * 24 + [32.0] * 24},
            "sliding_window": 262144,
            "tie_word_embeddings": True,
            **{"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False},
        },
    ),
    "command-r7b": (
        "cohere2",
        {
            **LAYER_NORM,
            **{"cache_implementation": "hybrid", "layer_norm_eps": 1e-5, "layer_switch": 4, "logit_scale": 0.25},
            **{"order_of_interleaved_layers": "local_attn_first", "position_embedding_type": "rope_gptj"},
            **{"rope_theta": 50000, "rotary_pct": 1.0, "sliding_window": 4096, "sliding_window_pattern": 4},
            **{"use_embedding_sharing": True, "use_gated_activation": True, "use_parallel_block": True},
            **{"use_parallel_embedding": True, "use_qk_norm": False, "tie_word_embeddings": True},
        },
    ),
    "minitron-4b": ("nemotron", {**LAYER_NORM, "hidden_act": "relu2", "norm_eps": 1e-5, "kv_channels": 128}),
    "falcon3-7b": ("llama", {**LLAMA, "activation": "swiglu", "head_dim": 256, "rope_theta": 1000042}),
    "dolly-v2-3b": ("gpt_neox", {**NEOX, "custom_pipelines": {"text-generation": {"impl": "instruct_pipeline.X"}}}),
    "starcoder2-3b": (
        "starcoder2",
        {
            "attention_dropout": 0.1,
            "embedding_dropout": 0.1,
            "residual_dropout": 0.1,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": 3072,
            "intermediate_size": 12288,
            "max_position_embeddings": 16384,
            "mlp_type": "default",
            "norm_epsilon": 1e-5,
            "norm_type": "layer_norm",
            "num_attention_heads": 24,
            "num_hidden_layers": 30,
            "num_key_value_heads": 2,
            "rope_theta": 999999.4420358813,
            "sliding_window": 4096,
            "use_bias": True,
            "vocab_size": 49152,
        },
    ),
    "olmo-3-7b": (
        "olmo3",
        {
            **LLAMA,
            "attention_bias": False,
            "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8,
            "max_position_embeddings": 65536,
            "num_key_value_heads": 32,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 8.0,
                "original_max_position_embeddings": 8192,
                "beta_fast": 32,
                "beta_slow": 1,
                "attention_factor": 1.2079441541679836,
            },
            "rope_theta": 500000,
            "sliding_window": 4096,
        },
    ),
    "glm-4-9b": (
        "glm",
        {
            **LLAMA,
            "attention_bias": True,
            "head_dim": 128,
            "num_key_value_heads": 2,
            "partial_rotary_factor": 0.5,
            "rms_norm_eps": 1.5625e-7,
            "rope_theta": 10000.0,
        },
    ),
    "bloom-560m": (
        "bloom",
        {
            "apply_residual_connection_post_layernorm": False,
            "attention_dropout": 0.0,
            "attention_softmax_in_fp32": True,
            "bias_dropout_fusion": True,
            "hidden_dropout": 0.0,
            "layer_norm_epsilon": 1e-5,
            "masked_softmax_fusion": True,
            "n_head": 16,
            "n_inner": None,
            "n_layer": 24,
            "offset_alibi": 100,
            "pretraining_tp": 1,
            "seq_length": 2048,
            "skip_bias_add": True,
            "skip_bias_add_qkv": False,
            "slow_but_exact": False,
            "unk_token_id": 0,
            "use_cache": True,
            "vocab_size": 250880,
            "hidden_size": 1024,
        },
    ),
    "opt-350m": (
        "opt",
        {
            "_remove_final_layer_norm": False,
            "activation_dropout": 0.0,
            "activation_function": "relu",
            "attention_dropout": 0.0,
            "do_layer_norm_before": False,
            "dropout": 0.1,
            "ffn_dim": 4096,
            "hidden_size": 1024,
            "init_std": 0.02,
            "layerdrop": 0.0,
            "max_position_embeddings": 2048,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "prefix": "</s>",
            "vocab_size": 50272,
            "word_embed_proj_dim": 512,
        },
    ),
    "t5-small": (
        "t5",
        {
            "d_ff": 2048,
            "d_kv": 64,
            "d_model": 512,
            "decoder_start_token_id": 0,
            "dropout_rate": 0.1,
            "initializer_factor": 1.0,
            "is_encoder_decoder": True,
            "layer_norm_epsilon": 1e-6,
            "n_positions": 512,
            "num_heads": 8,
            "num_layers": 6,
            "output_past": True,
            "relative_attention_num_buckets": 32,
            "task_specific_params": {},
            "vocab_size": 32128,
        },
    ),
    "t5-v1.1-small": (
        "t5",
        {
            "d_ff": 1024,
            "d_kv": 64,
            "d_model": 512,
            "dropout_rate": 0.1,
            "feed_forward_proj": "gated-gelu",
            "layer_norm_epsilon": 1e-6,
            "num_decoder_layers": 8,
            "num_heads": 6,
            "num_layers": 8,
            "relative_attention_num_buckets": 32,
            "tie_word_embeddings": False,
            "vocab_size": 32128,
        },
    ),
}


TOOLS = {
    "unsloth_fixed": True,
    "transformers.js_config": {"dtype": "q4"},
    "_num_labels": 1,
    "is_llama_config": True,
    "rope_interleaved": False,
    "max_sequence_length": 4096,
    "auto_map": {"AutoModelForCausalLM": "modeling.Model"},
    "residual_multiplier": 1.0,
    "num_experts": 0,
}
"""Keys without effect: keys of tools, switched-off settings, and factors of 1."""

TINY_LLAMA = {
    **{"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"max_position_embeddings": 32, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2},
}
TINY = {
    "LlamaForCausalLM": ("llama", {**TINY_LLAMA, **TOOLS}),
    "LLaMAForCausalLM": ("llama", TINY_LLAMA),
    "BloomForCausalLM": (
        "bloom",
        {"vocab_size": 50, "n_embed": 16, "n_layer": 2, "num_attention_heads": 2, "n_inner": None, **TOOLS},
    ),
    "MPTForCausalLM": (
        "mpt",
        {
            **{"vocab_size": 50, "d_model": 16, "n_layers": 2, "n_heads": 2, "max_seq_len": 32},
            **{"init_config": {"name": "kaiming_normal_"}, "tokenizer_name": "gpt-neox-20b", "no_bias": True},
            "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "qk_ln": False},
        },
    ),
    "GPT2LMHeadModel": (
        "gpt2",
        {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "n_positions": 32},
    ),
    "GPTJForCausalLM": (
        "gptj",
        {
            **{"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "rotary_dim": 4},
            **{"rotary": True, "scale_attn_weights": True, "tie_word_embeddings": False},
        },
    ),
}


@pytest.mark.parametrize("architecture", TINY)
def test_folder_with_odd_keys_matches_transformers(architecture, tmp_path) -> None:
    model_type, settings = TINY[architecture]
    torch.manual_seed(0)
    transformers = import_transformers()
    theirs = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(model_type, **settings))
    theirs.eval().save_pretrained(tmp_path)
    file = {"model_type": model_type, "architectures": [architecture], **settings}
    (tmp_path / "config.json").write_text(json.dumps(file))
    tokens = torch.randint(50, (2, 9))
    assert_close(from_hugging_face(tmp_path)(tokens), theirs(tokens).logits, rtol=0, atol=2e-6)


def as_written_today(model_type, settings=None) -> dict:
    """Return all settings of a model in the form that transformers writes."""
    return import_transformers().AutoConfig.for_model(model_type, **(settings or {})).to_dict()


def test_published_settings_are_read_as_in_transformers() -> None:
    def differs(model_type, settings) -> bool:
        read = FAMILIES[model_type].read
        return read(settings) != read(as_written_today(model_type, settings))

    assert [name for name, (model_type, settings) in PUBLISHED.items() if differs(model_type, settings)] == []


def test_defaults_match_transformers_and_survive_a_round_trip() -> None:
    """All keys that transformers writes today are known, and a default value means the same as a missing key."""
    for model_type in FAMILIES.keys() - {"llama4_text"}:
        family, settings = FAMILIES[model_type], as_written_today(model_type)
        config = family.read(settings)
        assert family.read(family.write(config)) == config, model_type
        flat, theirs = flatten(config), import_transformers().AutoConfig.for_model(model_type)
        assert (flat.vocab_size, flat.layers) == (theirs.vocab_size, theirs.num_hidden_layers), model_type


WRITTEN_IN_NO_FAMILY = {"transformer", "bert", "gpt", "gopher", "chinchilla", "lamda", "palm", "phi-4"}
"""Zoo models, without their sizes, that transformers does not have or that we cannot convert."""


def test_models_of_the_zoo_match_transformers() -> None:
    """Converted to settings, they have the same number of parameters in transformers. They are cut to 7 layers for
    speed."""
    for entry in all_models():
        family = next((family for family in FAMILIES.values() if can_write(family, entry.config)), None)
        if family is None:
            assert entry.name.rsplit("-", 1)[0] in WRITTEN_IN_NO_FAMILY, entry.name
            continue
        config = shallow(entry.config)
        with torch.device("meta"):
            ours = EncoderDecoder(config) if isinstance(config, EncoderDecoderConfig) else Transformer(config)
        assert their_count(family.write(config)) == sum(p.numel() for p in ours.parameters()), entry.name


def shallow(config: ModelConfig) -> ModelConfig:
    """Return the first layers of a model, more than one period of any pattern."""
    if isinstance(config, EncoderDecoderConfig):
        return EncoderDecoderConfig(shallow(config.encoder), shallow(config.decoder))
    return config.with_(layers=config.layers[:7])


def their_count(settings: dict) -> int:
    """Return the number of parameters of a model in transformers."""
    transformers = import_transformers()
    config = transformers.AutoConfig.for_model(**settings, pad_token_id=None)
    encoder_decoder = settings["model_type"] == "t5"
    kind = transformers.AutoModelForSeq2SeqLM if encoder_decoder else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    # By default transformers ties T5's head.
    return count + model.lm_head.weight.numel() if encoder_decoder and not settings["tie_word_embeddings"] else count


def can_write(family: Family, config: ModelConfig) -> bool:
    try:
        family.write(config)
    except CourseError:
        return False
    return True
