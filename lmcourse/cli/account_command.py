"""The command `lmcourse account`: compute the cost of a model, and show it in tables."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.costs import (
    ModelCost,
    Performance,
    RooflineTiming,
    TrainingRun,
    account,
    estimate_performance,
    estimate_training_run,
)
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.base.errors import CourseError
from lmcourse.cli.tables import new_table
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model

LEAST_MFU = 1e-6
"""Smallest MFU that `account` accepts, because longer times would have no meaning."""
PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")


@dataclass(frozen=True)
class Budget:
    """Options of `lmcourse account`, and the costs. Performance needs an accelerator, and a run needs tokens."""

    model: str
    workload: Workload
    mfu: float
    account: ModelCost
    accelerator: Accelerator | None = None
    performance: Performance | None = None
    run: TrainingRun | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the budget as plain data: bytes and FLOPs as integers, seconds as floats."""
        workload, layout = self.workload, self.workload.layout
        return {
            "model": self.model,
            "note": self.note,
            "batch": workload.batch,
            "seq_len": workload.seq_len,
            "recipe": workload.recipe.name,
            "activation_checkpointing": workload.activation_checkpointing,
            "layout": _plain(layout) | {"devices": layout.devices},
            "account": _plain(self.account),
            "accelerator": None if self.accelerator is None else self.accelerator.name,
            "memory": None if self.accelerator is None else self.accelerator.memory,
            "performance": _plain(self.performance),
            "mfu": self.mfu,
            "run": _plain(self.run),
        }


def make_budget(options: Namespace) -> Budget:
    """Compute the costs; raise CourseError if a name is unknown, or numbers contradict each other."""
    entry = find_model(options.model)
    if not isinstance(entry.config, TransformerConfig):
        raise CourseError(f"{entry.name} is an encoder–decoder, which `account` does not support: use a decoder.")
    if options.gpu is None and options.tokens is not None:
        raise CourseError("The time that --tokens takes depends on the hardware: add --gpu.")
    if not LEAST_MFU <= options.mfu <= 1:
        raise CourseError(f"MFU is a fraction of the peak, from {LEAST_MFU} to 1, not {options.mfu}.")
    accelerator = None if options.gpu is None else find_accelerator(options.gpu)
    try:
        workload = Workload(
            entry.config,
            options.batch,
            (entry.config.context or 2048) if options.seq_len is None else options.seq_len,
            find_recipe(options.recipe),
            "blocks" if options.activation_checkpointing == "blocks" else "nothing",
            _layout(options),
        )
        budget = Budget(entry.name, workload, options.mfu, account(workload), accelerator, note=entry.note)
        if accelerator is None:
            return budget
        performance = estimate_performance(workload, accelerator)
        run = None
        if options.tokens is not None:
            if not workload.recipe.trains or not 1 <= options.tokens < math.inf:
                raise ValueError("--tokens needs a recipe for training, and must be finite and at least 1")
            run = estimate_training_run(workload, accelerator, int(options.tokens), options.mfu)
        return replace(budget, performance=performance, run=run)
    except ValueError as error:
        text = str(error)
        raise CourseError(f"{text[:1].upper()}{text[1:]}.") from None


def _layout(options: Namespace) -> Layout:
    """Return the layout of devices: all devices beyond tensor parallelism hold further copies of the model."""
    if options.gpus < 1 or options.tensor_parallel < 1 or options.gpus % options.tensor_parallel:
        raise ValueError(
            f"{options.gpus} GPUs cannot be divided into groups of {options.tensor_parallel}: "
            "--gpus must be a multiple of --tensor-parallel"
        )
    return Layout(options.gpus // options.tensor_parallel, options.tensor_parallel, zero=options.zero)


def _plain(value: Any) -> Any:
    if isinstance(value, Breakdown):
        return {**value.parts, "total": value.total}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def tables(found: Budget) -> Iterator[RenderableType]:
    """Yield all tables and the sentences between them."""
    workload, count = found.workload, found.account
    yield _heading(found)
    yield _parameters(count.parameters, count.matmul_parameters)
    yield _flops(found)
    performance = found.performance
    if count.training is not None:
        most = None if performance is None else performance.largest_training_batch
        yield _memory(f"to train ({workload.recipe.title})", count.training, found, most)
        if kept := norm_bytes(workload):
            where = "as PyTorch computes it on a CPU; a GPU's kernel keeps half of that or less"
            yield f"RMSNorm keeps {gib(kept)} of the activations, {where}."
    if count.inference is not None:
        most = None if performance is None else performance.largest_inference_batch
        yield _memory(f"to write texts of {workload.seq_len:,} tokens", count.inference, found, most)
    if count.cache is not None:
        yield _cache(count.cache, workload.batch)
    if performance is not None:
        for title, one in (("prefill", performance.prefill), ("one more token each", performance.decode)):
            if one is not None:
                yield _seconds(title, one, workload.batch)
        yield f"The roofline allows an MFU of {performance.best_mfu:.2f} in training; real runs reach 0.3 to 0.6."
    if found.run is not None:
        yield _run(found)
        if again := count.flops.recomputed.total / count.flops.model.total:
            days = f"{(1 + again) * found.run.days:,.1f} days"
            yield f"MFU leaves recomputation out. If {found.mfu:g} is an HFU, which counts it, training takes {days}."


def norm_bytes(workload: Workload) -> float:
    """Return the bytes that RMSNorms keep for the backward pass on each device; 0 if the model has LayerNorms."""
    if workload.config.block.norm.kind != "rms":
        return 0
    return workload.saved_bytes().parts.get("norms", 0) / workload.layout.tensor


def _heading(found: Budget) -> str:
    workload, layout = found.workload, found.workload.layout
    lines = [
        f"[bold]{escape(found.model)}[/]  batch {workload.batch:,} × {workload.seq_len:,} tokens, "
        f"recipe {workload.recipe.name}"
    ]
    if found.note:
        lines.append(escape(found.note))
    if workload.config.context is not None and workload.seq_len > workload.config.context:
        lines.append(f"the texts are longer than the {workload.config.context:,} tokens that it was made for")
    if workload.activation_checkpointing == "blocks":
        lines.append("blocks are recomputed in the backward pass")
    if found.accelerator is not None:
        lines.append(f"{layout.devices:,} × {escape(found.accelerator.title)}")
    if layout.devices > 1:
        lines.append(f"data parallel {layout.data:,}, tensor parallel {layout.tensor}, ZeRO {layout.zero}; per device:")
    return "\n".join(lines)


def _parts(title: str, parts: Breakdown[int], show: Callable[[int], str]) -> Table:
    table = new_table(title, right=("", "share"))
    for part, size in parts:
        table.add_row(part, show(size), f"{size / parts.total:.1%}")
    table.add_section()
    table.add_row("total", show(parts.total), "")
    return table


def _parameters(parts: Breakdown[int], multiplied: int) -> Table:
    table = _parts("parameters", parts, "{:,}".format)
    table.add_row("that multiply every token", f"{multiplied:,}", f"{multiplied / parts.total:.1%}")
    return table


def _flops(found: Budget) -> Table:
    flops = found.account.flops
    table = new_table("FLOPs per step", right=("forward", "backward", "recomputed"))
    for part, size in flops.forward:
        again = flops.recomputed.parts.get(part)
        table.add_row(part, si(size), si(flops.backward[part]), "" if again is None else si(again))
    table.add_section()
    all_again = si(flops.recomputed.total) if flops.recomputed.parts else ""
    table.add_row("total", si(flops.forward.total), si(flops.backward.total), all_again)
    if found.account.optimizer_flops:
        table.add_row("Muon, once a step", si(found.account.optimizer_flops), "", "")
    tokens = found.workload.tokens
    table.add_row("per token", si(flops.forward.total / tokens), si(flops.backward.total / tokens), "")
    return table


def _memory(title: str, parts: Breakdown[int], found: Budget, most: int | None) -> Table:
    table = _parts(f"memory {title}", parts, gib)
    if found.accelerator is not None:
        memory = found.accelerator.memory
        fits = "[green]✓ fits[/]" if parts.total <= memory else "[red]✗ does not fit[/]"
        table.add_row(f"of {gib(memory)}", fits, f"{parts.total / memory:.0%}")
        table.add_row("largest batch that fits", f"{most:,}" if most else "none", "")
    return table


def _cache(parts: Breakdown[int], batch: int) -> Table:
    table = new_table("KV cache", right=("all texts", "one text"))
    for kind, size in parts:
        table.add_row(f"layers: {kind}", gib(size), gib(size / batch))
    if len(parts.parts) > 1:
        table.add_section()
        table.add_row("total", gib(parts.total), gib(parts.total / batch))
    return table


def _seconds(title: str, one: RooflineTiming, batch: int) -> Table:
    table = new_table(f"time at best: {title}", right=("ms", "limited by"))
    for group, seconds in one.seconds:
        table.add_row(group, f"{1000 * seconds:,.3f}", one.limits.get(group, "network"))
    table.add_section()
    table.add_row("total", f"{1000 * one.seconds.total:,.3f}", "")
    table.add_row("texts per second", f"{batch / one.seconds.total:,.1f}", "")
    return table


def _run(found: Budget) -> Table:
    run = found.run
    assert run is not None
    table = new_table(f"training on {si(run.tokens)} tokens at MFU {found.mfu:g}", right=("",))
    table.add_row("model FLOPs", f"{run.flops:.3g}")
    table.add_row("days", f"{run.days:,.1f}")
    table.add_row("GPU-hours", f"{run.device_hours:,.0f}")
    if run.energy is not None:
        table.add_row("MWh at the power limit", f"{run.energy / 1000:,.1f}")
    return table


def si(number: float) -> str:
    """Format a number with four digits and an SI prefix: 1.234 T."""
    power = 0
    while number >= 1000 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.4g} {PREFIXES[power]}".strip()


def gib(size: float) -> str:
    """Format bytes in GiB, small sizes in MiB or KiB."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if size >= 2**power:
            return f"{size / 2**power:,.2f} {unit}"
    return f"{size / 2**10:,.2f} KiB"
