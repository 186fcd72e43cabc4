"""Give a learner who has begun a notebook its corrected text: `lmcourse update NEW.ipynb OLD.ipynb`.

Cells of the course have ids made from their text (`authoring.document`), answers and checks have the exercise's name,
and cells that a learner adds have other ids. So the three kinds can be told apart without the first release.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from nbformat import NotebookNode

from lmcourse.authoring.document import dumps, load_notebook
from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.grading.stubs import STUB

_MADE = re.compile(r"([0-9a-f]{12})(-\d+)?")
# Matches what the build puts before the text of the first cell, in every release so far.
_BEFORE_THE_FIRST_CELL = re.compile(r"(#.*\n)?try:\n    import lmcourse\nexcept .*\n    raise .*\n\n")


def update(new: Path, old: Path) -> tuple[Path, list[str]]:
    """Write the new text with the learner's answers, outputs and own cells to `old`; return where the old file is now,
    and the exercises that are no longer asked, whose answers only the old file has.

    Raises CourseError if one of them is not a notebook of the course, or they are different ones or one file.
    """
    theirs, mine = _read(new), _read(old)
    if new.samefile(old):
        raise CourseError(f"{new} is your own copy. Name both files: lmcourse update NEW.ipynb YOURS.ipynb")
    if chapter_of(theirs) != chapter_of(mine):
        raise CourseError(f"{new} and {old} are not two copies of one notebook: nothing was changed.")
    kept = next(
        path for number in range(1, 1000) if not (path := old.with_stem(f"{old.stem}-before-{number}")).exists()
    )
    asked = {cell.id for cell in theirs.cells}
    answers = (cell for cell in mine.cells if cell.metadata.get("nbgrader", {}).get("solution") and not _is_stub(cell))
    gone = [cell.metadata["nbgrader"]["grade_id"] for cell in answers if cell.id not in asked]
    write_all({kept: old.read_bytes(), old: dumps(merged(theirs, mine))})
    return kept, gone


def place_of(new: Path, root: Path) -> Path:
    """Return where a learner's copy of a notebook is in a course folder; raise CourseError if it is not there."""
    found = root / "notebooks" / chapter_of(_read(new)) / new.name
    if not found.is_file():
        raise CourseError(f"There is no {found}. Name your own copy, too: lmcourse update {new} YOURS.ipynb")
    return found


def chapter_of(notebook: NotebookNode) -> str:
    """Return the chapter that a notebook says it is of; raise CourseError if it is not a notebook of the course."""
    if not (chapter := notebook.metadata.get("lmcourse", {}).get("chapter")):
        raise CourseError("This is not a notebook of the course, or another program has removed its metadata.")
    return str(chapter)


def merged(new: NotebookNode, old: NotebookNode) -> NotebookNode:
    """Return the new notebook with answers and outputs of the old one, and its learner's own cells where they stood."""
    places = {cell.id: place for place, cell in enumerate(new.cells)}
    learners = {cell.id: cell for cell in old.cells}
    after: dict[int, list[NotebookNode]] = {}
    place = -1
    for cell in old.cells:
        place = places.get(cell.id, place)
        if cell.id not in places and _is_own(cell):
            after.setdefault(place, []).append(cell)
    cells = [*after.get(-1, [])]
    for place, cell in enumerate(new.cells):
        cells += [_with_work(cell, learners.get(cell.id)), *after.get(place, [])]
    made = NotebookNode(new)
    made.cells = cells
    return made


def _with_work(cell: NotebookNode, mine: NotebookNode | None) -> NotebookNode:
    """Return a cell of the new notebook with the learner's text and outputs, if they changed it or ran it."""
    if mine is None or cell.cell_type != mine.cell_type:
        return cell
    marks = cell.metadata.get("nbgrader", {})
    changed = not _is_stub(mine) if marks.get("solution") else not marks.get("locked") and _is_own(mine)
    made = NotebookNode(cell | {"source": mine.source if changed else cell.source})
    if cell.cell_type == "code" and made.source == mine.source:
        made.update(outputs=mine.outputs, execution_count=mine.execution_count)
    return made


def _is_stub(answer: NotebookNode) -> bool:
    """Return True if an answer cell has its stub, or sets its name to None."""
    return STUB.split("\n")[1] in answer.source or bool(
        re.search(r"^\w+ *(:.*)?= *None\b", answer.source, re.MULTILINE)
    )


def _is_own(cell: NotebookNode) -> bool:
    """Return True if a learner wrote or changed a cell: its id is not made from its text."""
    made = _MADE.fullmatch(cell.id)
    if not made:
        return "nbgrader" not in cell.metadata
    text = _BEFORE_THE_FIRST_CELL.sub("", cell.source, count=1)
    return hashlib.sha256(f"{cell.cell_type}\n{text}".encode()).hexdigest()[:12] != made[1]


def _read(path: Path) -> NotebookNode:
    notebook = load_notebook(path) if path.is_file() else None
    if notebook is None:
        raise CourseError(f"{path} is not a notebook that can be read.")
    return notebook
