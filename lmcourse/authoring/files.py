"""Paths of a chapter's source and notebooks, and writing several files atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lmcourse.course import Chapter
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
