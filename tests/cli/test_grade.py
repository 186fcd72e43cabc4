"""`lmcourse grade`, as it is typed: its report on a class, and what makes no sense."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmcourse.cli import main
from tests.grading.sandboxed import needs_bubblewrap


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--db", "sqlite:///x.db"], "--db is about the gradebook: add --record."),
        (["--column", "x"], "--column is about the table of a platform: add --grades."),
        (["--force"], "--force is about the gradebook: add --record."),
        (["--record"], "--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself."),
        (["--isolation", "hope"], "There is no isolation 'hope': use bubblewrap or process."),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(
    flags: Sequence[str], told: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = str(course / "notebooks" / "01-floating-point" / "floating_point.ipynb")
    assert main(["grade", notebook, "--course", str(course), *flags]) == 2
    assert capsys.readouterr().err == f"lmcourse: {told}\n"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--smtp", "a:25"], "--smtp is about messages: add --mail."),
        (["--mail"], "Say who writes the messages: --from you@school.org."),
        (["--mail", "--from", "A <a@b.c>"], "Say who writes the messages: --from you@school.org."),
        (["--mail", "--from", "a@b.c", "--user", "a"], "--user is for a mail server: add --smtp HOST:PORT."),
        ([], "Nothing is recorded in 01-floating-point: `lmcourse grade submitted/ --record` first."),
    ],
)
def test_feedback_that_makes_no_sense_is_told_in_one_line(
    flags: Sequence[str], told: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feedback", "01-floating-point", "--course", str(course), *flags]) == 2
    assert capsys.readouterr().err == f"lmcourse: {told}\n"


@pytest.mark.parametrize("flags", [["--workers", "0"], ["--cell-seconds", "-1"], ["--total-seconds", "nan"]])
def test_a_number_that_is_none_is_refused(flags: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["grade", "x.ipynb", *flags])
    assert stop.value.code == 2
    assert f"argument {flags[0]}: {flags[1]} is" in capsys.readouterr().err


@needs_bubblewrap
def test_a_report_on_the_class(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = course / "notebooks" / "01-floating-point" / "floating_point.ipynb"
    folder = tmp_path / "report"
    pasted = course / "solutions" / "01-floating-point" / "floating_point.ipynb"
    words = [
        "grade",
        *[str(notebook)] * 5,
        str(pasted),
        "--course",
        str(course),
        "--report",
        str(folder),
        "--workers",
        "1",
    ]
    assert main(words) == 0
    names = {"report.html", "exercises.csv", "students.csv", "misconceptions.csv", "evidence.csv"}
    assert {path.name for path in folder.iterdir()} == names
    shown = capsys.readouterr().out
    assert all(f"Written: {folder / name}" in shown for name in names)
    assert shown.count("01-floating-point") == 6  # a line each
    with (folder / "evidence.csv").open(encoding="utf-8", newline="") as file:
        alike = [row["what"] for row in csv.DictReader(file) if row["kind"] == "Alike answers"]
    assert any("decode_bits: 100% like the printed solution" in what for what in alike)
