"""nbgrader preprocessor: run a submission within limits of time and output, whatever its code does.

For notebooks that bring checks of their own, and for `nbgrader validate`: here answers and checks share a process. A
notebook of the course is graded by `examine_notebook`.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from traitlets import Integer, List, Unicode

from lmcourse.grading.cells import NOT_RUN, add_notes, error_output, new_output, problem_of
from lmcourse.grading.environment import KERNEL_OPTIONS, kernel_environment, run_seed
from lmcourse.units import MIB


class RunNotebook(Execute):  # type: ignore[misc]
    """Runs the cells in order, within limits of time and output.

    When Python dies or hangs, the points earned so far stay, and the cells that never ran say why.
    """

    total_timeout = Integer(900, help="Seconds for a whole notebook.").tag(config=True)
    output_limit = Integer(4 * MIB, help="Characters that one cell may put out.").tag(config=True)
    extra_arguments = List(Unicode(), default_value=KERNEL_OPTIONS).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict, km: Any = None
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Run the notebook in place. Raises RuntimeError if no kernel starts at all."""
        self._why_stopped = problem_of(nb)
        grading = "nbgrader" in resources
        if self._why_stopped:
            for cell in nb.cells:
                self._skip(cell)
            return nb, resources
        self._deadline = monotonic() + self.total_timeout
        self._seed = run_seed() if grading else None
        with tempfile.TemporaryDirectory(prefix="lmcourse-", ignore_cleanup_errors=True) as profile:
            self._profile = Path(profile)
            nb, resources = super().preprocess(nb, resources, km)
        if grading:
            add_notes(nb, seed=self._seed, **({"problem": self._why_stopped} if self._why_stopped else {}))
        nb.metadata.pop("widgets", None)
        return nb, resources

    def setup_kernel(self, **options: Any) -> AbstractContextManager[None]:
        """nbclient's, with an environment of our choice."""
        context: AbstractContextManager[None] = super().setup_kernel(
            env=kernel_environment(self._profile, self._seed), **options
        )
        return context

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Run one cell, or say why it is not run. It never raises."""
        self._chars_written = 0
        if not self._why_stopped and monotonic() > self._deadline:
            self._why_stopped = (
                f"The notebook ran longer than {self.total_timeout} s in all; what came after was not run."
            )
        if self._why_stopped:
            self._skip(cell)
            return cell, resources
        try:
            cell, resources = super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            self._why_stopped = (
                f"{_place(cell, index)} ended Python itself (an exit, a crash, or no memory left); "
                "what came after was not run."
            )
        except CellTimeoutError:
            self._why_stopped = (
                f"{_place(cell, index)} ran longer than {self.timeout} s and could not be stopped: is "
                "there an endless loop? What came after was not run."
            )
        except Exception as failure:  # a kernel taken over by its notebook can send anything
            self._why_stopped = f"{_place(cell, index)} broke off its run ({type(failure).__name__})."
        if self._why_stopped:
            cell.outputs = [*cell.get("outputs", []), error_output(NOT_RUN, self._why_stopped)]
        return cell, resources

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """nbclient's, for as long as the cell keeps within its limit of output."""
        if msg["msg_type"] in ("stream", "display_data", "update_display_data", "execute_result", "error"):
            before = self._chars_written
            self._chars_written += len(json.dumps(msg["content"], default=str))
            if self._chars_written > self.output_limit:
                if before <= self.output_limit:
                    cell.outputs.append(new_output("stream", text="… more output than is kept\n"))
                if msg["msg_type"] != "execute_result" or self._chars_written - before > self.output_limit:
                    return None
        return super().process_message(msg, cell, cell_index)  # type: ignore[no-any-return]

    def _skip(self, cell: NotebookNode) -> None:
        if cell.cell_type == "code":
            graded = cell.metadata.get("nbgrader", {}).get("grade")
            cell.outputs = [error_output(NOT_RUN, self._why_stopped)] if graded else []


def _place(cell: NotebookNode, index: int) -> str:
    """How a learner finds a cell: by the exercise, or by counting."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    return f"The cell `{name}`" if name else f"Cell {index + 1}"
