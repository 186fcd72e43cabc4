"""Summaries printed for a person: estimated costs before a run, results after it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.training.command.cost_estimate import CostEstimate
from lmcourse.training.command.failures import TRAIN_WITH_LESS
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.train_run import RunResult
from lmcourse.units import GIB, MIB

END_MESSAGES = {
    "steps": "All steps are done",
    "tokens": "The budget of tokens is spent",
    "time": "The time is over",
    "interrupted": "Stopped by Ctrl-C",
    "terminated": "Stopped by SIGTERM",
}

CONTINUE_FLAGS = {"steps": "--steps N", "tokens": "--max-tokens N", "time": "--max-seconds N"}
"""What lets a run that ended go on."""


def cost_table(run: RunConfig, found: CostEstimate) -> RenderableType:
    """The estimate as a table."""
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
    table.add_row(f"tokens, {run.training.tokens_per_step:,} a step", f"{found.tokens:,}")
    table.add_row("epochs", f"{found.epochs:,.2f}")
    table.add_row("FLOPs of a step", f"{found.flops_per_step:.3g}")
    table.add_row("FLOPs of the run", f"{found.steps * found.flops_per_step:.3g}")
    heading = f"[bold]{escape(run.preset)}[/] on {escape(run.corpus)}, a vocabulary of {found.vocab_size:,} tokens"
    return Group(heading, table, _fit(found), _time(found))


def _fit(found: CostEstimate) -> str:
    """Whether a step fits into the memory of this machine."""
    if found.room is None:
        return "Whether that fits into memory is not known: the system does not say how much there is."
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


def end(result: RunResult, folder: Path) -> str:
    """How a session ended, and how to continue the run; after a signal in one line."""
    spent = timedelta(seconds=round(result.seconds))
    done = f"{END_MESSAGES[result.reason]}: step {result.step:,}, {result.tokens:,} tokens, {spent}."
    again = f"Go on: lmcourse train --resume --out {folder}"
    if result.reason not in CONTINUE_FLAGS:
        return escape(f"{done} {again}")
    lines = [done, f"{again} {CONTINUE_FLAGS[result.reason]}"]
    lines[1:1] = _reached(result)
    lines.append(f'Let it write: lmcourse generate --checkpoint {folder} --prompt "The"')
    return escape("\n".join(lines))


def _reached(result: RunResult) -> list[str]:
    """The lowest validation loss, and how far it is from the best there can be."""
    if result.best_loss is None or result.loss_baseline is None:
        return []
    found, best = result.loss_baseline.per_byte(result.best_loss), result.loss_baseline.best_possible
    at = f"at step {result.best_step:,}"
    lines = [f"The lowest validation loss: {result.best_loss:.3f} nats per token, {found:.4f} per byte, {at}."]
    if best is not None:
        above = f"{found / best - 1:.1%} above"
        lines.append(f"Nobody can do better on this text than {best:.4f} per byte: you are {above}.")
    return lines
