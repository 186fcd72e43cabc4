"""Print the table of all worked examples."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from lmcourse.accounting.worked_examples import all_examples


def table() -> Table:
    """A rich table of all worked examples: the number of the notes, ours, and why they differ."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in ("case", "the notes", "computed", "why they differ"):
        rows.add_column(title)
    for example in all_examples():
        rows.add_row(example.name, example.published, str(example), example.explanation)
    return rows


if __name__ == "__main__":
    Console(highlight=False).print(table())
