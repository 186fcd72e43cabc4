"""`lmcourse train`, and `torchrun -m lmcourse.training`: from what was typed to a run and what is printed about it."""

from __future__ import annotations

import json
import logging
import signal
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict

from rich.console import Console

from lmcourse.device import best_device
from lmcourse.errors import CourseError
from lmcourse.training.callbacks import ProgressBar, TensorBoard
from lmcourse.training.command import summary
from lmcourse.training.command.arguments import parse
from lmcourse.training.command.cost_estimate import estimate_cost
from lmcourse.training.command.resolve_settings import changed_run, default_recipe, new_run, read_settings_file
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.run_folder import load_run
from lmcourse.training.command.train_run import train
from lmcourse.training.parallel.process_group import process_group

STOPPED = {"interrupted": 128 + signal.SIGINT, "terminated": 128 + signal.SIGTERM}
"""The exit status of a program that a signal has ended, by what ended the run."""


def main(arguments: Sequence[str], program: str) -> int:
    """Do what was typed; returns the exit status.

    Args:
        arguments: the flags.
        program: what stood before them.

    Raises:
        CourseError: a mistake, told in one line.
        SystemExit: help was asked for.
    """
    options = parse(arguments, program)
    run = resolve_run(options)
    if options.dry_run:
        return _predict(run, options)
    if options.out is None:
        raise CourseError("say where the run is to be: --out FOLDER")
    return _train(run, options)


def resolve_run(options: Namespace) -> RunConfig:
    """The run that was asked for: the command line wins over the file, both over what a run had before.

    Raises:
        CourseError: settings that cannot be, or do not go together.
    """
    given = (read_settings_file(options.config) if options.config else {}) | options.given
    if not options.resume:
        return new_run(given, options.recipe or default_recipe(given))
    if options.out is None:
        raise CourseError("say which run is to go on: --resume --out FOLDER")
    before = load_run(options.out)
    if options.recipe is not None:
        raise CourseError("a recipe is for a new run: one that goes on has its settings already; leave --recipe out")
    return changed_run(before, given)


def _predict(run: RunConfig, options: Namespace) -> int:
    found = estimate_cost(run)
    if options.json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        Console(highlight=False).print(summary.cost_table(run, found))
    return 0


def _train(run: RunConfig, options: Namespace) -> int:
    console = Console(stderr=options.json, highlight=False)
    with process_group(run.training.parallel, best_device()) as process:
        with ExitStack() as stack:
            told = callbacks(run, options, console) if process.is_main else []
            for callback in told:
                stack.enter_context(callback)
            result = train(run, options.out, resume=options.resume, callbacks=told, process=process)
        if process.is_main and options.json:
            print(json.dumps(asdict(result), indent=2), flush=True)
        elif process.is_main:
            console.print(summary.end(result, options.out), soft_wrap=True)
    return STOPPED.get(result.reason, 0)


def callbacks(run: RunConfig, options: Namespace, console: Console) -> list[ProgressBar | TensorBoard]:
    """The callbacks of a run. The bar also shows what the course logs, from INFO on."""
    logging.getLogger("lmcourse").setLevel(logging.INFO)
    made: list[ProgressBar | TensorBoard] = [ProgressBar(run.training, console=console)]
    if options.tensorboard:
        made.append(TensorBoard(options.out / "tensorboard"))
    return made
