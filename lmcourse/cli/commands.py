"""The commands about the course: each prints its result and returns the exit status."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmcourse.cli.output import print_json, quiet
from lmcourse.errors import CourseError
from lmcourse.root import find_root

if TYPE_CHECKING:
    from lmcourse.course import Chapter


def lab(options: Namespace) -> int:
    """Open the course in JupyterLab."""
    from lmcourse import lab

    return lab.main(options.rest, options.course)


def doctor(options: Namespace) -> int:
    """Say whether everything is in place."""
    from lmcourse import doctor

    return doctor.main(json=options.json)


def list_chapters(options: Namespace) -> int:
    """Show the map of the course."""
    from lmcourse.course import CHAPTERS, available_chapters
    from lmcourse.progress import read_progress

    # Counted in the notebooks: to import the exercises would load torch, and take seconds.
    notebooks = {item.chapter: item for item in read_progress(find_root(options.course) / "notebooks").notebooks}
    rows = [
        {
            "id": chapter.id,
            "title": chapter.title,
            "minutes": chapter.minutes,
            "exercises": len(notebooks[chapter].exercises) if chapter in notebooks else None,
            "points": notebooks[chapter].max_points if chapter in notebooks else None,
        }
        for chapter in available_chapters()
    ]
    if options.json:
        print_json(rows)
    else:
        from lmcourse.cli import tables

        tables.show(tables.course(CHAPTERS, rows))
    return 0


def status(options: Namespace) -> int:
    """Show what is done in the learner's copy."""
    from lmcourse.progress import read_progress

    progress = read_progress(find_root(options.course) / "notebooks")
    if options.json:
        print_json(progress.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.progress(progress))
    return 0


def build(options: Namespace) -> int:
    """Build the notebooks whose source has changed, or say which are not up to date."""
    root = find_root(options.course)
    from lmcourse import authoring

    chapters = authoring.chapters_in(root, options.chapters)
    if options.check:
        with quiet(options):
            stale = authoring.check_built(chapters, root)
        if options.json:
            print_json({"stale": stale})
        else:
            print("\n".join(stale) or "Every notebook is up to date.")
        return 1 if stale else 0
    with quiet(options):
        built = authoring.build(chapters, root, force=options.force)
    if options.json:
        print_json([{"id": item.chapter.id, "changed": item.changed} for item in built])
    else:
        print("\n".join(f"{item.chapter.id}  {'built' if item.changed else 'up to date'}" for item in built))
    return 0


def matrix(options: Namespace) -> int:
    """Submit every known wrong answer, right answer and stub, every mutant of a solution, and constants."""
    root, chapters = find_root(options.course), find_chapters(options.chapters)
    from lmcourse.proof.answers import answer_cells, only
    from lmcourse.proof.prove import prove

    with quiet(options):
        cells = answer_cells(chapters, root)
        if options.exercise:
            cells = only(options.exercise, cells)
        proof = prove(cells)
    if options.json:
        print_json(proof.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.matrix(proof), tables.unexpected(proof), tables.verdict(proof))
    return 0 if proof.proved else 1


def find_chapters(names: Sequence[str]) -> list[Chapter]:
    """The chapters somebody named, or all that are written.

    Raises:
        CourseError: there is none of a name, or it is only planned.
    """
    from lmcourse.course import available_chapters, find_chapter

    chapters = [find_chapter(name) for name in names] or available_chapters()
    for chapter in chapters:
        if not chapter.available:
            raise CourseError(f"Notebook {chapter.id} is planned, not written yet: no {chapter.module}.")
    return chapters
