"""Find submissions with their student, assignment, notebook and hand-in time.

`find_submissions` sees whose folders there are. `_with_notebook` chooses the notebook that counts, for all of them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.course.parts import core_length
from lmcourse.grading import files
from lmcourse.grading.hand_in_time import HandInTime, hand_in_time
from lmcourse.grading.lms import NO_CHARACTERS, Download, Person, download_in
from lmcourse.grading.notebooks import cell_ids, read_submission
from lmcourse.grading.restore import CourseCells, cells_in_notebook
from lmcourse.report import CHECK_PREFIX

SUBMITTED = "submitted"  # nbgrader's folder with the submissions of a class
ME = "me"  # the student id of a notebook that a learner grades for themselves
# forbidden beginnings of student ids: formulas, options, hidden folders, and macOS's own folders
NO_BEGINNINGS = ("=", "+", "-", "@", ".", "__")
MAX_STUDENT_ID_CHARS = 128  # limit of nbgrader's gradebook

_WITH_APOSTROPHE = re.compile(r"[\w.@-][\w.@ '-]*")


@dataclass(frozen=True)
class Assignment:
    """An assignment of the course: its id, its notebook with solutions, and the place of its release."""

    id: str
    source: Path
    release: Path = Path()

    @cached_property
    def cells(self) -> CourseCells:
        """The course's cells, from the notebook with solutions and the release."""
        released = read_submission(self.release) if self.release.is_file() else None
        return cells_in_notebook(read_submission(self.source), released)

    @cached_property
    def further(self) -> frozenset[str]:
        """The exercises below the heading `## Further` of its notebook."""
        cells = read_submission(self.source).cells
        core = core_length([(cell.cell_type, cell.source) for cell in cells])
        checks = (cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in cells[core:])
        return frozenset(name.removeprefix(CHECK_PREFIX) for name in checks if name.startswith(CHECK_PREFIX))


Assignments = Mapping[str, Assignment]
"""The assignments of a course by id."""

UNRECOGNISED = Assignment("", Path())
"""The assignment of a submission that belongs to none of the course's."""


@dataclass(frozen=True)
class Submission:
    """One notebook to grade, or the reason why there is none."""

    student: str  # the student's id; `ME` for a learner's own notebook
    assignment: Assignment = UNRECOGNISED
    notebook: Path | None = None
    problem: str = ""  # why there is no notebook
    digest: str = ""  # SHA-256 of the file, which shows later whether it has changed
    time: HandInTime = field(default_factory=HandInTime)
    own: bool = False  # True if learners grade their own notebook
    others: tuple[str, ...] = ()  # the names of notebooks that were handed in as well, and do not count
    beside: tuple[Path, ...] = ()  # the files that were handed in with the notebook

    @property
    def recognised(self) -> bool:
        """True if the submission belongs to an assignment of the course."""
        return self.assignment != UNRECOGNISED

    @property
    def note(self) -> str:
        """Sentences for the learner about the files: a rejected time, and which of several notebooks counts."""
        if not self.others or self.notebook is None:
            return self.time.note
        names = ", ".join(map(escaped_name, self.others))
        counts = f"{escaped_name(self.notebook.name)} counts, of {len(self.others) + 1} notebooks that were handed in"
        return " ".join(filter(None, [self.time.note, f"{counts} (not: {names})."]))


def course_assignments(config: Config) -> dict[str, Assignment]:
    """Return the assignments of a course by id, from the folders that nbgrader's configuration names."""
    folders = config.CourseDirectory
    folder, releases = (Path(folders.root, folders.get(f"{name}_directory") or name) for name in ("source", "release"))
    if not (sources := sorted(folder.glob("*/*.ipynb"))):
        advice = "Grade in a clone of the course, after `lmcourse build`."
        raise CourseError(f"There are no notebooks in {folder}, and grading needs them. {advice}")
    ids = [source.parent.name for source in sources]
    return {id: Assignment(id, one, releases / id / one.name) for id, one in zip(ids, sources, strict=True)}


def find_submissions(paths: Sequence[Path], assignments: Assignments, *, of_class: bool = False) -> list[Submission]:
    """Find the submissions in files and folders.

    A file is a learner's own notebook. A folder may be a class (`student/assignment/notebook.ipynb`), a download from
    Moodle or Canvas, one student's folder in `submitted/`, an assignment's folder in a student's folder, or a learner's
    own folder with one or more assignments.

    With `of_class`, a folder that contains folders of assignments always belongs to a student, and its name is the
    student's id. Raises `CourseError` if a path does not exist, a folder has no submission, or two folders have
    submissions of the same student.
    """
    found = [submission for path in paths for submission in _submissions_in(path, assignments, of_class)]
    counted = Counter((each.student, each.assignment) for each in set(found) if each.recognised and not each.own)
    if twice := [student for (student, _), count in counted.items() if count > 1]:
        raise CourseError(f"The student {twice[0]} is in two of these folders. Leave out one of them.")
    return found


def _submissions_in(path: Path, assignments: Assignments, of_class: bool) -> list[Submission]:
    if path.is_file():
        return [_own_notebook(path, assignments)]
    if not path.is_dir():
        raise CourseError(f"There is no file or folder {path}.")
    folder = path.resolve()
    if folder.name in assignments:
        of_student = of_class or folder.parent.parent.name == SUBMITTED
        places = [folder]
        return _of_student(folder.parent, assignments, places) if of_student else [_in_folder(ME, folder, assignments)]
    if download := download_in(path):
        return _downloaded(download, assignments)
    visible = files.folders_in(path)
    students = {each for each in path.iterdir() if any(files.is_folder(each / name) for name in assignments)}
    if not students and (own := [each for each in visible if each.name in assignments]):
        if of_class or folder.parent.name == SUBMITTED:
            return _of_student(folder, assignments)
        return [_in_folder(ME, each, assignments) for each in own]
    # Hidden folders that contain a submission count, too.
    found = [one for each in sorted({*visible, *students}) for one in _of_student(each, assignments)]
    if not found:
        advice = "Pass a notebook, or a folder with student/assignment/notebook.ipynb."
        raise CourseError(f"There are no submissions in {path}. {advice}")
    return found


def _own_notebook(path: Path, assignments: Assignments) -> Submission:
    place, name = path.resolve().parent.name, path.name
    by_place = (each for each in assignments.values() if place == each.id or name == each.source.name)
    if assignment := _best_match(cell_ids(path), assignments) or next(by_place, None):
        beside = [each for each in files.visible_in(path.parent) if not files.is_notebook(each)]
        return _with_notebook(Submission(ME, assignment, own=True), [path, *beside], assignments, name)
    try:
        read_submission(path)
        problem = f"{escaped_name(name)} belongs to no assignment of this course. Is it the right file?"
    except files.UnreadableError as error:
        problem = str(error)
    return Submission(ME, problem=problem, own=True)


def _downloaded(download: Download, assignments: Assignments) -> list[Submission]:
    """Return the submissions in a download. Its assignment is the assignment that most of its notebooks fit."""
    notebooks = [path for person in download.people for path in person.notebooks]
    matches = Counter(match for path in notebooks if (match := _best_match(cell_ids(path), assignments)))
    if not matches:
        raise CourseError("No notebook in this download belongs to an assignment of this course. Is it the right one?")
    ((assignment, _),) = matches.most_common(1)
    return [_of_person(person, assignment, assignments) for person in download.people]


def _of_person(person: Person, assignment: Assignment, assignments: Assignments) -> Submission:
    if problem := student_id_problem(person.student):
        return Submission(escaped_name(person.student), problem=problem)
    newest_first = person.files[::-1]
    return _with_notebook(Submission(person.student, assignment, problem=person.problem), newest_first, assignments)


def _of_student(folder: Path, assignments: Assignments, places: Sequence[Path] = ()) -> list[Submission]:
    """Return a student's submissions, from these places in their folder; by default from all."""
    # macOS may decompose letters, but the same person must have the same id on every system.
    name = folder.name
    student = unicodedata.normalize("NFC", name) if name.isprintable() else escaped_name(name)
    try:
        files.refuse_links(folder)
        places = places or files.folders_in(folder)
        problem = student_id_problem(name, assignments)
    except files.UnreadableError as error:
        problem = str(error)
    if not problem and not places:
        example = next(iter(assignments))
        problem = f"Nothing was handed in: the folder {student} has no folder of an assignment, such as {example}."
    if problem:
        return [Submission(student, problem=problem)]
    return [_in_folder(student, place, assignments) for place in places]


def _in_folder(student: str, folder: Path, assignments: Assignments) -> Submission:
    """Return the submission in a folder, whose name is the assignment's id."""
    if folder.name not in assignments:
        advice = f"Rename the folder to one of {', '.join(assignments)}."
        return Submission(student, problem=f"There is no assignment {escaped_name(folder.name)}. {advice}")
    assignment = assignments[folder.name]
    found = Submission(student, assignment, own=student == ME)
    try:
        return _with_notebook(found, files.handed_in(folder), assignments, assignment.source.name)
    except files.UnreadableError as error:
        return replace(found, problem=str(error))


def _with_notebook(
    found: Submission, handed_in: Sequence[Path], assignments: Assignments, name: str = ""
) -> Submission:
    """Complete a submission with the notebook among the handed-in files that counts, or say why there is none.

    The notebook with this name counts or, if there is none, the first that has cells of the assignment.
    """
    wanted = found.assignment
    notebooks = [path for path in handed_in if files.is_notebook(path) or path.name == name][: files.MAX_ENTRIES]
    named = (path for path in notebooks if path.name == name)
    fitting = (path for path in notebooks if cell_ids(path) & wanted.cells.keys())
    meant = next(chain(named, fitting, notebooks), None)
    if meant is None:
        return replace(found, problem=found.problem or files.why_no_notebook(handed_in, wanted.source.name))
    ids = cell_ids(meant)
    if not ids & wanted.cells.keys() and (other := _best_match(ids, assignments)):
        problem = f"{escaped_name(meant.name)} is the notebook of {other.id}. Hand in that of {wanted.id}."
        return replace(found, problem=problem)
    try:
        digest = hashlib.sha256(files.read_file(meant)).hexdigest()
    except files.UnreadableError as error:
        return replace(found, problem=str(error))
    return replace(
        found,
        notebook=meant,
        problem="",
        digest=digest,
        time=hand_in_time(meant),
        others=tuple(path.name for path in notebooks if path != meant),
        beside=tuple(path for path in handed_in if path.parent == meant.parent and path not in notebooks),
    )


def _best_match(ids: set[str], assignments: Assignments) -> Assignment | None:
    """Return the assignment that most of these cells belong to."""
    best = max(assignments.values(), key=lambda each: len(ids & each.cells.keys()))
    return best if ids & best.cells.keys() else None


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
