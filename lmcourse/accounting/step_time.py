"""A model of one training step on a cluster: seconds and memory of a layout, with two kinds of links.

A machine holds a few devices, which exchange data over fast links; machines exchange data over slow ones. Tensor
parallelism stays inside a machine; the stages of a pipeline and the copies of the model come next. The model counts
what guides to large-scale training count: arithmetic, traffic, the pipeline bubble, overlap and memory. It leaves out
latency, attention scores, embedding and head as separate layers, and memory that no formula covers.

With ZeRO 3 a device also holds whole layers for a while; `moments` counts them exactly.

Sources: Narayanan et al. (2021) for bubble and interleaving, Korthikanti et al. (2022) for activations (with sequence
parallelism, without the attention scores), Rajbhandari et al. (2020) for ZeRO. Units are seconds, bytes and FLOP/s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.parallel import FIRST_ZERO_STAGE, Layout, ZeroStage, all_gather_bytes, all_reduce_bytes
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.models.config import TransformerConfig

BACKWARD_SHARE = 2 / 3
"""The fraction of a step's arithmetic in the backward pass, during which gradients are sent."""

KEPT, KEPT_WITH_RECOMPUTATION = 34, 2
"""Bytes that a block keeps per token and feature: all activations, or only its input."""

STATE = find_recipe("mixed-16-bit-gradients").memory(1).parts
"""Bytes per parameter in mixed precision with AdamW and 16-bit gradients, part by part."""

WHOLE_LAYERS = 2 * STATE["weights"] + 2 * STATE["gradients"]
"""Bytes per parameter of a layer that ZeRO 3 needs beside its parts: the weights of the layer that computes and of the
next one, the gradients of the former and of the layer before, which are being summed."""

H100 = find_accelerator("h100-sxm")

LayoutTuple = tuple[int, int, int, ZeroStage, int]
"""Numbers of data, tensor and pipeline parallel devices, stage of ZeRO, and texts per micro-batch."""


@dataclass(frozen=True)
class TrainingStep:
    """The work of one step: a model and a batch.

    Attributes:
        parameters, layers, d_model, kv_heads: sizes of the model.
        texts: number of texts in a step, for all copies of the model together.
        seq_len: tokens per text.
    """

    parameters: int
    layers: int
    d_model: int
    kv_heads: int
    texts: int
    seq_len: int = 8192

    @classmethod
    def of(cls, config: TransformerConfig, texts: int, seq_len: int = 8192) -> TrainingStep:
        """Return a step with this many texts for a model whose layers are all the same."""
        key_heads = config.layers[0].attention.key_heads
        return cls(count_parameters(config).total, len(config.layers), config.d_model, key_heads, texts, seq_len)

    @property
    def flops(self) -> float:
        """Model FLOPs: 6 per parameter and token."""
        return 6.0 * self.parameters * self.texts * self.seq_len


@dataclass(frozen=True)
class Machines:
    """A cluster of equal machines; by default, machines with eight H100s.

    Attributes:
        devices: number of devices in the cluster.
        per_machine: devices per machine.
        peak: peak FLOP/s of a device.
        efficiency: the fraction of the peak that large matrix products reach.
        inside, outside: bytes per second that a device can send to a device in the same machine, and in another
            machine.
        memory: bytes of memory per device.
    """

    devices: int
    per_machine: int = 8
    peak: float = H100.peak("bf16")
    efficiency: float = 0.7
    inside: float = 450e9
    outside: float = 50e9
    memory: float = 80e9


@dataclass(frozen=True)
class StepParts:
    """The components of a step on the busiest device, before they are combined.

    Attributes:
        micro_batches: the number that a copy of the model processes in a step.
        arithmetic, tensor, border: seconds for computing, for the traffic of tensor parallelism and for the traffic
            between stages, for all micro-batches.
        gradients: seconds for sending gradients (and, with ZeRO, weights).
        state: bytes of weights, gradients and optimizer; with ZeRO 3, also those of whole layers.
        activations: bytes that one micro-batch keeps.
    """

    micro_batches: int
    arithmetic: float
    tensor: float
    border: float
    gradients: float
    state: float
    activations: float


@dataclass(frozen=True)
class StepTime:
    """Seconds and bytes of a step on the busiest device.

    Attributes:
        parts: the parts that make up the step.
        bubble: seconds in which a stage of the pipeline waits.
        hidden: seconds of sending gradients that overlap with arithmetic.
        memory: peak of memory in bytes.
    """

    parts: StepParts
    bubble: float
    hidden: float
    memory: float

    @property
    def seconds(self) -> float:
        """Seconds of the whole step."""
        parts = self.parts
        return parts.arithmetic + parts.tensor + parts.border + self.bubble + (parts.gradients - self.hidden)

    def mfu(self, step: TrainingStep, machines: Machines) -> float:
        """Return model FLOPs over what the devices could compute at their peak."""
        return step.flops / (self.seconds * machines.devices * machines.peak)


def step_parts(
    step: TrainingStep,
    machines: Machines,
    data: int,
    tensor: int,
    pipeline: int,
    zero: ZeroStage,
    micro: int,
    *,
    recompute: bool = False,
    interleave: int = 1,
) -> StepParts:
    """Return the components of a step for a layout; the stage with the most layers sets the pace.

    Raises ValueError if the layout does not use all devices, or the texts cannot be divided in this way.

    Args:
        step, machines: the work, and the machines that do it.
        data, tensor, pipeline: devices per dimension.
        zero: the stage of ZeRO.
        micro: texts per micro-batch.
        recompute: whether to keep only the input of each block, and to repeat its forward pass before the backward
            pass.
        interleave: the number of pieces of the model that each stage holds; activations cross each border this many
            times.
    """
    if Layout(data, tensor, pipeline, zero).devices != machines.devices:
        raise ValueError(f"{data} x {tensor} x {pipeline} is not the number of devices, {machines.devices}")
    if micro < 1 or step.texts % (data * micro):
        raise ValueError(f"{step.texts} texts cannot be divided into micro-batches of {micro} on {data} copies")
    count = step.texts // (data * micro)
    layers = ceil(step.layers / pipeline)
    parameters = step.parameters * layers / step.layers / tensor
    tokens = micro * step.seq_len
    stream = 2.0 * tokens * step.d_model
    passes = 4 if recompute else 3
    # one all-reduce for each half of a block in every pass: forward, backward and, if recomputed, forward again
    reduced = 2 * passes - 2
    outer = machines.inside if machines.devices <= machines.per_machine else machines.outside
    border = count * 2 * interleave * stream / tensor / outer if pipeline > 1 else 0.0
    kept = KEPT * layers if not recompute else KEPT_WITH_RECOMPUTATION * layers + KEPT
    return StepParts(
        micro_batches=count,
        arithmetic=count * 2 * passes * parameters * tokens / (machines.peak * machines.efficiency),
        tensor=count * layers * reduced * all_reduce_bytes(1, tensor) * stream / machines.inside,
        border=border,
        gradients=_gradient_bytes(parameters, data, zero, count) / outer,
        state=sum(size * parameters / (data if zero >= FIRST_ZERO_STAGE[part] else 1) for part, size in STATE.items())
        + (WHOLE_LAYERS * parameters / layers if zero == 3 and data > 1 else 0),
        activations=kept * stream / 2 / tensor,
    )


def _gradient_bytes(parameters: float, data: int, zero: ZeroStage, micro_batches: int) -> float:
    """Return the bytes that a device sends to the other copies; divided parts are summed or gathered in each
    micro-batch."""
    share = 2 * parameters * all_gather_bytes(1, data)
    sums = micro_batches if zero >= 2 else 1
    gathers = 2 * micro_batches if zero == 3 else 1
    return share * (sums + gathers)


def step_time(
    step: TrainingStep, machines: Machines, *layout: *LayoutTuple, recompute: bool = False, interleave: int = 1
) -> StepTime:
    """Return seconds and memory of a step with 1F1B; arguments and errors as in `step_parts`."""
    parts, pipeline = step_parts(step, machines, *layout, recompute=recompute, interleave=interleave), layout[2]
    busy = parts.arithmetic + parts.tensor + parts.border
    alive = min(pipeline, parts.micro_batches)
    more = 1 + (pipeline - 1) / (pipeline * interleave) if interleave > 1 else 1.0
    backward = BACKWARD_SHARE if not recompute else 3 / 4
    return StepTime(
        parts,
        bubble=busy * (pipeline - 1) / parts.micro_batches / interleave,
        hidden=min(parts.gradients, backward * parts.arithmetic),
        memory=parts.state + parts.activations * alive * more,
    )


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def candidates(step: TrainingStep, machines: Machines) -> Iterator[LayoutTuple]:
    """Yield the layouts (data, tensor, pipeline, zero, micro) that a cluster allows, by pipeline, zero, tensor, micro.

    Tensor parallelism stays inside a machine and divides the key heads, each stage has at least one layer, and the size
    of a micro-batch divides a copy's texts. Memory is not checked. With a single copy of the model there is no ZeRO.
    """
    tensors = [n for n in _divisors(machines.per_machine) if step.kv_heads % n == 0]
    stages: tuple[ZeroStage, ...] = (0, 1, 2, 3)
    for pipeline in _divisors(machines.devices):
        for zero in stages:
            for tensor in tensors:
                data, rest = divmod(machines.devices, pipeline * tensor)
                if rest or pipeline > step.layers or step.texts % data or (data == 1 and zero):
                    continue
                for micro in _divisors(step.texts // data):
                    yield data, tensor, pipeline, zero, micro
