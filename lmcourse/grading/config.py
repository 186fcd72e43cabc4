"""nbgrader's settings, shared by `nbgrader_config.py`, `lmcourse grade` and `lmcourse build`."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from traitlets.config import Config

from lmcourse.grading.files import NOT_COPIED, remove_links
from lmcourse.grading.hand_in_time import hand_in_time
from lmcourse.grading.stubs import STUB


def configure(c: Config, root: Path, *, source: str = "solutions", release: str = "notebooks") -> None:
    """Fill in nbgrader's configuration `c` for the course in the folder `root`."""
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
    from nbgrader import preprocessors as theirs
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.validator import Validator

    from lmcourse.grading import pages
    from lmcourse.grading import preprocessors as ours

    _find_alembic()
    CourseDirectory.get_existing_timestamp = _accepted_timestamp
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
    Validator.preprocessors.tag(config=True)  # nbgrader does not let it be configured
    c.Validator.preprocessors = [theirs.CheckCellMetadata, theirs.ClearOutput, ours.ExecuteForLearner]
    if can_encrypt():
        c.KernelManager.transport_encryption = "auto"  # as in `lmcourse lab`
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


def can_encrypt() -> bool:
    """Return True if Jupyter can encrypt its connection to a kernel that supports it."""
    import zmq
    from jupyter_client.manager import KernelManager

    return zmq.has("curve") and "transport_encryption" in KernelManager.class_trait_names()


def _accepted_timestamp(course: Any, folder: str) -> datetime | None:
    """Return the time at which the submission in a folder was handed in, as a method of nbgrader's `CourseDirectory`.

    nbgrader's own method ends the command if the text is not a date, and accepts any date.
    """
    from nbgrader.utils import parse_utc

    notebooks = sorted(Path(folder).glob("*.ipynb"))
    time = hand_in_time(notebooks[0] if notebooks else Path(folder, "no.ipynb"))
    if time.note:
        course.log.warning("%s: %s", folder, time.note)
    return parse_utc(time.text) if time.text else None


def _find_alembic() -> None:
    """Make `alembic`, which nbgrader runs by name, available even if the environment was not activated."""
    if shutil.which("alembic") is None:
        beside_python = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([beside_python, os.environ.get("PATH", "")])
