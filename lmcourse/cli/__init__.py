"""The command line: `lmcourse lab | doctor | list | status | build | site | grade | feedback | matrix`, about the
course, and `account | bench | train | generate | export`, about models.

Parse (`parser`), call (`commands`, `model_commands`), print (`tables`). Every command prints for a person and, with
`--json`, one JSON document for a program. Exit status: 0; 1 if what was asked about does not hold; 2 with one line on
stderr for a mistake in what was typed or written; 130 after Ctrl-C. What a command needs is imported when it runs, so
`lmcourse --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from lmcourse.cli.parser import parse
from lmcourse.errors import CourseError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` are those of the process by default. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old Windows console has no ✓
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        status: int = options.run(options)
        sys.stdout.flush()
    except CourseError as error:
        print(f"lmcourse: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `lmcourse list | head`: the reader has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
