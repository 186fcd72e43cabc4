"""The argument parser of `lmcourse`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from lmcourse import __version__
from lmcourse.base.errors import CourseError
from lmcourse.base.path_argument import path_argument
from lmcourse.cli import course_commands as course
from lmcourse.cli import model_commands as models
from lmcourse.cli.grade import add_grade, grade

Command = Callable[[argparse.Namespace], int]

DESCRIPTION = "A hands-on course about transformer language models: predict, implement, measure, plot."
EPILOG = "Start with `lmcourse lab`. Each command explains itself: lmcourse COMMAND --help."


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise CourseError with the message in one line."""
        raise CourseError(f"{' '.join(message.split())} ({self.prog} --help)")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; `run` of the result is the function to run. Raises CourseError if it is wrong."""
    parser = make_parser()
    options, rest = parser.parse_known_args(arguments)
    # This is checked for every command, even for commands that do not use the folder.
    if options.course is not None and not options.course.is_dir():
        raise CourseError(f"there is no folder {options.course}: --course names the folder of the course")
    if options.run in (course.lab, models.train):
        options.rest = rest[1:] if rest[:1] == ["--"] else rest
    elif rest:
        command = options.command
        raise CourseError(f"{command} does not take {' '.join(rest)} (lmcourse {command} --help)")
    return options


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line."""
    parser = OneLineParser(prog="lmcourse", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    _add_course(parser, None)
    parser.add_argument("--version", action="version", version=f"lmcourse {__version__}")
    group = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)

    def add(
        name: str, run: Command, help: str, more: str = "", json: bool = True, before: str = ""
    ) -> argparse.ArgumentParser:
        aliases = [before] if before else []  # the name before version 1, which still works in version 1
        about = f"{help}. {more}".strip()
        new = group.add_parser(name, aliases=aliases, help=help, description=about, allow_abbrev=False)
        new.set_defaults(run=run)
        # --course before the command counts unless it is repeated after the command
        _add_course(new, argparse.SUPPRESS)
        if json:
            new.add_argument("--json", action="store_true", help="print one JSON document")
        return new

    _add_about_course(add)
    _add_about_models(add)
    train = group.add_parser("train", help="Train a model, or resume a run", add_help=False, allow_abbrev=False)
    train.set_defaults(run=models.train)  # this command parses its own flags, including `--help`
    return parser


def _add_about_course(add: Callable[..., argparse.ArgumentParser]) -> None:
    lab = add("lab", course.lab, "Open the course in JupyterLab", "Options go to JupyterLab.", json=False)
    lab.usage = "lmcourse lab [-h] [--course FOLDER] [JUPYTERLAB OPTIONS]"
    add("doctor", course.doctor, "Check that everything is installed, and print what to do if not")
    add("list", course.list_chapters, "Show the map of the course")
    more = "Read from the reports saved in the notebooks; nothing is run."
    add("status", course.status, "Show your points per exercise and per notebook", more)
    what = "Write your answers from the notebooks as your own package, which runs without the course"
    more = "Answers are judged as lmcourse grade does. Without --force, files that you changed are kept."
    course.add_package(add("package", course.package, what, more, before="collect"))
    what = "Give a notebook that you have begun its corrected text"
    more = "Your answers, outputs and own cells stay, and the old file is kept beside it."
    course.add_update(add("update", course.update, what, more))
    course.add_build(add("build", course.build, "Build the notebooks whose source in solutions/ has changed"))
    what = "Build the site: all notebooks as web pages that need no kernel"
    more = (
        "Only figures are run; .cache/site keeps their pictures, and only those are drawn that are not there. You can "
        "open the pages from the disk. Chapters follow the order of the course."
    )
    course.add_site(add("site", course.site, what, more))
    more = "Without --record it changes no file. docs/teaching.md explains how to grade a class."
    add_grade(add("grade", grade, "Grade notebooks, hidden checks included", more))
    what = "Test the checks: submit every known wrong and right answer"
    more = (
        "Exit status 0 if each wrong answer loses points and is named, each right one earns all points, each mutant of "
        "a solution loses points, and stubs and constants earn nothing; else 1."
    )
    course.add_test_checks(add("test-checks", course.test_checks, what, more, before="matrix"))


def _add_about_models(add: Callable[..., argparse.ArgumentParser]) -> None:
    more = "Nothing is built or run. docs/accounting.md explains every number."
    what = "Compute what a model costs: parameters, FLOPs, memory, time"
    models.add_account(add("account", models.account, what, more))
    more = "Times matrix products, copies, a training step and decoding; takes about half a minute."
    what = "Measure this machine and a model on it, and compare with predictions"
    models.add_bench(add("bench", models.bench, what, more))
    more = "The text goes to stdout as it is generated, the speed to stderr."
    models.add_generate(add("generate", models.generate, "Continue a text with a trained model", more))
    what = "Export a trained model as a folder that transformers loads"
    models.add_export(add("export", models.export, what, "The folder has the model and its tokenizer."))


def _add_course(parser: argparse.ArgumentParser, default: str | None) -> None:
    help = "the course's folder (default: the current folder)"
    parser.add_argument("--course", type=path_argument, metavar="FOLDER", default=default, help=help)
