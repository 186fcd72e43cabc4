"""The flags of `lmcourse train`, the same for `torchrun -m lmcourse.training`: one per setting, and a few more."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from lmcourse.data.corpora import CORPORA
from lmcourse.errors import CourseError
from lmcourse.root import typed_path
from lmcourse.training.command.resolve_settings import DEFAULTS, RECIPES, SPEEDRUN_PRESETS
from lmcourse.training.command.settings import SETTINGS, RunSetting, has_default

DESCRIPTION = (
    "Train a model on a text, or go on with a run. The folder gets its settings, the text as tokens, a line per step "
    "in metrics.jsonl, and checkpoints."
)
EPILOG = "Every setting may stand in a TOML file too (--config); what is typed here wins. docs/training.md has more."

TITLES = {
    "run": "what is trained",
    "model": "what is changed in the preset",
    "training": "how it is trained",
    "parallel": "how processes share the work (started by torchrun; docs/training.md)",
}

HELP = {
    "preset": "a decoder of the zoo: nano, micro, mini, course-124m, gpt-2, …",
    "corpus": f"{', '.join(CORPORA)}, or the path of a text file or folder",
    "tokenizer": "how text is cut into tokens: bpe, bytes, characters, or a tokenizer.json that you have",
    "vocab_size": "tokens that bpe makes, at most",
    "held_out": "share of the text to validate on; 0 for none",
    "validation_tokens": "most tokens that an evaluation reads",
    "feed_forward": "swiglu; or gelu or relu2, 4 times as wide as the model and without a gate",
    "qk_norm": "normalise queries and keys",
    "untied": "give the head a matrix of its own",
    "value_residual": "mix the first layer's values into those of all others",
    "logit_cap": "squeeze logits into plus or minus so much by a tanh",
    "rotary_theta": "base of the rotary embedding",
    "zero_outputs": "let every block and an untied head add nothing at first",
    "layers": "how many blocks; the preset's by default",
    "d_model": "width, in heads as wide as the preset's; its own by default",
    "steps": "updates of the weights",
    "batch": "windows per micro-batch, of all processes together",
    "seq_len": "tokens per window, the longest text that the model will read; by default the preset's context",
    "grad_accum_steps": "micro-batches per step",
    "seed": "of the weights, the order of the text and all chance",
    "optimizer": "adamw, or muon for the matrices of the blocks with adamw for all else",
    "learning_rate": "at the peak of the schedule",
    "muon_learning_rate": "of muon, at the peak of the schedule",
    "muon_momentum": "of muon",
    "muon_iterations": "of Newton-Schulz in muon",
    "schedule": "how the learning rate falls",
    "warmup_steps": "steps until the peak; by default a twentieth of all",
    "decay_steps": "steps at the end in which wsd falls",
    "min_lr_ratio": "share of the peak to which the learning rate falls",
    "weight_decay": "of AdamW and Muon, for matrices",
    "betas": "of AdamW",
    "eps": "of AdamW",
    "grad_clip": "the largest norm of the gradient; none lets it be",
    "z_loss": "factor of the squared log-normaliser in the loss",
    "precision": "of matrix products; weights stay fp32; by default bf16 on a GPU that has it, else fp32",
    "activation_checkpointing": "compute blocks again in the backward pass, to save memory",
    "compile": "let torch compile the model: a minute, then faster steps",
    "spike_factor": "a gradient so many times the usual is reported",
    "evaluate_every": "steps between evaluations; by default a tenth of all; none for the end only",
    "checkpoint_every": "steps between checkpoints; by default a tenth of all; none for the best and the last only",
    "keep_checkpoints": "how many of the last checkpoints stay; the best stays too",
    "max_seconds": "stop after this time",
    "max_tokens": "stop before reading more",
    "data_parallel": "copies of the model that see different windows (DDP)",
    "fsdp": "processes that see different windows and divide the weights among them (FSDP2)",
    "tensor_parallel": "processes that divide every matrix",
    "sequence_parallel": "let these divide the tokens between the matrices too",
    "pipeline_parallel": "stages with some of the blocks each",
    "pipeline_schedule": "the order in which the stages work",
}


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, without the usage: that would fill the screen."""

    def error(self, message: str) -> NoReturn:
        """Give up.

        Raises:
            CourseError: always.
        """
        raise CourseError(f"{message} ({self.prog} --help)")


def parse(arguments: Sequence[str], program: str) -> argparse.Namespace:
    """Parse the command line; `given` holds the settings by name.

    Raises:
        CourseError: a flag that is unknown or has a wrong value.
        SystemExit: help was asked for; it is printed.
    """
    parser = make_parser(program)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        parser.error(_unknown(rest[0], parser))
    options.given = {name: setting.check(vars(options)[name]) for name, setting in SETTINGS.items() if name in options}
    return options


def make_parser(program: str) -> Parser:
    """The parser; `program` is what it calls itself."""
    parser = Parser(prog=program, description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--out", type=typed_path, metavar="FOLDER", help="of the run; it must not have one yet")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out, whose settings are kept")
    parser.add_argument("--config", type=typed_path, metavar="FILE", help="a TOML file with settings")
    ours = ", ".join(SPEEDRUN_PRESETS)
    what = f"what is taken for settings that nobody names; by default speedrun for {ours}, without --optimizer adamw"
    parser.add_argument("--recipe", choices=list(RECIPES), help=what)
    what = "say what the run would cost: parameters, FLOPs, bytes, minutes; nothing is written or trained"
    parser.add_argument("--dry-run", action="store_true", help=what)
    parser.add_argument("--tensorboard", action="store_true", help="write scalars for TensorBoard into the folder too")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end; progress to stderr")
    groups = {table: parser.add_argument_group(title) for table, title in TITLES.items()}
    for setting in SETTINGS.values():
        _add(groups[setting.table], setting)
    return parser


def _add(group: argparse._ArgumentGroup, setting: RunSetting) -> None:
    flag = f"--{setting.name.replace('_', '-')}"
    options: dict[str, Any] = {"default": argparse.SUPPRESS, "help": HELP[setting.name] + _default(setting)}
    if setting.kind is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, **options)
        return
    if setting.count > 1:
        options["nargs"] = setting.count
    options["metavar"] = f"{{{','.join(setting.choices)}}}" if setting.choices else _metavar(setting)
    group.add_argument(flag, type=_reader(setting), **options)


def _reader(setting: RunSetting) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return setting.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _metavar(setting: RunSetting) -> str:
    return {int: "N", float: "X"}.get(setting.kind, "NAME")


def _default(setting: RunSetting) -> str:
    """What is taken if nothing is said, for the help; "" if that follows from other settings."""
    name = setting.name
    if "by default" in HELP[name]:
        return ""
    values = {
        recipe: {**DEFAULTS, **settings}.get(name, setting.default if has_default(setting) else None)
        for recipe, settings in RECIPES.items()
    }
    said = {recipe: _said(value) for recipe, value in values.items() if value not in (None, False)}  # preset's, or no
    if len(set(values.values())) == 1:
        return "".join(f"; {value} by default" for value in {*said.values()})
    return "; by default " + ", ".join(f"{value} in {recipe}" for recipe, value in said.items())


def _said(value: Any) -> str:
    return " ".join(f"{x:g}" for x in value) if isinstance(value, tuple) else "yes" if value is True else str(value)


def _unknown(word: str, parser: Parser) -> str:
    name = word.partition("=")[0]
    if not name.startswith("-"):
        return f"{word!r} belongs to no flag"
    flags = [flag for flag in parser._option_string_actions if flag.startswith("--")]
    return f"there is no flag {name}; the nearest is {get_close_matches(name, flags, n=1, cutoff=0.0)[0]}"
