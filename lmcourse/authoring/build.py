"""Build notebooks: source → executed solution → student release. Notebooks are written only if all steps succeed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from lmcourse.authoring.document import document, dumps, load_notebook
from lmcourse.authoring.execute import execute
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.numbering import (
    changed_lines,
    core_alone,
    exercises_in,
    left_out,
    mentions,
    moved,
    numbered,
    with_plans,
    with_row,
)
from lmcourse.authoring.problems import read_sources
from lmcourse.authoring.release import has_student_work, release
from lmcourse.authoring.source import Source, read_source
from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter, FolderChapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import BESIDE
from lmcourse.exercises.released import CARRIED, released
from lmcourse.report import REPORT_MIME, Report


@dataclass(frozen=True)
class Built:
    """The result of building one chapter, and whether its notebooks were rebuilt."""

    chapter: Chapter
    changed: bool


@dataclass(frozen=True, eq=False)
class Draft:
    """The notebooks of a chapter, not yet executed, and a teacher's own exercises, which are released with them."""

    chapter: Chapter
    source: Source
    files: ChapterFiles
    solution: NotebookNode
    student: NotebookNode
    own: Sequence[Exercise] = ()

    @classmethod
    def of(cls, chapter: Chapter, source: Source, root: Path) -> Draft:
        """Return the draft of the notebooks that a source describes."""
        notebook = document(source, chapter)
        beside = isinstance(chapter, FolderChapter) and chapter.source.with_name(BESIDE).is_file()
        own = exercises_in(source, chapter) if beside else ()
        files = ChapterFiles.of(chapter, root)
        if own:
            notebook.metadata["lmcourse"][CARRIED] = _carried(load_notebook(files.solution), _digest(files.source, own))
        return cls(chapter, source, files, notebook, release(notebook, chapter), own)

    def stale(self) -> dict[Path, str]:
        """Return the files that differ from the source's output, each with the difference."""
        found = {}
        solution = load_notebook(self.files.solution)
        if solution is None or _without_outputs(solution) != _without_outputs(self.solution):
            found[self.files.solution] = f"is not what {self.files.source.name} builds"
        elif not _executed(solution):
            found[self.files.solution] = "holds cells that were never run"
        if not self.files.release.is_file() or self.files.release.read_bytes() != dumps(self.student).encode():
            found[self.files.release] = f"is not what {self.files.source.name} builds"
        return {path: what if path.exists() else "is missing" for path, what in found.items()}

    def rewritten(self, root: Path) -> dict[Path, tuple[str, str]]:
        """Return the source, the README and the plans for teachers if their numbers or totals are wrong: the old and
        the new text.
        """
        source = read_source(self.files.source)  # once more, because an editor may have saved it in the meantime
        texts = {source.path: (source.text, numbered(source, self.chapter).text)}
        readme, plans = root / "README.md", root / "docs" / "teaching.md"
        if readme.is_file() and not isinstance(self.chapter, FolderChapter):
            old = readme.read_text(encoding="utf-8")
            texts[readme] = old, with_row(old, source, self.chapter)
            if plans.is_file():
                texts[plans] = (old := plans.read_text(encoding="utf-8")), with_plans(old, texts[readme][1])
        return {path: (old, new) for path, (old, new) in texts.items() if old != new}

    def rewrite(self, root: Path) -> Iterator[str]:
        """Write the files in `rewritten` if their numbers or totals are wrong. Yield a line for each changed line,
        and for each place outside this source that mentions an exercise by its old number.
        """
        changes = moved(read_source(self.files.source), self.chapter)
        for path, (old, new) in self.rewritten(root).items():
            write_all({path: new}, newline="\r\n" if b"\r\n" in path.read_bytes() else "\n")
            yield from changed_lines(path, old, new)
        for path, line, number in mentions(changes, self.chapter, root):
            yield f"{path}:{line}: look here: exercise {number} is now exercise {changes[number]}"

    def make(self, *, force: bool) -> None:
        """Write both notebooks. Outputs of the solution that are still right are kept, unless `force`."""
        self._carry()  # errors are reported before all cells run
        execute(self.solution, self.source, None if force else load_notebook(self.files.solution))
        if lost := [*self._lost_points()]:
            raise CourseError("\n".join(lost))
        write_all({self.files.solution: dumps(self.solution), self.files.release: dumps(self.student)})

    def _lost_points(self) -> Iterator[str]:
        """Yield a line for each printed solution that loses points in its own check, hidden cases included."""
        for cell, node in zip(self.source.cells, self.solution.cells, strict=True):
            for output in node.outputs if cell.check else ():
                data = output.get("data", {}).get(REPORT_MIME)
                report = Report.from_json(data) if data else None
                if report and not report.passed:
                    wrong = (f"{one.name}: {one.message}" for one in report.cases if not one.passed)
                    why = " ".join(report.sentences) or next(wrong, "")
                    points = f"{report.points:g} of {report.max_points} points"
                    where = f"{self.files.source}:{cell.line}"
                    yield f"{where}: the printed solution of `{cell.check}` earns {points}. {why}"

    def _carry(self) -> None:
        """Put a teacher's own exercises into both notebooks, unless they are there."""
        carried = self.solution.metadata["lmcourse"].get(CARRIED)
        if carried and CARRIED not in carried:
            try:
                data = released(self.own, carried["digest"])
            except CourseError as error:
                raise CourseError(f"{self.files.source.with_name(BESIDE)}: {error}") from error
            for notebook in (self.solution, self.student):
                notebook.metadata["lmcourse"][CARRIED] = nbformat.from_dict(data)


def _digest(source: Path, own: Sequence[Exercise]) -> str:
    """Return a hash of a teacher's file, and of the names of the exercises that have cells."""
    names = ",".join(exercise.name for exercise in own)
    return hashlib.sha256(source.with_name(BESIDE).read_bytes() + names.encode()).hexdigest()


def _carried(built: NotebookNode | None, digest: str) -> dict[str, Any]:
    """Return the exercises that a built notebook carries if they are up to date, else only their digest."""
    about = built.metadata.get("lmcourse", {}).get(CARRIED, {}) if built else {}
    return about if about.get("digest") == digest else {"digest": digest}


def build(
    chapters: Sequence[Chapter],
    root: Path,
    *,
    force: bool = False,
    core: bool = False,
    without: Sequence[str] = (),
    say: Callable[[str], object] = print,
) -> list[Built]:
    """Build the notebooks of these chapters whose source has changed, or all if `force`; if `core`, without Further;
    and without these exercises.

    First, the numbers and totals in their sources, the README and the plans for teachers are corrected; `say` is called
    with each change.

    Raises CourseError if sources have mistakes or student copies contain work (all are listed, and nothing is built),
    if a cell fails, or if a file cannot be written.
    """
    drafts = _drafts(chapters, root, core=core, without=without)
    to_make = [draft for draft in drafts if force or draft.stale()]
    worked_in = [draft.files.release for draft in to_make if has_student_work(draft.files.release)]
    if worked_in and not force:
        lost = "contains work that would be lost: move it elsewhere, or replace it with --force."
        raise CourseError("\n".join(f"{path} {lost}" for path in worked_in))
    for line in (line for draft in drafts for line in draft.rewrite(root)):
        say(line)
    for draft in to_make:
        draft.make(force=force)
    return [Built(draft.chapter, draft in to_make) for draft in drafts]


def check_built(chapters: Sequence[Chapter], root: Path, *, core: bool = False) -> list[str]:
    """Return a line for each notebook that differs from its source, or if `core` from the source without Further, and
    for each source or page whose numbers or totals are wrong; outputs are not compared.
    """
    wrong = "has numbers or totals that are not right"
    return [
        f"{path.relative_to(root)} {what}: run `lmcourse build {draft.chapter.number}{' --core' * core}`"
        for draft in _drafts(chapters, root, core=core)
        for path, what in {**dict.fromkeys(draft.rewritten(root), wrong), **_differences(draft, root)}.items()
    ]


def _differences(draft: Draft, root: Path) -> dict[Path, str]:
    """Return the files that differ from a draft, each with the difference; a release of the core is one difference."""
    found = draft.stale()
    core = core_alone(draft.source, draft.chapter)
    if found and core is not draft.source and not Draft.of(draft.chapter, core, root).stale():
        return {draft.files.release: "is a release of the core alone; for all of it"}
    return found


def _drafts(chapters: Sequence[Chapter], root: Path, *, core: bool, without: Sequence[str] = ()) -> list[Draft]:
    sources = dict(read_sources(chapters, root))
    for chapter, source in sources.items():
        part = core_alone(source, chapter) if core else source
        sources[chapter] = left_out(part, without, chapter) if without else part
    return [Draft.of(chapter, source, root) for chapter, source in sources.items()]


def _without_outputs(notebook: NotebookNode) -> object:
    cells = [(cell.cell_type, cell.id, cell.source, cell.metadata) for cell in notebook.cells]
    return cells, notebook.metadata


def _executed(notebook: NotebookNode) -> bool:
    return all(cell.execution_count is not None for cell in notebook.cells if cell.cell_type == "code")
