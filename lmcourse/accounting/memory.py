"""Bytes of memory for training and for generation, and the largest model or batch that fits.

`recipes` counts states (weights, gradients, optimizer), `activations` counts activations, and `kv_cache` counts keys
and values. Memory that no formula covers is left out: workspaces of kernels and gaps between tensors, which take from a
few hundred megabytes to a few gigabytes on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from lmcourse.accounting.activations import ActivationCheckpointing
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.forward_pass import Form
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.moments import step_moments
from lmcourse.accounting.parallel import ONE_DEVICE, Layout, state_memory, with_copied_key_heads
from lmcourse.accounting.parameters import block_weights, count_parameters
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.accounting.workload import Workload
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
    """Return the `peak_memory` of a `Workload` with these fields."""
    return peak_memory(
        Workload(config, batch, seq_len, recipe, activation_checkpointing, layout, attention=attention, z_loss=z_loss)
    )


def peak_memory(workload: Workload) -> Breakdown[int]:
    """Return the bytes that a training step needs on each device at its peak.

    The peak is usually in the backward pass of the loss, when up to three tensors are as large as the logits: "logits"
    is what head and loss keep, and "loss backward" is what their backward pass adds. `step_moments` lists the other
    moments. Gradients of all parameters are counted, because they exist from the second micro-batch on. The optimizer's
    step counters, a few hundred bytes, are left out.

    Tensor parallelism is assumed to divide activations, too, as it does together with sequence parallelism, except for
    key heads, as in `inference_memory`. A pipeline does not reduce activations: its first stage has fewer layers, but
    activations of correspondingly more micro-batches (Narayanan et al., 2021, §2.2). With ZeRO's stage 3, weights and
    gradients that are whole for a while count, too, as FSDP2 gathers and sums them.

    Raises ValueError as `predict_saved_bytes` does, and if the recipe is not for training.
    """
    recipe, layout = workload.recipe, workload.layout
    if not recipe.trains:
        raise ValueError(f"recipe {recipe.name!r} has no gradients: choose a recipe for training")
    config = with_copied_key_heads(workload.config, layout.tensor)
    worst = max(step_moments(replace(workload, config=config)), key=lambda moment: moment.total)
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
    config, devices = with_copied_key_heads(config, layout.tensor), layout.tensor * layout.pipeline
    weights = BYTES_PER_NUMBER[precision] * count_parameters(config).total
    cache = cache_bytes(config, batch, seq_len, precision=precision).total
    return Breakdown({"weights": ceil(weights / devices), "KV cache": ceil(cache / devices)})


def generation_memory(workload: Workload) -> Breakdown[int]:
    """Return the `inference_memory` of a workload in the format of its matrix products."""
    precision = workload.recipe.matmul_precision
    return inference_memory(
        workload.config, workload.batch, workload.seq_len, precision=precision, layout=workload.layout
    )


def largest_parameters(memory: int, recipe: PrecisionRecipe) -> int:
    """Return the number of parameters that fit into this many bytes, without activations."""
    return int(memory / recipe.per_parameter)


def largest_batch(workload: Workload, memory: int) -> int:
    """Return the largest batch per replica that this many bytes per device allow in training; 0 if no batch fits."""
    return _largest(peak_memory, workload, memory)


def largest_inference_batch(workload: Workload, memory: int) -> int:
    """Return the largest batch that this many bytes per device allow in generation; 0 if no batch fits."""
    return _largest(generation_memory, workload, memory)


def _largest(needed: Callable[[Workload], Breakdown[int]], workload: Workload, memory: int) -> int:
    def fits(batch: int) -> bool:
        return needed(replace(workload, batch=batch)).total <= memory

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
