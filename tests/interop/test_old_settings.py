"""`transformers` and our code read settings of published folders, many with old names, in the same way."""

from __future__ import annotations

import json
from pathlib import Path

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

PUBLISHED: dict[str, dict] = json.loads(Path(__file__).with_name("published_settings.json").read_text())
"""The config.json of published folders, as they were written at their time."""

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


def as_written_today(model_type, **settings) -> dict:
    """Return all settings of a model in the form that transformers writes."""
    return import_transformers().AutoConfig.for_model(model_type, **settings).to_dict()


def test_published_settings_are_read_as_in_transformers() -> None:
    for name, settings in PUBLISHED.items():
        read = FAMILIES[settings["model_type"]].read
        assert read(settings) == read(as_written_today(**settings)), name


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
