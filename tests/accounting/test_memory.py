"""Compare memory estimates with real tensors, and limits with sizes just below and above them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmcourse.accounting.activations import ActivationCheckpointing, predict_saved_bytes
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.memory import (
    inference_memory,
    largest_batch,
    largest_inference_batch,
    peak_memory,
    training_memory,
)
from lmcourse.accounting.moments import step_moments
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.recipes import RECIPES, find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.models.zoo import find_model

GB = 10**9


MICRO = find_model("micro").decoder
STATES = ("weights", "gradients", "master weights", "optimizer moments")
KEYS_AND_VALUES = 2 * 32 * 4096 * 1024
"""Parameters of Llama 3 8B that make keys and values, for 8 key heads. 16 devices hold each head twice."""


def test_the_loss_counts_three_fp32_copies_of_the_logits() -> None:
    config, recipe = find_model("llama-3.2-1b").decoder, find_recipe("mixed-16-bit-gradients")
    memory = training_memory(config, 8, 8192, recipe, activation_checkpointing="blocks")
    kept = predict_saved_bytes(config, 8, 8192, dtype=recipe.dtype, activation_checkpointing="blocks")
    assert memory["activations"] + memory["logits"] == kept.total
    assert memory["loss backward"] == 2 * 4 * 8 * 8192 * 128_256
    assert 117 * 2**30 < memory.total < 118 * 2**30


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.trains])
def test_activations_follow_the_recipes_formats(name: str) -> None:
    recipe = find_recipe(name)
    moment, *_ = step_moments(Workload(MICRO, 2, 16, recipe))
    saved = predict_saved_bytes(MICRO, 2, 16, dtype=recipe.dtype, autocast=recipe.autocast)
    assert moment["activations"] + moment["logits"] == saved.total


def test_inference_memory_is_weights_plus_cache() -> None:
    config = find_model("llama-3-8b").decoder
    memory = inference_memory(config, 4, 1000)
    assert memory.parts == {"weights": 2 * 8_030_261_248, "KV cache": 4 * 1000 * 131_072}
    assert memory["KV cache"] == cache_bytes(config, 4, 1000).total
    assert inference_memory(config, 4, 1000, layout=Layout(tensor=4)).total * 4 == memory.total
    too_many = inference_memory(config, 4, 1000, layout=Layout(tensor=16))
    assert too_many.parts == {
        "weights": 2 * (8_030_261_248 + KEYS_AND_VALUES) // 16,
        "KV cache": memory["KV cache"] // 8,
    }


def test_training_copies_key_heads_for_more_devices_than_key_heads() -> None:
    config, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed")
    sixteenth = training_memory(config, 1, 2048, recipe, layout=Layout(tensor=16))
    assert sixteenth["weights"] == 2 * (8_030_261_248 + KEYS_AND_VALUES) // 16
    whole = training_memory(config, 1, 2048, recipe)
    copies = sixteenth["activations"] * 16 - whole["activations"]
    assert copies == 2 * 32 * 2048 * 1024 * 2
    assert training_memory(config, 1, 2048, recipe, layout=Layout(tensor=8))["activations"] * 8 == whole["activations"]


def test_largest_inference_batch_fits_and_the_next_does_not() -> None:
    config, room = find_model("llama-3-8b").decoder, 80 * GB
    batch = largest_inference_batch(Workload(config, 1, 8192, find_recipe("mixed")), room)
    assert inference_memory(config, batch, 8192).total <= room < inference_memory(config, batch + 1, 8192).total


def test_parallel_layouts_divide_memory() -> None:
    config, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed-16-bit-gradients")
    whole = training_memory(config, 2, 2048, recipe)
    halves = training_memory(config, 2, 2048, recipe, layout=Layout(tensor=2))
    assert halves.total == pytest.approx(whole.total / 2, abs=10)
    copies = training_memory(config, 2, 2048, recipe, layout=Layout(data=8))
    assert copies == whole
    sharded = training_memory(config, 2, 2048, recipe, layout=Layout(data=8, zero=3))
    assert [sharded[part] * 8 for part in STATES] == [whole[part] for part in STATES]
    layer, ends = 218_112_000, 2 * 4096 * 128_256 + 4096
    few = training_memory(config, 1, 128, recipe, layout=Layout(data=8, zero=3))
    assert (few["gathered weights"], few["whole gradients"]) == (2 * (2 * layer + ends), 2 * 2 * layer)
    assert training_memory(config, 2, 2048, recipe, layout=Layout(data=1, zero=3)) == whole
    room = 80 * GB
    assert largest_batch(Workload(config, 1, 2048, recipe), room) == 0
    assert largest_batch(Workload(config, 1, 2048, recipe, layout=Layout(data=8, zero=3)), room) > 0


@pytest.mark.parametrize("activation_checkpointing", ["nothing", "blocks"])
@pytest.mark.parametrize("recipe", ["fp32", "mixed", "autocast"])
def test_largest_batch_fits_and_the_next_does_not(
    activation_checkpointing: ActivationCheckpointing, recipe: str
) -> None:
    workload = Workload(find_model("gpt-2").decoder, 1, 512, find_recipe(recipe), activation_checkpointing)
    batch = largest_batch(workload, 16 * GB)
    needed, too_much = (peak_memory(replace(workload, batch=size)).total for size in (batch, batch + 1))
    assert needed <= 16 * GB < too_much
    assert largest_batch(workload, needed) == batch  # the limit is exactly the needed size
    assert largest_batch(workload, peak_memory(workload).total) == 1
    assert largest_batch(workload, GB) == 0


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="'inference' has no gradients"):
        training_memory(MICRO, 1, 8, find_recipe("inference"))
