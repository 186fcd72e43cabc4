"""The work for a simulated GPU, which `start` runs in a separate process."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import traceback
from collections.abc import Callable
from typing import Any

from tests.pretended_gpu import commands, notebooks, training, writing
from tests.pretended_gpu.device import Watch, pretended_gpu

WORK: dict[str, Callable[[], object]] = {**training.WORK, **writing.WORK, **commands.WORK, **notebooks.WORK}


def do(work: Callable[[], object], watch: Watch) -> dict[str, Any]:
    """Run a piece of work, and return its records and the first line of any error with the code that raised it."""
    watch.clear()
    error = None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            work()
    except Exception as found:
        at = traceback.extract_tb(found.__traceback__)[-1]
        error = f"{at.name}, {at.line}: {type(found).__name__}: {found}".splitlines()[0]
    return {
        "waits": sum(watch.waits.values()),
        "where": dict(watch.waits),
        "dtypes": dict(watch.dtypes),
        "kernels": dict(watch.kernels),
        "error": error,
    }


def main() -> None:
    """Print a JSON object with the records of each piece of work: waits and their places, dtypes of products, attention
    kernels, and the error."""
    gc.freeze()  # keeps the garbage collector from visiting all imported objects
    with pretended_gpu() as watch:
        print(json.dumps({name: do(work, watch) for name, work in WORK.items()}))
