"""The source of a notebook: a Python file in jupytext's percent format, read with its line numbers.

A cell starts with a marker line and may carry options: `# %% exercise="ulp"`, `# %% check="ulp"`,
`# %% tags=["nbval-ignore-output"]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext

MARKER = re.compile(r"^# %%")
SPACING = "lines_to_next_cell"
"""What jupytext notes about blank lines between cells; it says nothing about the notebook."""


@dataclass(frozen=True)
class SourceCell:
    """One cell as the author wrote it.

    Attributes:
        kind: "markdown" or "code".
        text: its content.
        options: what its marker line says.
        line: the number of that line in the file, from 1.
    """

    kind: str
    text: str
    options: dict[str, Any]
    line: int

    @property
    def exercise(self) -> str | None:
        """The exercise that this cell is the answer to."""
        return self.options.get("exercise")

    @property
    def check(self) -> str | None:
        """The exercise that this cell checks."""
        return self.options.get("check")


@dataclass(frozen=True)
class Source:
    """A notebook's source file and its cells."""

    path: Path
    cells: tuple[SourceCell, ...]


def read_source(path: Path) -> Source:
    """Read a source file.

    Raises:
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if MARKER.match(line)]
    cells = jupytext.reads(text, fmt="py:percent").cells
    if len(cells) == len(lines) + 1:  # what stands above the first marker: a docstring or a comment
        cells = cells[1:]
    parts = [
        SourceCell(cell.cell_type, cell.source, {k: v for k, v in cell.metadata.items() if k != SPACING}, line)
        for cell, line in zip(cells, lines, strict=True)
    ]
    return Source(path, tuple(parts))
