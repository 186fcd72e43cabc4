"""Compare every family with its implementation in `transformers`: `python -m tests.interop`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.hugging_face import import_transformers
from tests.interop.reference import TOLERANCE, compare
from tests.interop.samples import SAMPLES, Sample


def parity_table(samples: Sequence[Sample] = SAMPLES) -> tuple[Table, bool]:
    """Return a table of the differences between tiny random models and the originals, and True if all rows agree."""
    version = import_transformers().__version__
    table = Table(title=f"Largest absolute differences from transformers {version}", title_style="")
    table.add_column("model", no_wrap=True)
    for column in ("parameters", "logits", "largest\nlogit", "gradients", "greedy\ntokens", ""):
        table.add_column(column, justify="right")
    agree = True
    for sample in track(samples, "Comparing", transient=True, console=Console(stderr=True)):
        found = compare(sample)
        agree = agree and found.agrees
        table.add_row(
            sample.name,
            f"{found.parameters:,}",
            f"{found.logits:.1e}",
            f"{found.largest_logit:.1f}",
            f"{found.gradients:.1e}",
            "equal" if found.tokens_equal else "differ",
            "✓" if found.agrees else f"above {TOLERANCE:g}",
        )
    return table, agree


if __name__ == "__main__":
    torch.set_num_threads(1)  # for tiny models, several threads are slower than one
    try:
        table, agree = parity_table()
    except CourseError as error:
        sys.exit(str(error))
    Console().print(table)
    sys.exit(not agree)
