"""`lmcourse grade` rejects impossible flags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmcourse.cli import main
from lmcourse.grading import grader
from lmcourse.grading.intake import Submission
from lmcourse.grading.result import SubmissionResult


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--db", "sqlite:///x.db"], "--db needs the gradebook: add --record."),
        (["--column", "x"], "--column names a column of the file given by --grades: add --grades."),
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


@pytest.mark.parametrize("flags", [["--workers", "0"], ["--workers", "x"], ["--cell-seconds", "-1"]])
def test_an_option_that_is_not_a_number_is_rejected(flags: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "x.ipynb", *flags]) == 2
    assert capsys.readouterr().err.startswith(f"lmcourse: argument {flags[0]}: {flags[1]!r} is not a ")


@pytest.mark.parametrize(
    ("text", "told"), [("{", "cannot be read as a notebook"), ('{"nbformat": 9, "cells": []}', "has notebook format 9")]
)
def test_one_unreadable_notebook_is_reported_in_one_line(
    text: str, told: str, course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.ipynb").write_text(text)
    assert main(["grade", str(tmp_path / "mine.ipynb"), "--course", str(course)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"lmcourse: mine.ipynb {told}")
    assert printed.err.count("\n") == 1


def test_unreadable_notebooks_of_a_class_get_0_points(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for student in ("ada", "bob"):
        (tmp_path / student / "01-floating-point").mkdir(parents=True)
    (tmp_path / "ada" / "01-floating-point" / "floating_point.ipynb").write_text('{"cells": [')
    assert main(["grade", str(tmp_path), "--course", str(course), "--json"]) == 1
    printed = capsys.readouterr()
    assert [(each["student"], each["score"]) for each in json.loads(printed.out)] == [("ada", 0), ("bob", 0)]
    assert printed.err == "2 of 2 submissions could not be graded and count 0 points: ada, bob\n"


def test_a_class_with_one_unreadable_notebook_is_graded(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [
        SubmissionResult.unrecognised(Submission("ada", problem="It is broken.")),
        SubmissionResult("bob", "01-floating-point", 1.0, 1.0),
    ]
    monkeypatch.setattr(grader, "grade", lambda *args, **options: results)
    assert main(["grade", str(course), "--course", str(course)]) == 0
    assert capsys.readouterr().err == "1 of 2 submissions could not be graded and count 0 points: ada\n"
