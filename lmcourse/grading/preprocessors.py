"""The course's converters for nbgrader; `lmcourse.grading.config` registers them.

For submissions, `SubmissionExporter` reads any file, `RestoreCells` puts the course's cells back, and `ExamineNotebook`
examines the notebook. `DropTopLevelStubs`, `SaveChangedCells` and `MarkRelease` are for releases, and
`ExecuteForLearner` is for the button Validate.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import Execute, NbGraderPreprocessor, SaveCells
from traitlets import Any as AnyTrait
from traitlets import Float, Unicode

from lmcourse.base.cell_names import needed_cells
from lmcourse.base.errors import CourseError
from lmcourse.base.text import replace_surrogates
from lmcourse.course.chapters import PUBLISHED
from lmcourse.grading.assignment_changes import changes, migrate, points_of
from lmcourse.grading.files import UnreadableError, encoded_beside, no_link, read_file, visible_in
from lmcourse.grading.hand_ins import student_id_problem
from lmcourse.grading.notebooks import (
    BESIDE,
    add_notes,
    fingerprint,
    new_notebook,
    new_output,
    problem_of,
    read_submission,
)
from lmcourse.grading.restore import cells_in_gradebook, restored
from lmcourse.grading.sandbox import choose_isolation
from lmcourse.grading.stubs import drop_at_top_level
from lmcourse.report import REPORT_MIME


class SubmissionExporter(NotebookExporter):
    """Reads any file as a notebook.

    An unreadable file becomes a notebook without cells. `RestoreCells` puts the graded cells back, and each gets 0
    points with the reason from this class.
    """

    problem = Unicode("", help="Reason why there is no notebook, if known.").tag(config=True)
    digest = Unicode("", help="Digest of the file that was handed in, if it differs.").tag(config=True)

    def __init__(self, **options: Any) -> None:
        """Create the exporter; raise SystemExit with the reason if submissions cannot be isolated on this machine."""
        super().__init__(**options)  # type: ignore[no-untyped-call]
        settings = self.config.ExamineNotebook
        try:
            if not settings.get("examined"):
                choose_isolation(settings.get("isolation") or None)
        except CourseError as problem:
            named = str(problem).replace("--isolation=process", "--ExamineNotebook.isolation=process")
            raise SystemExit(named) from problem

    def from_filename(  # type: ignore[override]  # nbconvert declares a notebook, and gives its text
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert any file; raise CourseError if the name of the student's folder is not a valid student id."""
        path, resources = Path(filename), ResourcesDict() if resources is None else resources
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        if problem := student_id_problem(resources["nbgrader"]["student"]):
            raise CourseError(problem)
        try:
            no_link(no_link(path.parent).parent)
            notebook = read_submission(path)
            resources[BESIDE] = encoded_beside(visible_in(path.parent))
            resources["digest"] = self.digest or hashlib.sha256(read_file(path)).hexdigest()
        except UnreadableError as error:
            notebook = new_notebook()
            resources["digest"], resources["problem"] = self.digest, self.problem or str(error)
        text, resources = cast(Any, self).from_notebook_node(notebook, resources=resources, **options)
        return replace_surrogates(text), resources  # outputs of code may contain half a surrogate pair


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Rebuilds a submission from its texts and the gradebook. It runs first."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with each of the course's cells exactly once, and without added metadata."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            course = cells_in_gradebook(gradebook.find_notebook(about["notebook"], about["assignment"]))
        notebook = restored(nb, course, about["assignment"], resources.get("problem", ""))
        add_notes(notebook, digest=resources.get("digest", ""), **{BESIDE: resources.get(BESIDE, [])})
        return notebook, resources


class ExamineNotebook(NbGraderPreprocessor):  # type: ignore[misc]
    """Examines a notebook's answers in a separate process, and fills its cells with the results."""

    isolation = Unicode("bubblewrap", help="bubblewrap, or process (little protection).").tag(config=True)
    cell_seconds = Float(30.0, help="Seconds for one cell.").tag(config=True)
    total_seconds = Float(900.0, help="Seconds for a whole notebook.").tag(config=True)
    examined = AnyTrait(help="Result of the notebook, if it has been examined.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Examine the notebook and fill its cells; raise CourseError if this machine cannot examine it."""
        about, folders = resources["nbgrader"], self.config.CourseDirectory
        source_folder = folders.get("source_directory") or "source"
        source = Path(folders.root, source_folder, about["assignment"], f"{about['notebook']}.ipynb")
        # imported here because it loads torch, which most commands do not need
        from lmcourse.grading.examined_notebook import examine_notebook, fill_cells
        from lmcourse.grading.process import Settings

        if problem_of(nb):
            fill_cells(nb, None)
            return nb, resources
        if not self.examined:
            private, limits = private_folders(self.config), (self.cell_seconds, self.total_seconds)
            settings = Settings(choose_isolation(self.isolation), private, *limits, term_in(self.config))
            self.examined = examine_notebook(nb, source, settings)
        fill_cells(nb, self.examined)
        self.examined = None
        return nb, resources


class DropTopLevelStubs(NbGraderPreprocessor):  # type: ignore[misc]
    """Removes the stub from cells whose answer is a value. It runs directly after ClearSolutions."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Remove the stub from one cell; nbgrader calls this for each cell."""
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = drop_at_top_level(cell.source)
        return cell, resources


class MarkRelease(NbGraderPreprocessor):  # type: ignore[misc]
    """Stores a hash of a release in it, so that `lmcourse build` knows later whether it contains work. It runs last."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the release with its hash."""
        add_notes(nb, cells=fingerprint(nb))
        return nb, resources


class ExecuteForLearner(Execute):  # type: ignore[misc]
    """Runs a notebook for a learner's Validate: without demonstrations, and with a word on each open exercise."""

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict, **options: Any
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook without the demonstrations that no other cell needs, run."""
        code = [cell for cell in nb.cells if cell.cell_type == "code"]
        shown = [cell.metadata.get("lmcourse", {}).get("grading") == "skip" for cell in code]
        needed = needed_cells([cell.source for cell in code], shown)
        left_out = [cell.id for cell, run in zip(code, needed, strict=True) if not run]
        nb.cells = [cell for cell in nb.cells if cell.id not in left_out]
        nb, resources = super().preprocess(nb, resources, **options)
        for cell in nb.cells:
            for report in [output.get("data", {}).get(REPORT_MIME) for output in cell.get("outputs", [])]:
                if report and report["points"] < report["max_points"]:
                    # nbgrader shows what it finds here, or else "Partial credit"
                    cell.outputs.append(new_output("stream", name="stderr", text=_in_words(report)))
        return nb, resources


def _in_words(report: dict[str, Any]) -> str:
    if not report["answered"]:
        return "Not started: there is no answer yet."
    return f"{report['points']:g} of {report['max_points']} points. {report['diagnosis']}".strip()


class SaveChangedCells(SaveCells):  # type: ignore[misc]
    """Saves the cells of an assignment in the gradebook, also if it has submissions and the exercises have changed.

    nbgrader's own `SaveCells` stops there, after `nbgrader generate_assignment` has deleted the release.
    """

    def _create_notebook(self, nb: NotebookNode) -> None:
        with suppress(MissingEntry):
            notebook = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
            if notebook.submissions:
                kinds = ("grade", "solution", "task", "source")
                cells = {kind: getattr(self, f"new_{kind}_cells") for kind in kinds}
                marked = {**cells["grade"], **cells["task"]}
                here = {name: float(cell["max_score"]) for name, cell in marked.items()}
                for line in changes(points_of(notebook), here):
                    self.log.warning("%s: %s", self.assignment_id, line)
                migrate(self.gradebook, notebook, cells)
        super()._create_notebook(nb)


def term_in(config: Any) -> str:
    """Return the name from which hidden cases are drawn: `c.Course.term` in a teacher's `nbgrader_config.py`."""
    return str(config.Course.get("term") or PUBLISHED)


def private_folders(config: Any) -> tuple[Path, ...]:
    """Return the folders that submissions must not see: the course, and nbgrader's exchange and its copies."""
    from nbgrader.exchange.default import Exchange

    exchange = Exchange(config=config)
    return tuple(Path(str(place)) for place in (config.CourseDirectory.root, exchange.root, exchange.cache))
