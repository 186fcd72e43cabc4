"""Unsupported models are rejected with one line that names the problem."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.models.interop import FAMILIES, from_hugging_face, to_hugging_face
from lmcourse.models.interop.convert import family_of
from lmcourse.models.interop.flat_config import flatten
from lmcourse.models.interop.hugging_face import import_transformers
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.rotary import RotaryConfig

SIZES = {"vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6}
LLAMA = {"model_type": "llama", **SIZES}


def refusal(call, *args, **kwargs) -> str:
    with pytest.raises(CourseError) as caught:
        call(*args, **kwargs)
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"hidden_act": "mish"}, ["hidden_act='mish'", "'silu'"]),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 4}}, ["rope_type='dynamic'", "'linear'", "'yarn'"]),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, ["'original_max_position_embeddings'"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config", "quantised"]),
        ({"hidden_size": None}, ["'hidden_size'"]),
        ({"num_attention_heads": 8}, ["layer 0", "pairs"]),
        ({"num_key_value_heads": 3}, ["2 query heads", "3 key heads"]),
        ({"head_dim": "x"}, ["head_dim must be a whole number, not 'x'"]),
        ({"tie_word_embeddings": "no"}, ["tie_word_embeddings must be true or false, not 'no'"]),
        ({"sliding_window": 4096}, ["sliding_window"]),
        ({"residual_multiplier": 0.5}, ["residual_multiplier"]),
        ({"position_embedding_type": "alibi"}, ["position_embedding_type"]),
        ({"rope_scaling": [1]}, ["config.json has a setting that cannot be read"]),
        ({"num_hidden_layers": 10**8}, ["layers are more"]),
    ],
    ids=str,
)
def test_an_unsupported_setting_is_reported(changes, told) -> None:
    line = refusal(FAMILIES["llama"].read, {**LLAMA, **changes})
    assert line.startswith("llama: ")
    assert len(line) < 250
    assert all(part in line for part in told), line


def test_two_spellings_must_agree() -> None:
    sizes = {"vocab_size": 10, "n_embed": 8, "hidden_size": 16, "n_layer": 1, "n_head": 2}
    assert "n_embed=8 but hidden_size=16" in refusal(FAMILIES["bloom"].read, sizes)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("cohere2", {"order_of_interleaved_layers": "global_attn_first"}),
        ("cohere2", {"sliding_window_pattern": 4, "layer_switch": 3}),
        ("cohere2", {"use_parallel_block": False}),
        ("phi3", {"full_attn_mod": 2}),
        ("nemotron", {"kv_channels": 3}),
    ],
)
def test_a_key_that_contradicts_the_family_is_rejected(family, changes) -> None:
    *_, (key, value) = changes.items()
    assert f"{key}={value!r}" in refusal(FAMILIES[family].read, {**LLAMA, **changes})


def test_one_base_for_two_kinds_of_layers_is_rejected() -> None:
    settings = {**LLAMA, "model_type": "gemma3_text", "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}
    line = refusal(FAMILIES["gemma3_text"].read, settings)
    assert all(part in line for part in ("rope_parameters", "full_attention", "sliding_attention")), line


def test_a_layer_kind_without_a_base_gets_the_familys_default() -> None:
    """transformers reads such a file in the same way."""
    settings = {
        **LLAMA,
        "model_type": "gemma3_text",
        "num_hidden_layers": 6,
        "head_dim": 4,
        "sliding_window": 4,
        "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}},
    }
    flat = flatten(FAMILIES["gemma3_text"].read(settings))
    assert (flat.rotary, flat.local_rotary) == (RotaryConfig(1e6, linear_factor=8.0), RotaryConfig(1e4))


def test_an_unsupported_architecture_is_reported() -> None:
    line = refusal(family_of, {"model_type": "mixtral"})
    assert "'mixtral'" in line
    assert "gpt2" in line
    line = refusal(family_of, {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})
    assert "LlamaForSequenceClassification" in line
    assert "LlamaForCausalLM" in line


@pytest.mark.prove
def test_mixtures_of_experts_are_rejected() -> None:
    transformers = import_transformers()
    config = transformers.AutoConfig.for_model("llama4_text", num_hidden_layers=2, interleave_moe_layer_step=2)
    assert "moe_layers=[1]" in refusal(FAMILIES["llama4_text"].read, config.to_dict())


@pytest.mark.prove
def test_wrong_weights_are_reported(pairs) -> None:
    pair, family = pairs("llama2"), FAMILIES["llama"]
    weights = dict(pair.theirs.named_parameters())
    name = "model.layers.1.self_attn.k_proj.weight"
    without = {key: weight for key, weight in weights.items() if key != name}
    assert name in refusal(family.to_ours, pair.ours, without)
    assert "score.weight" in refusal(family.to_ours, pair.ours, {**weights, "score.weight": torch.zeros(2, 2)})
    # Joined as one matrix, q, k and v would still fit.
    line = refusal(family.to_ours, pair.ours, {**weights, name: torch.zeros(30, 60)})
    assert name in line
    assert "(30, 60)" in line
    assert "(28, 60)" in line


def test_a_path_without_a_model_is_reported(tmp_path) -> None:
    assert "gpt2" in refusal(from_hugging_face, "gpt2")
    assert str(tmp_path) in refusal(from_hugging_face, tmp_path)
    assert "Linear" in refusal(from_hugging_face, torch.nn.Linear(2, 2))


@pytest.mark.prove
def test_a_model_that_a_family_cannot_express_is_rejected(pairs, tmp_path) -> None:
    line = refusal(to_hugging_face, pairs("gemma2").ours, tmp_path, family="llama")
    for name in ("unit_offset", "placement", "soft_cap", "embedding_scale"):
        assert name in line
    assert not list(tmp_path.iterdir())
    # No family has feed-forward layers of two widths.
    attention = AttentionConfig(2, rotary=RotaryConfig())
    wide, narrow = (LayerConfig(attention, FeedForwardConfig(width)) for width in (8, 6))
    config = TransformerConfig(
        10, 8, repeat_layers([wide, narrow], 2), BlockConfig(NormConfig()), final_norm=NormConfig()
    )
    assert "no model family" in refusal(to_hugging_face, Transformer(config), tmp_path)
    assert "layers" in refusal(to_hugging_face, Transformer(config), tmp_path, family="llama")


@pytest.mark.prove
def test_a_transformers_model_of_another_shape_is_rejected(pairs) -> None:
    line = refusal(to_hugging_face, pairs("llama2").ours, pairs("mistral").theirs)
    assert "span" in line


@pytest.mark.prove
def test_a_missing_package_is_named() -> None:
    """Importing the models does not need the package."""
    program = """
import sys
sys.modules["transformers"] = None
import lmcourse.models.interop.hugging_face
from lmcourse.base.errors import CourseError
try:
    lmcourse.models.interop.hugging_face.import_transformers()
except CourseError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "transformers" in told
    assert "lmcourse[parity]" in told
    assert told.count("\n") == 1
