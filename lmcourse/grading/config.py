"""nbgrader's settings, shared by `nbgrader_config.py`, `lmcourse grade` and `lmcourse build`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.grading.files import NOT_COPIED

NOT_IN_PATHS = "%?*["
"""Characters of a folder's name that nbgrader reads otherwise: in the gradebook's address, and in file patterns."""


def configure(c: Config, root: Path, *, source: str = "solutions", release: str = "notebooks") -> None:
    """Fill in nbgrader's configuration `c` for the course in the folder `root`."""
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
    from nbgrader import preprocessors as theirs
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    from lmcourse.grading import pages
    from lmcourse.grading import preprocessors as ours
    from lmcourse.grading.files import remove_links
    from lmcourse.grading.stubs import STUB

    if problem := _path_problem(root):
        sys.exit(problem)  # of an nbgrader command, which would log an exception and go on with other settings
    _find_alembic()
    CourseDirectory.get_existing_timestamp = _believed_timestamp
    c.CourseDirectory.root = str(Path(root).resolve())
    c.CourseDirectory.course_id = "lmcourse"
    c.CourseDirectory.source_directory = source
    c.CourseDirectory.release_directory = release
    c.CourseDirectory.ignore = NOT_COPIED
    c.ClearSolutions.code_stub = {"python": STUB}
    making = list(GenerateAssignment.preprocessors.default())
    making.insert(making.index(theirs.ClearSolutions) + 1, ours.DropTopLevelStubs)
    making[making.index(theirs.SaveCells)] = ours.SaveChangedCells
    making.append(ours.MarkRelease)
    c.GenerateAssignment.preprocessors = making
    # time limit of one cell in seconds; a whole notebook of the course takes less than half of it
    c.Execute.timeout = 120
    c.Execute.iopub_timeout = 10
    c.Execute.shutdown_kernel = "immediate"

    c.Autograde.pre_convert_hook = remove_links
    c.Autograde.exporter_class = ours.SubmissionExporter
    # nbgrader's CheckCellMetadata is left out, because RestoreCells makes the metadata from the gradebook.
    restoring = [ours.RestoreCells, theirs.ClearOutput, theirs.OverwriteKernelspec, theirs.OverwriteCells]
    c.Autograde.sanitize_preprocessors = restoring
    examining = [ours.ExamineNotebook, theirs.IgnorePattern, theirs.LimitOutput]
    c.Autograde.autograde_preprocessors = [*examining, theirs.SaveAutoGrades, theirs.AssignLatePenalties]
    # Feedback pages and the formgrader show content from learners; both use HTMLExporter.
    c.HTMLExporter.preprocessors = [pages.CleanForDisplay]
    c.HTMLExporter.filters = {"clean_html": pages.clean_html, "markdown2html": pages.markdown_to_html}
    c.HTMLExporter.sanitize_html = True
    pages.secure_formgrader()
    c.GenerateFeedback.exporter_class = pages.FeedbackExporter
    # By default nbgrader keeps a page that is newer than the hand-in, though marks may have changed since then.
    c.GenerateFeedback.force = True
    c.GenerateFeedback.preprocessors = [theirs.GetGrades, CSSHTMLHeaderPreprocessor]


def nbgrader_configuration(course: Path, db: str | None = None) -> Config:
    """Return the configuration that `nbgrader autograde` would use in a course; `db` is the address of another
    gradebook."""
    from nbgrader.apps.baseapp import NbGrader

    if problem := _path_problem(course):
        raise CourseError(problem)
    config = Config()
    configure(config, course)
    with chdir(course):
        app = NbGrader()
        app.initialize([], root=str(course))
    config.merge(app.config)
    config.CourseDirectory.root = str(course)
    if db is not None:
        config.CourseDirectory.db_url = db
    return config


@contextmanager
def gradebook(config: Config, *, existing: bool = False) -> Iterator[Any]:
    """Open nbgrader's gradebook; yield None if only an `existing` one is wanted and the file does not exist, because
    opening would create it. Raises CourseError if it cannot be opened."""
    from nbgrader.api import Gradebook
    from nbgrader.coursedir import CourseDirectory

    directory = CourseDirectory(config=config)
    file = directory.db_url.removeprefix("sqlite:///")
    if existing and file != directory.db_url and not Path(file).is_file():
        yield None
        return
    try:
        book = Gradebook(directory.db_url, directory.course_id)
    except Exception as error:  # a database, its driver or its address may raise any exception
        raise CourseError(
            f"The gradebook cannot be opened ({str(error).splitlines()[0]}). Put a good copy in its place, run "
            "`nbgrader db upgrade` if nbgrader is newer than the gradebook, or name another one with --db."
        ) from error
    with book:
        yield book


def _path_problem(root: Path) -> str:
    """Return one sentence if nbgrader misreads a character in the path of a course, or ""."""
    path = str(Path(root).resolve())
    found = " and ".join(char for char in NOT_IN_PATHS if char in path)
    return found and f"nbgrader cannot work in {path}: it misreads {found} in the name of a folder. Rename the folder."


def _believed_timestamp(course: Any, folder: str) -> datetime | None:
    """Return the time at which the submission in a folder was handed in, as a method of nbgrader's `CourseDirectory`.

    nbgrader's own method ends the command if the text is not a date, and accepts any date.
    """
    from nbgrader.utils import parse_utc

    from lmcourse.grading.intake import hand_in_time

    notebooks = sorted(Path(folder).glob("*.ipynb"))
    came = hand_in_time(notebooks[0] if notebooks else Path(folder, "no.ipynb"))
    if came.note:
        course.log.warning("%s: %s", folder, came.note)
    return parse_utc(came.text) if came.text else None


def _find_alembic() -> None:
    """Make `alembic`, which nbgrader runs by name, available even if the environment was not activated."""
    if shutil.which("alembic") is None:
        beside_python = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([beside_python, os.environ.get("PATH", "")])
