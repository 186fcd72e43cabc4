"""Make the student copy of a solution notebook with nbgrader's generate_assignment."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.authoring.document import dumps, load_notebook
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.grading.config import configure
from lmcourse.grading.notebooks import fingerprint

SOLUTION_MARKS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME", "hidden=True")


def release(notebook: NotebookNode, chapter: Chapter) -> NotebookNode:
    """Return the student copy of a solution notebook; raise CourseError if nbgrader refuses or a solution is left."""
    with tempfile.TemporaryDirectory(prefix="lmcourse-release-") as staging:
        root = Path(staging)
        source, result = (root / folder / chapter.id / f"{chapter.topic}.ipynb" for folder in ("source", "release"))
        source.parent.mkdir(parents=True)
        source.write_text(dumps(notebook), encoding="utf-8")
        config = Config()
        configure(config, root, source="source", release="release")
        config.GenerateAssignment.no_database = True  # a gradebook would take seconds
        config.SaveCells.enabled = False
        # imported here because the import takes half a second and only builds need it
        from nbgrader.apps import NbGraderAPI

        said = NbGraderAPI(config=config).generate_assignment(chapter.id)
        if not said["success"]:
            raise CourseError(f"{chapter.id}: nbgrader cannot make the student copy.\n{said.get('log', said['error'])}")
        student: NotebookNode = nbformat.read(result, as_version=4)
    text = dumps(student)
    for secret in SOLUTION_MARKS:
        if secret in text:
            raise CourseError(f"{chapter.id}: {secret!r} is left in the student copy.")
    return student


def has_student_work(path: Path) -> bool:
    """Return True if a learner has changed this student copy."""
    if not path.exists():
        return False
    notebook = load_notebook(path)
    if notebook is None:
        return True
    about = notebook.metadata.get("lmcourse")
    return not (isinstance(about, dict) and about.get("cells") == fingerprint(notebook))
