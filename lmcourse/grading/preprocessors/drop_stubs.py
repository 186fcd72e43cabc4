"""nbgrader preprocessor: remove the stubs of answers that are values."""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from lmcourse.grading.stubs import drop_at_top_level


class DropTopLevelStubs(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes the stub out of the cells whose answer is a value; comes right after ClearSolutions."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Take the stub out of one solution cell, if its answer is a value. nbgrader calls it for each cell."""
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = drop_at_top_level(cell.source)
        return cell, resources
