"""Parse, train and print the result, for `lmcourse train` and `torchrun -m lmcourse.training`."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from jsonargparse import Namespace
from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.base.units import GIB, MIB
from lmcourse.training.callbacks import ProgressBar, TensorBoard
from lmcourse.training.command.cost_estimate import CostEstimate, estimate_cost
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.run_folder import load_run
from lmcourse.training.command.settings import changed_run, default_recipe, new_run, parse, read_settings_file
from lmcourse.training.command.train_run import STOPPED, TRAIN_WITH_LESS, RunResult, StoppedError, train
from lmcourse.training.parallel.process_group import process_group

END_MESSAGES = {
    "steps": "All steps are done",
    "tokens": "The budget of tokens is spent",
    "time": "The time is over",
    "interrupted": "Stopped by Ctrl-C",
    "terminated": "Stopped by SIGTERM",
    "hung up": "Stopped by SIGHUP",
}

CONTINUE_FLAGS = {"steps": "--steps N", "tokens": "--max-tokens N", "time": "--max-seconds N"}
"""The flag that extends a run, for each reason why a run ends."""


def main(arguments: Sequence[str], program: str) -> int:
    """Run `lmcourse train` and return the exit status; `program` is the name of the command in messages.

    Raises CourseError with one line if a flag or a setting is wrong, or the run failed; SystemExit after help.
    """
    options = parse(arguments, program)
    run = resolve_run(options)
    if options.dry_run:
        return _predict(run, options)
    if options.out is None:
        raise CourseError("name the folder of the run: --out FOLDER")
    try:
        return _train(run, options)
    except StoppedError as stopped:
        return STOPPED[stopped.reason]


def resolve_run(options: Namespace) -> RunConfig:
    """Return the requested run: flags override the settings file, and both override the settings of a resumed run.

    Settings that are out of range, or contradict each other, raise CourseError.
    """
    given = (read_settings_file(options.config) if options.config else {}) | options.given
    if not options.resume:
        return new_run(given, options.recipe or default_recipe(given))
    if options.out is None:
        raise CourseError("name the run to resume: --resume --out FOLDER")
    before = load_run(options.out)
    if options.recipe is not None:
        raise CourseError("leave out --recipe: a resumed run keeps its settings")
    return changed_run(before, given)


def _predict(run: RunConfig, options: Namespace) -> int:
    found = estimate_cost(run)
    if options.json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        Console(highlight=False).print(cost_table(run, found))
    return 0


def _train(run: RunConfig, options: Namespace) -> int:
    console = Console(stderr=options.json, highlight=False)
    with process_group(run.training.parallel, best_device()) as process:
        with ExitStack() as stack:
            shown = callbacks(run, options, console) if process.is_main else []
            for callback in shown:
                stack.enter_context(callback)
            result = train(run, options.out, resume=options.resume, callbacks=shown, process=process)
        if process.is_main and options.json:
            print(json.dumps(asdict(result), indent=2), flush=True)
        elif process.is_main:
            console.print(end_message(result, options.out), soft_wrap=True)
    return STOPPED.get(result.reason, 0)


def callbacks(run: RunConfig, options: Namespace, console: Console) -> list[ProgressBar | TensorBoard]:
    """Return the callbacks of a run. The progress bar also shows the course's log messages of level INFO and above."""
    logging.getLogger("lmcourse").setLevel(logging.INFO)
    made: list[ProgressBar | TensorBoard] = [ProgressBar(run.training, console=console)]
    if options.tensorboard:
        made.append(TensorBoard(options.out / "tensorboard"))
    return made


def cost_table(run: RunConfig, found: CostEstimate) -> RenderableType:
    """Return the estimated cost as a table."""
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


def end_message(result: RunResult, folder: Path) -> str:
    """Return a text that says how a session ended and how to continue the run; after a signal it is one line."""
    spent = timedelta(seconds=round(result.seconds))
    done = f"{END_MESSAGES[result.reason]}: step {result.step:,}, {result.tokens:,} tokens, {spent}."
    again = f"Continue: lmcourse train --resume --out {folder}"
    if result.reason not in CONTINUE_FLAGS:
        return escape(f"{done} {again}")
    lines = [done, f"{again} {CONTINUE_FLAGS[result.reason]}"]
    lines[1:1] = _reached(result)
    lines.append(f'Let it write: lmcourse generate --checkpoint {folder} --prompt "The"')
    return escape("\n".join(lines))


def _reached(result: RunResult) -> list[str]:
    """Return the lowest validation loss and, if known, its distance from the entropy of the text."""
    if result.best_loss is None or result.loss_baseline is None:
        return []
    found, best = result.loss_baseline.per_byte(result.best_loss), result.loss_baseline.best_possible
    at = f"at step {result.best_step:,}"
    lines = [f"The lowest validation loss: {result.best_loss:.3f} nats per token, {found:.4f} per byte, {at}."]
    if best is not None:
        above = f"{found / best - 1:.1%} above"
        lines.append(f"Nobody can do better on this text than {best:.4f} per byte: you are {above}.")
    return lines
