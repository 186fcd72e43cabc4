"""From paths to submissions: whose notebook, of which assignment, in which file, and when it came."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.intake.downloads import Download, Person, download_in
from lmcourse.grading.intake.files import (
    UnreadableError,
    escaped_name,
    folders_in,
    notebooks_in,
    read_file,
    refuse_links,
    why_no_notebook,
)
from lmcourse.grading.intake.hand_in_time import HandInTime, hand_in_time
from lmcourse.grading.intake.notebook import read_submission
from lmcourse.grading.intake.student_ids import ME, student_id_problem

SUBMITTED = "submitted"
"""The folder of a class's submissions, by nbgrader's convention."""


@dataclass(frozen=True)
class Assignment:
    """An assignment of the course: its id and its notebook with solutions."""

    id: str
    source: Path

    @cached_property
    def cell_ids(self) -> frozenset[str]:
        """The nbgrader ids of its cells."""
        return frozenset(_cell_ids(self.source))


@dataclass(frozen=True)
class Submission:
    """One notebook to grade, or, if there is none, why.

    Attributes:
        student: the name of their folder.
        assignment: what was handed in, if it was recognised.
        notebook: the file.
        problem: why there is no notebook.
        digest: of the file, for whoever wants to know later whether it has changed.
        came: when.
        own: whether somebody grades it for themselves; then the student is `ME`.
    """

    student: str
    assignment: Assignment | None
    notebook: Path | None = field(default=None)
    problem: str = ""
    digest: str = ""
    came: HandInTime = field(default_factory=HandInTime)
    own: bool = False


def assignments(course: Path) -> dict[str, Assignment]:
    """The assignments of a course by id.

    Raises:
        CourseError: there are no built solutions.
    """
    sources = sorted((course / "solutions").glob("*/*.ipynb"))
    if not sources:
        raise CourseError(
            f"There are no notebooks under {course / 'solutions'}, which grading needs: "
            "grade in a clone of the course, after `lmcourse build`."
        )
    return {source.parent.name: Assignment(source.parent.name, source) for source in sources}


def find_submissions(
    paths: Sequence[Path], known: dict[str, Assignment], *, of_class: bool = False
) -> list[Submission]:
    """The submissions in these files and folders.

    A file is a learner's own notebook; a folder holds `student/assignment/notebook.ipynb`, or is what Moodle or Canvas
    gave for download, or the folder of one student in `submitted/`, or of an assignment in that, or a learner's own
    folder of assignments.

    Args:
        paths: the files and folders.
        known: the assignments by id.
        of_class: whether folders of assignments are a student's in any case, called as the folder that they lie in.

    Raises:
        CourseError: a path does not exist, a folder holds no submission, or two of them hold the same student's.
    """
    found = [submission for path in paths for submission in _submissions_in(path, known, of_class)]
    counted = Counter((each.student, each.assignment) for each in set(found) if each.assignment and not each.own)
    if twice := [student for (student, _), count in counted.items() if count > 1]:
        raise CourseError(f"{twice[0]} is in two of these folders: leave out one of them.")
    return found


def _submissions_in(path: Path, known: dict[str, Assignment], of_class: bool) -> list[Submission]:
    if path.is_file():
        return [_own(_own_notebook(path, known))]
    if not path.is_dir():
        raise CourseError(f"There is no file or folder {path}.")
    if path.resolve().name in known and (of_class or path.resolve().parents[1].name == SUBMITTED):
        found = [*_of_student(path.resolve().parent, known, alone=False, only=path.resolve().name)]
    elif path.resolve().name in known:
        found = [_own(_in_assignment_folder(ME, known[path.resolve().name], path))]
    elif download := download_in(path):
        found = _downloaded(download, list(known.values()))
    else:
        students = _folders_of_students(path, known)
        folders = [folder for folder in _folders(path) if folder not in students]
        own = [] if students else [folder for folder in folders if folder.name in known]
        if own and (of_class or path.resolve().parent.name == SUBMITTED):
            return [*_of_student(path.resolve(), known, alone=False)]
        found = [_own(_in_assignment_folder(ME, known[folder.name], folder)) for folder in own]
        for folder in sorted({*folders, *students}):
            if folder not in own:
                found += _of_student(folder, known, alone=bool(own))
    if not found:
        raise CourseError(f"There are no submissions under {path}: expected student/assignment/notebook.ipynb.")
    return found


def _downloaded(download: Download, known: Sequence[Assignment]) -> list[Submission]:
    """What everybody in a download handed in: all for one assignment, the one that most of the notebooks belong to."""
    notebooks = [path for person in download.people for path in person.notebooks]
    assignment_of = {path: match for path in notebooks if (match := _best_match(path, known))}
    if not assignment_of:
        raise CourseError("No notebook of this download belongs to an assignment of this course: is it the right one?")
    ((assignment, _),) = Counter(assignment_of.values()).most_common(1)
    return [
        _of_person(person, assignment, [path for path in person.notebooks if assignment_of.get(path) == assignment])
        for person in download.people
    ]


def _of_person(person: Person, assignment: Assignment, fitting: Sequence[Path]) -> Submission:
    """The newest of somebody's notebooks that fit the assignment, or of all if none does."""
    if problem := student_id_problem(person.student):
        return Submission(escaped_name(person.student), None, problem=problem)
    meant = fitting or person.notebooks
    if not meant:
        problem = person.problem or person.why_no_notebook(assignment.source.name)
        return Submission(person.student, assignment, problem=problem)
    return _of_file(person.student, assignment, meant[-1])


def _own(submission: Submission) -> Submission:
    return replace(submission, own=True)


def _folders(path: Path) -> list[Path]:
    try:
        return folders_in(path)
    except UnreadableError as error:
        raise CourseError(str(error)) from error


def _folders_of_students(path: Path, known: Collection[str]) -> set[Path]:
    """The folders that hold one of an assignment, whatever they are called: hidden ones and odd ones too."""
    try:
        return {place.parent for name in known for place in path.glob(f"*/{name}/")}
    except OSError as error:
        raise CourseError(f"The folder {escaped_name(path.name)} cannot be read ({error.strerror}).") from error


def _of_student(
    folder: Path, known: dict[str, Assignment], *, alone: bool, only: str | None = None
) -> Iterator[Submission]:
    """What one student handed in, or `only` for one assignment; `alone` if this may be just another folder of somebody
    who grades for themselves."""
    student = folder.name if folder.name.isprintable() else escaped_name(folder.name)
    try:
        refuse_links(folder)
        places = [place for place in folders_in(folder) if only in (None, place.name)]
    except UnreadableError as error:
        yield Submission(student, None, problem=str(error))
        return
    if problem := student_id_problem(folder.name, known):
        yield Submission(student, None, problem=problem)
        return
    for place in places:
        if place.name in known:
            yield _in_assignment_folder(student, known[place.name], place)
        else:
            shown, ids = escaped_name(place.name), ", ".join(known)
            problem = f"There is no assignment {shown}; the folder's name is one of {ids}."
            yield Submission(student, None, problem=problem)
    if not places and not alone:
        problem = f"Nothing was handed in: {student} holds no folder of an assignment, such as {next(iter(known))}."
        yield Submission(student, None, problem=problem)


def _in_assignment_folder(student: str, assignment: Assignment, folder: Path) -> Submission:
    """The notebook of an assignment in a folder: by its name, or, if it was renamed, by what is in it."""
    try:
        refuse_links(folder)
        notebooks = notebooks_in(folder)
        named = [path for path in notebooks if path.name == assignment.source.name]
        meant = named or [path for path in notebooks if _best_match(path, [assignment])] or notebooks
        problem = "" if meant else why_no_notebook(folder, f"{assignment.id}/{assignment.source.name}")
    except UnreadableError as error:
        return Submission(student, assignment, problem=str(error))
    return _of_file(student, assignment, meant[0]) if meant else Submission(student, assignment, problem=problem)


def _of_file(student: str, assignment: Assignment, path: Path) -> Submission:
    """A submission of this file, which is opened to see whether it can be."""
    try:
        data = read_file(path)
    except UnreadableError as error:
        return Submission(student, assignment, problem=str(error))
    return Submission(student, assignment, path, digest=hashlib.sha256(data).hexdigest(), came=hand_in_time(path))


def _own_notebook(path: Path, known: dict[str, Assignment]) -> Submission:
    candidates = list(known.values())
    by_place = [each for each in candidates if path.resolve().parent.name == each.id or path.name == each.source.name]
    found = _best_match(path, candidates) or (by_place[0] if by_place else None)
    if found is not None:
        return _of_file(ME, found, path)
    try:
        read_submission(path)
        problem = f"{escaped_name(path.name)} belongs to no assignment of this course: is it the right file?"
    except UnreadableError as error:
        problem = str(error)
    return Submission(ME, None, problem=problem)


def _best_match(path: Path, candidates: Sequence[Assignment]) -> Assignment | None:
    """The assignment that most of the notebook's cells belong to."""
    try:
        ids = set(_cell_ids(path))
    except UnreadableError:
        return None
    best = max(candidates, key=lambda each: len(ids & each.cell_ids))
    return best if ids & best.cell_ids else None


def _cell_ids(path: Path) -> list[str]:
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in read_submission(path).cells]
    return [name for name in names if isinstance(name, str)]
