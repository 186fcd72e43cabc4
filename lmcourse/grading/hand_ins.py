"""Find what learners handed in, in the folders of a class, of a learner and of a learning platform's download.

This module only looks at names of files and folders; `intake` reads the notebooks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.grading import files
from lmcourse.grading.downloads import NO_CHARACTERS, Person, download_in

SUBMITTED = "submitted"  # nbgrader's folder with the submissions of a class
ME = "me"  # the student id of a notebook that a learner grades for themselves
# forbidden beginnings of student ids: formulas, options, hidden folders, and macOS's own folders
NO_BEGINNINGS = ("=", "+", "-", "@", ".", "__")
MAX_STUDENT_ID_CHARS = 128  # limit of nbgrader's gradebook

ARCHIVE_SUFFIXES = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")

_WITH_APOSTROPHE = re.compile(r"[\w.@-][\w.@ '-]*")


@dataclass(frozen=True)
class HandIn:
    """The files that a learner handed in for an assignment, or the reason why there are none."""

    student: str  # the student's id; `ME` for a learner's own notebook
    assignment: str | None = None  # the assignment's id; "" if only the notebooks' cells show it; None if there is none
    notebooks: tuple[Path, ...] = ()  # the first counts before the others
    beside: tuple[Path, ...] = ()  # all other files
    problem: str = ""

    @classmethod
    def of(cls, student: str, assignment: str, handed_in: Sequence[Path], problem: str = "") -> HandIn:
        """Return what was handed in as these files; `problem` is on files that could not be looked at."""
        notebooks = tuple(path for path in handed_in if files.is_notebook(path))[: files.MAX_ENTRIES]
        beside = tuple(path for path in handed_in if not files.is_notebook(path))
        if not notebooks and not problem:
            problem = "No notebook was handed in."
            for path in (path for path in beside if path.suffix.lower() in ARCHIVE_SUFFIXES):
                problem = f"{escaped_name(path.name)} is an archive. Unpack it and hand in the notebook itself."
        return cls(student, assignment, notebooks, beside, problem)


def hand_ins_in(path: Path, assignments: Collection[str], *, of_class: bool) -> list[HandIn]:
    """Return what was handed in as a file or in a folder; see `intake.find_submissions`.

    `assignments` are the ids of the course's assignments. Raises `CourseError` if there is nothing.
    """
    if path.is_file():
        beside = HandIn.of(ME, "", files.visible_in(path.parent)).beside
        return [HandIn(ME, "", (path,), tuple(each for each in beside if each != path))]
    if not path.is_dir():
        raise CourseError(f"There is no file or folder {path}.")
    folder = path.resolve()
    if folder.name in assignments:
        mine = not of_class and folder.parent.parent.name != SUBMITTED
        return _of_student(folder.parent, assignments, [folder], mine=mine)
    if download := download_in(path):
        return [_of_person(person) for person in download.people]
    folders = files.folders_in(path, assignments)
    own = [each for each in folders if each.name in assignments]
    if own and not any(files.is_folder(each / name) for each in folders for name in assignments):
        mine = not of_class and folder.parent.name != SUBMITTED
        return _of_student(folder, assignments, own if mine else (), mine=mine)
    if not folders:
        advice = "Pass a notebook, or a folder with student/assignment/notebook.ipynb."
        raise CourseError(f"There are no submissions in {path}. {advice}")
    return [hand_in for each in folders for hand_in in _of_student(each, assignments)]


def _of_person(person: Person) -> HandIn:
    if problem := student_id_problem(person.student):
        return HandIn(escaped_name(person.student), problem=problem)
    return HandIn.of(person.student, "", person.files[::-1], person.problem)  # the newest counts


def _of_student(
    folder: Path, assignments: Collection[str], places: Sequence[Path] = (), *, mine: bool = False
) -> list[HandIn]:
    """Return what is in a student's folder, or in these places in it. If it is `mine`, it is a learner's own."""
    # macOS may decompose letters, but the same person must have the same id on every system.
    name = folder.name
    student = unicodedata.normalize("NFC", name) if name.isprintable() else escaped_name(name)
    try:
        places = places or files.folders_in(files.no_link(folder))
        problem = "" if mine else student_id_problem(name, assignments)
    except files.UnreadableError as error:
        problem = str(error)
    if not problem and not places:
        example = next(iter(assignments))
        problem = f"Nothing was handed in: the folder {student} has no folder of an assignment, such as {example}."
    if problem:
        return [HandIn(student, problem=problem)]
    return [_in_folder(ME if mine else student, place, assignments) for place in places]


def _in_folder(student: str, folder: Path, assignments: Collection[str]) -> HandIn:
    """Return what is in a folder, whose name is the assignment's id."""
    if folder.name not in assignments:
        advice = f"Rename the folder to one of {', '.join(assignments)}."
        return HandIn(student, problem=f"There is no assignment {escaped_name(folder.name)}. {advice}")
    try:
        return HandIn.of(student, folder.name, files.handed_in(folder))
    except files.UnreadableError as error:
        return HandIn(student, folder.name, problem=str(error))


def student_id_problem(student: str, taken: Collection[str] = ()) -> str:
    """Return why a folder name cannot be a student id, or ""; `taken` are names with another meaning."""
    advice = "Rename the folder to the student's id."
    if len(student) > MAX_STUDENT_ID_CHARS:
        problem = f"has more than {MAX_STUDENT_ID_CHARS} characters"
    elif not student.isprintable():
        problem = "has characters that cannot be printed"
    elif student == ME or student in taken:
        problem = "has another meaning here"
    # Ids appear on formgrader's pages and in spreadsheets, and people type them on command lines.
    elif student != student.strip() or student.startswith(NO_BEGINNINGS) or _has_unsafe_characters(student):
        problem = "cannot be a student id"
        advice = f"Rename the folder, without {' '.join(NO_CHARACTERS)}, without spaces at either end, and without "
        advice += f"{' '.join(NO_BEGINNINGS)} at the beginning."
    else:
        return ""
    return f"The folder name {escaped_name(student)} {problem}. {advice}"


def _has_unsafe_characters(student: str) -> bool:
    # In a name such as O'Brien, an apostrophe can do no harm on formgrader's pages.
    return bool(set(student) & set(NO_CHARACTERS)) and not _WITH_APOSTROPHE.fullmatch(student)
