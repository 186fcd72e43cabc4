"""nbgrader's way to read a submission and write a notebook, for files that may be broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode, validate
from traitlets import Unicode

from lmcourse.errors import CourseError
from lmcourse.grading.cells import new_notebook
from lmcourse.grading.intake.files import UnreadableError, refuse_links
from lmcourse.grading.intake.notebook import read_submission
from lmcourse.grading.intake.student_ids import student_id_problem
from lmcourse.grading.sandbox import choose_isolation
from lmcourse.text import replace_surrogates


def refuse_name(student: str) -> None:
    """Let no student have an id that is more than a name to a page, a table or a command line.

    Raises:
        CourseError: this is one.
    """
    if problem := student_id_problem(student):
        raise CourseError(problem)


class SubmissionExporter(NotebookExporter):
    """Reads any file as a notebook.

    An unreadable file becomes a notebook without cells; `RestoreCells` puts the graded cells back, and each is
    worth 0 for the reason given here. So it is marked like any other, instead of vanishing from the gradebook.
    """

    problem = Unicode("", help="Why there is no notebook, if somebody knows better than the file.").tag(config=True)

    def from_filename(  # type: ignore[override]  # nbconvert declares a notebook, and gives its text
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert the notebook in a file; whatever the file is, it does not raise for it.

        Raises:
            CourseError: the student's folder has a name that no student can have.
        """
        notebook, resources = self._read(Path(filename), ResourcesDict() if resources is None else resources)
        text, resources = cast(Any, self).from_notebook_node(notebook, resources=resources, **options)
        # What a learner's code puts out may hold half a surrogate pair too.
        return replace_surrogates(text), resources

    def preprocessed(self, path: Path, resources: dict[str, Any]) -> NotebookNode:
        """The notebook in a file after the preprocessors; nothing is written.

        Raises:
            CourseError: as `from_filename`.
        """
        notebook, resources = self._read(path, resources)
        return self._preprocess(notebook, cast(Any, self)._init_resources(resources))[0]

    def _read(self, path: Path, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        try:
            if student := resources.get("nbgrader", {}).get("student"):  # nbgrader's own: student/assignment/notebook
                refuse_name(student)
                refuse_links(path.parent, path.parent.parent)
            notebook = read_submission(path)
        except UnreadableError as error:
            notebook = new_notebook()
            resources["problem"] = self.problem or str(error)
        return notebook, resources

    def _preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """What nbconvert does, without its copies and with one validation, at the end: together they cost a quarter of
        all. What `_read` gives has been made for this, with ids that differ."""
        for preprocessor in cast(Any, self)._preprocessors:
            nb, resources = preprocessor(nb, resources)
        validate(nb, relax_add_props=True)
        return nb, resources


class IsolatedExporter(SubmissionExporter):
    """Reads submissions, once it is clear that they can be isolated: before the first one is touched."""

    def __init__(self, **options: Any) -> None:
        """Raises SystemExit, with the reason, where there is no bubblewrap and nobody asked to do without."""
        super().__init__(**options)  # type: ignore[no-untyped-call]
        settings = self.config.ExamineNotebook
        if settings.get("known_result"):
            return  # it has been examined, maybe on another machine
        try:
            choose_isolation(settings.get("isolation") or None)
        except CourseError as problem:
            raise SystemExit(
                str(problem).replace("--isolation=process", "--ExamineNotebook.isolation=process")
            ) from problem
