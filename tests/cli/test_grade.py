"""Flags of `lmcourse grade` that make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lmcourse.cli import main


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--db", "sqlite:///x.db"], "--db needs the gradebook: add --record."),
        (["--column", "x"], "--column names a column of the file of --grades: add --grades."),
        (["--force"], "--force needs the gradebook: add --record."),
        (["--again", "ulp"], "--again needs the gradebook: add --record."),
        (["--record"], "--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself."),
        (["--isolation", "hope"], "There is no isolation 'hope': use bubblewrap or process."),
    ],
)
def test_impossible_options_are_rejected_in_one_line(
    flags: Sequence[str], told: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = str(course / "notebooks" / "01-floating-point" / "floating_point.ipynb")
    assert main(["grade", notebook, "--course", str(course), *flags]) == 2
    assert capsys.readouterr().err == f"lmcourse: {told}\n"


@pytest.mark.parametrize("flags", [["--workers", "0"], ["--cell-seconds", "-1"], ["--total-seconds", "nan"]])
def test_an_option_that_is_not_a_number_is_rejected(flags: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "x.ipynb", *flags]) == 2
    assert capsys.readouterr().err.startswith(f"lmcourse: argument {flags[0]}: {flags[1]} is")
