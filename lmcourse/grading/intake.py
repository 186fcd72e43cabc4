"""Find submissions with their student, assignment, file and hand-in time."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.course.parts import core_length
from lmcourse.grading import files
from lmcourse.grading.lms import NO_CHARACTERS, Download, Person, download_in
from lmcourse.grading.notebooks import read_submission
from lmcourse.grading.restore import CourseCells, cells_in_notebook
from lmcourse.report import CHECK_PREFIX

SUBMITTED = "submitted"  # nbgrader's folder with the submissions of a class
ME = "me"  # the student id of a notebook that a learner grades for themselves
# forbidden beginnings of student ids: formulas, options, hidden folders, and macOS's own folders
NO_BEGINNINGS = ("=", "+", "-", "@", ".", "__")
MAX_STUDENT_ID_CHARS = 128  # limit of nbgrader's gradebook

TIMESTAMP = "timestamp.txt"  # the file in which nbgrader's exchange stores the hand-in time
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)  # a hand-in time must be later; the course was released after it
CLOCK_SKEW = timedelta(minutes=10)  # how far the clock of another machine may be ahead

_WITH_APOSTROPHE = re.compile(r"[\w.@-][\w.@ '-]*")
_TIME = re.compile(r"([\d-]+[ T][\d:.,]+)\s*(\S{0,40})", re.ASCII)


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


@dataclass(frozen=True)
class HandInTime:
    """The time at which a submission was handed in, if it is known."""

    text: str = ""  # in UTC, in nbgrader's format
    note: str = ""  # one sentence if a `timestamp.txt` was rejected


@dataclass(frozen=True)
class Submission:
    """One notebook to grade, or the reason why there is none."""

    student: str  # the student's id; `ME` for a learner's own notebook
    assignment: Assignment | None  # None if the assignment was not recognised
    notebook: Path | None = None
    problem: str = ""  # why there is no notebook
    digest: str = ""  # SHA-256 of the file, which shows later whether it has changed
    came: HandInTime = HandInTime()
    own: bool = False  # True if learners grade their own notebook
    others: tuple[str, ...] = ()  # the names of notebooks that were handed in as well, and do not count
    beside: tuple[Path, ...] = ()  # the files that were handed in with the notebook

    @property
    def note(self) -> str:
        """Sentences for the learner about the files: a rejected time, and which of several notebooks counts."""
        if not self.others or self.notebook is None:
            return self.came.note
        names = ", ".join(map(escaped_name, self.others))
        counts = f"{escaped_name(self.notebook.name)} counts, of {len(self.others) + 1} notebooks that were handed in"
        return " ".join(filter(None, [self.came.note, f"{counts} (not: {names})."]))

    @property
    def known(self) -> Assignment:
        """The assignment, if it was recognised."""
        assert self.assignment is not None
        return self.assignment


def assignments(config: Config) -> dict[str, Assignment]:
    """Return the assignments of a course by id, from the folders that nbgrader's configuration names."""
    folders = config.CourseDirectory
    folder, releases = (Path(folders.root, folders.get(f"{name}_directory") or name) for name in ("source", "release"))
    if not (sources := sorted(folder.glob("*/*.ipynb"))):
        advice = "Grade in a clone of the course, after `lmcourse build`."
        raise CourseError(f"There are no notebooks in {folder}, and grading needs them. {advice}")
    ids = [source.parent.name for source in sources]
    return {id: Assignment(id, one, releases / id / one.name) for id, one in zip(ids, sources, strict=True)}


def find_submissions(
    paths: Sequence[Path], known: dict[str, Assignment], *, of_class: bool = False
) -> list[Submission]:
    """Find the submissions in files and folders.

    A file is a learner's own notebook. A folder may be a class (`student/assignment/notebook.ipynb`), a download from
    Moodle or Canvas, one student's folder in `submitted/`, an assignment's folder in a student's folder, or a learner's
    own folder with one or more assignments.

    With `of_class`, a folder that contains folders of assignments always belongs to a student, and its name is the
    student's id. Raises `CourseError` if a path does not exist, a folder has no submission, or two folders have
    submissions of the same student.
    """
    found = [submission for path in paths for submission in _submissions_in(path, known, of_class)]
    counted = Counter((each.student, each.assignment) for each in set(found) if each.assignment and not each.own)
    if twice := [student for (student, _), count in counted.items() if count > 1]:
        raise CourseError(f"The student {twice[0]} is in two of these folders. Leave out one of them.")
    return found


def _submissions_in(path: Path, known: dict[str, Assignment], of_class: bool) -> list[Submission]:
    if path.is_file():
        return [_own_notebook(path, list(known.values()))]
    if not path.is_dir():
        raise CourseError(f"There is no file or folder {path}.")
    folder = path.resolve()
    if folder.name in known and (of_class or folder.parent.parent.name == SUBMITTED):
        found = [*_of_student(folder.parent, known, only=folder.name)]
    elif folder.name in known:
        found = [_in_assignment_folder(ME, folder.name, known, path)]
    elif download := download_in(path):
        found = _downloaded(download, list(known.values()))
    else:
        visible = files.folders_in(path)
        students = {each for each in path.iterdir() if any(files.is_folder(each / name) for name in known)}
        folders = sorted({*visible, *students})  # including hidden folders that contain a submission
        own = [] if students else [each for each in folders if each.name in known]
        if own and (of_class or folder.parent.name == SUBMITTED):
            return [*_of_student(folder, known)]
        found = [_in_assignment_folder(ME, each.name, known, each) for each in own]
        for each in (each for each in folders if each not in own):
            found += _of_student(each, known, beside_own=bool(own))
    if not found:
        advice = "Pass a notebook, or a folder with student/assignment/notebook.ipynb."
        raise CourseError(f"There are no submissions in {path}. {advice}")
    return found


def _downloaded(download: Download, known: Sequence[Assignment]) -> list[Submission]:
    """Return the submissions in a download. Its assignment is the assignment that most of its notebooks fit."""
    notebooks = [path for person in download.people for path in person.notebooks]
    assignment_of = {path: match for path in notebooks if (match := _best_match(path, known))}
    if not assignment_of:
        raise CourseError("No notebook in this download belongs to an assignment of this course. Is it the right one?")
    ((assignment, _),) = Counter(assignment_of.values()).most_common(1)
    return [
        _of_person(person, assignment, [path for path in person.notebooks if assignment_of.get(path) == assignment])
        for person in download.people
    ]


def _of_person(person: Person, assignment: Assignment, fitting: Sequence[Path]) -> Submission:
    """Return a person's newest notebook that fits the assignment or, if no notebook fits, the newest of all."""
    if problem := student_id_problem(person.student):
        return Submission(escaped_name(person.student), None, problem=problem)
    if meant := fitting or person.notebooks:
        own = [path for path in person.files if path.parent == meant[-1].parent and person.has_folder]
        return _of_file(person.student, assignment, meant[-1], person.notebooks, own)
    problem = person.problem or files.no_notebook_among(person.files, assignment.source.name)
    return Submission(person.student, assignment, problem=problem)


def _of_student(
    folder: Path, known: dict[str, Assignment], *, only: str | None = None, beside_own: bool = False
) -> Iterator[Submission]:
    """Find one student's submissions. In a learner's own folder, other folders need not contain a submission."""
    # macOS may decompose letters, but the same person must have the same id on every system.
    name = folder.name
    student = unicodedata.normalize("NFC", name) if name.isprintable() else escaped_name(name)
    places: list[Path] = []
    try:
        files.refuse_links(folder)
        places = [place for place in files.folders_in(folder) if only in (None, place.name)]
        problem = student_id_problem(folder.name, known)
    except files.UnreadableError as error:
        problem = str(error)
    if not problem and not places and not beside_own:
        example = next(iter(known))
        problem = f"Nothing was handed in: the folder {student} has no folder of an assignment, such as {example}."
    if problem:
        yield Submission(student, None, problem=problem)
        return
    for place in places:
        if place.name in known:
            yield _in_assignment_folder(student, place.name, known, place)
        else:
            advice = f"Rename the folder to one of {', '.join(known)}."
            problem = f"There is no assignment {escaped_name(place.name)}. {advice}"
            yield Submission(student, None, problem=problem)


def _in_assignment_folder(student: str, name: str, known: Mapping[str, Assignment], folder: Path) -> Submission:
    """Find an assignment's notebook in a folder by its name or, if it was renamed, by its cells."""
    assignment = known[name]
    try:
        files.refuse_links(folder)
        notebooks = files.notebooks_in(folder)
        named = [path for path in notebooks if path.name == assignment.source.name]
        if meant := named or [path for path in notebooks if _best_match(path, [assignment])] or notebooks:
            fits = _best_match(meant[0], [assignment]) or _best_match(meant[0], [*known.values()]) or assignment
            if fits is assignment:
                return _of_file(student, assignment, meant[0], notebooks, files.visible_in(folder))
            problem = f"{escaped_name(meant[0].name)} in the folder {name} is the notebook of {fits.id}. Hand in "
            problem += f"that of {name}, or put this one into the folder {fits.id}."
        else:
            problem = files.why_no_notebook(folder, f"{assignment.id}/{assignment.source.name}")
    except files.UnreadableError as error:
        problem = str(error)
    return Submission(student, assignment, problem=problem, own=student == ME)


def _of_file(
    student: str, assignment: Assignment, path: Path, among: Sequence[Path] = (), beside: Sequence[Path] = ()
) -> Submission:
    own = student == ME  # `student_id_problem` forbids this name for folders of a class
    try:
        digest = hashlib.sha256(files.read_file(path)).hexdigest()
    except files.UnreadableError as error:
        return Submission(student, assignment, problem=str(error), own=own)
    others = tuple(each.name for each in among if each != path)
    came, near = hand_in_time(path), tuple(beside)
    return Submission(student, assignment, path, digest=digest, came=came, own=own, others=others, beside=near)


def _own_notebook(path: Path, known: Sequence[Assignment]) -> Submission:
    by_place = (each for each in known if path.resolve().parent.name == each.id or path.name == each.source.name)
    if found := _best_match(path, known) or next(by_place, None):
        return _of_file(ME, found, path, beside=files.visible_in(path.parent))
    try:
        read_submission(path)
        problem = f"{escaped_name(path.name)} belongs to no assignment of this course. Is it the right file?"
    except files.UnreadableError as error:
        problem = str(error)
    return Submission(ME, None, problem=problem, own=True)


def _best_match(path: Path, candidates: Sequence[Assignment]) -> Assignment | None:
    """Return the assignment that most cells of a notebook belong to."""
    try:
        notebook = read_submission(path)
    except files.UnreadableError:
        return None
    # In the course's notebooks a graded cell's nbgrader id is also its cell id, which editors keep.
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells if cell.metadata}
    ids |= {cell["id"] for cell in notebook.cells}
    best = max(candidates, key=lambda each: len(ids & each.cells.keys()))
    return best if ids & best.cells.keys() else None


def student_id_problem(student: str, known: Collection[str] = ()) -> str:
    """Return why a folder name cannot be a student id, or ""; `known` are the ids of assignments."""
    advice = "Rename the folder to the student's id."
    if len(student) > MAX_STUDENT_ID_CHARS:
        problem = f"has more than {MAX_STUDENT_ID_CHARS} characters"
    elif not student.isprintable():
        problem = "has characters that cannot be printed"
    elif student == ME or student in known:
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


def hand_in_time(notebook: Path) -> HandInTime:
    """Return the time in the `timestamp.txt` next to a notebook, or the file's own time if that is impossible."""
    path = notebook.parent / TIMESTAMP
    if not path.exists() and not path.is_symlink():
        return HandInTime()
    try:
        text = files.read_file(path)[:100].decode(errors="replace").strip()
        return HandInTime(_written(_time_in(text)) if text else "")
    except files.UnreadableError:
        wrong = "it is not a text file"
    except ValueError as error:
        wrong = str(error)
    try:
        saved = datetime.fromtimestamp(notebook.stat().st_mtime, UTC)
        text = _written(saved)
    except (OSError, ValueError, OverflowError):
        return HandInTime(note=f"{TIMESTAMP} is not accepted ({wrong}); the time of handing in is unknown.")
    note = f"{TIMESTAMP} is not accepted ({wrong}); the time at which the notebook was saved counts"
    return HandInTime(text, f"{note}, {saved:%Y-%m-%d %H:%M} UTC.")


def _time_in(text: str) -> datetime:
    """Parse a time, in UTC unless it has a zone; raise `ValueError` with the reason if it is invalid."""
    # Not nbgrader's `parse_utc`, which reads the minutes of +0530 as hours.
    try:
        clock, zone = _TIME.fullmatch(text).groups()  # type: ignore[union-attr]
        datetime.fromisoformat(clock)
    except (AttributeError, ValueError) as error:
        raise ValueError("it is not a date") from error
    try:
        return datetime.fromisoformat(clock + ("Z" if zone.upper() in ("", "UTC", "GMT") else zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"its time zone {zone} is unknown") from error


def _written(time: datetime) -> str:
    """Format a time as nbgrader does; raise `ValueError` if the time is impossible."""
    if time > datetime.now(UTC) + CLOCK_SKEW:
        raise ValueError("it is in the future")
    if time < EARLIEST:
        raise ValueError("it is before the course was released")
    return f"{time:%Y-%m-%d %H:%M:%S.%f} UTC"
