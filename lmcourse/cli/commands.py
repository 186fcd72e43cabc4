"""The commands about the course: each prints its result and returns the exit status."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
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
    """Submit every known wrong answer, every right one, every stub, and every mutant of a solution."""
    root, chapters = find_root(options.course), find_chapters(options.chapters)
    if options.isolation:
        return _matrix_in_graded_processes(options, root, chapters)
    from lmcourse.proof.answers import answer_cells, only
    from lmcourse.proof.prove import QUICK_SEEDS, SEEDS, prove

    with quiet(options):
        cells = answer_cells(chapters, root)
        if options.exercise:
            cells = only(options.exercise, cells)
        proof = prove(cells, options.seeds, QUICK_SEEDS if options.quick else SEEDS)
    if options.json:
        print_json(proof.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.matrix(proof), tables.survivors(proof), tables.verdict(proof))
    return 0 if proof.proved else 1


def _matrix_in_graded_processes(options: Namespace, root: Path, chapters: Sequence[Chapter]) -> int:
    """Submit the right answers alone, as whole notebooks, to the processes of a grade.

    Raises:
        CourseError: with flags that are about something else, or if notebooks cannot be isolated like that here.
    """
    from lmcourse.grading.sandbox import choose_isolation
    from lmcourse.proof.graded import graded_right_answers

    if options.exercise or options.seeds or options.quick:
        raise CourseError(
            "--isolation submits the right answers of whole notebooks: leave out --exercise, --seeds and --quick."
        )
    isolation = choose_isolation(options.isolation)
    with quiet(options):
        found = {chapter.id: graded_right_answers(chapter, root, isolation) for chapter in chapters}
    if options.json:
        print_json({name: [asdict(answer) for answer in answers] for name, answers in found.items()})
    else:
        from lmcourse.cli import tables

        tables.show(tables.graded_right_answers(found))
    return 1 if any(answer.lost for answers in found.values() for answer in answers) else 0


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
