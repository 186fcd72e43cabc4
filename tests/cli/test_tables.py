"""In tables of grades, a long name is wrapped and does not narrow other columns."""

from __future__ import annotations

import pytest
from rich.console import Console

from lmcourse.cli import tables
from tests.grading.made_up_class import NAMES, result, solved

LONG = "Wolfeschlegelsteinhausenbergerdorff" * 3


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_long_name_does_not_break_a_table(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    results = [result(name, *map(solved, NAMES), reason="Every check passed.") for name in ("Ada", LONG)]
    console = Console(width=width, highlight=False)
    console.print(tables.results(results), *map(tables.result, results))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if "7 / 7" in line and "08-attention" in line and "·" not in line]
    assert len(rows) == 2
    assert len({line.index("7 / 7") for line in rows}) == 1
    assert "".join(lines).replace(" ", "").count("Wolfe") >= 3
