"""Bytes of memory for training and for generation, and the largest model or batch that fits.

`recipes` counts states (weights, gradients, optimizer), `activations` counts activations, and `kv_cache` counts keys
and values. Memory that no formula covers is left out: workspaces of kernels and gaps between tensors, which take from a
few hundred megabytes to a few gigabytes on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from lmcourse.accounting.activations import ActivationCheckpointing, Form
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.moments import step_moments
from lmcourse.accounting.parallel import ONE_DEVICE, Layout, state_memory, with_copied_key_heads
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

    The peak is usually in the backward pass of the loss, when up to three tensors are as large as the logits: "logits"
    is what head and loss keep, and "loss backward" is what their backward pass adds. `step_moments` lists the other
    moments. Gradients of all parameters are counted, because they exist from the second micro-batch on. The optimizer's
    step counters, a few hundred bytes, are left out. Raises ValueError as `predict_saved_bytes` does, and if the recipe
    is not for training.

    Args:
        config, batch, seq_len, activation_checkpointing, attention: as in `predict_saved_bytes`.
        recipe: the formats of weights, gradients and optimizer state.
        layout: the devices. Tensor parallelism is assumed to divide activations, too, as it does together with sequence
            parallelism, except for key heads, as in `inference_memory`. A pipeline does not reduce activations: its
            first stage has fewer layers, but activations of correspondingly more micro-batches (Narayanan et al., 2021,
            §2.2). `batch` is the number of texts that each replica of the model reads at once. With ZeRO's stage 3,
            weights and gradients that are whole for a while count, too, as FSDP2 gathers and sums them.
        z_loss: as in `step_moments`.
    """
    if not recipe.trains:
        raise ValueError(f"recipe {recipe.name!r} has no gradients: choose a recipe for training")
    config = with_copied_key_heads(config, layout.tensor)
    moments = step_moments(
        config,
        batch,
        seq_len,
        recipe,
        activation_checkpointing=activation_checkpointing,
        attention=attention,
        z_loss=z_loss,
        sharded=layout.zero == 3 and layout.data > 1,
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
    """Return the bytes on each device to generate texts of up to `seq_len` tokens: weights and KV cache.

    A key head is never divided: if tensor parallelism has more devices than key heads, several devices hold a copy of
    the same head. Errors as in `cache_bytes`.
    """
    config = with_copied_key_heads(config, layout.tensor)
    weights = BYTES_PER_NUMBER[precision] * count_parameters(config).total / (layout.tensor * layout.pipeline)
    cache = cache_bytes(config, batch, seq_len, precision=precision).total / (layout.tensor * layout.pipeline)
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
    """Return the largest batch per replica that this many bytes per device allow in training; 0 if no batch fits."""

    def size(batch: int) -> int:
        return training_memory(
            config, batch, seq_len, recipe, activation_checkpointing=activation_checkpointing, layout=layout
        ).total

    return _largest(size, memory)


def largest_inference_batch(
    config: TransformerConfig, seq_len: int, memory: int, *, precision: Format = "bf16", layout: Layout = ONE_DEVICE
) -> int:
    """Return the largest batch that this many bytes per device allow in generation; 0 if no batch fits."""
    return _largest(
        lambda batch: inference_memory(config, batch, seq_len, precision=precision, layout=layout).total, memory
    )


def _largest(size: Callable[[int], int], room: int) -> int:
    """Return the largest n ≥ 1 with size(n) ≤ limit, or 0 if there is none; `size` must be increasing."""
    low, high = 0, 1
    while size(high) <= room:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= room else (low, middle)
    return low
