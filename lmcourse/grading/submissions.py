"""From what somebody typed to submissions: whose notebook, of which assignment, in which file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.reading import UnreadableError, read_notebook

ME = "me"
"""The student of a notebook that somebody grades for themselves."""


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
    """One notebook to grade, or, if there is none, why."""

    student: str
    assignment: Assignment | None
    notebook: Path | None = field(default=None)
    problem: str = ""


def assignments(course: Path) -> dict[str, Assignment]:
    """The assignments of a course by id.

    Raises:
        CourseError: there are no built solutions.
    """
    sources = sorted((course / "solutions").glob("*/*.ipynb"))
    if not sources:
        raise CourseError(
            f"There are no notebooks under {course / 'solutions'}, which grading needs: run `lmcourse build`."
        )
    return {source.parent.name: Assignment(source.parent.name, source) for source in sources}


def find_submissions(paths: Sequence[Path], known: dict[str, Assignment]) -> list[Submission]:
    """The submissions in these files and folders.

    A file is a learner's own notebook; a folder holds `student/assignment/notebook.ipynb`, or is a learner's
    own folder of assignments.

    Raises:
        CourseError: a path does not exist, or a folder holds no submission.
    """
    return [submission for path in paths for submission in _in_path(path, known)]


def _in_path(path: Path, known: dict[str, Assignment]) -> list[Submission]:
    if path.is_file():
        return [_own_notebook(path, known)]
    if not path.is_dir():
        raise CourseError(f"There is no file or folder {path}.")
    if path.resolve().name in known:
        found = [_handed_in(ME, known[path.resolve().name], path)]
    else:
        folders = _folders(path)
        own = [folder for folder in folders if folder.name in known]
        found = [_handed_in(ME, known[folder.name], folder) for folder in own]
        for student in folders:
            if student not in own:
                found += _of_student(student, known)
    if not found:
        raise CourseError(f"There are no submissions under {path}: expected student/assignment/notebook.ipynb.")
    return found


def _of_student(folder: Path, known: dict[str, Assignment]) -> Iterator[Submission]:
    for place in _folders(folder):
        if place.name in known:
            yield _handed_in(folder.name, known[place.name], place)
        else:
            problem = f"There is no assignment {place.name}; the folder's name is one of {', '.join(known)}."
            yield Submission(folder.name, None, problem=problem)


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith((".", "__")))


def _handed_in(student: str, assignment: Assignment, folder: Path) -> Submission:
    """The notebook of an assignment in a folder: by its name, or, if it was renamed, by what is in it."""
    notebooks = sorted(folder.glob("*.ipynb"))
    named = [path for path in notebooks if path.name == assignment.source.name]
    meant = named or [path for path in notebooks if _recognised(path, [assignment])] or notebooks
    if not meant:
        wanted = f"{assignment.id}/{assignment.source.name}"
        return Submission(student, assignment, problem=f"No notebook was handed in: {wanted} is missing.")
    return Submission(student, assignment, meant[0])


def _own_notebook(path: Path, known: dict[str, Assignment]) -> Submission:
    candidates = list(known.values())
    by_place = [each for each in candidates if path.resolve().parent.name == each.id or path.name == each.source.name]
    found = _recognised(path, candidates) or (by_place[0] if by_place else None)
    if found is None:
        return Submission(
            ME, None, problem=f"{path.name} belongs to no assignment of this course: is it the right file?"
        )
    return Submission(ME, found, path)


def _recognised(path: Path, candidates: Sequence[Assignment]) -> Assignment | None:
    """The assignment that most of the notebook's cells belong to."""
    try:
        ids = set(_cell_ids(path))
    except UnreadableError:
        return None
    best = max(candidates, key=lambda each: len(ids & each.cell_ids))
    return best if ids & best.cell_ids else None


def _cell_ids(path: Path) -> list[str]:
    ids = []
    for cell in read_notebook(path).cells:
        marks = cell.get("metadata", {}).get("nbgrader")
        if isinstance(marks, dict) and isinstance(marks.get("grade_id"), str):
            ids.append(marks["grade_id"])
    return ids
