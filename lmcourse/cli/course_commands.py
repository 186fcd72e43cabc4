"""The commands about the course, and the flags of four of them. Each prints its result and returns its exit status."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmcourse.base.errors import CourseError
from lmcourse.base.path_argument import path_argument
from lmcourse.cli.output import print_json, quiet, show
from lmcourse.course.root import find_root

if TYPE_CHECKING:
    from lmcourse.course.chapters import Chapter
    from lmcourse.course.progress import NotebookProgress

CHAPTERS_HELP = "a notebook's number or name, such as 01 or floating_point (default: all notebooks)"


def lab(options: Namespace) -> int:
    """Open the course in JupyterLab."""
    from lmcourse.jupyter import lab

    return lab.main(options.rest, options.course)


def doctor(options: Namespace) -> int:
    """Check that everything is installed."""
    from lmcourse.jupyter import doctor

    return doctor.main(json=options.json)


def list_chapters(options: Namespace) -> int:
    """Show the map of the course."""
    from lmcourse.course.chapters import CHAPTERS
    from lmcourse.course.progress import read_progress

    # The exercises are counted in the notebooks, because importing them would load torch, which takes seconds.
    notebooks = {item.chapter: item for item in read_progress(find_root(options.course) / "notebooks").notebooks}
    rows = [_row(chapter, notebooks.get(chapter)) for chapter in CHAPTERS]
    show(options, rows, lambda tables: [tables.course(rows)])
    return 0


def _row(chapter: Chapter, notebook: NotebookProgress | None) -> dict[str, Any]:
    """Return the counts of a notebook; `core` has those of its core, if it has another part."""
    row: dict[str, Any] = {"id": chapter.id, "part": chapter.part, "title": chapter.title}
    if notebook is None:
        return row | {"minutes": None, "exercises": None, "points": None}
    core, *further = notebook.parts
    counts: dict[str, Any] = {
        "minutes": sum(notebook.minutes) or None,
        "exercises": len(notebook.exercises),
        "points": notebook.max_points,
    }
    if further:
        own = {"exercises": len(core), "points": sum(item.max_points for item in core)}
        counts["core"] = {"minutes": notebook.minutes[0] if notebook.minutes else None} | own
    return row | counts


def status(options: Namespace) -> int:
    """Show the points in the learner's notebooks."""
    from lmcourse.course.progress import read_progress

    progress = read_progress(find_root(options.course) / "notebooks")
    show(options, progress.to_json(), lambda tables: [tables.progress(progress)])
    return 0


def add_update(parser: ArgumentParser) -> None:
    """Add the files of `lmcourse update`."""
    parser.add_argument("new", type=path_argument, metavar="NEW.ipynb", help="the corrected notebook")
    own = "your own copy (default: the notebook with this name in the course's folder)"
    parser.add_argument("old", type=path_argument, nargs="?", metavar="OLD.ipynb", help=own)


def update(options: Namespace) -> int:
    """Give a notebook its corrected text."""
    from lmcourse.jupyter.update import place_of
    from lmcourse.jupyter.update import update as update_notebook

    old = options.old or place_of(options.new, find_root(options.course))
    kept, gone = update_notebook(options.new, old)
    if options.json:
        print_json({"notebook": str(old), "before": str(kept), "gone": gone})
    else:
        print(f"{old} has the new text, and your answers, outputs and own cells. As it was before: {kept.name}")
        for name in gone:
            print(f"{name} is no longer asked: your answer to it is only in {kept.name}.")
    return 0


def add_package(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse package`."""
    add = parser.add_argument
    add("chapters", nargs="*", metavar="NN", help=CHAPTERS_HELP)
    where = "folder of the package; its last part is the package's name (default: ./my_transformer)"
    add("--out", type=path_argument, default=Path("my_transformer"), metavar="DIR", help=where)
    lend = "use the course's version of an answer that the model needs and that is missing or wrong"
    add("--lend", action=BooleanOptionalAction, default=True, help=lend)
    add("--force", action="store_true", help="overwrite files even if you changed them")
    how = "bubblewrap, which needs Linux, or process, only for your own work (default: bubblewrap)"
    add("--isolation", metavar="HOW", help=f"how notebooks are isolated: {how}")


def package(options: Namespace) -> int:
    """Collect a learner's answers."""
    root = find_root(options.course)
    from lmcourse.grading.sandbox import PROCESS_ISOLATION_WARNING
    from lmcourse.grading.workers import GradingOptions
    from lmcourse.own_package.write import write_package

    if options.isolation == "process":
        print(PROCESS_ISOLATION_WARNING, file=sys.stderr)
    with quiet(options):
        found = write_package(
            root,
            options.out.resolve(),
            chapters=find_chapters(options.chapters),
            lend=options.lend,
            force=options.force,
            options=GradingOptions(options.isolation),
        )
    if options.json:
        print_json(found.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.written_package(found))
        out = options.out
        print(f"{out}: {len(found.changed)} files written." if found.changed else f"{out} is up to date.")
        print(f'Run it in the folder above it: python -m {out.resolve().name} --prompt "The "')
    return 0


def add_build(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse build`."""
    parser.add_argument("chapters", nargs="*", metavar="NN", help=CHAPTERS_HELP)
    add = parser.add_argument
    stale = "build nothing; print what is out of date (notebooks, numbers, totals), with exit status 1 if anything is"
    add("--check", action="store_true", help=stale)
    add("--force", action="store_true", help="build all notebooks, even over a student's copy that holds work")
    add("--core", action="store_true", help="leave out what is below the heading Further")
    less = "leave out this exercise; the course's answer stands in where a later cell uses it (may be repeated)"
    add("--without", action="append", default=[], metavar="EXERCISE", help=less)


def build(options: Namespace) -> int:
    """Build the notebooks whose source has changed, or list those that are out of date."""
    root = find_root(options.course)
    from lmcourse.authoring.build import build as build_notebooks
    from lmcourse.authoring.build import check_built
    from lmcourse.authoring.folders import ChapterFiles, chapters_in
    from lmcourse.grading.gradebook import coming_changes

    chapters = chapters_in(root, options.chapters)
    if options.without and (len(chapters) > 1 or options.check):
        raise CourseError("--without builds one notebook: lmcourse build NN --without EXERCISE")
    if options.check:
        with quiet(options):
            stale = check_built(chapters, root, core=options.core)
        if options.json:
            print_json({"stale": stale})
        else:
            print("\n".join(stale) or "Every notebook is up to date.")
        return 1 if stale else 0
    with quiet(options):
        built = build_notebooks(chapters, root, force=options.force, core=options.core, without=options.without)
        solutions = {chapter.id: ChapterFiles.of(chapter, root).solution for chapter in chapters}
        changed = [item.chapter for item in built if item.changed]
        for line in (*coming_changes(root, solutions), *_doubts(changed, root)):
            print(line)
    if options.json:
        print_json([{"id": item.chapter.id, "changed": item.changed} for item in built])
    else:
        print("\n".join(f"{item.chapter.id}  {'built' if item.changed else 'up to date'}" for item in built))
    return 0


def _doubts(chapters: Sequence[Chapter], root: Path) -> Iterator[str]:
    """Yield a warning for each known answer to an exercise of a teacher's own that earns other points than expected."""
    from lmcourse.course.chapters import FolderChapter
    from lmcourse.exercises.registry import BESIDE

    for chapter in chapters:
        if isinstance(chapter, FolderChapter) and (file := chapter.source.with_name(BESIDE)).is_file():
            from lmcourse.check_tests.answers import answer_cells
            from lmcourse.check_tests.prove import doubts

            yield from doubts(answer_cells([chapter], root)[chapter], file.relative_to(root))


def add_site(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse site`."""
    parser.add_argument("chapters", nargs="*", metavar="NN", help=CHAPTERS_HELP)
    where = "folder of the site (default: ./_site)"
    parser.add_argument("--out", type=path_argument, default=Path("_site"), metavar="DIR", help=where)
    paper = "also print the course as a PDF, and each chapter as one, with an installed Chromium or Chrome"
    parser.add_argument("--pdf", action="store_true", help=paper)


def site(options: Namespace) -> int:
    """Build the site, and with --pdf the book."""
    root = find_root(options.course)
    from lmcourse.course.chapters import CHAPTERS
    from lmcourse.site.builder import build_site, find_url

    chapters = sorted({*find_chapters(options.chapters)}, key=CHAPTERS.index)
    with quiet(options):
        if options.pdf:
            from lmcourse.site.book import BOOK, find_printer, print_book

            find_printer()  # if there is none, say so before anything is built
        built = build_site(root, options.out.resolve(), chapters)
        pages = print_book(built.folder, chapters, find_url(root, "Documentation")) if options.pdf else 0
    counts = {"chapters": built.chapters, "figures": built.figures, "frames": built.frames, "bytes": built.bytes}
    if options.pdf:
        counts["pages"] = pages
    if options.json:
        print_json({"folder": str(options.out), **counts})
    else:
        size = f"{built.bytes / 1e6:.1f} MB"
        print(f"{options.out}: {built.chapters} chapters, {built.figures} figures that move, {size}")
        if options.pdf:
            print(f"{options.out / BOOK}: {pages} pages")
        print(f"Open {options.out / 'index.html'} in a browser.")
    return 0


def add_test_checks(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse test-checks`."""
    help = "a notebook's number or name, or a folder with a source and exercises.py (default: all notebooks)"
    parser.add_argument("chapters", nargs="*", metavar="NN", help=help)
    parser.add_argument("--exercise", metavar="NAME", help="submit answers to this exercise only")
    term = "draw the hidden cases from this name, as grading does with c.Course.term (default: the published cases)"
    parser.add_argument("--term", metavar="NAME", help=term)


def test_checks(options: Namespace) -> int:
    """Submit every known wrong answer, right answer and stub, every mutant of a solution, and constants."""
    from lmcourse.check_tests.answers import answer_cells, only
    from lmcourse.check_tests.prove import prove
    from lmcourse.course.chapters import PUBLISHED, TERM

    TERM.set(options.term or PUBLISHED)
    with quiet(options):
        chapters, root = _chapters_or_folders(options)
        cells = answer_cells(chapters, root)
        if options.exercise is not None:
            cells = only(options.exercise, cells)
        proof = prove(cells)
    show(options, proof.to_json(), lambda to: [to.check_results(proof), to.unexpected(proof), to.verdict(proof)])
    return 0 if proof.proved else 1


def _chapters_or_folders(options: Namespace) -> tuple[list[Chapter], Path]:
    """Return the notebooks with these names or in these folders, and the course's folder, if one of them needs it."""
    from lmcourse.authoring.folders import chapter_at, chapters_in
    from lmcourse.exercises.registry import BESIDE

    names = options.chapters
    paths = [path_argument(name) for name in names if Path(name).name != name or Path(name, BESIDE).is_file()]
    folders = [chapter_at(path) for path in paths]
    if paths and len(paths) == len(names):
        return folders, Path()
    root = find_root(options.course)
    return folders + chapters_in(root, [name for name in names if path_argument(name) not in paths]), root


def find_chapters(names: Sequence[str]) -> list[Chapter]:
    """Return the chapters with these names, or all chapters; raise CourseError for an unknown name."""
    from lmcourse.course.chapters import CHAPTERS, find_chapter

    return [find_chapter(name) for name in names] or [*CHAPTERS]
