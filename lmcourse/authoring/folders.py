"""The notebooks of a course folder, the course's own and a teacher's, and the files of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse import course
from lmcourse.authoring.source import MARKER, Source, read_source
from lmcourse.course import Chapter, FolderChapter, find_chapter, unknown_chapter
from lmcourse.errors import CourseError
from lmcourse.exercises.registry import BESIDE
from lmcourse.exercises.released import RELEASED

TITLE = re.compile(r"^# +(.+?)\s*$", re.MULTILINE)
TOTALS = re.compile(r"^\*\*(\d+) min · \d+ exercises? · \d+ points?\*\*$", re.MULTILINE)


@dataclass(frozen=True)
class ChapterFiles:
    """A chapter's files: what the author writes, and what is built from it."""

    source: Path
    solution: Path
    release: Path

    @property
    def exercises(self) -> Path:
        """For a teacher's own notebook, the exercises as learners receive them."""
        return self.release.with_name(RELEASED)

    @classmethod
    def of(cls, chapter: Chapter, root: Path) -> ChapterFiles:
        """The files of a chapter in the course folder `root`."""
        solution = root / "solutions" / chapter.id / f"{chapter.topic}.ipynb"
        return cls(solution.with_suffix(".py"), solution, root / "notebooks" / chapter.id / solution.name)


def chapters_in(root: Path, names: Sequence[str] = ()) -> list[Chapter]:
    """Return the notebooks of a course folder, the course's own first.

    A folder of `solutions/` that has no source, a `.py` with cells, is left alone: it may hold a plain notebook.

    Args:
        root: the course folder.
        names: the notebooks asked for, as numbers, names or folders; all by default.

    Raises:
        CourseError: there is no such notebook, or none at all; two sources are in one folder.
    """
    own = _own_chapters(root / "solutions")
    if names:
        return [own[name] if name in own else _of_the_course(name, [*own.values()]) for name in names]
    given = [chapter for chapter in course.CHAPTERS if chapter.id not in own]
    found = [*(chapter for chapter in given if (root / "solutions" / chapter.id).is_dir()), *own.values()]
    if not found:
        raise CourseError(f"{root / 'solutions'} contains no notebook source.")
    return found


def _of_the_course(name: str, own: Sequence[Chapter]) -> Chapter:
    try:
        return find_chapter(name)
    except CourseError:
        raise unknown_chapter(name, [*course.CHAPTERS, *own]) from None


def _own_chapters(solutions: Path) -> dict[str, Chapter]:
    """A teacher's own notebooks by their folders' names."""
    given = {chapter.id for chapter in course.CHAPTERS}
    found: dict[str, Chapter] = {}
    for folder in sorted(solutions.glob("*/")) if solutions.is_dir() else ():
        if folder.name in given and not (folder / BESIDE).is_file():
            continue
        sources = [file for file in sorted(folder.glob("*.py")) if file.name != BESIDE and _has_cells(file)]
        if len(sources) > 1:
            names = ", ".join(file.name for file in sources)
            raise CourseError(f"{folder}: a folder may have only one source, not {names}")
        if sources:
            source = read_source(sources[0])
            title = title_of(source) or folder.name
            found[folder.name] = FolderChapter(folder.name, title, written_minutes(source), "", sources[0])
    return found


def _has_cells(file: Path) -> bool:
    try:
        return any(MARKER.fullmatch(line) for line in file.read_text(encoding="utf-8").split("\n"))
    except (OSError, UnicodeDecodeError):
        return False


def written_minutes(source: Source) -> int:
    """The minutes of a notebook, as its first cell has them; 0 if it has none."""
    written = TOTALS.search(source.cells[0].text) if source.cells else None
    return int(written[1]) if written else 0


def title_of(source: Source) -> str:
    """The first heading of a notebook; nothing if there is none."""
    texts = (cell.text for cell in source.cells if cell.kind == "markdown")
    return next((found[1] for text in texts if (found := TITLE.search(text))), "")
