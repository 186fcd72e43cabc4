"""Load the functions of a transformer from a learner's saved notebooks, for use in another notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmcourse.collect.modules import PARTS
from lmcourse.collect.saved_answers import read_notebook
from lmcourse.collect.standalone import CannotStandAloneError, needed
from lmcourse.course import find_chapter
from lmcourse.parity.parts import COURSE_PARTS
from lmcourse.root import find_root


@dataclass(frozen=True)
class LoadedPart:
    """The function of an exercise. If it is the course's version, `reason` says why in one line; otherwise ""."""

    name: str
    function: Callable[..., Any]
    reason: str = ""

    def __str__(self) -> str:
        whose = f"the course's version: {self.reason}" if self.reason else f"yours, from notebook {PARTS[self.name]}"
        return f"{self.name}: {whose}"


def load_parts(names: Sequence[str], root: Path | None = None) -> list[LoadedPart]:
    """Load the learner's functions with these names from saved notebooks; the course's version replaces missing ones.

    Answers are not judged: an existing answer is used even if it is wrong. Raises CourseError if the course is not
    found, or if a notebook cannot be read.
    """
    root = find_root(root)
    return [_load(name, root) for name in names]


def _load(name: str, root: Path) -> LoadedPart:
    chapter = find_chapter(PARTS[name])
    path = root / "notebooks" / chapter.id / f"{chapter.topic}.ipynb"
    if not path.is_file():
        return LoadedPart(name, COURSE_PARTS[name], f"notebook {chapter.number} is not there")
    notebook = read_notebook(path)
    place = notebook.places.get(name)
    if place is None or "raise NotImplementedError" in notebook.cells[place]:
        return LoadedPart(name, COURSE_PARTS[name], f"you have not written it yet, in notebook {chapter.number}")
    defined: dict[str, Any] = {"__name__": chapter.topic}
    try:
        statements, _ = needed(notebook.cells, place, name)
        exec("\n\n".join(one.text for one in statements), defined)
        return LoadedPart(name, defined[name])
    except CannotStandAloneError as error:
        return LoadedPart(name, COURSE_PARTS[name], str(error))
    except Exception as error:  # a learner's code may raise any exception; then the course's version is used
        return LoadedPart(name, COURSE_PARTS[name], f"yours does not run: {type(error).__name__}")
