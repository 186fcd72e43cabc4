"""What every invariant is about: the chapters that are written, their sources and what is built from them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.source import Source, read_source
from lmcourse.course import CHAPTERS, Chapter

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [*CHAPTERS]


@cache
def source(chapter: Chapter) -> Source:
    return read_source(ChapterFiles.of(chapter, ROOT).source)


@cache
def solution(chapter: Chapter) -> NotebookNode:
    """The executed notebook. Not to be changed."""
    return nbformat.read(ChapterFiles.of(chapter, ROOT).solution, as_version=4)


@cache
def prose(chapter: Chapter) -> str:
    """All Markdown of a notebook, a blank line between two cells."""
    return "\n\n".join(cell.text for cell in source(chapter).cells if cell.kind == "markdown")


@cache
def code(chapter: Chapter) -> str:
    """All code of a notebook."""
    return "\n\n".join(cell.text for cell in source(chapter).cells if cell.kind == "code")
