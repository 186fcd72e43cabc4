"""The argument parser of `lmcourse`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from lmcourse import __version__
from lmcourse.cli import collecting, commands, grading, model_commands, site
from lmcourse.cli.flags import add_account, add_bench, add_export, add_generate
from lmcourse.errors import CourseError
from lmcourse.paths import typed_path

Command = Callable[[argparse.Namespace], int]

DESCRIPTION = "A hands-on course about transformer language models: predict, implement, measure, plot."
EPILOG = "Start with `lmcourse lab`. Each command explains itself: lmcourse COMMAND --help."
CHAPTERS_HELP = "a notebook's number or name, as 01 or floating_point; all that are written by default"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, with the command as `run`.

    Raises:
        CourseError: an option that the command does not know, or a --course that is not there.
        SystemExit: help was asked for, or something is missing; it is printed.
    """
    parser = make_parser()
    options, rest = parser.parse_known_args(arguments)
    # Told also where the command does not look there: whoever names a folder means something by it.
    if options.course is not None and not options.course.is_dir():
        raise CourseError(f"there is no folder {options.course}: --course names the folder of the course")
    if options.run in (commands.lab, model_commands.train):
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

    _add_about_course(add)
    _add_about_models(add)
    train = group.add_parser("train", help="Train a model, or go on with a run", add_help=False, allow_abbrev=False)
    train.set_defaults(run=model_commands.train)  # reads its flags itself, `--help` included
    return parser


def _add_about_course(add: Callable[..., argparse.ArgumentParser]) -> None:
    lab = add("lab", commands.lab, "Open the course in JupyterLab", "Options go to JupyterLab.", json=False)
    lab.usage = "lmcourse lab [-h] [--course FOLDER] [JUPYTERLAB OPTIONS]"
    add("doctor", commands.doctor, "Say whether everything is in place, or what to do")
    add("list", commands.list_chapters, "Show the map of the course", "JSON leaves out what is only planned.")
    status = "Read from the reports saved in the notebooks; nothing is run."
    add("status", commands.status, "Show what is done: points per exercise and per notebook", status)

    what = "Collect your answers from the notebooks into a package of your own, which runs without the course"
    collecting.add_collect(add("collect", collecting.collect, what, collecting.EPILOG))

    build = add("build", commands.build, "Build the notebooks whose source in solutions/ has changed")
    build.add_argument("chapters", nargs="*", metavar="NN", help=CHAPTERS_HELP)
    build.add_argument("--check", action="store_true", help="only say what is not up to date; exit 1 if any")
    build.add_argument("--force", action="store_true", help="build all, also over a copy that holds work")

    what = "Build the site: all notebooks as pages to read, with figures that move without a kernel"
    site.add_site(add("site", site.site, what, site.EPILOG))

    grading.add_grade(add("grade", grading.grade, "Grade notebooks, hidden checks included", grading.EPILOG))

    proof = (
        "Exit 1 unless each wrong answer loses points and is named, each right one earns everything, each mutant of a "
        "solution loses points, and stubs and constants earn nothing."
    )
    matrix = add(
        "matrix", commands.matrix, "Prove the checks: submit every wrong and right answer that is known", proof
    )
    matrix.add_argument("chapters", nargs="*", metavar="NN", help=CHAPTERS_HELP)
    matrix.add_argument("--exercise", metavar="NAME", help="this exercise only")


def _add_about_models(add: Callable[..., argparse.ArgumentParser]) -> None:
    about = "By arithmetic: nothing is built or run. docs/accounting.md explains every number."
    add_account(add("account", model_commands.account, "Account for a model: parameters, FLOPs, memory, time", about))

    what = "Matrix products, copies, a training step and decoding; about half a minute on a quiet machine."
    add_bench(
        add("bench", model_commands.bench, "Measure this machine and a model on it, beside what was predicted", what)
    )

    how = "The text goes to stdout as it is written, the speed to stderr."
    add_generate(add("generate", model_commands.generate, "Let a model that was trained go on with a text", how))
    what = "Write a model that was trained as a folder that transformers loads"
    add_export(add("export", model_commands.export, what, "It has the model and its tokenizer."))


def _add_course(parser: argparse.ArgumentParser, default: str | None) -> None:
    help = "the course's folder; by default the one you are in"
    parser.add_argument("--course", type=typed_path, metavar="FOLDER", default=default, help=help)
