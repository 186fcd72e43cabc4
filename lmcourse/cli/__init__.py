"""The command line: commands about the course, from `lmcourse lab` to `test-checks`, and commands about models.

Parse (`parser`), call (`course_commands`, `grade`, `model_commands`), print (`output`, `tables`). Every command prints
text for people or, with `--json`, one JSON document for programs. The exit status is 0 for success, 1 if a check fails,
2 with one line on stderr for a user's mistake, and 130 after Ctrl-C. Modules are imported when a command needs them, so
`lmcourse --help` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import requires
from io import TextIOWrapper
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.cli.parser import parse

LONG_WORD = re.compile(r"\S{300,}")
"""Matches a word that is too long to repeat in a message, such as a number with a thousand digits."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status; by default `arguments` are the process's arguments."""
    _check_surroundings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old Windows console cannot print ✓
    try:
        _check_folder()
        options = parse(sys.argv[1:] if arguments is None else arguments)
        status: int = options.run(options)
        sys.stdout.flush()
    except CourseError as error:
        print(f"lmcourse: {LONG_WORD.sub(_shortened, str(error))}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        extra = _extra_with(error.name or "")
        if not extra:
            raise
        print(f"lmcourse: this needs {error.name}: python -m pip install 'lmcourse[{extra}]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `lmcourse list | head`: the reader has closed the pipe
        _drop_output()
        return 1
    except OSError as error:  # a full disk, a file that cannot be read, …
        _drop_output()
        place = "the output cannot be written" if error.filename is None else error.filename
        print(f"lmcourse: {place}: {error.strerror or error}", file=sys.stderr)
        return 2
    except OverflowError:
        print("lmcourse: a number that was given is too large to compute with", file=sys.stderr)
        return 2
    return status


def _extra_with(module: str) -> str:
    """Return the first extra of pyproject.toml that installs a module, or ""."""
    package = module.partition(".")[0].lower().replace("_", "-")
    for line in requires("lmcourse") or []:
        if re.split(r"[^\w-]", line)[0].lower() == package and "extra ==" in line:
            return line.split("extra ==")[1].strip(" \"'")
    return ""


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:40]}…{word[0][-20:]}"


def _check_surroundings() -> None:
    """Replace closed streams (`>&-`) by empty ones or by ones that discard text; exit if stdout is closed."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        print("lmcourse: stdout is closed, so nothing can be printed", file=sys.stderr)
        sys.exit(2)


def _check_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise CourseError("the current folder was deleted: change to another one") from None


def _drop_output() -> None:
    """Discard output that is not printed yet; otherwise Python would fail again when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
