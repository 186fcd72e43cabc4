"""Changes of a preset are in the trained model and in the model that generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lmcourse.base.errors import CourseError
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.course import modern
from lmcourse.nn.norm import Norm
from lmcourse.training.command.train_run import train
from lmcourse.training.run_config import ModelChanges, RunConfig
from lmcourse.training.trained_model import load_trained_model
from lmcourse.training.training_config import TrainingConfig

NANO = find_model("nano").decoder


def test_every_change_is_in_the_model() -> None:
    changes = ModelChanges("relu2", qk_norm=True, untied=True, logit_cap=2.0, rotary_theta=1000.0)
    model = Transformer(changes.apply(NANO))
    block = model.blocks[0]
    attention, feed_forward = block.attention.layer, block.feed_forward.layer
    assert feed_forward.up.weight.shape == (256, 64)
    assert feed_forward.activation(torch.tensor([-2.0, 3.0])).tolist() == [0, 9]
    assert isinstance(attention.qk_transform.norm_q, Norm)
    assert attention.qk_transform.rotary.config.theta == 1000
    assert model.head.linear.weight is not model.embedding.tokens.weight
    nn.init.constant_(model.head.linear.weight, 100.0)
    assert model(torch.arange(8)[None]).abs().max() <= 2


@pytest.mark.parametrize(("kind", "width", "gated"), [("swiglu", 192, True), ("gelu", 256, False)])
def test_every_kind_of_feed_forward_is_built(kind: Any, width: int, gated: bool) -> None:
    found = ModelChanges(kind).apply(NANO).layers[0].feed_forward
    assert (found.width, found.gated) == (width, gated)
    if kind == "swiglu":
        assert found == NANO.layers[0].feed_forward


def test_a_presets_qk_norm_is_kept() -> None:
    preset = find_model("qwen3-0.6b").decoder
    assert ModelChanges(qk_norm=True).apply(preset) == preset


def test_a_resized_preset_differs_only_in_its_sizes() -> None:
    """The course's own presets with the same head width differ only in their numbers."""
    micro, wanted = find_model("micro").decoder, modern(3, 96, 3, 256)
    found = ModelChanges(layers=3, d_model=96).apply(micro)
    assert found.with_(layers=wanted.layers) == wanted
    assert {(x.attention.heads, x.feed_forward.width) for x in found.layers} == {(3, 288)}
    assert ModelChanges(layers=6).apply(micro).layers == (micro.layers[0],) * 6


def test_wider_models_keep_the_number_of_key_heads() -> None:
    """With twice the width, each key head has twice as many query heads."""
    preset = find_model("llama-3.2-1b").decoder
    first, wide = preset.layers[0].attention, ModelChanges(d_model=2 * preset.d_model).apply(preset).layers[0].attention
    assert (wide.heads, wide.kv_heads) == (2 * first.heads, first.kv_heads)
    assert wide.head_width(2 * preset.d_model) == first.head_width(preset.d_model)


@pytest.mark.parametrize(
    ("preset", "d_model", "told"),
    [
        ("micro", 100, "heads of 32 features do not fit evenly into a d_model of 100"),
        ("gemma-2b", 1024, "d_model can change only in presets whose embedding and head do not depend on it"),
    ],
)
def test_an_impossible_width_is_rejected(preset: str, d_model: int, told: str) -> None:
    with pytest.raises(CourseError, match=told):
        ModelChanges(d_model=d_model).apply(find_model(preset).decoder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"feed_forward": "relu"}, "feed_forward 'relu'"),
        ({"logit_cap": 0.0}, r"logit_cap must be above 0 and finite, not 0\.0"),
    ],
)
def test_impossible_arguments_are_rejected(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ModelChanges(**changes)


def test_rotary_theta_without_a_rotary_embedding_is_rejected() -> None:
    with pytest.raises(CourseError, match="rotary_theta is for presets with a rotary embedding, such as nano"):
        ModelChanges(rotary_theta=100.0).apply(find_model("gpt-2").decoder)


def test_a_changed_model_trains_and_generates(tmp_path: Path) -> None:
    """The run combines Muon, zero outputs and all other changes."""
    (tmp_path / "text.txt").write_text("to be or not to be, that is the question. " * 60)
    training = TrainingConfig(3, 2, 16, optimizer="muon", schedule="wsd", decay_steps=3)
    changes = ModelChanges("relu2", True, True, True, logit_cap=15.0, rotary_theta=1000.0, zero_outputs=True)
    run = RunConfig(corpus=str(tmp_path / "text.txt"), training=training, tokenizer="characters", model=changes)
    train(run, tmp_path / "run")
    found = load_trained_model(tmp_path / "run")
    assert found.run == run
    assert found.model.config == run.model_config(found.tokenizer.vocab_size)
    assert all(block.attention.layer.out.weight.any() for block in found.model.blocks)
