"""The commands: each calls what does the work, and prints what it gave. Returns the exit status."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from lmcourse.errors import CourseError
from lmcourse.root import find_root

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lmcourse.course import Chapter


def lab(options: Namespace) -> int:
    """Open the course in JupyterLab."""
    from lmcourse import lab

    os.chdir(find_root(options.course))
    return lab.main(options.rest)


def doctor(options: Namespace) -> int:
    """Say whether everything is in place."""
    from lmcourse import doctor

    return doctor.main(json=options.json)


def list_chapters(options: Namespace) -> int:
    """Show the map of the course."""
    from lmcourse.course import CHAPTERS
    from lmcourse.exercises.registry import exercises_of

    rows = [
        {
            "id": chapter.id,
            "title": chapter.title,
            "minutes": chapter.minutes,
            "exercises": len(exercises_of(chapter)),
            "points": sum(exercise.points for exercise in exercises_of(chapter)),
            "misconceptions": sum(len(exercise.misconceptions) for exercise in exercises_of(chapter)),
        }
        for chapter in CHAPTERS
        if chapter.available
    ]
    if options.json:
        _print_json(rows)
    else:
        from lmcourse.cli import tables

        tables.show(tables.course(CHAPTERS, rows))
    return 0


def status(options: Namespace) -> int:
    """Show what is done in the learner's copy."""
    from lmcourse.progress import read_progress

    progress = read_progress(find_root(options.course) / "notebooks")
    if options.json:
        _print_json(progress.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.progress(progress))
    return 0


def build(options: Namespace) -> int:
    """Build the notebooks whose source has changed, or say which are not up to date."""
    root, chapters = find_root(options.course), _chapters(options.chapters)
    from lmcourse import authoring

    if options.check:
        with _quiet(options):
            stale = authoring.check_built(chapters, root)
        if options.json:
            _print_json({"stale": stale})
        else:
            print("\n".join(stale) or "Every notebook is up to date.")
        return 1 if stale else 0
    with _quiet(options):
        built = authoring.build(chapters, root, force=options.force)
    if options.json:
        _print_json([{"id": item.chapter.id, "changed": item.changed} for item in built])
    else:
        print("\n".join(f"{item.chapter.id}  {'built' if item.changed else 'up to date'}" for item in built))
    return 0


def grade(options: Namespace) -> int:
    """Grade notebooks."""
    from lmcourse import grading

    with _quiet(options):
        results = grading.grade(options.paths, course=find_root(options.course))
    if options.json:
        _print_json([result.to_json() for result in results])
    else:
        from lmcourse.cli import tables

        tables.show(*[tables.result(result) for result in results])
    return 0


def matrix(options: Namespace) -> int:
    """Submit every known wrong answer, every printed solution and every stub."""
    root, chapters = find_root(options.course), _chapters(options.chapters)
    from lmcourse import authoring
    from lmcourse.exercises.matrix import prove

    with _quiet(options):
        proof = prove(chapters, *authoring.answers(chapters, root))
    if options.json:
        _print_json(proof.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.matrix(proof), tables.verdict(proof))
    return 0 if proof.proved else 1


def account(options: Namespace) -> int:
    """Show what a model costs, by arithmetic: nothing is built or run."""
    from lmcourse.cli.budget import make_budget

    budget = make_budget(options)
    if options.json:
        _print_json(budget.to_json())
    else:
        from lmcourse.cli import budget_tables, tables

        tables.show(*budget_tables.budget(budget))
    return 0


def bench(options: Namespace) -> int:
    """Measure this machine, and a model on it."""
    from lmcourse.bench.bench import bench as measure

    sizes = {"batch": options.batch, "length": options.seq, "steps": options.steps}
    with _quiet(options):
        found = measure(options.model, **sizes, number=options.dtype)
    if options.json:
        _print_json(found.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.bench(found))
    return 0


def _chapters(names: Sequence[str]) -> list[Chapter]:
    """The chapters somebody named, or all that are written."""
    from lmcourse.course import available_chapters, find_chapter

    chapters = [find_chapter(name) for name in names] or available_chapters()
    for chapter in chapters:
        if not chapter.available:
            raise CourseError(f"Notebook {chapter.id} is planned, not written yet: no {chapter.module}.")
    return chapters


def _quiet(options: Namespace) -> AbstractContextManager[Any]:
    """With --json stdout is the document's alone: what code prints on the way goes to stderr."""
    return redirect_stdout(sys.stderr) if options.json else nullcontext()


def _print_json(data: object) -> None:
    # ASCII, so that no console's encoding can break the document.
    print(json.dumps(data, indent=2))
