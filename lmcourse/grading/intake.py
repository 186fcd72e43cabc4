"""Find submissions with their student, assignment, hand-in time and the notebook that counts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.course.parts import core_length
from lmcourse.grading.files import UnreadableError, read_file
from lmcourse.grading.hand_in_time import HandInTime, hand_in_time
from lmcourse.grading.hand_ins import ME, HandIn, hand_ins_in
from lmcourse.grading.notebooks import cell_ids, grade_id, read_submission
from lmcourse.grading.restore import CourseCells, cells_in_notebook
from lmcourse.report import CHECK_PREFIX


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
        names = [grade_id(cell) for cell in cells[core:]]
        return frozenset(name.removeprefix(CHECK_PREFIX) for name in names if name.startswith(CHECK_PREFIX))


Assignments = Mapping[str, Assignment]  # the assignments of a course by id
UNRECOGNISED = Assignment("", Path())  # the assignment of a submission that belongs to none of the course's


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
    found: list[Submission] = []
    for path in paths:
        hand_ins = hand_ins_in(path, assignments, of_class=of_class)
        shared = _shared_assignment(hand_ins, assignments)
        for each in hand_ins:
            wanted = UNRECOGNISED if each.assignment is None else assignments.get(each.assignment, shared)
            found.append(_submission(each, wanted, assignments))
    counted = Counter((each.student, each.assignment) for each in set(found) if each.recognised and not each.own)
    if twice := [student for (student, _), count in counted.items() if count > 1]:
        raise CourseError(f"The student {twice[0]} is in two of these folders. Leave out one of them.")
    return found


def _shared_assignment(hand_ins: Sequence[HandIn], assignments: Assignments) -> Assignment:
    """Return the assignment of notebooks that are in no assignment's folder: that of most cells or, without any, of a
    file's name or folder."""
    notebooks = [path for each in hand_ins if each.assignment == "" for path in each.notebooks]
    matches = Counter(match for path in notebooks if (match := _best_match(cell_ids(path), assignments)))
    places = {name for path in notebooks for name in (path.name, path.resolve().parent.name)}
    named = [each for each in assignments.values() if {each.id, each.source.name} & places]
    return next((match for match, _ in matches.most_common(1)), named[0] if named else UNRECOGNISED)


def _submission(hand_in: HandIn, wanted: Assignment, assignments: Assignments) -> Submission:
    own = hand_in.student == ME and hand_in.assignment is not None
    try:
        meant = _notebook_that_counts(hand_in, wanted, assignments)
        digest = hashlib.sha256(read_file(meant)).hexdigest()
    except UnreadableError as error:
        return Submission(hand_in.student, wanted, problem=str(error), own=own)
    return Submission(
        hand_in.student,
        wanted,
        meant,
        digest=digest,
        time=hand_in_time(meant),
        own=own,
        others=tuple(path.name for path in hand_in.notebooks if path != meant),
        beside=tuple(path for path in hand_in.beside if path.parent == meant.parent),
    )


def _notebook_that_counts(hand_in: HandIn, wanted: Assignment, assignments: Assignments) -> Path:
    """Return the notebook with the released name, if a folder says whose it is; else the first that has cells of the
    assignment; else the first. Raises `UnreadableError` with the reason if there is none, or it is another's."""
    if not hand_in.notebooks:
        raise UnreadableError(hand_in.problem)
    if wanted == UNRECOGNISED:
        read_submission(hand_in.notebooks[0])  # raises what is wrong with the file
        name = escaped_name(hand_in.notebooks[0].name)
        raise UnreadableError(f"{name} belongs to no assignment of this course. Is it the right file?")
    named = (path for path in hand_in.notebooks if hand_in.assignment and path.name == wanted.source.name)
    fitting = (path for path in hand_in.notebooks if cell_ids(path) & wanted.cells.keys())
    meant = next(chain(named, fitting, hand_in.notebooks))
    ids = cell_ids(meant)
    if not ids & wanted.cells.keys() and (other := _best_match(ids, assignments)):
        raise UnreadableError(f"{escaped_name(meant.name)} is the notebook of {other.id}. Hand in that of {wanted.id}.")
    return meant


def _best_match(ids: set[str], assignments: Assignments) -> Assignment | None:
    """Return the assignment that most of these cells belong to."""
    best = max(assignments.values(), key=lambda each: len(ids & each.cells.keys()))
    return best if ids & best.cells.keys() else None
