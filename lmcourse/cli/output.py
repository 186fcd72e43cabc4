"""Output of commands with `--json`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def quiet(options: Namespace) -> AbstractContextManager[Any]:
    """With --json, send everything that code prints to stderr, so that stdout has only the document."""
    return redirect_stdout(sys.stderr) if options.json else nullcontext()


def print_json(data: object) -> None:
    """Print data as one JSON document."""
    # ASCII, so that no console's encoding can break the document.
    print(json.dumps(data, indent=2))
