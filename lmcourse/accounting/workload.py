"""Estimate all costs of a model from one description: parameters, FLOPs, memory, KV cache, latency and days.

This module only calls others: each number comes from the module that explains it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.activations import ActivationCheckpointing
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import TrainingFlops, muon_flops, training_flops
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.latency import Limit, Operation, forward_operations, roofline_mfu, roofline_seconds
from lmcourse.accounting.memory import inference_memory, largest_batch, largest_inference_batch, training_memory
from lmcourse.accounting.mfu import Cluster
from lmcourse.accounting.parallel import ONE_DEVICE, Layout, check_tensor_parallel, tensor_parallel_traffic
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.checks import check_type


@dataclass(frozen=True)
class Workload:
    """The work to account for: model, batch, sequence length, precision recipe, device layout.

    Raises TypeError if the model or the recipe has the wrong type, for example a name instead of the object, and
    ValueError if the model cannot be divided in this way.

    Attributes:
        config: the model.
        batch: number of texts that a replica of the model reads at once. A replica is one device, or the devices that
            divide one copy of the model.
        seq_len: tokens per text.
        recipe: the formats of weights, gradients and optimizer state.
        activation_checkpointing: "blocks" recomputes blocks in the backward pass.
        layout: the numbers of devices for each kind of parallelism.

    Example:
        >>> work = Workload(find_model("llama-3-8b").config, batch=1, seq_len=8192, recipe=find_recipe("mixed"))
        >>> work.recipe.per_parameter
        18
    """

    config: TransformerConfig
    batch: int
    seq_len: int
    recipe: PrecisionRecipe
    activation_checkpointing: ActivationCheckpointing = "nothing"
    layout: Layout = ONE_DEVICE

    def __post_init__(self) -> None:
        check_type("config", self.config, TransformerConfig, 'such as find_model("llama-3-8b").config')
        check_type("recipe", self.recipe, PrecisionRecipe, 'such as find_recipe("mixed")')
        check_tensor_parallel(self.config, self.layout.tensor)

    @property
    def writes(self) -> bool:
        """True if the model can generate texts, that is, if no layer sees later tokens."""
        return all(layer.attention.pattern.causal for layer in self.config.layers)


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


LARGEST_FLOPS = 10**40
"""Largest allowed number of FLOPs: more than any machine can do, and far below the largest float."""


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

    Anything but a `Workload` raises TypeError, and an impossible size raises ValueError.

    Example:
        >>> cost = account(Workload(find_model("gpt-2").config, batch=8, seq_len=1024, recipe=find_recipe("mixed")))
        >>> f"{cost.parameters.total:,} parameters"
        '124,439,808 parameters'
    """
    check_type("workload", workload, Workload, 'such as Workload(config, 1, 2048, find_recipe("mixed"))')
    config, batch, seq_len, recipe = workload.config, workload.batch, workload.seq_len, workload.recipe
    training = cache = inference = None
    if recipe.trains:
        training = training_memory(
            config,
            batch,
            seq_len,
            recipe,
            activation_checkpointing=workload.activation_checkpointing,
            layout=workload.layout,
        )
    if workload.writes:
        cache = cache_bytes(config, batch, seq_len, precision=recipe.matmul_precision)
        inference = inference_memory(config, batch, seq_len, precision=recipe.matmul_precision, layout=workload.layout)
    return ModelCost(
        count_parameters(config),
        matmul_parameters(config),
        training_flops(config, batch, seq_len, recompute=workload.activation_checkpointing),
        0 if recipe.matrix_moments is None else muon_flops(config),
        training,
        cache,
        inference,
    )


def estimate_performance(workload: Workload, accelerator: Accelerator) -> Performance:
    """Estimate the limits of a workload on this hardware: batches, MFU, times.

    An accelerator that cannot compute in the recipe's format raises ValueError.
    """
    config, precision, room = workload.config, workload.recipe.matmul_precision, accelerator.memory
    best = roofline_mfu(config, workload.batch, workload.seq_len, accelerator, precision)
    train = write = prefill = decode = None
    if workload.recipe.trains:
        train = largest_batch(
            config,
            workload.seq_len,
            workload.recipe,
            room,
            activation_checkpointing=workload.activation_checkpointing,
            layout=workload.layout,
        )
    if workload.writes:
        write = largest_inference_batch(config, workload.seq_len, room, precision=precision, layout=workload.layout)
        first = forward_operations(config, workload.batch, workload.seq_len, precision=precision)
        prefill = _time(workload, accelerator, first, workload.seq_len)
        step = forward_operations(config, workload.batch, 1, past=workload.seq_len, precision=precision)
        decode = _time(workload, accelerator, step, 1)
    return Performance(train, write, best, prefill, decode)


def _time(
    workload: Workload, accelerator: Accelerator, operations: dict[str, Operation], seq_len: int
) -> RooflineTiming:
    """Return the roofline time of a pass: each group's time divided by the tensor-parallel size, plus all-reduces."""
    precision, tensor = workload.recipe.matmul_precision, workload.layout.tensor
    seconds = roofline_seconds(operations, accelerator, precision) * (1 / tensor)
    if tensor > 1 and accelerator.link is not None:
        sent = tensor_parallel_traffic(workload.config, workload.batch, seq_len, tensor, precision=precision)["forward"]
        seconds += Breakdown({"network": sent / (accelerator.link / 2)})
    return RooflineTiming(seconds, {group: work.limit(accelerator, precision) for group, work in operations.items()})


def estimate_training_run(workload: Workload, accelerator: Accelerator, tokens: int, mfu: float) -> TrainingRun:
    """Estimate a whole training run at a given MFU.

    An MFU that is not between 0 and 1, or a format that the accelerator lacks, raises ValueError.
    """
    cluster = Cluster(accelerator, workload.layout.devices, mfu, workload.recipe.matmul_precision)
    per_text = training_flops(workload.config, 1, workload.seq_len).model.total
    flops = per_text * tokens // workload.seq_len
    if flops > LARGEST_FLOPS:
        raise ValueError(f"{tokens:.3g} tokens are too many: they need more than {LARGEST_FLOPS:.0g} FLOPs, the limit")
    energy = None if accelerator.power is None else cluster.energy(flops)
    return TrainingRun(tokens, flops, cluster.days(flops), cluster.device_hours(flops), energy)
