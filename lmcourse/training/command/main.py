"""The command line of `lmcourse train` and `torchrun -m lmcourse.training`: its flags, and what it prints.

The help of a setting is its line in the docstring of its class.
"""

from __future__ import annotations

import json
import logging
import re
from argparse import SUPPRESS, HelpFormatter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import Field, asdict
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import docstring_parser
from jsonargparse import ActionYesNo, ArgumentError, ArgumentParser, Namespace
from rich.console import Console, Group
from rich.markup import escape

from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.base.path_argument import path_argument
from lmcourse.training.callbacks import ProgressBar, TensorBoard
from lmcourse.training.command.settings import (
    RECIPES,
    SETTINGS,
    SPEEDRUN_PRESETS,
    TYPES,
    RecipeName,
    check_settings,
    one_line,
    resolve_run,
)
from lmcourse.training.command.train_run import STOPPED, RunResult, StoppedError, train
from lmcourse.training.command.training_data import check_lengths, tokenize_corpus
from lmcourse.training.cost_estimate import cost_report, estimate_cost
from lmcourse.training.parallel.process_group import process_group
from lmcourse.training.run_config import ModelChanges, RunConfig
from lmcourse.training.training_config import Parallelism, TrainingConfig

DESCRIPTION = (
    "Train a model on a text, or resume a run. The folder gets its settings, the text as tokens, a line per step "
    "in metrics.jsonl, and checkpoints."
)
EPILOG = "Settings may also come from a TOML or JSON file (--config); the command line wins. docs/training.md has more."

TITLES = {
    RunConfig: "model and data",
    ModelChanges: "changes to the preset",
    TrainingConfig: "training",
    Parallelism: "how processes share the work (started by torchrun; docs/training.md)",
}

DERIVED = {
    "seq_len": "the preset's context",
    "precision": "bf16 on a GPU that has it, else fp32",
    "warmup_steps": "a twentieth of all steps",
    "decay_steps": "0 in adamw, all steps after the warm-up in speedrun",
    "evaluate_every": "a tenth of all steps",
    "checkpoint_every": "a tenth of all steps",
    **dict.fromkeys(("feed_forward", "logit_cap", "rotary_theta", "layers", "d_model"), "the preset's"),
}
"""Defaults that follow from other settings, in words; `new_run` computes them."""

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
    if not options.dry_run:
        return _train(run, options)
    return _estimate(run, options)


def _train(run: RunConfig, options: Namespace) -> int:
    if options.out is None:
        raise CourseError("name the folder of the run: --out FOLDER")
    console = Console(stderr=options.json, highlight=False)
    try:
        with process_group(run.training.parallel, best_device()) as process:
            with ExitStack() as stack:
                shown = _callbacks(run, options, console) if process.is_main else []
                for callback in shown:
                    stack.enter_context(callback)
                result = train(run, options.out, resume=options.resume, callbacks=shown, process=process)
            if process.is_main and options.json:
                print(json.dumps(asdict(result), indent=2), flush=True)
            elif process.is_main:
                console.print(end_message(result, options.out), soft_wrap=True)
    except StoppedError as stopped:
        return STOPPED[stopped.reason]
    return STOPPED.get(result.reason, 0)


def _estimate(run: RunConfig, options: Namespace) -> int:
    """Print what a run would cost. Only its corpus is tokenized, which determines the vocabulary and an epoch."""
    texts = tokenize_corpus(run)
    tokens, held_out = texts.training.count(), texts.validation
    check_lengths(run, tokens, None if held_out is None else held_out.count())
    found = estimate_cost(run.model_config(texts.tokenizer.vocab_size), run.training, tokens)
    if options.json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        model, text = f"[bold]{escape(run.preset)}[/]", escape(run.corpus)
        heading = f"{model} on {text}, a vocabulary of {found.vocab_size:,} tokens"
        Console(highlight=False).print(Group(heading, cost_report(found)))
    return 0


def _callbacks(run: RunConfig, options: Namespace, console: Console) -> list[ProgressBar | TensorBoard]:
    """Return the callbacks of a run. The progress bar also shows the course's log messages of level INFO and above."""
    logging.getLogger("lmcourse").setLevel(logging.INFO)
    made: list[ProgressBar | TensorBoard] = [ProgressBar(run.training, console=console)]
    if options.tensorboard:
        made.append(TensorBoard(options.out / "tensorboard"))
    return made


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


def parse(arguments: Sequence[str], program: str) -> Namespace:
    """Parse the command line; `settings` holds the settings by name.

    Raises CourseError if a flag is unknown or has a wrong value, and SystemExit after printing help.
    """
    try:
        options = make_parser(program).parse_args(list(arguments))
        options.settings = check_settings({name: options.pop(name) for name in SETTINGS if name in options})
    except (ArgumentError, ValueError) as error:
        raise CourseError(f"{_flag_error(str(error))} ({program} --help)") from None
    for name in ("out", "config"):
        if options[name] is not None:
            options[name] = path_argument(options[name])
    return options


def _flag_error(message: str) -> str:
    """Return a message of jsonargparse about flags in one line and in plain words."""
    unknown = re.match(r"unrecognized arguments: ([^\s=]+)", message)
    if unknown is None:
        return one_line(message)
    if not unknown[1].startswith("-"):
        return f"{unknown[1]!r} is no flag: name the setting that it belongs to"
    flags = [f"--{name.replace('_', '-')}" for name in (*SETTINGS, "out", "resume", "config", "recipe", "dry-run")]
    return f"there is no flag {unknown[1]}; the nearest is {get_close_matches(unknown[1], flags, 1, 0.0)[0]}"


def make_parser(program: str) -> ArgumentParser:
    """Make the parser of the command line; `program` is its name in messages."""
    parser = ArgumentParser(
        prog=program,
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        exit_on_error=False,
        parser_mode="settings",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--out", metavar="FOLDER", help="folder of the run; a new run needs a folder that holds no run")
    parser.add_argument("--resume", action="store_true", help="resume the run in --out, with its settings")
    parser.add_argument("--config", metavar="FILE", help="TOML or JSON file with settings")
    default = f"speedrun for {', '.join(SPEEDRUN_PRESETS)} without --optimizer adamw, else adamw"
    what = f"defaults for the settings that are not given (default: {default})"
    parser.add_argument("--recipe", choices=get_args(RecipeName), help=what)
    what = "print what the run would cost (parameters, FLOPs, bytes, minutes), and write and train nothing"
    parser.add_argument("--dry-run", action="store_true", help=what)
    parser.add_argument("--tensorboard", action="store_true", help="also write scalars for TensorBoard into the folder")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end; progress to stderr")
    groups = {owner: parser.add_argument_group(title) for owner, title in TITLES.items()}
    meanings = {
        part.arg_name: part.description for owner in TITLES for part in docstring_parser.parse(owner.__doc__).params
    }
    for name, (owner, field) in SETTINGS.items():
        kind: dict[str, Any]
        if TYPES[name] is bool:
            kind = {"action": ActionYesNo(no_prefix="no-")}
        elif get_origin(TYPES[name]) is tuple:
            kind = {"type": float, "nargs": 2, "metavar": "X"}
        else:
            kind = {"type": TYPES[name], "metavar": _metavar(TYPES[name])}
            if int in (TYPES[name], *get_args(TYPES[name])):
                kind["type"] |= float  # accept 1e6, which `check_settings` converts to an integer
        text = f"{meanings[name]} (default: {_default(name, field)})".replace("%", "%%")
        groups[owner].add_argument(f"--{name.replace('_', '-')}", default=SUPPRESS, help=text, **kind)
    return parser


def _metavar(hint: Any) -> str:
    """Return the placeholder that `--help` shows for a value of a type."""
    if get_origin(hint) is Literal:
        return f"{{{','.join(get_args(hint))}}}"
    return {int: "N", float: "X", str: "NAME"}.get(hint) or _metavar(get_args(hint)[0])


def _default(name: str, field: Field[Any]) -> str:
    """Return the default of a setting in words."""
    if name in DERIVED:
        return DERIVED[name]
    values = [settings.get(name, field.default) for settings in RECIPES.values()]
    texts = [" ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values]
    if len({*texts}) == 1:
        return texts[0]
    return ", ".join(f"{text} in {recipe}" for text, recipe in zip(texts, RECIPES, strict=True))
