"""Find the notebooks of a course folder, both the course's and a teacher's, and the files of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.authoring.source import MARKER, Source, read_source
from lmcourse.base.errors import CourseError
from lmcourse.course import chapters as course
from lmcourse.course.chapters import Chapter, FolderChapter, find_chapter, unknown_chapter
from lmcourse.exercises.registry import BESIDE, exercises_of

TITLE = re.compile(r"^# +(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class ChapterFiles:
    """The files of a chapter: the author's source, and the files built from it."""

    source: Path
    solution: Path
    release: Path

    @classmethod
    def of(cls, chapter: Chapter, root: Path) -> ChapterFiles:
        """Return the files of a chapter in the course folder `root`."""
        source = root / "solutions" / chapter.id / f"{chapter.topic}.py"
        if isinstance(chapter, FolderChapter):
            source = chapter.source
        solution = source.with_suffix(".ipynb")
        return cls(source, solution, root / "notebooks" / chapter.id / solution.name)


def chapters_in(root: Path, names: Sequence[str] = ()) -> list[Chapter]:
    """Return the requested notebooks of a course folder, by default all; the course's notebooks come first.

    A folder in `solutions/` without a source (a `.py` file with cells) is ignored: it may contain a plain notebook.
    Raises CourseError if a notebook does not exist, if there are none, or if a folder has two sources.
    """
    own = _own_chapters(root / "solutions")
    if names:
        return [own[name] if name in own else _of_the_course(name, [*own.values()]) for name in names]
    of_the_course = [chapter for chapter in course.CHAPTERS if chapter.id not in own]
    found = [*(chapter for chapter in of_the_course if (root / "solutions" / chapter.id).is_dir()), *own.values()]
    if not found:
        raise CourseError(f"{root / 'solutions'} contains no notebook source.")
    return found


def _of_the_course(name: str, own: Sequence[Chapter]) -> Chapter:
    try:
        return find_chapter(name)
    except CourseError:
        raise unknown_chapter(name, [*course.CHAPTERS, *own]) from None


def _own_chapters(solutions: Path) -> dict[str, Chapter]:
    """Return a teacher's own notebooks by folder name."""
    of_the_course = {chapter.id for chapter in course.CHAPTERS}
    folders = sorted(solutions.glob("*/")) if solutions.is_dir() else []
    own = [_chapter_in(folder) for folder in folders if folder.name not in of_the_course or (folder / BESIDE).is_file()]
    return {chapter.id: chapter for chapter in own if chapter}


def chapter_at(folder: Path) -> Chapter:
    """Return the notebook in a folder anywhere; raise CourseError unless it has one source, and exercises."""
    if not folder.is_dir():
        raise CourseError(f"There is no folder {folder}.")
    chapter = _chapter_in(folder.resolve())
    if chapter is None:
        raise CourseError(f"{folder} contains no notebook source, a .py file with cells (`# %%`).")
    if not exercises_of(chapter):
        raise CourseError(f"{folder} contains no exercises: they belong in {BESIDE}.")
    return chapter


def _chapter_in(folder: Path) -> FolderChapter | None:
    sources = [file for file in sorted(folder.glob("*.py")) if file.name != BESIDE and _has_cells(file)]
    if len(sources) > 1:
        names = ", ".join(file.name for file in sources)
        raise CourseError(f"{folder}: a folder may have only one source, not {names}")
    if not sources:
        return None
    source = read_source(sources[0])
    return FolderChapter(folder.name, title_of(source) or folder.name, "", sources[0])


def _has_cells(file: Path) -> bool:
    try:
        return any(MARKER.fullmatch(line) for line in file.read_text(encoding="utf-8").split("\n"))
    except (OSError, UnicodeDecodeError):
        return False


def title_of(source: Source) -> str:
    """Return the first heading of a notebook; "" if there is none."""
    texts = (cell.text for cell in source.cells if cell.kind == "markdown")
    return next((found[1] for text in texts if (found := TITLE.search(text))), "")
