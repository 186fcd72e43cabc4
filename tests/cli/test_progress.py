"""Progress is read from saved reports, and broken notebooks do not stop it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmcourse.course import CHAPTERS
from lmcourse.progress import read_notebook_progress, read_progress
from lmcourse.report import REPORT_MIME, Report, check_id

CHAPTER = CHAPTERS[0]


def report(points: float, answered: bool = True) -> Report:
    return Report("ulp", points, 3, hidden=False, cases=(), answered=answered)


def check_cell(name: str, most: float, *shown: Report) -> dict[str, Any]:
    """Return a check cell in the form in which JupyterLab saves it."""
    outputs = [
        {
            "output_type": "execute_result",
            "data": {REPORT_MIME: item.to_json(), "text/plain": repr(item)},
            "metadata": {},
            "execution_count": 1,
        }
        for item in shown
    ]
    marks = {"grade": True, "grade_id": check_id(name), "points": most}
    return {"cell_type": "code", "metadata": {"nbgrader": marks}, "outputs": outputs, "source": ""}


def save(folder: Path, *cells: dict[str, Any]) -> Path:
    path = folder / CHAPTER.id / f"{CHAPTER.topic}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ""}, *cells]}))
    return path


def test_points_come_from_the_report_under_each_check(tmp_path: Path) -> None:
    save(
        tmp_path,
        check_cell("ulp", 3, report(3)),
        check_cell("round_to", 3, report(1.5)),
        check_cell("tensor_bytes", 2),
        check_cell("max_finite", 2, report(0, answered=False)),
    )
    progress = read_progress(tmp_path)
    states = {item.name: (item.points, item.state) for item in progress.notebooks[0].exercises}
    assert states == {
        "ulp": (3, "done"),
        "round_to": (1.5, "in progress"),
        "tensor_bytes": (0, "not started"),
        "max_finite": (0, "not started"),
    }
    assert (progress.points, progress.max_points, progress.notebooks[0].problem) == (4.5, 10, "")


def test_the_last_report_of_a_cell_counts_and_the_better_of_two_copies(tmp_path: Path) -> None:
    save(
        tmp_path,
        check_cell("ulp", 3, report(3), report(1)),
        check_cell("round_to", 3, report(2)),
        check_cell("round_to", 3),
    )
    exercises = read_progress(tmp_path).notebooks[0].exercises
    assert [(item.name, item.points) for item in exercises] == [("ulp", 1), ("round_to", 2)]


@pytest.mark.parametrize(("points", "counted"), [(99.0, 3), (-1.0, 0), (float("nan"), 0), (float("inf"), 0)])
def test_a_report_cannot_earn_more_than_there_is(tmp_path: Path, points: float, counted: float) -> None:
    save(tmp_path, check_cell("ulp", 3, report(points)))
    assert read_progress(tmp_path).points == counted


def test_copies_of_a_notebook_and_foreign_folders_do_not_count(tmp_path: Path) -> None:
    path = save(tmp_path, check_cell("ulp", 3, report(3)))
    (path.parent / "floating_point-Copy1.ipynb").write_text(path.read_text())
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "welcome-checkpoint.ipynb").write_text("{")
    assert read_progress(tmp_path).max_points == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"cells": [3]}',
        '{"cells": [{"metadata": []}]}',
        '{"cells": [{"metadata": {"nbgrader": {"grade": true, "grade_id": "check_a"}}}]}',
        '{"cells": [{"metadata": {"nbgrader": {"grade": true, "grade_id": "check_a", "points": "many"}}}]}',
        "[" * 100_000,
    ],
)
def test_a_broken_notebook_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    path = save(tmp_path)
    path.write_text(text)
    progress = read_progress(tmp_path)
    assert progress.points == 0
    assert progress.notebooks[0].problem == f"{path} cannot be read: it is not a notebook."


def test_unreadable_and_missing_notebooks_are_reported_in_one_line(tmp_path: Path) -> None:
    path = save(tmp_path)
    path.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in read_notebook_progress(CHAPTER, path).problem
    assert "No such file" in read_notebook_progress(CHAPTER, tmp_path / "nowhere.ipynb").problem


def test_an_empty_folder_has_no_progress(tmp_path: Path) -> None:
    assert read_progress(tmp_path).to_json() == {"points": 0, "max_points": 0, "notebooks": []}
