"""The tables that `lmcourse account` prints."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.accounting.account import RooflineTiming
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.cli.budget import Budget

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")


def budget(found: Budget) -> list[RenderableType]:
    """All tables, each with an empty line behind it."""
    return [part for table in _tables(found) for part in (table, "")]


def _tables(found: Budget) -> Iterable[RenderableType]:
    workload, count = found.workload, found.account
    yield _heading(found)
    yield _parameters(count.parameters, count.matmul_parameters)
    yield _flops(found)
    performance = found.performance
    if count.training is not None:
        most = None if performance is None else performance.largest_training_batch
        yield _memory(f"to train ({workload.recipe.title})", count.training, found, most)
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


def _heading(found: Budget) -> str:
    workload, layout = found.workload, found.workload.layout
    lines = [
        f"[bold]{escape(found.model)}[/]  batch {workload.batch:,} × {workload.seq_len:,} tokens, "
        f"recipe {workload.recipe.name}"
    ]
    if workload.config.context is not None and workload.seq_len > workload.config.context:
        lines.append(f"the texts are longer than the {workload.config.context:,} tokens that it was made for")
    if workload.activation_checkpointing == "blocks":
        lines.append("blocks are recomputed in the backward pass")
    if found.accelerator is not None:
        lines.append(f"{layout.devices:,} × {escape(found.accelerator.title)}")
    if layout.devices > 1:
        lines.append(f"data parallel {layout.data:,}, tensor parallel {layout.tensor}, ZeRO {layout.zero}; per device:")
    return "\n".join(lines)


def _parameters(parts: Breakdown[int], multiplied: int) -> Table:
    table = _table("parameters", "", "share")
    for part, size in parts:
        table.add_row(part, f"{size:,}", f"{size / parts.total:.1%}")
    table.add_section()
    table.add_row("total", f"{parts.total:,}", "")
    table.add_row("that multiply every token", f"{multiplied:,}", f"{multiplied / parts.total:.1%}")
    return table


def _flops(found: Budget) -> Table:
    flops = found.account.flops
    table = _table("FLOPs per step", "forward", "backward", "recomputed")
    for part, size in flops.forward:
        again = flops.recomputed.parts.get(part)
        table.add_row(part, si(size), si(flops.backward[part]), "" if again is None else si(again))
    table.add_section()
    all_again = si(flops.recomputed.total) if flops.recomputed.parts else ""
    table.add_row("total", si(flops.forward.total), si(flops.backward.total), all_again)
    if found.account.optimizer_flops:
        table.add_row("Muon, once a step", si(found.account.optimizer_flops), "", "")
    tokens = found.workload.batch * found.workload.seq_len
    table.add_row("per token", si(flops.forward.total / tokens), si(flops.backward.total / tokens), "")
    return table


def _memory(title: str, parts: Breakdown[int], found: Budget, most: int | None) -> Table:
    table = _table(f"memory {title}", "", "share")
    for part, size in parts:
        table.add_row(part, gib(size), f"{size / parts.total:.1%}")
    table.add_section()
    table.add_row("total", gib(parts.total), "")
    if found.accelerator is not None:
        room = found.accelerator.memory
        fits = "[green]✓ fits[/]" if parts.total <= room else "[red]✗ does not fit[/]"
        table.add_row(f"of {gib(room)}", fits, f"{parts.total / room:.0%}")
        table.add_row("largest batch that fits", f"{most:,}" if most else "none", "")
    return table


def _cache(parts: Breakdown[int], batch: int) -> Table:
    table = _table("KV cache", "all texts", "one text")
    for kind, size in parts:
        table.add_row(f"layers: {kind}", gib(size), gib(size / batch))
    if len(parts.parts) > 1:
        table.add_section()
        table.add_row("total", gib(parts.total), gib(parts.total / batch))
    return table


def _seconds(title: str, one: RooflineTiming, batch: int) -> Table:
    table = _table(f"time at best: {title}", "ms", "limited by")
    for group, seconds in one.seconds:
        table.add_row(group, f"{1000 * seconds:,.3f}", one.limits.get(group, "network"))
    table.add_section()
    table.add_row("total", f"{1000 * one.seconds.total:,.3f}", "")
    table.add_row("texts per second", f"{batch / one.seconds.total:,.1f}", "")
    return table


def _run(found: Budget) -> Table:
    run = found.run
    assert run is not None
    table = _table(f"training on {si(run.tokens)} tokens at MFU {found.mfu:g}", "")
    table.add_row("model FLOPs", f"{run.flops:.3g}")
    table.add_row("days", f"{run.days:,.1f}")
    table.add_row("GPU-hours", f"{run.device_hours:,.0f}")
    if run.energy is not None:
        table.add_row("MWh at the power limit", f"{run.energy / 1000:,.1f}")
    return table


def si(number: float) -> str:
    """Four digits and a prefix of 1000s: 1.234 T."""
    power = 0
    while number >= 1000 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.4g} {PREFIXES[power]}".strip()


def gib(size: float) -> str:
    """Bytes in GiB, small ones in MiB or KiB."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if size >= 2**power:
            return f"{size / 2**power:,.2f} {unit}"
    return f"{size / 2**10:,.2f} KiB"


def _table(first: str, *right: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column(first)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table
