"""Every student's submission is found, and students do not get each other's notebooks."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import CHAPTERS
from lmcourse.grading.hand_in_time import hand_in_time
from lmcourse.grading.hand_ins import ME
from lmcourse.grading.intake import Assignments, Submission, course_assignments, find_submissions
from tests.grading.learners import config_of

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "tiny.ipynb"
TINY, OTHER = "01-tiny", "02-other"


def cell(cell_id: str, marked: bool = True) -> dict[str, Any]:
    metadata = {"nbgrader": {"grade_id": cell_id}} if marked else {}
    return {"cell_type": "code", "id": cell_id, "metadata": metadata, "source": "1", "outputs": []}


def notebook(*cells: dict[str, Any]) -> str:
    shared = cell("title", marked=False)
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [shared, *cells]})


SOUND = notebook(cell("ulp"), cell("check_ulp"))
CLEARED = notebook(cell("ulp", marked=False), cell("check_ulp", marked=False))
STRANGE = notebook()


def hand_in(folder: Path, name: str = NAME, text: str = SOUND) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture
def assignments(tmp_path: Path) -> Assignments:
    hand_in(tmp_path / "course" / "solutions" / TINY)
    hand_in(tmp_path / "course" / "solutions" / OTHER, "other.ipynb", notebook(cell("scan")))
    return course_assignments(config_of(tmp_path / "course"))


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """A class in which alice submitted correctly."""
    return hand_in(tmp_path / "class" / "alice" / TINY).parents[2]


def found(school: Path, assignments: Assignments) -> dict[str, Submission]:
    """Return the submissions by student, without alice, whose notebook is always found."""
    by_student = {each.student: each for each in find_submissions([school], assignments)}
    for each in by_student.values():
        assert each.student.isprintable()
        assert each.problem.isprintable()
        assert (each.notebook is None) == bool(each.problem)
        assert not each.own
    assert by_student.pop("alice").notebook == school / "alice" / TINY / NAME
    return by_student


def test_assignments_are_in_the_source_folder(tmp_path: Path, assignments: Assignments) -> None:
    assert {name: {*each.cells} for name, each in assignments.items()} == {TINY: {"check_ulp", "ulp"}, OTHER: {"scan"}}
    hand_in(tmp_path / "course" / "source" / "03-new", "new.ipynb")
    assert [*course_assignments(config_of(tmp_path / "course", "source"))] == ["03-new"]
    with pytest.raises(CourseError, match=r"There are no notebooks in .*solutions, and grading needs them"):
        course_assignments(config_of(tmp_path))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: None, "No notebook was handed in."),
        (lambda folder: (folder / NAME).symlink_to(f"../../alice/{TINY}/{NAME}"), f"{NAME} is a link"),
        (lambda folder: os.mkfifo(folder / "other.ipynb"), "other.ipynb is not an ordinary file"),
        (lambda folder: (folder / "my.zip").touch(), "my.zip is an archive. Unpack it and hand in the notebook itself"),
        (
            lambda folder: hand_in(folder, NAME, notebook(cell("scan"))),
            f"{NAME} is the notebook of {OTHER}. Hand in that of {TINY}.",
        ),
        (lambda folder: (folder / "deep").symlink_to(f"../../alice/{TINY}"), "No notebook was handed in"),
    ],
)
def test_a_folder_without_notebook_is_explained(
    school: Path, assignments: Assignments, make: Callable[[Path], object], told: str
) -> None:
    folder = school / "bob" / TINY
    folder.mkdir(parents=True)
    make(folder)
    assert told in found(school, assignments)["bob"].problem


@pytest.mark.parametrize(
    ("files", "meant"),
    [
        ({NAME: STRANGE, "a.ipynb": SOUND, NAME.upper(): SOUND}, NAME),
        ({"caf\udce9.ipynb": SOUND, f"._{NAME}": ""}, "caf\udce9.ipynb"),
        ({"a.ipynb": "{", "b.ipynb": STRANGE, "Tiny (2).ipynb": SOUND, "z.ipynb": SOUND}, "Tiny (2).ipynb"),
        ({"a.ipynb": STRANGE, "b.ipynb": notebook(cell("scan")), "c.ipynb": CLEARED}, "c.ipynb"),
        ({f"{n:02}.ipynb": "{" if n < 20 else SOUND for n in range(21)}, "00.ipynb"),
        ({f"deep/{NAME}": SOUND, "notes.txt": ""}, f"deep/{NAME}"),
        ({f"deep/{NAME}": SOUND, "a.ipynb": SOUND}, f"deep/{NAME}"),
    ],
)
def test_the_right_notebook_of_a_folder_is_chosen(
    school: Path, assignments: Assignments, files: dict[str, str], meant: str
) -> None:
    for name, text in files.items():
        path = school / "bob" / TINY / name
        hand_in(path.parent, path.name, text)
    assert found(school, assignments)["bob"].notebook == school / "bob" / TINY / meant


def test_names_of_folders_are_student_ids(school: Path, assignments: Assignments) -> None:
    names = ("two words", "b" * 128, "élève", "a,b", "{x}", "_b", "b.c-d+e@f", "赵敏", "b;c", "O'Brien")
    paths = {name: hand_in(school / unicodedata.normalize("NFD", name) / TINY) for name in names}
    assert {student: each.notebook for student, each in found(school, assignments).items()} == paths


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("<img src=x onerror=alert()>", "a&b", "o'+alert()+'", "o'x=1", 'q"', "*[x]?"), "cannot be a student id"),
        (("=1+1", "+1", "-rf", "@sum", ".x", "__x", " a", "a "), "cannot be a student id"),
        (("bob\nalice 10/10", "bob\udce9", "\u202ebob", "\x1b[2Jbob"), "cannot be printed"),
        ((ME, TINY), "has another meaning here"),
        (("b" * 129,), "more than 128 characters"),
    ],
)
def test_unexpected_file_names_are_rejected_for_one_student(
    school: Path, assignments: Assignments, names: tuple[str, ...], told: str
) -> None:
    for name in names:
        hand_in(school / name / TINY)
    problems = [each.problem for each in found(school, assignments).values() if not each.recognised]
    assert len(problems) == len(names)
    assert all(told in problem for problem in problems)


def test_every_folder_of_a_class_gets_a_result(school: Path, assignments: Assignments) -> None:
    for name in (".git", "__MACOSX/alice", ".ipynb_checkpoints"):
        (school / name).mkdir(parents=True)
    hand_in(school / "bob")
    hand_in(school / "carol" / "1-\ntiny")
    (school / "dave").symlink_to("alice")
    (school / "eve").mkdir()
    (school / "eve" / TINY).symlink_to(f"../alice/{TINY}")
    (school / "fay").symlink_to("fay")  # a link to itself
    assert {student: each.problem.split(".")[0] for student, each in found(school, assignments).items()} == {
        "bob": f"Nothing was handed in: the folder bob has no folder of an assignment, such as {TINY}",
        "carol": "There is no assignment 1-\\u000atiny",
        "dave": "The folder dave is a link",
        "eve": f"The folder {TINY} is a link",
    }
    (school.parent / "link").symlink_to(school)
    assert len(find_submissions([school.parent / "link"], assignments)) == 5


@pytest.mark.parametrize("text", [CLEARED, SOUND.replace('"id"', '"x"'), notebook(cell("check_ulp", marked=False))])
def test_own_notebooks_are_recognised_by_cells(tmp_path: Path, assignments: Assignments, text: str) -> None:
    path = hand_in(tmp_path / "mine", "my notes (2).ipynb", text)
    (submission,) = find_submissions([path], assignments)
    assert (submission.student, submission.own, submission.notebook) == (ME, True, path)
    assert submission.assignment is assignments[TINY]
    path.write_text(text + " ")
    assert find_submissions([path], assignments)[0].digest != submission.digest != ""


def test_course_notebooks_are_recognised_by_cell_ids(tmp_path: Path) -> None:
    assignments = course_assignments(config_of(REPOSITORY))
    assert len(assignments) == len(CHAPTERS)
    for each in assignments.values():
        data = json.loads((REPOSITORY / "notebooks" / each.id / each.source.name).read_text())
        for one in data["cells"]:
            one["metadata"] = {}
        (submission,) = find_submissions([hand_in(tmp_path, f"{each.id} copy.ipynb", json.dumps(data))], assignments)
        assert submission.assignment is each


def test_a_wrong_own_file_is_explained(tmp_path: Path, assignments: Assignments) -> None:
    for text, told in (("%PDF", "is a PDF"), (STRANGE, "belongs to no assignment of this course. Is it the right")):
        (submission,) = find_submissions([hand_in(tmp_path, "my notes.ipynb", text)], assignments)
        assert told in submission.problem
        assert (submission.recognised, submission.own) == (False, True)
        # The file name is enough to find the possible points.
        assert find_submissions([hand_in(tmp_path, NAME, text)], assignments)[0].assignment is assignments[TINY]


@pytest.mark.parametrize(
    ("where", "of_class", "who"),
    [
        (".", False, [(ME, TINY), (ME, OTHER)]),
        (".", True, [("bob", TINY), ("bob", OTHER), ("bob", "")]),
        (TINY, False, [(ME, TINY)]),
        (TINY, True, [("bob", TINY)]),
        (f"{TINY}/{NAME}", False, [(ME, TINY)]),
    ],
)
def test_a_folder_belongs_to_its_student_or_to_the_learner(
    tmp_path: Path, assignments: Assignments, where: str, of_class: bool, who: list[tuple[str, str]]
) -> None:
    in_submitted = {".": [("bob", TINY), ("bob", OTHER), ("bob", "")], TINY: [("bob", TINY)]}.get(where, who)
    for folder, expected in ((tmp_path / "work" / "bob", who), (tmp_path / "submitted" / "bob", in_submitted)):
        hand_in(folder / TINY)
        hand_in(folder / OTHER, "other.ipynb")
        (folder / "photos").mkdir()
        submissions = find_submissions([folder / where], assignments, of_class=of_class)
        assert [(each.student, each.assignment.id) for each in submissions] == expected
        assert all(each.own == (each.student == ME) for each in submissions)


def test_wrong_paths_are_rejected(tmp_path: Path, school: Path, assignments: Assignments) -> None:
    (tmp_path / "empty").mkdir()
    hand_in(tmp_path / "group" / "alice" / TINY)
    for paths, told in (
        ([tmp_path / "none"], "There is no file or folder .*none"),
        ([tmp_path / "empty"], "There are no submissions in .*empty. Pass a notebook, or"),
        ([school, tmp_path / "group"], "The student alice is in two of these folders"),
    ):
        with pytest.raises(CourseError, match=told):
            find_submissions(paths, assignments)
    assert len(find_submissions([school, school], assignments)) == 2  # giving the same folder twice is allowed


SAVED = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(hours=1)


def accepted(folder: Path, text: str, saved: datetime = SAVED) -> tuple[str, str]:
    """Return the accepted time to the second, and the note."""
    path = hand_in(folder)
    os.utime(path, (saved.timestamp(), saved.timestamp()))
    path.with_name("timestamp.txt").write_bytes(text.encode(errors="surrogateescape"))
    found = hand_in_time(path)
    assert not found.text or found.text.endswith(" UTC")
    return found.text[:19], found.note


@pytest.mark.parametrize(
    ("zones", "utc"),
    [
        (("", " UTC", "Z", " utc", " GMT", "Z", "+00:00", "-0000", "\n"), "01 23:59"),
        ((" +0530", "+05:30"), "01 18:29"),
        ((" -0330", "-03:30"), "02 03:29"),
        ((" +02", "+02:00", "+0200"), "01 21:59"),
        ((" +14:00",), "01 09:59"),
    ],
)
def test_time_zones_have_hours_and_minutes(tmp_path: Path, zones: tuple[str, ...], utc: str) -> None:
    for start in ("2026-03-01 23:59", "2026-03-01 23:59:00", "2026-03-01T23:59:00.123456789"):
        for zone in zones:
            assert accepted(tmp_path, start + zone) == (f"2026-03-{utc}:00", "")


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (("2026-02-31 12:00", "yesterday", "01/03/2026 12:00", "٢٠٢٦-03-01 12:00", "\udcff"), "it is not a date"),
        *(
            ((f"2026-03-01 12:00 {zone}",), f"its time zone {zone} is unknown")
            for zone in ("CEST", "EST5EDT", "Europe/Berlin", "+530", "../x")
        ),
        ((f"{LATER:%Y-%m-%d %H:%M}",), "it is in the future"),
        (("2019-12-31 23:59",), "it is before the course was released"),
    ],
)
def test_impossible_times_are_not_accepted(tmp_path: Path, texts: tuple[str, ...], why: str) -> None:
    saved = "the time at which the notebook was saved counts, 2026-03-05 12:00 UTC."
    for text in texts:
        assert accepted(tmp_path, text) == ("2026-03-05 12:00:00", f"timestamp.txt is not accepted ({why}); {saved}")
        for time in (LATER, datetime(1990, 1, 1, tzinfo=UTC)):
            note = f"timestamp.txt is not accepted ({why}); the time of handing in is unknown."
            assert accepted(tmp_path, text, time) == ("", note)


def test_hand_in_time_may_be_unknown(tmp_path: Path, assignments: Assignments, school: Path) -> None:
    assert accepted(tmp_path, " \n") == ("", "")
    (tmp_path / "timestamp.txt").unlink()
    assert hand_in_time(tmp_path / NAME).text == ""
    (tmp_path / "timestamp.txt").symlink_to("/dev/zero")
    assert "it is not a text file" in hand_in_time(tmp_path / NAME).note
    (school / "alice" / TINY / "timestamp.txt").write_text("2026-03-01 12:00:00 +0100")
    (submission,) = find_submissions([school], assignments)
    assert submission.time.text == "2026-03-01 11:00:00.000000 UTC"
