"""The bytes that each device of a parallel run holds and sends, and the schedules of a pipeline.

Ways to divide a training step; the numbers of devices multiply:

- data: every device has different texts. With ZeRO the optimizer state (stage 1), gradients (2) and weights (3) are
  divided, too (Rajbhandari et al., 2020);
- tensor: every matrix is divided into T parts (Shoeybi et al., 2019). With sequence parallelism the activations between
  the matrices are divided along the tokens (Korthikanti et al., 2022); `korthikanti` in `activation_rules` has the
  formula for the activations;
- pipeline: every device has some of the layers (Huang et al., 2019).

Sizes are in bytes. Traffic is the number of bytes that each device sends; it receives the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.recipes import PrecisionRecipe
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.block import LayerConfig

ZeroStage = Literal[0, 1, 2, 3]

FIRST_ZERO_STAGE: dict[str, ZeroStage] = {
    "weights": 3,
    "gradients": 2,
    "master weights": 1,
    "optimizer moments": 1,
}
"""For each part, the first stage of ZeRO that divides it among the data-parallel devices."""


@dataclass(frozen=True)
class Layout:
    """The number of devices that share the work, for each kind of parallelism.

    Attributes:
        data, tensor, pipeline: devices per dimension; their product is the number of devices.
        zero: the stage of ZeRO, 0 to 3.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    zero: ZeroStage = 0

    def __post_init__(self) -> None:
        if min(self.data, self.tensor, self.pipeline) < 1:
            raise ValueError("every parallel dimension needs at least 1 device")
        if self.zero not in range(4):
            raise ValueError(f"the ZeRO stage must be from 0 to 3, not {self.zero}")

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.data * self.tensor * self.pipeline


ONE_DEVICE = Layout()


def check_tensor_parallel(config: TransformerConfig, tensor: int) -> None:
    """Raise ValueError unless every device gets whole heads and the same number of hidden features.

    If there are fewer key heads than devices, each head is copied to the same number of devices, as inference servers
    do.
    """
    for index, layer in enumerate(config.layers):
        key_heads = layer.attention.key_heads
        cut = {} if tensor % key_heads == 0 else {"key heads": key_heads}
        sizes = {"heads": layer.attention.heads, **cut, "hidden features": layer.feed_forward.width}
        for what, size in sizes.items():
            if size % tensor:
                raise ValueError(
                    f"layer {index} has {size} {what}, which {tensor} devices cannot divide evenly: "
                    f"choose a divisor of {size} for tensor parallelism"
                )


def with_copied_key_heads(config: TransformerConfig, tensor: int) -> TransformerConfig:
    """Return the model with a key head of its own for each of T devices, if it has fewer key heads than T.

    A T-th of the result is what a device holds: several devices hold a copy of the same key head. A model whose heads T
    does not divide stays as it is.
    """

    def copied(layer: LayerConfig) -> LayerConfig:
        attention = layer.attention
        if attention.key_heads >= tensor or tensor % attention.key_heads or attention.heads % tensor:
            return layer
        width = attention.head_width(config.d_model)
        return replace(layer, attention=replace(attention, kv_heads=tensor, d_head=width))

    return config.with_(layers=tuple(copied(layer) for layer in config.layers))


def state_memory(parameters: int, recipe: PrecisionRecipe, layout: Layout, *, matrices: int = 0) -> Breakdown[int]:
    """Return the bytes of weights, gradients and optimizer on each device; `matrices` as in `PrecisionRecipe.memory`.

    Embedding and head are assumed to be divided as evenly as the layers. In a real pipeline the first and the last
    stage hold more.
    """
    devices = layout.tensor * layout.pipeline

    def shares(part: str) -> int:
        return devices * layout.data if layout.zero >= FIRST_ZERO_STAGE[part] else devices

    return Breakdown({part: ceil(size / shares(part)) for part, size in recipe.memory(parameters, matrices=matrices)})


def all_gather_bytes(size: int, devices: int) -> float:
    """Return the bytes that each of n devices sends in a ring all-gather of `size` bytes: n − 1 of the n parts."""
    return (devices - 1) / devices * size


def reduce_scatter_bytes(size: int, devices: int) -> float:
    """Return the bytes that each device sends in a ring reduce-scatter of `size` bytes: as many as in an all-gather."""
    return all_gather_bytes(size, devices)


def all_reduce_bytes(size: int, devices: int) -> float:
    """Return the bytes that each of n devices sends in a ring all-reduce: 2(n − 1)/n · size. It consists of a
    reduce-scatter and an all-gather, and is nearly independent of n (Patarasuk and Yuan, 2009)."""
    return reduce_scatter_bytes(size, devices) + all_gather_bytes(size, devices)


def data_parallel_traffic(parameters: int, recipe: PrecisionRecipe, layout: Layout) -> Breakdown[float]:
    """Return the bytes that each device sends per step to sum gradients and to gather divided weights.

    Stages 0 to 2 send 2 Ψ for Ψ parameters, stage 3 sends 3 Ψ: weights are gathered in the forward and again in the
    backward pass (Rajbhandari et al., 2020, §7).
    """
    states, n = state_memory(parameters, recipe, Layout(1, layout.tensor, layout.pipeline)), layout.data
    if layout.zero == 0:
        return Breakdown({"gradients, all-reduce": all_reduce_bytes(states["gradients"], n)})
    gathers = 2 if layout.zero == 3 else 1
    return Breakdown(
        {
            "gradients, reduce-scatter": reduce_scatter_bytes(states["gradients"], n),
            "weights, all-gather": gathers * all_gather_bytes(states["weights"], n),
        }
    )


def tensor_parallel_traffic(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    tensor: int,
    *,
    precision: Format = "bf16",
    sequence_parallel: bool = False,
) -> Breakdown[float]:
    """Return the bytes that each device sends per training step in the layers.

    A branch, divided by columns and then by rows, needs one all-reduce of all tokens in the forward pass and one in the
    backward pass (Shoeybi et al., 2019, §3); parallel branches share an all-reduce. With sequence parallelism each
    all-reduce becomes a reduce-scatter and an all-gather, which send the same number of bytes. The backward pass needs
    one more all-gather, because only a part of the branch's input was kept (Korthikanti et al., 2022, §4.2.2).
    """
    branches = len(config.layers) * (2 if config.block.branches == "serial" else 1)
    size = int(batch * seq_len * config.d_model * BYTES_PER_NUMBER[precision])
    once = branches * all_reduce_bytes(size, tensor)
    again = {"backward, inputs again": branches * all_gather_bytes(size, tensor)} if sequence_parallel else {}
    return Breakdown({"forward": once, "backward": once, **again})


def pipeline_bubble_fraction(stages: int, micro_batches: int) -> float:
    """Return the fraction of time in which a stage is idle: (p − 1)/(m + p − 1) (Huang et al., 2019, §2.3)."""
    return (stages - 1) / (micro_batches + stages - 1)


SCHEDULES = ("gpipe", "1f1b")


@dataclass(frozen=True)
class PipelineTask:
    """A forward ("F0") or backward pass ("B0") of one micro-batch through one stage, with its times."""

    stage: int
    name: str
    start: float
    end: float


def pipeline_orders(stages: int, micro: int, schedule: str) -> list[list[str]]:
    """Return each stage's order of passes: GPipe (Huang et al., 2019) or 1F1B (Narayanan et al., 2021)."""
    if schedule not in SCHEDULES:
        raise ValueError(f"there is no schedule {schedule!r}; choose from {', '.join(SCHEDULES)}")
    orders = []
    for stage in range(stages):
        warmup = micro if schedule == "gpipe" else min(stages - stage, micro)
        pairs = [name for i in range(micro - warmup) for name in (f"B{i}", f"F{i + warmup}")]
        last = [f"B{i}" for i in range(micro - warmup, micro)]
        orders.append([f"F{i}" for i in range(warmup)] + pairs + last)
    return orders


def run_pipeline(orders: Sequence[Sequence[str]], forward: float = 1.0, backward: float = 2.0) -> list[PipelineTask]:
    """Return the time of each pass, if each stage keeps to its order and no pass starts before its inputs exist.

    A forward pass needs the forward pass of the previous stage. A backward pass needs the backward pass of the next
    stage or, in the last stage, the forward pass of the same micro-batch. If the stages wait for each other forever,
    ValueError is raised.

    Args:
        orders: for each stage, the names of its passes in order.
        forward, backward: the time of a pass.
    """
    ends: dict[tuple[int, str], float] = {}
    tasks: list[PipelineTask] = []
    done, free = [0] * len(orders), [0.0] * len(orders)
    while any(count < len(order) for count, order in zip(done, orders, strict=True)):
        before = len(tasks)
        for stage, order in enumerate(orders):
            while done[stage] < len(order):
                name = order[done[stage]]
                ready = _ready(ends, stage, name, last=len(orders) - 1)
                if ready is None:
                    break
                start = max(ready, free[stage])
                free[stage] = ends[stage, name] = start + (forward if name.startswith("F") else backward)
                tasks.append(PipelineTask(stage, name, start, free[stage]))
                done[stage] += 1
        if len(tasks) == before:
            waiting = [f"stage {s} for {order[done[s]]}" for s, order in enumerate(orders) if done[s] < len(order)]
            raise ValueError(f"deadlock: these steps wait for a result that never arrives: {', '.join(waiting)}")
    return tasks


def _ready(ends: dict[tuple[int, str], float], stage: int, name: str, last: int) -> float | None:
    """Return the time at which the inputs of a pass exist; None if it is not known yet."""
    if name.startswith("F"):
        return 0.0 if stage == 0 else ends.get((stage - 1, name))
    own = ends.get((stage, f"F{name[1:]}"))
    behind = own if stage == last else ends.get((stage + 1, name))
    return None if own is None or behind is None else max(own, behind)


def max_alive(order: Sequence[str]) -> int:
    """Return the most micro-batches that a stage holds: the forward pass is done, the backward pass is not."""
    alive = most = 0
    for name in order:
        alive += 1 if name.startswith("F") else -1
        most = max(most, alive)
    return most


def idle_share(tasks: Sequence[PipelineTask], stages: int) -> float:
    """Return the fraction of time that the stages wait, from the start of the first pass to the end of the last."""
    total = stages * max(task.end for task in tasks)
    return 1 - sum(task.end - task.start for task in tasks) / total
