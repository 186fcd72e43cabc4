"""`lmcourse collect`: its flags, and what it prints."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from lmcourse.cli.output import print_json, quiet
from lmcourse.paths import typed_path
from lmcourse.root import find_root

if TYPE_CHECKING:
    from lmcourse.collect import Collected

EPILOG = (
    "Answers are judged as by lmcourse grade. What you changed in the package by hand is not overwritten unless you "
    "say --force."
)


def add_collect(parser: ArgumentParser) -> None:
    """The flags of `lmcourse collect`."""
    add = parser.add_argument
    add("chapters", nargs="*", metavar="NN", help="notebooks by number or name; all by default")
    where = "where the package is to be; its last part is its name; ./my_transformer by default"
    add("--out", type=typed_path, default=Path("my_transformer"), metavar="DIR", help=where)
    lend = "let the course's answer stand in for one that the model needs and that is missing or wrong"
    add("--lend", action=BooleanOptionalAction, default=True, help=lend)
    add("--force", action="store_true", help="overwrite also what you changed by hand")
    how = "bubblewrap (the default, Linux only), or process, for your own work"
    add("--isolation", metavar="HOW", help=f"how notebooks are run: {how}")


def collect(options: Namespace) -> int:
    """Collect a learner's answers."""
    root = find_root(options.course)
    from lmcourse.cli.commands import find_chapters
    from lmcourse.collect import collect as collect_answers
    from lmcourse.grading.sandbox import PROCESS_ISOLATION_WARNING
    from lmcourse.grading.workers import GradingOptions

    if options.isolation == "process":
        print(PROCESS_ISOLATION_WARNING, file=sys.stderr)
    chapters = find_chapters(options.chapters)
    with quiet(options):
        found = collect_answers(
            root,
            options.out.resolve(),
            chapters=chapters,
            lend=options.lend,
            force=options.force,
            options=GradingOptions(options.isolation),
        )
    if options.json:
        print_json(found.to_json())
    else:
        _show(found, options.out)
    return 0


def _show(found: Collected, out: Path) -> None:
    from lmcourse.cli import tables

    tables.show(tables.collected(found))
    print(f"{out}: {len(found.changed)} files written." if found.changed else f"{out} is up to date.")
    print(f'Run it in the folder above it: python -m {out.name} --prompt "The "')
