"""The map of the course: its twenty chapters, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lmcourse.errors import CourseError


@dataclass(frozen=True)
class Chapter:
    """One notebook of the course.

    Attributes:
        id: the folder under `notebooks/` and `solutions/`, and the nbgrader assignment: "01-floating-point".
        title: what a reader sees.
        minutes: how long a reader needs, exercises included.
        part: the part of the course it belongs to.
    """

    id: str
    title: str
    minutes: int
    part: str

    @property
    def number(self) -> str:
        """The number of the notebook: "01"."""
        return self.id.split("-", 1)[0]

    @property
    def topic(self) -> str:
        """The name of its files and of its package in `lmcourse.chapters`: "floating_point"."""
        return self.id.split("-", 1)[1].replace("-", "_")

    @property
    def module(self) -> str:
        """The module that holds its exercises."""
        return f"lmcourse.chapters.{self.topic}.exercises"


@dataclass(frozen=True)
class FolderChapter(Chapter):
    """A notebook of a teacher's own: a folder of `solutions/` with a source, and usually its exercises beside it.

    Attributes:
        source: the source, of any name: "solutions/w1-warmup/warmup.py".
    """

    source: Path

    @property
    def number(self) -> str:
        """The name that `lmcourse build` uses is the folder's."""
        return self.id

    @property
    def topic(self) -> str:
        """The name of its files."""
        return self.source.stem


PART_I = "I · Numbers and gradients"
PART_II = "II · Language models before transformers"
PART_III = "III · The transformer"
PART_IV = "IV · Systems"

CHAPTERS: tuple[Chapter, ...] = (
    Chapter("01-floating-point", "Floating point", 90, PART_I),
    Chapter("02-tensors", "Tensors", 110, PART_I),
    Chapter("03-autograd", "Autograd", 140, PART_I),
    Chapter("04-optimization", "Optimization", 130, PART_I),
    Chapter("05-language-models", "Language models", 100, PART_II),
    Chapter("06-recurrence-and-attention", "Recurrence and attention", 110, PART_II),
    Chapter("07-tokens-and-data", "Tokens and data", 90, PART_II),
    Chapter("08-attention", "Attention", 150, PART_III),
    Chapter("09-positions", "Positions", 120, PART_III),
    Chapter("10-normalization-and-blocks", "Normalization and blocks", 110, PART_III),
    Chapter("11-feed-forward", "Feed-forward layers", 90, PART_III),
    Chapter("12-transformer", "The transformer, assembled", 135, PART_III),
    Chapter("13-training", "Training", 135, PART_III),
    Chapter("14-memory", "Memory", 120, PART_IV),
    Chapter("15-flops", "FLOPs", 120, PART_IV),
    Chapter("16-stability", "Stability", 90, PART_IV),
    Chapter("17-inference", "Inference", 115, PART_IV),
    Chapter("18-parallelism", "Parallelism", 140, PART_IV),
    Chapter("19-gpu-timing", "GPU timing", 90, PART_IV),
    Chapter("20-capstone", "Capstone", 180, PART_IV),
)


def find_chapter(name: str) -> Chapter:
    """The chapter with this id, number ("01" or "1") or topic.

    Raises:
        CourseError: there is none; the message names the nearest.
    """
    for chapter in CHAPTERS:
        if name in (chapter.id, chapter.topic, chapter.number, chapter.number.lstrip("0")):
            return chapter
    raise unknown_chapter(name, CHAPTERS)


def unknown_chapter(name: str, chapters: Sequence[Chapter]) -> CourseError:
    """The error for a name that none of these chapters has; it names the nearest."""
    nearest = get_close_matches(name, [chapter.id for chapter in chapters], n=1, cutoff=0.3)
    meant = f" Did you mean {nearest[0]}?" if nearest else " `lmcourse list` shows them."
    return CourseError(f"There is no notebook {name!r}.{meant}")
