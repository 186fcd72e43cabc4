"""`lmcourse grade` on what a learning platform gave for download: who is who, and the grades back into its table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmcourse.grading.lms import Person
    from lmcourse.grading.result import SubmissionResult


@contextmanager
def graded_download(
    options: Namespace,
) -> Iterator[tuple[Sequence[Path], Callable[[Sequence[SubmissionResult]], None]]]:
    """What `lmcourse grade` was given, with archives unpacked.

    Args:
        options: of the command line: `paths`, `grades`, `column`.

    Yields:
        The paths to grade, and what is to be done with the results: of a download it prints who is who, and fills in
        the platform's table, if one was named.

    Raises:
        CourseError: an archive or a table is not what it should be; before anything is graded.
    """
    from lmcourse.grading.files import unpacked
    from lmcourse.grading.lms import download_in, fill_in, read_sheet

    with unpacked(options.paths) as sources:
        downloads = [download for path in sources.paths if path.is_dir() and (download := download_in(path))]
        people = [person for download in downloads for person in download.people]
        sheet = read_sheet(options.grades, people, options.column) if options.grades else None
        notes = [*sources.left_out]
        notes += [f"{name}: it does not say whose it is." for download in downloads for name in download.unknown]

        def finish(results: Sequence[SubmissionResult]) -> None:
            if not sheet:
                _show(people, {}, notes)
                return
            filled = fill_in(sheet, people, {result.student: result for result in results})
            _show(people, filled.grades, [*notes, *filled.left])
            print(f"Written: {filled.path}, with {len(filled.grades)} grades")

        yield sources.paths, finish


def _show(people: Sequence[Person], grades: Mapping[str, str], notes: Sequence[str]) -> None:
    from lmcourse.cli import tables

    if people:
        tables.show(tables.people(people, grades), "")
    for note in notes:
        print(note)
