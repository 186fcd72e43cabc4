"""From the solution notebook to what students receive, through nbgrader's own generate_assignment."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from lmcourse.authoring.document import dumps
from lmcourse.course import Chapter
from lmcourse.errors import CourseError
from lmcourse.grading.config import configure


def release(notebook: NotebookNode, chapter: Chapter) -> NotebookNode:
    """The student copy of a solution notebook.

    Raises:
        CourseError: nbgrader refuses the notebook, or a solution or hidden test is left in the copy.
    """
    with tempfile.TemporaryDirectory(prefix="lmcourse-release-") as staging:
        root = Path(staging)
        path = Path("source", chapter.id, f"{chapter.topic}.ipynb")
        (root / path.parent).mkdir(parents=True)
        (root / path).write_text(dumps(notebook), encoding="utf-8")
        config = Config()
        configure(config, root, source="source", release="release")
        result = NbGraderAPI(config=config).generate_assignment(chapter.id, force=True)
        if not result["success"]:
            raise CourseError(f"{chapter.id}: nbgrader cannot make the student copy.\n{result.get('log', '')}")
        copy: NotebookNode = nbformat.read(root / "release" / path.relative_to("source"), as_version=4)
    _clean(copy, notebook)
    return copy


def _clean(copy: NotebookNode, notebook: NotebookNode) -> None:
    """Keep of the metadata only what the course put there, and refuse a copy that gives something away."""
    text = dumps(copy)
    for secret in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "hidden=True"):
        if secret in text:
            raise CourseError(f"{copy.metadata.lmcourse.chapter}: {secret!r} is left in the student copy")
    copy.metadata = json.loads(json.dumps(notebook.metadata))
    copy.metadata["lmcourse"]["cells"] = fingerprint(copy)


def fingerprint(notebook: NotebookNode) -> str:
    """A digest of what the cells say. A copy whose cells no longer match the one it carries holds somebody's work."""
    texts = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def holds_work(path: Path) -> bool:
    """Whether somebody has written into this student copy."""
    if not path.exists():
        return False
    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, AttributeError, nbformat.ValidationError):
        return True
    return bool(notebook.metadata.get("lmcourse", {}).get("cells") != fingerprint(notebook))
