"""The finished chapters, with their sources and built notebooks, for tests of all chapters."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.source import Source, read_source
from lmcourse.course.chapters import CHAPTERS, Chapter

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [*CHAPTERS]
EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)


@cache
def source(chapter: Chapter) -> Source:
    return read_source(ChapterFiles.of(chapter, ROOT).source)


@cache
def solution(chapter: Chapter) -> NotebookNode:
    """Return the executed notebook, which tests must not change."""
    return nbformat.read(ChapterFiles.of(chapter, ROOT).solution, as_version=4)


@cache
def prose(chapter: Chapter) -> str:
    """Return all Markdown of a notebook, with a blank line between two cells."""
    return "\n\n".join(cell.text for cell in source(chapter).cells if cell.kind == "markdown")


@cache
def code(chapter: Chapter) -> str:
    """Return all code of a notebook."""
    return "\n\n".join(cell.text for cell in source(chapter).cells if cell.kind == "code")
