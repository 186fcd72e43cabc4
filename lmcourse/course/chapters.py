"""The map of the course: its twenty-three chapters, in reading order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lmcourse.base.errors import CourseError

PUBLISHED = "0"
TERM = ContextVar("term", default=PUBLISHED)
"""The name from which hidden cases are drawn. A teacher's grading may set another one; `check(f, hidden=True)` uses the
published cases."""


@dataclass(frozen=True)
class Chapter:
    """One notebook of the course. Its minutes are in its first cell.

    Attributes:
        id: the name of the folder in `notebooks/` and `solutions/` and of the nbgrader assignment, such as
            "01-floating-point".
        title: the title for readers.
        part: the part of the course it belongs to.
    """

    id: str
    title: str
    part: str

    @property
    def number(self) -> str:
        """The number of the notebook, such as "01"."""
        return self.id.split("-", 1)[0]

    @property
    def topic(self) -> str:
        """The name of its files and of its package in `lmcourse.chapters`, such as "floating_point"."""
        return self.id.split("-", 1)[1].replace("-", "_")

    @property
    def module(self) -> str:
        """The module with its exercises."""
        return f"lmcourse.chapters.{self.topic}.exercises"


@dataclass(frozen=True)
class FolderChapter(Chapter):
    """A teacher's own notebook: a folder in `solutions/` with a source and usually with exercises.

    Attributes:
        source: the source, with any name, such as "solutions/w1-warmup/warmup.py".
    """

    source: Path

    @property
    def number(self) -> str:
        """The folder's name, which `lmcourse build` uses as the number."""
        return self.id

    @property
    def topic(self) -> str:
        """The name of its files."""
        return self.source.stem


PART_I = "I · Numbers and gradients"
PART_II = "II · Language models before transformers"
PART_III = "III · The transformer"
PART_IV = "IV · Systems"
PART_V = "V · After the loss"

CHAPTERS: tuple[Chapter, ...] = (
    Chapter("01-floating-point", "Floating point", PART_I),
    Chapter("02-tensors", "Tensors", PART_I),
    Chapter("03-autograd", "Autograd", PART_I),
    Chapter("04-optimization", "Optimization", PART_I),
    Chapter("05-language-models", "Language models", PART_II),
    Chapter("06-recurrence-and-attention", "Recurrence and attention", PART_II),
    Chapter("07-tokens-and-data", "Tokens and data", PART_II),
    Chapter("08-attention", "Attention", PART_III),
    Chapter("09-positions", "Positions", PART_III),
    Chapter("10-normalization-and-blocks", "Normalization and blocks", PART_III),
    Chapter("11-feed-forward", "Feed-forward layers", PART_III),
    Chapter("12-transformer", "The transformer, assembled", PART_III),
    Chapter("13-training", "Training", PART_III),
    Chapter("14-memory", "Memory", PART_IV),
    Chapter("15-flops", "FLOPs", PART_IV),
    Chapter("16-stability", "Stability", PART_IV),
    Chapter("17-inference", "Inference", PART_IV),
    Chapter("18-parallelism", "Parallelism", PART_IV),
    Chapter("19-gpu-timing", "GPU timing", PART_IV),
    Chapter("20-capstone", "Capstone", PART_IV),
    Chapter("21-data-and-scores", "Data and scores", PART_V),
    Chapter("22-reward", "From imitation to reward", PART_V),
    Chapter("23-inside", "Inside a model", PART_V),
)

BUILDS_ON: dict[str, str] = {
    **{"01": "", "02": "", "03": "02", "04": "03", "05": "03 04", "06": "03 05", "07": "05", "08": "02 06", "09": "08"},
    **{"10": "03 08", "11": "10", "12": "09 10 11", "13": "01 04 12", "14": "03 12", "15": "12", "16": "01 13"},
    **{"17": "08 15", "18": "13 14", "19": "15", "20": "13 15 17", "21": "05 07 13", "22": "04 05 13 21"},
    **{"23": "05 08 12 13"},
}
"""For each notebook number, the earlier notebooks whose ideas it uses. It does not need their answers."""


@dataclass(frozen=True)
class Route:
    """A path through a part of the course.

    Attributes:
        name: its length or subject.
        stops: the numbers of its notebooks in reading order, each with the last section to read, or 0 for all sections.
        why: the reason for these notebooks and their order.
    """

    name: str
    stops: tuple[tuple[str, int], ...]
    why: str


ROUTES = (
    Route(
        "An afternoon",
        (("08", 5), ("12", 5), ("17", 3)),
        "How tokens exchange information, then the model around it, then the text that comes out of it.",
    ),
    Route(
        "A weekend",
        (("02", 0), ("03", 0), ("05", 0), ("08", 0), ("12", 0), ("13", 0)),
        "Tensors and gradients, what a language model is and what its loss means, then a transformer: its core, the "
        "whole of it, and its training.",
    ),
    Route("All of it", (("01", 0), ("23", 0)), "In the order of the numbers: each notebook uses only earlier ones."),
    Route("GPU timing", (("15", 0), ("19", 0)), "Count the operations before you time them."),
    Route("Positions", (("08", 4), ("09", 0)), "Attention does not see the order of tokens: first see why."),
    Route("Memory and many GPUs", (("14", 0), ("18", 0)), "What has to be stored, then how to divide it."),
    Route(
        "Fast inference",
        (("08", 5), ("15", 0), ("17", 0)),
        "The cache (in *Further* of notebook 08, B and C), its cost, and what to do about it.",
    ),
    Route("Number formats", (("01", 0), ("16", 0)), "What a format can hold, then what a training run makes of it."),
)


def routes_text(link: Callable[[Chapter], str]) -> str:
    """Return the routes as a Markdown list. `link` returns a notebook's title in Markdown."""
    lines = []
    for route in ROUTES:
        stops = [(find_chapter(number), last) for number, last in route.stops]
        shown = [link(chapter) + (f" (sections 1 to {last})" if last else "") for chapter, last in stops]
        joined = " to ".join(shown) if route.name == "All of it" else " → ".join(shown)
        lines.append(f"- **{route.name}**: {joined}. {route.why}")
    return "\n".join(lines)


def find_chapter(name: str) -> Chapter:
    """Return the chapter with this id, number ("01" or "1") or topic.

    An unknown name raises CourseError, which lists similar names.
    """
    for chapter in CHAPTERS:
        if name in (chapter.id, chapter.topic, chapter.number, chapter.number.lstrip("0")):
            return chapter
    raise unknown_chapter(name, CHAPTERS)


def unknown_chapter(name: str, chapters: Sequence[Chapter]) -> CourseError:
    """Return the error for an unknown chapter name, with the nearest names."""
    nearest = get_close_matches(name, [chapter.id for chapter in chapters], n=1, cutoff=0.3)
    meant = f" Did you mean {nearest[0]}?" if nearest else " `lmcourse list` shows them."
    return CourseError(f"There is no notebook {name!r}.{meant}")
