"""Bytes of memory for training and for generation, and the largest model or batch that fits.

States (weights, gradients, optimiser) are counted by `recipes`, activations by `activations`, keys and values by
`kv_cache`. Memory that no formula covers is left out: workspaces of kernels and gaps between tensors, which take some
hundred megabytes to a few gigabytes of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from lmcourse.accounting.activations import ActivationCheckpointing, Form
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.moments import step_moments
from lmcourse.accounting.parallel import ONE_DEVICE, Layout, state_memory
from lmcourse.accounting.parameters import block_weights, count_parameters
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.models.config import TransformerConfig


def training_memory(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    recipe: PrecisionRecipe,
    *,
    activation_checkpointing: ActivationCheckpointing = "nothing",
    attention: Form = "fused",
    layout: Layout = ONE_DEVICE,
    z_loss: bool = False,
) -> Breakdown[int]:
    """Return the bytes that a training step needs on each device at its peak.

    That moment is most often the backward pass of the loss, when the logits are there up to three times: "logits" is
    what head and loss keep, "loss backward" what comes on top. See `step_moments` for the others. Gradients of all
    parameters are counted, as they are there from the second micro-batch on. Step counters of the optimiser, a few
    hundred bytes, are left out.

    Args:
        config, batch, seq_len, activation_checkpointing, attention: as in `predict_saved_bytes`.
        recipe: how numbers are stored.
        layout: tensor parallelism divides activations too, as it does with sequence parallelism. A pipeline does not:
            its first stage has fewer layers and as many more micro-batches under way (Narayanan et al., 2021, §2.2).
            `batch` is what each replica of the model reads at once.
        z_loss: as in `step_moments`.

    Raises:
        ValueError: as in `predict_saved_bytes`, or the recipe is not for training.
    """
    if not recipe.trains:
        raise ValueError(f"recipe {recipe.name!r} has no gradients: choose a recipe for training")
    moments = step_moments(
        config,
        batch,
        seq_len,
        recipe,
        activation_checkpointing=activation_checkpointing,
        attention=attention,
        z_loss=z_loss,
    )
    worst = max(moments, key=lambda moment: moment.total)
    states = state_memory(count_parameters(config).total, recipe, layout, matrices=block_weights(config))
    return states + Breakdown({part: ceil(size / layout.tensor) for part, size in worst})


def inference_memory(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    precision: Format = "bf16",
    layout: Layout = ONE_DEVICE,
) -> Breakdown[int]:
    """Return the bytes to generate texts of up to `seq_len` tokens on each device: weights and KV cache, in the given
    format.

    Key heads are not cut: with more devices in tensor parallelism than key heads, some hold the same.

    Raises:
        ValueError: as in `cache_bytes`.
    """
    weights = BYTES_PER_NUMBER[precision] * count_parameters(config).total / (layout.tensor * layout.pipeline)
    heads = min(layout.tensor, *(layer.attention.key_heads for layer in config.layers))
    cache = cache_bytes(config, batch, seq_len, precision=precision).total / (heads * layout.pipeline)
    return Breakdown({"weights": ceil(weights), "KV cache": ceil(cache)})


def largest_parameters(memory: int, recipe: PrecisionRecipe) -> int:
    """Return the number of parameters that fit into this many bytes, without activations."""
    return int(memory / recipe.per_parameter)


def largest_batch(
    config: TransformerConfig,
    seq_len: int,
    recipe: PrecisionRecipe,
    memory: int,
    *,
    activation_checkpointing: ActivationCheckpointing = "nothing",
    layout: Layout = ONE_DEVICE,
) -> int:
    """Return the largest batch per replica that can be trained with this many bytes per device; 0 if none fits."""

    def size(batch: int) -> int:
        return training_memory(
            config, batch, seq_len, recipe, activation_checkpointing=activation_checkpointing, layout=layout
        ).total

    return _largest(size, memory)


def largest_inference_batch(
    config: TransformerConfig, seq_len: int, memory: int, *, precision: Format = "bf16", layout: Layout = ONE_DEVICE
) -> int:
    """Return the largest batch that can be generated with this many bytes per device; 0 if none fits."""
    return _largest(
        lambda batch: inference_memory(config, batch, seq_len, precision=precision, layout=layout).total, memory
    )


def _largest(size: Callable[[int], int], room: int) -> int:
    """Return the largest n ≥ 1 with size(n) ≤ limit, or 0 if there is none; `size` grows."""
    low, high = 0, 1
    while size(high) <= room:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= room else (low, middle)
    return low
