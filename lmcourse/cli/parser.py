"""What can be typed after `lmcourse`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from lmcourse import __version__
from lmcourse.cli import commands
from lmcourse.errors import CourseError

Command = Callable[[argparse.Namespace], int]

DESCRIPTION = "A hands-on course about transformer language models: predict, implement, measure, plot."
EPILOG = "Start with `lmcourse lab`. Each command explains itself: lmcourse COMMAND --help."
WHICH = "a notebook's number or name, as 01 or floating_point; all that are written by default"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, with the command as `run`.

    Raises:
        CourseError: an option that the command does not know.
        SystemExit: help was asked for, or something is missing; it is printed.
    """
    parser = make_parser()
    options, rest = parser.parse_known_args(arguments)
    if options.run is commands.lab:
        options.rest = rest[1:] if rest[:1] == ["--"] else rest
    elif rest:
        command = options.command
        raise CourseError(f"{command} does not take {' '.join(rest)} (lmcourse {command} --help)")
    return options


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="lmcourse", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    _add_course(parser, None)
    parser.add_argument("--version", action="version", version=f"lmcourse {__version__}")
    group = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)

    def add(name: str, run: Command, help: str, more: str = "", json: bool = True) -> argparse.ArgumentParser:
        new = group.add_parser(name, help=help, description=f"{help}. {more}".strip(), allow_abbrev=False)
        new.set_defaults(run=run)
        _add_course(new, argparse.SUPPRESS)  # what stands before the command holds unless it is said again
        if json:
            new.add_argument("--json", action="store_true", help="print one JSON document")
        return new

    lab = add("lab", commands.lab, "Open the course in JupyterLab", "Options go to JupyterLab.", json=False)
    lab.usage = "lmcourse lab [-h] [--course FOLDER] [JUPYTERLAB OPTIONS]"
    add("doctor", commands.doctor, "Say whether everything is in place, or what to do")
    add("list", commands.list_chapters, "Show the map of the course", "JSON leaves out what is only planned.")
    status = "Read from the reports saved in the notebooks; nothing is run."
    add("status", commands.status, "Show what is done: points per exercise and per notebook", status)

    build = add("build", commands.build, "Build the notebooks whose source in solutions/ has changed")
    build.add_argument("chapters", nargs="*", metavar="NN", help=WHICH)
    build.add_argument("--check", action="store_true", help="only say what is not up to date; exit 1 if any")
    build.add_argument("--force", action="store_true", help="build all, also over a copy that holds work")

    grade = add("grade", commands.grade, "Grade notebooks, hidden checks included", "Changes no file.")
    what = "your notebook, or a folder of student/assignment/notebook.ipynb"
    grade.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER", help=what)

    proof = "Exit 1 unless each loses points and is named, solutions earn everything and stubs nothing."
    matrix = add("matrix", commands.matrix, "Prove the checks: submit every known wrong answer", proof)
    matrix.add_argument("chapters", nargs="*", metavar="NN", help=WHICH)

    about = "By arithmetic: nothing is built or run. docs/accounting.md explains every number."
    _add_account(add("account", commands.account, "Account for a model: parameters, FLOPs, memory, time", about))

    what = "Matrix products, copies, a training step and decoding; about half a minute on a quiet machine."
    _add_bench(add("bench", commands.bench, "Measure this machine and a model on it, beside what was predicted", what))
    return parser


def _add_account(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="of the zoo, such as llama-3-8b")
    add("--gpu", metavar="NAME", help="such as h100; without it all that depends on no hardware")
    add("--gpus", type=int, default=1, metavar="N", help="how many; 1 by default")
    add("--batch", type=int, default=1, metavar="N", help="texts that a copy of the model reads at once; 1 by default")
    add("--seq", type=int, metavar="N", help="tokens of each text; by default the longest that the model was made for")
    add("--recipe", default="mixed", metavar="NAME", help="how numbers are stored: mixed by default, fp32, autocast, …")
    add("--checkpoint", choices=("nothing", "blocks"), default="nothing", help="what is recomputed to save memory")
    add("--tensor-parallel", type=int, default=1, metavar="T", help="GPUs that share each matrix; 1 by default")
    add("--zero", type=int, default=0, choices=range(4), help="the stage of ZeRO among the copies; 0 by default")
    add("--tokens", type=float, metavar="N", help="of a whole training run, such as 15e12")
    add("--mfu", type=float, default=0.4, metavar="SHARE", help="of the peak that training reaches; 0.4 by default")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="NAME", help="of the zoo; by default mini, on a GPU course-124m")
    add("--batch", type=int, default=4, metavar="N", help="texts; 4 by default")
    add("--seq", type=int, default=256, metavar="N", help="tokens of each; 256 by default")
    add("--steps", type=int, default=5, metavar="N", help="how many are timed, of each kind; 5 by default")
    add("--dtype", metavar="FORMAT", help="fp32, bf16, fp16 or fp64; by default fp32, on NVIDIA's newer GPUs bf16")


def _add_course(parser: argparse.ArgumentParser, default: str | None) -> None:
    help = "the course's folder; by default the one you are in"
    parser.add_argument("--course", type=Path, metavar="FOLDER", default=default, help=help)
