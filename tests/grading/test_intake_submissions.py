"""Folders of a class as they arrive: every student gets a line, and nobody gets somebody else's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.intake import files
from lmcourse.grading.intake.submissions import Assignment, Submission, find_submissions
from tests.grading.strange import sound
from tests.grading.tiny_course import ASSIGNMENT, NAME, tiny_notebook

SOUND = json.dumps(sound())


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Assignment]:
    source = tmp_path / "course" / "solutions" / ASSIGNMENT / NAME
    source.parent.mkdir(parents=True)
    nbformat.write(tiny_notebook(), source)
    return {ASSIGNMENT: Assignment(ASSIGNMENT, source)}


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """A class in which alice did everything right."""
    hand_in(tmp_path / "class" / "alice" / ASSIGNMENT)
    return tmp_path / "class"


def hand_in(folder: Path, name: str = NAME, text: str = SOUND) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def found(school: Path, known: dict[str, Assignment]) -> dict[str, Submission]:
    """What was found, by student; alice is always among it, and always sound."""
    by_student = {each.student: each for each in find_submissions([school], known)}
    assert by_student["alice"].notebook == school / "alice" / ASSIGNMENT / NAME
    for each in by_student.values():
        assert each.student.isprintable()
        assert each.problem.isprintable()
        assert (each.notebook is None) == bool(each.problem)
    return by_student


def bob(school: Path) -> Path:
    folder = school / "bob" / ASSIGNMENT
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: None, f"No notebook was handed in: {ASSIGNMENT}/{NAME} is missing."),
        (lambda folder: (folder / NAME).symlink_to("/etc/passwd"), f"{NAME} is a link"),
        (lambda folder: (folder / NAME).symlink_to(f"../../alice/{ASSIGNMENT}/{NAME}"), f"{NAME} is a link"),
        (lambda folder: (folder / NAME).mkdir(), f"{NAME} is a folder"),
        (lambda folder: os.mkfifo(folder / NAME), f"{NAME} is no ordinary file"),
        (lambda folder: os.mkfifo(folder / "other.ipynb"), "other.ipynb is no ordinary file"),
        (lambda folder: (folder / NAME).write_bytes(b"PK\x03\x04"), "unpack it and hand in the notebook itself"),
        (
            lambda folder: (folder / "my.zip").write_bytes(b"PK"),
            "my.zip is an archive: unpack it and hand in the notebo",
        ),
        (lambda folder: (folder / "a.tar.gz").touch(), "a.tar.gz is an archive"),
        (lambda folder: (folder / "evil\n.ZIP").touch(), "evil\\u000a.ZIP is an archive"),
        (lambda folder: hand_in(folder / ASSIGNMENT), f"The notebook lies too deep: move {ASSIGNMENT}/{NAME} to"),
        (lambda folder: (folder / "deep").symlink_to("../../alice"), "No notebook was handed in"),
        (lambda folder: hand_in(folder, f"._{NAME}"), "No notebook was handed in"),
        (lambda folder: hand_in(folder / ".ipynb_checkpoints"), "No notebook was handed in"),
        (lambda folder: hand_in(folder / "__MACOSX"), "No notebook was handed in"),
    ],
)
def test_a_folder_without_a_notebook_says_why(
    school: Path, known: dict[str, Assignment], make: Callable[[Path], object], told: str
) -> None:
    make(bob(school))
    submission = found(school, known)["bob"]
    assert told in submission.problem
    assert submission.assignment is known[ASSIGNMENT]


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ([NAME, "a.ipynb", NAME.upper()], NAME),
        ([NAME.upper()], NAME.upper()),
        (["Tiny (2).ipynb"], "Tiny (2).ipynb"),
        (["-rf.ipynb"], "-rf.ipynb"),
        (["x" * 249 + ".ipynb"], "x" * 249 + ".ipynb"),
        (["caf\udce9.ipynb", f"._{NAME}"], "caf\udce9.ipynb"),
        ([NAME, "beside.zip"], NAME),
    ],
)
def test_the_notebook_that_was_meant(school: Path, known: dict[str, Assignment], names: list[str], meant: str) -> None:
    folder = bob(school)
    for name in names:
        hand_in(folder, name)
    assert found(school, known)["bob"].notebook == folder / meant


def test_of_several_the_one_that_belongs_to_the_course(school: Path, known: dict[str, Assignment]) -> None:
    folder = bob(school)
    hand_in(folder, "a.ipynb", "{")
    hand_in(folder, "b.ipynb", '{"nbformat": 4, "cells": []}')
    hand_in(folder, "c.ipynb")
    assert found(school, known)["bob"].notebook == folder / "c.ipynb"


def test_only_so_many_files_are_looked_at(
    school: Path, known: dict[str, Assignment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ENTRIES", 2)
    for name in ("a", "b", "c"):
        hand_in(
            bob(school) if name == "a" else school / "bob" / ASSIGNMENT, f"{name}.ipynb", SOUND if name == "c" else "{"
        )
    assert found(school, known)["bob"].notebook == school / "bob" / ASSIGNMENT / "a.ipynb"


@pytest.mark.parametrize("name", ["bob\nalice 10/10", "bob\udce9", "\u202ebob", "\x1b[2Jbob"])
def test_a_name_that_cannot_be_printed_is_no_student_s(school: Path, known: dict[str, Assignment], name: str) -> None:
    hand_in(school / name / ASSIGNMENT)
    (other,) = [each for student, each in found(school, known).items() if student != "alice"]
    assert "bob" in other.student
    assert "cannot be printed" in other.problem


@pytest.mark.parametrize("name", ["b", "two words", "b" * 128, "élève", "a,b", "{x}", "_b", "b.c-d+e@f", "赵敏", "b;c"])
def test_a_plain_name_is(school: Path, known: dict[str, Assignment], name: str) -> None:
    path = hand_in(school / name / ASSIGNMENT)
    assert found(school, known)[name].notebook == path


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, "is no plain name") for name in ("<img src=x onerror=alert()>", "a&b", "o'brien", 'quo"te', "*[x]?")),
        *((name, "is no plain name") for name in ("=1+1", "+1", "-rf", "@sum", ".x", "__x", " a", "a ")),
        ("me", "means something else here"),
        (ASSIGNMENT, "means something else here"),
        ("b" * 129, "more than 128 characters"),
    ],
)
def test_another_name_is_refused_for_that_student_alone(
    school: Path, known: dict[str, Assignment], name: str, told: str
) -> None:
    hand_in(school / name / ASSIGNMENT)
    (other,) = [each for student, each in found(school, known).items() if student != "alice"]
    assert (other.assignment, other.own) == (None, False)
    assert told in other.problem


def test_folders_that_a_computer_adds_are_nobody_s(school: Path, known: dict[str, Assignment]) -> None:
    for name in (".git", "__MACOSX/alice", ".ipynb_checkpoints"):
        (school / name).mkdir(parents=True)
    assert list(found(school, known)) == ["alice"]


def test_links_to_somebody_else_s_work(school: Path, known: dict[str, Assignment]) -> None:
    (school / "bob").symlink_to("alice")
    (school / "carol").mkdir()
    (school / "carol" / ASSIGNMENT).symlink_to(f"../alice/{ASSIGNMENT}")
    (school / "dave").symlink_to("dave")
    by_student = found(school, known)
    assert "The folder bob is a link" in by_student["bob"].problem
    assert f"The folder {ASSIGNMENT} is a link" in by_student["carol"].problem
    assert "dave" not in by_student  # a link that leads nowhere is no folder


def test_a_class_may_lie_behind_a_link(school: Path, known: dict[str, Assignment], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(school)
    assert [each.problem for each in find_submissions([tmp_path / "link"], known)] == [""]


def test_a_student_without_an_assignment_gets_a_line_too(school: Path, known: dict[str, Assignment]) -> None:
    hand_in(school / "bob")
    (school / "carol").mkdir()
    hand_in(school / "dave" / "1-\ntiny")
    by_student = found(school, known)
    assert "bob holds no folder of an assignment" in by_student["bob"].problem
    assert "Nothing was handed in" in by_student["carol"].problem
    assert "There is no assignment 1-\\u000atiny" in by_student["dave"].problem


def test_a_learner_s_own_folder_may_hold_other_folders(tmp_path: Path, known: dict[str, Assignment]) -> None:
    hand_in(tmp_path / "mine" / ASSIGNMENT)
    (tmp_path / "mine" / "photos").mkdir()
    assert [each.student for each in find_submissions([tmp_path / "mine"], known)] == ["me"]


def test_a_folder_that_may_not_be_opened(
    school: Path, known: dict[str, Assignment], monkeypatch: pytest.MonkeyPatch
) -> None:
    bob(school)
    listed = Path.iterdir

    def iterdir(path: Path) -> object:
        if "bob" in path.parts:
            raise PermissionError(13, "Permission denied")  # root may open anything
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert "its permissions have to allow it" in found(school, known)["bob"].problem
    with pytest.raises(CourseError, match="its permissions"):
        find_submissions([school / "bob"], known)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"PK\x03\x04", "unpack it and hand in the notebook itself"),
        (b"{", "it breaks off in line 1"),
        (b'{"nbformat": 4, "cells": []}', "belongs to no assignment"),
    ],
)
def test_a_file_of_one_s_own_says_what_is_wrong(
    tmp_path: Path, known: dict[str, Assignment], data: bytes, told: str
) -> None:
    path = tmp_path / "my notes.ipynb"
    path.write_bytes(data)
    (submission,) = find_submissions([path], known)
    assert told in submission.problem
    path = tmp_path / NAME  # now its name says what it is, and so what it might have earned
    path.write_bytes(data)
    (submission,) = find_submissions([path], known)
    assert submission.assignment is known[ASSIGNMENT]
    assert (submission.notebook is None) == (data[:2] == b"PK")
