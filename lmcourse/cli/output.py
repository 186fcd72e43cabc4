"""Output of commands with `--json`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import nullcontext, redirect_stdout
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def quiet(options: Namespace) -> AbstractContextManager[Any]:
    """With --json, redirect all printed text to stderr, so that stdout has only the JSON document."""
    return redirect_stdout(sys.stderr) if options.json else nullcontext()


def show(options: Namespace, data: object, render: Callable[[ModuleType], Iterable[Any]]) -> None:
    """Print data: with --json as one JSON document, otherwise as what `render` makes with the module `tables`."""
    if options.json:
        print_json(data)
    else:
        from lmcourse.cli import tables  # imported here because it imports rich

        tables.show(*render(tables))


def print_json(data: object) -> None:
    """Print data as one JSON document."""
    # ASCII only, so that the document does not depend on the console's encoding.
    print(json.dumps(data, indent=2))
