"""Build notebooks: source → executed solution → student release, each swapped in only when all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.authoring.document import document, dumps
from lmcourse.authoring.execute import execute
from lmcourse.authoring.files import write_all
from lmcourse.authoring.problems import Problem, find_problems
from lmcourse.authoring.release import holds_work, release
from lmcourse.authoring.source import Source, read_source
from lmcourse.course import Chapter
from lmcourse.errors import CourseError


@dataclass(frozen=True)
class Built:
    """A chapter that was looked at, and whether its notebooks had to be made anew."""

    chapter: Chapter
    changed: bool


@dataclass(frozen=True)
class Files:
    """Where a chapter's three files are."""

    source: Path
    solution: Path
    release: Path

    @classmethod
    def of(cls, chapter: Chapter, root: Path) -> Files:
        solution = root / "solutions" / chapter.id / f"{chapter.topic}.ipynb"
        return cls(solution.with_suffix(".py"), solution, root / "notebooks" / chapter.id / solution.name)


def build(chapters: Sequence[Chapter], root: Path, *, force: bool = False) -> list[Built]:
    """Build the notebooks of these chapters whose source has changed.

    Args:
        chapters: what to build.
        root: the course folder.
        force: build also what is up to date, and replace a student copy that somebody has worked in.

    Raises:
        CourseError: the sources have mistakes (all are listed), a cell fails, or a student copy holds work.
    """
    sources = _read_all(chapters, root)
    return [_build(chapter, sources[chapter], root, force) for chapter in chapters]


def check_built(chapters: Sequence[Chapter], root: Path) -> list[str]:
    """Which committed notebooks are not what their sources build, one line each; outputs are not compared.

    Raises:
        CourseError: the sources have mistakes.
    """
    sources = _read_all(chapters, root)
    return [line for chapter in chapters for line in _stale(chapter, document(sources[chapter], chapter), root)]


def _read_all(chapters: Sequence[Chapter], root: Path) -> dict[Chapter, Source]:
    """The sources, if none has a mistake."""
    sources: dict[Chapter, Source] = {}
    problems: list[Problem] = []
    for chapter in chapters:
        path = Files.of(chapter, root).source
        try:
            sources[chapter] = read_source(path)
        except OSError:
            problems.append(Problem(path, 1, f"the source of notebook {chapter.id} cannot be read"))
            continue
        problems += find_problems(sources[chapter], chapter)
    if problems:
        raise CourseError("\n".join(str(problem) for problem in problems))
    return sources


def _build(chapter: Chapter, source: Source, root: Path, force: bool) -> Built:
    notebook = document(source, chapter)
    if not force and not _stale(chapter, notebook, root):
        return Built(chapter, changed=False)
    files = Files.of(chapter, root)
    if holds_work(files.release) and not force:
        raise CourseError(f"{files.release} holds somebody's work: move it away, or replace it with --force.")
    student = release(notebook, chapter)
    execute(notebook, source)
    write_all({files.solution: dumps(notebook), files.release: dumps(student)})
    return Built(chapter, changed=True)


def _stale(chapter: Chapter, notebook: NotebookNode, root: Path) -> list[str]:
    """What is missing or differs from the notebook as it would be built."""
    files = Files.of(chapter, root)
    lines = []
    if not files.solution.exists() or _skeleton(_read(files.solution)) != _skeleton(notebook):
        lines.append(f"{files.solution.relative_to(root)} is not what {files.source.name} builds: run `lmcourse build`")
    if not files.release.exists() or files.release.read_text(encoding="utf-8") != dumps(release(notebook, chapter)):
        lines.append(f"{files.release.relative_to(root)} is not what {files.source.name} builds: run `lmcourse build`")
    return lines


def _read(path: Path) -> NotebookNode | None:
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)
    except (ValueError, AttributeError, nbformat.ValidationError):
        return None
    return notebook


def _skeleton(notebook: NotebookNode | None) -> object:
    """All of a notebook but its outputs."""
    if notebook is None:
        return None
    cells = [(cell.cell_type, cell.id, cell.source, cell.metadata) for cell in notebook.cells]
    return cells, notebook.metadata
