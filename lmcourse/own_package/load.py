"""Load answers from a learner's saved notebooks, for use in another notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.course.root import find_root
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.later_cells import FAILS, NOT_CHECKED
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.models.parity.parts import COURSE_PARTS
from lmcourse.own_package.package.model import with_theta
from lmcourse.own_package.saved_answers import NOT_RELEASED, read_notebook
from lmcourse.own_package.standalone import CannotStandAloneError, needed


@dataclass(frozen=True)
class LoadedPart:
    """The answer to an exercise of a notebook. If it is the course's, `reason` says why in one line; otherwise ""."""

    name: str
    number: str
    function: Callable[..., Any]
    reason: str = ""

    def __str__(self) -> str:
        whose = f"the course's version: {self.reason}" if self.reason else f"yours, from notebook {self.number}"
        return f"{self.name}: {whose}"


def load_parts(names: Sequence[str], root: Path | None = None) -> list[LoadedPart]:
    """Load the learner's answers to the exercises with these names from saved notebooks. The course's version replaces
    each that is missing or does not pass its public check.

    Raises CourseError if the course is not found, or if a notebook cannot be read.
    """
    root = find_root(root)
    return [_load(name, root) for name in names]


def verdict(found: Sequence[str] | None, whole: Mapping[str, Callable[..., Any]]) -> str:
    """Say where a model of these functions first differs from the course's; if nowhere, whose functions they are."""
    if found:
        return f"The first difference: {' '.join(map(str, found))}"
    lent = [name for name, each in whole.items() if each in (COURSE_PARTS.get(name), find_exercise(name).course_answer)]
    own = [name for name in whole if name not in lent]
    whose = f"Yours in it: {', '.join(own) or 'nothing yet'}. The course's: {', '.join(lent)}."
    return (
        "Every result and every gradient is the course's model's.\n"
        f"{whose if lent else 'It is a transformer, and it is yours.'}"
    )


def _load(name: str, root: Path) -> LoadedPart:
    chapter = next(each for each in CHAPTERS if name in {exercise.name for exercise in exercises_of(each)})
    function, reason = _answer(name, chapter, root)
    lent = COURSE_PARTS.get(name) or find_exercise(name).course_answer
    return LoadedPart(name, chapter.number, function or lent, reason)


def _answer(name: str, chapter: Chapter, root: Path) -> tuple[Callable[..., Any] | None, str]:
    """Return the learner's answer and "", or None and the reason."""
    path = root / "notebooks" / chapter.id / f"{chapter.topic}.ipynb"
    if not path.is_file():
        return None, f"notebook {chapter.number} is not there"
    notebook = read_notebook(path)
    if name not in notebook.asked:
        return None, f"it is {NOT_RELEASED} of notebook {chapter.number}"
    place = notebook.places.get(name)
    if place is None or "raise NotImplementedError" in notebook.cells[place]:
        return None, f"you have not written it yet, in notebook {chapter.number}"
    defined: dict[str, Any] = {"__name__": chapter.topic}
    try:
        statements, _ = needed(notebook.cells, place, name)
        exec("\n\n".join(one.text for one in statements), defined)
        answer = defined[name]
    except CannotStandAloneError as error:
        return None, str(error)
    except Exception as error:  # a learner's code may raise any exception
        return None, f"yours does not run: {type(error).__name__}"
    try:
        reason = "" if check_exercise(find_exercise(name), answer).passed else FAILS
    except CourseError:  # the machine is too busy for the course's own answer
        reason = NOT_CHECKED
    if reason:
        return None, reason
    return with_theta(answer) if name == "rope" else answer, ""
