"""Estimate the cost of a training run by arithmetic: nothing is built or trained.

Only if there is no data sheet for the device, the speed of a matrix product is measured.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import muon_flops, training_flops
from lmcourse.accounting.machine import title_and_memory
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.base.units import GIB, MIB
from lmcourse.models.config import TransformerConfig
from lmcourse.training.mfu_meter import Peak, find_peak
from lmcourse.training.training_config import TrainingConfig

ASSUMED_MFU = {"cpu": 0.3, "mps": 0.3, "cuda": 0.4}
"""Assumed fraction of the peak that a run reaches. Small models reach less, especially on a GPU."""

RECIPES = {
    "adamw": {"fp32": "fp32", "bf16": "autocast", "fp16": "autocast"},
    "muon": {"fp32": "muon", "bf16": "muon-autocast", "fp16": "muon-autocast"},
}
"""The memory recipe in `lmcourse.accounting.recipes` for each optimizer and precision."""

TRAIN_WITH_LESS = (
    "a smaller --batch with more --grad-accum-steps, a shorter --seq-len, --activation-checkpointing or a smaller "
    "--preset needs less; --dry-run says how much"
)


@dataclass(frozen=True)
class CostEstimate:
    """Estimated cost of a training run.

    Attributes:
        vocab_size: the number of tokens in the tokenizer's vocabulary.
        corpus_tokens: the number of tokens in the training part of the corpus.
        steps, tokens: the number of steps and of tokens that they read; a budget of tokens may reduce both.
        parameters: the number of parameters by part.
        flops_per_step: FLOPs of all processes together, including recomputed activations.
        memory: memory of a step on each device, in bytes.
        devices: the number of devices; all processes on a CPU share one device.
        needed, room: bytes that the processes on one device need in a step, and that it has.
        peak, mfu: peak speed of a device, and the assumed fraction of it.
        seconds: duration of the whole run without evaluations.
    Peak and seconds are None if they are not known.
    """

    vocab_size: int
    corpus_tokens: int
    steps: int
    tokens: int
    parameters: Breakdown[int]
    flops_per_step: int
    memory: Breakdown[int]
    devices: int
    needed: int
    room: int
    peak: Peak | None
    mfu: float
    seconds: float | None

    @property
    def epochs(self) -> float:
        """Passes over the training text."""
        return self.tokens / self.corpus_tokens

    @property
    def fits(self) -> bool:
        """True if a step fits into the memory of this machine."""
        return self.needed <= self.room

    def to_json(self) -> dict[str, Any]:
        """Return plain data: FLOPs and bytes as integers, times in seconds."""
        found = asdict(self) | {"epochs": self.epochs, "fits": self.fits, "flops": self.steps * self.flops_per_step}
        for name in ("parameters", "memory"):
            parts: Breakdown[int] = getattr(self, name)
            found[name] = {**parts.parts, "total": parts.total}
        return found


def estimate_cost(config: TransformerConfig, training: TrainingConfig, corpus_tokens: int) -> CostEstimate:
    """Estimate the cost of a run on the best device of this machine, or on one device for each process of the run.

    `corpus_tokens` is the number of tokens in the training part of the corpus. CourseError is raised if the accounting
    does not cover a run like this.
    """
    steps, device, peak = training.most_steps, best_device(), None
    mfu = ASSUMED_MFU[device.type]
    with suppress(ValueError):  # there is no data sheet
        peak = find_peak(device, training.precision)
    devices = training.parallel.world_size if device.type == "cuda" else 1
    try:
        flops, memory = _flops_per_step(config, training), _memory(config, training)
    except ValueError as error:
        raise CourseError(str(error)) from None
    return CostEstimate(
        vocab_size=config.vocab_size,
        corpus_tokens=corpus_tokens,
        steps=steps,
        tokens=steps * training.tokens_per_step,
        parameters=count_parameters(config),
        flops_per_step=flops,
        memory=memory,
        devices=devices,
        needed=memory.total * (training.parallel.world_size // devices),
        room=title_and_memory(device)[1],
        peak=peak,
        mfu=mfu,
        seconds=None if peak is None else steps * flops / (mfu * peak.flops_per_second * devices),
    )


def _flops_per_step(config: TransformerConfig, training: TrainingConfig) -> int:
    windows, again = training.grad_accum_steps * training.batch, training.activation_checkpointing
    step = training_flops(config, windows, training.seq_len, recompute="blocks" if again else "nothing")
    muon = muon_flops(config, training.muon_iterations) if training.optimizer == "muon" else 0
    return step.hardware.total + muon


def _memory(config: TransformerConfig, training: TrainingConfig) -> Breakdown[int]:
    # Further copies of the model (data_parallel) do not change the memory of a device.
    parallel, shared = training.parallel, training.parallel.fsdp
    return training_memory(
        config,
        training.batch // training.parallel.dp_size,
        training.seq_len,
        find_recipe(RECIPES[training.optimizer][training.precision]),
        activation_checkpointing="blocks" if training.activation_checkpointing else "nothing",
        layout=Layout(shared, parallel.tensor_parallel, parallel.pipeline_parallel, zero=3 if shared > 1 else 0),
        z_loss=training.z_loss > 0,
    )


def cost_report(found: CostEstimate) -> RenderableType:
    """Return the estimated cost as a table, with a sentence about memory and one about time."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_row("parameters", f"{found.parameters.total:,}")
    for part, size in found.parameters:
        table.add_row(f"  {part}", f"{size:,}")
    table.add_row("memory of a step, MiB", f"{found.memory.total / MIB:,.1f}")
    for part, size in found.memory:
        table.add_row(f"  {part}", f"{size / MIB:,.1f}")
    table.add_row("tokens of the text", f"{found.corpus_tokens:,}")
    table.add_row("steps", f"{found.steps:,}")
    table.add_row(f"tokens, {found.tokens // found.steps:,} a step", f"{found.tokens:,}")
    table.add_row("epochs", f"{found.epochs:,.2f}")
    table.add_row("FLOPs of a step", f"{found.flops_per_step:.3g}")
    table.add_row("FLOPs of the run", f"{found.steps * found.flops_per_step:.3g}")
    return Group(table, _fit(found), _time(found))


def _fit(found: CostEstimate) -> str:
    """Return a sentence that says whether a step fits into the memory of this machine."""
    share = f"{found.needed / GIB:,.2f} of {found.room / GIB:,.2f} GiB of memory"
    if found.fits:
        return f"It fits this machine: a step takes {share}; PyTorch and other programs need some, too."
    return f"It does not fit this machine, {share}: {escape(TRAIN_WITH_LESS)}."


def _time(found: CostEstimate) -> str:
    if found.seconds is None or found.peak is None:
        return "How long it takes is not known: there is no peak for this device."
    each = f" by each of {found.devices} devices" if found.devices > 1 else ""
    return (
        f"About {found.seconds / 60:,.1f} minutes if {found.mfu:.0%} of the peak is reached{each}: "
        f"{found.peak.flops_per_second / 1e9:,.0f} GFLOP/s, {escape(found.peak.source)}. Evaluations come on top."
    )
