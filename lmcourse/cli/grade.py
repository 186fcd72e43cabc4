"""The command `lmcourse grade`: its flags, its output, and grades for the table of a learning platform."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lmcourse.base.errors import CourseError
from lmcourse.base.path_argument import path_argument
from lmcourse.cli.output import print_json, quiet
from lmcourse.course.root import find_root

if TYPE_CHECKING:
    from lmcourse.grading.downloads import Person
    from lmcourse.grading.result import SubmissionResult

MAX_DETAILED = 5
"""Largest number of submissions that are shown exercise by exercise; if there are more, each gets one line."""

MAX_NAMED = 10


def add_grade(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse grade`."""
    add = parser.add_argument
    what = "a notebook, a folder of student/assignment/notebook.ipynb, or a download from Moodle or Canvas"
    add("paths", nargs="+", type=path_argument, metavar="FILE_OR_FOLDER", help=what)
    how = "bubblewrap, which needs Linux, or process, only for people you trust (default: bubblewrap)"
    add("--isolation", metavar="HOW", help=f"how notebooks are isolated from this machine: {how}")
    many = "number of notebooks graded at a time (default: one per processor core)"
    add("--workers", type=_number, metavar="N", help=many)
    where = "address of a Dask scheduler whose workers run the notebooks, such as tcp://HOST:8786"
    add("--scheduler", metavar="ADDRESS", help=where)
    for name, default, stopped in (("--cell-seconds", 30.0, "a cell"), ("--total-seconds", 900.0, "a notebook")):
        until = f"seconds until {stopped} is stopped (default: {default:g})"
        add(name, type=_seconds, default=default, metavar="S", help=until)
    page = "folder for a report on the class: a page, and a table as CSV"
    add("--report", type=path_argument, metavar="FOLDER", help=page)
    alike = "write a page of learners with likeness in several exercises, for a talk (default: report/likeness.html)"
    add("--likeness", type=path_argument, nargs="?", const=Path("report"), metavar="FOLDER_OR_PAGE", help=alike)
    texts = "grade nothing; write a page with all answers to this question and its mark scheme as boxes"
    add("--rubric", metavar="TASK", help=f"{texts} (into the folder of --report; default: report)")
    record = parser.add_argument_group("marks in nbgrader's gradebook")
    into = "write marks into nbgrader's gradebook and notebooks into autograded/, as `nbgrader autograde` does"
    record.add_argument("--record", action="store_true", help=into)
    database = "address of the gradebook's database (default: the one in nbgrader's configuration)"
    record.add_argument("--db", metavar="URL", help=database)
    record.add_argument("--force", action="store_true", help="grade recorded submissions again")
    again = "grade only this exercise again in all recorded submissions; other marks stay"
    record.add_argument("--again", metavar="EXERCISE", help=again)
    marks = "write the marks of a question, too, from the file that the page of --rubric saved"
    record.add_argument("--marks", type=path_argument, metavar="JSON", help=marks)
    back = parser.add_argument_group("grades for Moodle or Canvas")
    sheet = "Moodle's grading worksheet or Canvas's gradebook; a copy with the grades is written next to it"
    back.add_argument("--grades", type=path_argument, metavar="CSV", help=sheet)
    pages = "write a zip of feedback pages, which the platform returns to the learners"
    back.add_argument("--feedback", type=path_argument, metavar="ZIP", help=pages)
    column = "the assignment's column in Canvas's gradebook, if there is more than one"
    back.add_argument("--column", metavar="NAME", help=column)


def grade(options: Namespace) -> int:
    """Grade notebooks."""
    for name in ("db", "again", "rubric", "column", "scheduler"):
        if getattr(options, name) == "":
            raise CourseError(f"--{name} is empty (is a variable not set?): give a value, or leave it out.")
    for name in ("db", "force", "again", "marks", "feedback"):
        if getattr(options, name) and not (options.record or (options.rubric and name == "db")):
            raise CourseError(f"--{name} needs the gradebook: add --record.")
    if options.column and not options.grades:
        raise CourseError("--column names a column of the file given by --grades: add --grades.")
    if options.rubric:
        return _rubric(options)
    from lmcourse.cli import tables
    from lmcourse.grading.class_report import write_report
    from lmcourse.grading.hand_ins import ME

    with quiet(options), _unpacked(options) as (paths, finish):
        results = _results(paths, options)
        if len(results) == 1 and results[0].unread and results[0].student == ME:
            raise CourseError(results[0].reason)
        written = write_report(results, options.report) if options.report else []
        written += _likeness(results, options) if options.likeness else []
        if not options.json:
            many = len(results) > MAX_DETAILED
            tables.show(*([tables.results(results)] if many else map(tables.result, results)))
        finish(results)
        for path in written:
            print(f"Written: {path}")
    if options.json:
        print_json([result.to_json() for result in results])
    unread = [result.student for result in results if result.unread]
    if unread:
        learners = [student for student in dict.fromkeys(unread) if student != ME]
        print(_unread(len(unread), len(results), learners), file=sys.stderr)
    none_or_own = len(unread) == len(results) or ME in unread
    return 1 if none_or_own or any(result.failed for result in results) else 0


def _rubric(options: Namespace) -> int:
    from lmcourse.base.unzip import unpacked
    from lmcourse.grading.rubric import write_rubric

    if options.record:
        raise CourseError("--rubric grades nothing: leave out --record.")
    page = (options.report or Path("report")) / f"{options.rubric}.html"
    with unpacked(options.paths) as sources:
        course = find_root(options.course)
        count = write_rubric(sources.paths, options.rubric, page, course=course, db=options.db)
    print(f"Written: {page} (answers: {count}). Open it in a browser.")
    return 0


def _likeness(results: Sequence[SubmissionResult], options: Namespace) -> list[Path]:
    from lmcourse.grading.likeness import write_likeness

    to = options.likeness
    page = to if to.suffix == ".html" else to / "likeness.html"
    write_likeness(results, page, find_root(options.course))
    return [page]


def _unread(unread: int, submissions: int, learners: Sequence[str]) -> str:
    points = f"{unread} of {submissions} submissions could not be graded and count 0 points"
    more = f" and {len(learners) - MAX_NAMED} more" if len(learners) > MAX_NAMED else ""
    return f"{points}: {', '.join(learners[:MAX_NAMED])}{more}" if learners else points


def _results(paths: Sequence[Path], options: Namespace) -> list[SubmissionResult]:
    from lmcourse.grading.grader import grade, record
    from lmcourse.grading.sandbox import PROCESS_ISOLATION_WARNING
    from lmcourse.grading.workers import GradingOptions

    if options.isolation == "process":
        print(PROCESS_ISOLATION_WARNING, file=sys.stderr)
    course = find_root(options.course)
    with _progress() as on_progress:
        grading_options = GradingOptions(
            options.isolation,
            options.workers,
            options.scheduler,
            options.cell_seconds,
            options.total_seconds,
            on_progress,
            lambda sentence: print(sentence, file=sys.stderr),
        )
        if options.record:
            rules = {"db": options.db, "force": options.force, "again": options.again or ""}
            if options.marks:
                from lmcourse.grading.rubric import marks_in

                rules["by_hand"] = marks_in(options.marks, course=course, db=options.db)
            return record(paths, course=course, options=grading_options, **rules)
        return grade(paths, course=course, options=grading_options)


@contextmanager
def _unpacked(options: Namespace) -> Iterator[tuple[Sequence[Path], Callable[[Sequence[SubmissionResult]], None]]]:
    """Unpack the archives among the paths; yield the paths to grade, and a function to call with the results.

    For a platform's download, that function prints the names of the people, and fills in the platform's table if one
    was given. Raises CourseError, before grading begins, if an archive or a table is invalid.
    """
    from lmcourse.base.unzip import unpacked
    from lmcourse.grading.downloads import download_in
    from lmcourse.grading.grade_tables import fill_in, read_sheet

    with unpacked(options.paths) as sources:
        downloads = [download for path in sources.paths if path.is_dir() and (download := download_in(path))]
        people = [person for download in downloads for person in download.people]
        sheet = read_sheet(options.grades, people, options.column) if options.grades else None
        notes = [*sources.left_out]
        notes += [f"{name}: it does not say whose it is." for download in downloads for name in download.unknown]

        if options.feedback and not people:
            raise CourseError("--feedback needs a download of Moodle or Canvas: pass its zip or folder.")

        def finish(results: Sequence[SubmissionResult]) -> None:
            of = {result.student: result for result in results}
            filled = fill_in(sheet, people, of) if sheet else None
            _show_people(people, filled.grades if filled else {}, [*notes, *(filled.left if filled else ())])
            if filled:
                print(f"Written: {filled.path}, with {len(filled.grades)} grades")
            if options.feedback:
                from lmcourse.grading.feedback import write_feedback

                count = write_feedback(options.feedback, people, of, find_root(options.course), options.db)
                print(f"Written: {options.feedback}, with {count} pages")

        yield sources.paths, finish


def _show_people(people: Sequence[Person], grades: Mapping[str, str], notes: Sequence[str]) -> None:
    from lmcourse.cli import tables

    if people:
        tables.show(tables.people(people, grades), "")
    for note in notes:
        print(note)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("Grading", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _number(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
