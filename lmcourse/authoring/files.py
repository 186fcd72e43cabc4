"""Paths of a chapter's source and notebooks, and writing several files atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lmcourse.course import Chapter
from lmcourse.errors import CourseError
from lmcourse.exercises.released import RELEASED


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


def write_all(texts: dict[Path, str]) -> None:
    """Write several files, or none: first under temporary names, then moved into place.

    A crash between two moves leaves whole files, of which one is old.

    Raises:
        CourseError: one of them cannot be written; all are as they were.
    """
    temporary = {path: path.with_name(f".{path.name}.new") for path in texts}
    moved: dict[Path, bytes | None] = {}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_text(text, encoding="utf-8", newline="\n")
        for path, new in temporary.items():
            before = path.read_bytes() if path.exists() else None
            new.replace(path)
            moved[path] = before
    except OSError as error:
        for path, before in moved.items():
            _put_back(path, before)
        raise CourseError(f"{error.filename2 or error.filename} cannot be written: {error.strerror}.") from error
    finally:
        for new in temporary.values():
            if new.parent.is_dir():
                new.unlink(missing_ok=True)


def _put_back(path: Path, before: bytes | None) -> None:
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
