"""Estimate all costs of a workload: parameters, FLOPs, memory, KV cache, latency and days.

This module only calls others: each number comes from the module that explains it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import TrainingFlops, muon_flops, training_flops
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.latency import Limit, forward_operations, roofline_mfu, roofline_seconds
from lmcourse.accounting.memory import generation_memory, largest_batch, largest_inference_batch, peak_memory
from lmcourse.accounting.mfu import Cluster
from lmcourse.accounting.parallel import check_tensor_parallel, tensor_parallel_traffic
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.accounting.workload import Workload
from lmcourse.nn.checks import check_type

LARGEST_FLOPS = 10**40
"""Largest allowed number of FLOPs: more than any machine can do, and far below the largest float."""


@dataclass(frozen=True)
class ModelCost:
    """Hardware-independent costs: parameters, FLOPs, memory and KV cache. Memory is in bytes on each device.

    Attributes:
        parameters: number of parameters by part.
        matmul_parameters: number of weights that every token is multiplied by.
        flops: FLOPs of a training step of one replica.
        optimizer_flops: FLOPs of Muon's matrix products in a step; 0 without Muon.
        training: memory for training; None if the recipe is not for training.
        cache, inference: KV cache and memory for generation; None if the model cannot generate.
    """

    parameters: Breakdown[int]
    matmul_parameters: int
    flops: TrainingFlops
    optimizer_flops: int
    training: Breakdown[int] | None
    cache: Breakdown[int] | None
    inference: Breakdown[int] | None


@dataclass(frozen=True)
class RooflineTiming:
    """The shortest possible seconds of a forward pass by the roofline, and what limits them, by group of operators."""

    seconds: Breakdown[float]
    limits: dict[str, Limit]


@dataclass(frozen=True)
class Performance:
    """Hardware-dependent limits: largest batches, best MFU, prefill and decode times.

    Attributes:
        largest_training_batch, largest_inference_batch: largest batches of a replica; 0 if not even one text fits, None
            if the model or the recipe does not allow training or generation.
        best_mfu: the upper limit from the roofline.
        prefill, decode: times for reading the batch, and for one more token in each of its texts. None if the model
            cannot generate.
    """

    largest_training_batch: int | None
    largest_inference_batch: int | None
    best_mfu: float
    prefill: RooflineTiming | None
    decode: RooflineTiming | None


@dataclass(frozen=True)
class TrainingRun:
    """Tokens, FLOPs, time and energy of a training run.

    Attributes:
        tokens: number of tokens read.
        flops: model FLOPs.
        days, device_hours: elapsed time in days, and hours summed over all devices.
        energy: energy in kWh at the power limit; None if the limit is not known.
    """

    tokens: int
    flops: int
    days: float
    device_hours: float
    energy: float | None


def account(workload: Workload) -> ModelCost:
    """Compute the costs of a workload that do not depend on hardware.

    Anything but a `Workload` raises TypeError. An impossible size, or a model that the devices cannot divide, raises
    ValueError.

    Example:
        >>> cost = account(Workload(find_model("gpt-2").config, batch=8, seq_len=1024, recipe=find_recipe("mixed")))
        >>> f"{cost.parameters.total:,} parameters"
        '124,439,808 parameters'
    """
    check_type("workload", workload, Workload, 'such as Workload(config, 1, 2048, find_recipe("mixed"))')
    config, batch, seq_len, recipe = workload.config, workload.batch, workload.seq_len, workload.recipe
    check_tensor_parallel(config, workload.layout.tensor)
    return ModelCost(
        parameters=count_parameters(config),
        matmul_parameters=matmul_parameters(config),
        training=peak_memory(workload) if recipe.trains else None,
        cache=cache_bytes(config, batch, seq_len, precision=recipe.matmul_precision) if workload.writes else None,
        inference=generation_memory(workload) if workload.writes else None,
        flops=training_flops(config, batch, seq_len, recompute=workload.activation_checkpointing),
        optimizer_flops=0 if recipe.matrix_moments is None else muon_flops(config),
    )


def estimate_performance(workload: Workload, accelerator: Accelerator) -> Performance:
    """Estimate the limits of a workload on this hardware: batches, MFU, times.

    An accelerator that cannot compute in the recipe's format raises ValueError.
    """
    config, recipe, memory = workload.config, workload.recipe, accelerator.memory
    check_tensor_parallel(config, workload.layout.tensor)
    return Performance(
        best_mfu=roofline_mfu(config, workload.batch, workload.seq_len, accelerator, recipe.matmul_precision),
        largest_training_batch=largest_batch(workload, memory) if recipe.trains else None,
        largest_inference_batch=largest_inference_batch(workload, memory) if workload.writes else None,
        prefill=_time(workload, accelerator, workload.seq_len) if workload.writes else None,
        decode=_time(workload, accelerator, 1, past=workload.seq_len) if workload.writes else None,
    )


def _time(workload: Workload, accelerator: Accelerator, seq_len: int, past: int = 0) -> RooflineTiming:
    """Return the roofline time of a pass: each group's time divided by the tensor-parallel size, plus all-reduces."""
    config, batch, tensor = workload.config, workload.batch, workload.layout.tensor
    precision = workload.recipe.matmul_precision
    operations = forward_operations(config, batch, seq_len, past=past, precision=precision)
    seconds = roofline_seconds(operations, accelerator, precision) * (1 / tensor)
    if tensor > 1 and accelerator.link is not None:
        sent = tensor_parallel_traffic(config, batch, seq_len, tensor, precision=precision)["forward"]
        seconds += Breakdown({"network": sent / (accelerator.link / 2)})
    return RooflineTiming(seconds, {group: work.limit(accelerator, precision) for group, work in operations.items()})


def estimate_training_run(workload: Workload, accelerator: Accelerator, tokens: int, mfu: float) -> TrainingRun:
    """Estimate a whole training run at a given MFU.

    An MFU that is not between 0 and 1, a format that the accelerator lacks, or a model that the devices cannot divide
    raises ValueError.
    """
    check_tensor_parallel(workload.config, workload.layout.tensor)
    cluster = Cluster(accelerator, workload.layout.devices, mfu, workload.recipe.matmul_precision)
    per_text = training_flops(workload.config, 1, workload.seq_len).model.total
    flops = per_text * tokens // workload.seq_len
    if flops > LARGEST_FLOPS:
        raise ValueError(f"{tokens:.3g} tokens are too many: they need more than {LARGEST_FLOPS:.0g} FLOPs, the limit")
    energy = None if accelerator.power is None else cluster.energy(flops)
    return TrainingRun(tokens, flops, cluster.days(flops), cluster.device_hours(flops), energy)
