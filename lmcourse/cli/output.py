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
    """With --json, redirect all printed text to stderr, so that stdout has only the JSON document."""
    return redirect_stdout(sys.stderr) if options.json else nullcontext()


def print_json(data: object) -> None:
    """Print data as one JSON document."""
    # ASCII only, so that the document does not depend on the console's encoding.
    print(json.dumps(data, indent=2))
