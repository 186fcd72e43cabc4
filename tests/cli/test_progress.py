"""Progress is read from saved reports, and broken notebooks do not stop it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from lmcourse.cli import main, tables
from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.course.progress import CORE_DONE, read_notebook_progress, read_progress
from lmcourse.jupyter.welcome import ProgressTable
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


def save(folder: Path, *cells: dict[str, Any], chapter: Chapter = CHAPTER) -> Path:
    path = folder / chapter.id / f"{chapter.topic}.ipynb"
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


FIRST = "# 01\n\n**Core · 88 min · 1 exercise · 3 points** · **Further · 70 min · 2 exercises · 5 points**"
HERE = {"cell_type": "markdown", "metadata": {}, "source": ["## Further\n", "\n", "More."]}


def in_parts(folder: Path, *points: float) -> Path:
    """Save a notebook with one exercise in its core and two in Further, and these points for the first."""
    first = {"cell_type": "markdown", "metadata": {}, "source": FIRST.splitlines(keepends=True)}
    checks = check_cell("ulp", 3, *map(report, points)), check_cell("round_to", 3, report(1.5))
    path = save(folder, checks[0], HERE, checks[1], check_cell("tensor_bytes", 2))
    path.write_text(json.dumps({"cells": [first, *json.loads(path.read_text())["cells"][1:]]}))
    return folder


def test_both_parts_of_a_notebook_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = read_progress(in_parts(tmp_path / "notebooks", 3))
    (notebook,) = progress.notebooks
    assert notebook.earned == "core 3 / 3, Further 1.5 / 5"
    assert notebook.to_json()["further"] == ["round_to", "tensor_bytes"]
    shown = ProgressTable(progress)
    assert "core 3 / 3, Further 1.5 / 5 points" in repr(shown)
    assert re.search(r"<td>88 \+ 70</td>.*</span>3 / 3</td><td>.*</span>1.5 / 5</td>", shown._repr_html_())
    assert re.search(r">20 &nbsp; Capstone</th><td>–</td>", shown._repr_html_())
    monkeypatch.setattr("lmcourse.cli.course_commands.find_root", lambda folder: tmp_path)
    assert main(["list", "--json"]) == 0
    row, *_ = json.loads(capsys.readouterr().out)
    assert (row["minutes"], row["exercises"], row["points"]) == (158, 3, 8)
    assert row["core"] == {"minutes": 88, "exercises": 1, "points": 3}
    assert main(["list"]) == 0
    assert re.search(r"01  Floating point +88 \+ 70 +1 \+ 2 +3 \+ 5\n", capsys.readouterr().out)


@pytest.mark.parametrize(("points", "told"), [((3,), True), ((2,), False), ((), False)])
def test_learner_is_told_that_the_core_is_done(
    points: tuple[float, ...], told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = read_progress(in_parts(tmp_path, *points))
    tables.show(tables.progress(progress))
    table = ProgressTable(progress)
    for text in (capsys.readouterr().out, repr(table), table._repr_html_()):
        assert (CORE_DONE in text) is told
    broken = tmp_path / CHAPTERS[1].id / f"{CHAPTERS[1].topic}.ipynb"
    broken.parent.mkdir()
    broken.write_text("{")
    assert not read_progress(tmp_path).core_done


DONE, HALF, NEW = (report(3),), (report(1),), ()


@pytest.mark.parametrize(
    ("first", "second", "core", "continues"),
    [
        ([NEW, NEW], [NEW], True, (0, 0)),
        ([DONE, NEW, NEW], [NEW], True, (0, 1)),
        ([NEW, DONE, HALF, NEW], [NEW], True, (0, 2)),
        ([NEW, DONE, DONE], [NEW], True, (0, 0)),
        ([DONE, DONE], [NEW], True, (1, 0)),
        ([DONE, NEW], [HALF], True, (1, 0)),
        ([DONE, NEW], [DONE], True, (0, 1)),
        ([DONE, NEW], [DONE], False, (0, 1)),
        ([NEW, NEW], [DONE, HALF], False, (0, 0)),
        ([DONE, DONE], [DONE, NEW], False, (1, 1)),
        ([DONE], [DONE], True, None),
    ],
)
def test_the_next_exercise_follows_the_last_one_started(
    first: list[tuple[Report, ...]],
    second: list[tuple[Report, ...]],
    core: bool,
    continues: tuple[int, int] | None,
    tmp_path: Path,
) -> None:
    """The second notebook was saved last. If not all is core, only the first exercise of each notebook is."""
    for chapter, reports in zip(CHAPTERS, (first, second), strict=False):
        cells = [check_cell(f"e{place}", 3, *found) for place, found in enumerate(reports)]
        path = save(tmp_path, *(cells if core else [cells[0], HERE, *cells[1:]]), chapter=chapter)
        os.utime(path, (0, int(chapter.number)))
    progress = read_progress(tmp_path)
    found = progress.next_exercise
    assert (found and (progress.notebooks.index(found[0]), found[1])) == continues


def test_notebook_without_further_has_no_parts(tmp_path: Path) -> None:
    save(tmp_path, check_cell("ulp", 3, report(3)))
    progress = read_progress(tmp_path)
    assert (progress.notebooks[0].earned, progress.core_done) == ("3 / 3", False)


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
