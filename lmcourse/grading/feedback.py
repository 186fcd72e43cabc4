"""Pack feedback pages into a zip from which Moodle and Canvas return them to the learners.

Both find the learner by the beginning of a file's name, as in the download of submissions (see `downloads`).
Moodle: *Upload multiple feedback files in a zip*. Canvas: *Upload Submissions*, which adds the file to the comments.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lmcourse.base.atomic import write_all
from lmcourse.grading.downloads import MOODLE, Person
from lmcourse.grading.gradebook import nbgrader_configuration, quiet_nbgrader
from lmcourse.grading.result import SubmissionResult


def write_feedback(
    target: Path, people: Sequence[Person], results: Mapping[str, SubmissionResult], course: Path, db: str | None
) -> int:
    """Make the feedback pages of the people in a download from their recorded marks, and write the zip; return how many
    it has. Raises CourseError if nbgrader cannot make a page, or the zip cannot be written."""
    packed, count = io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, page in _pages(people, results, course, db):
            file.writestr(name, page)
            count += 1
    write_all({target: packed.getvalue()})
    return count


def _pages(
    people: Sequence[Person], results: Mapping[str, SubmissionResult], course: Path, db: str | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the name in the zip and the page of each person whose marks are recorded."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    config = nbgrader_configuration(course, db)
    for person in people:
        result = results.get(person.student)
        if result is None or result.failed or not result.assignment or not person.files:
            continue
        directory = CourseDirectory(config=config)
        directory.assignment_id, directory.student_id = result.assignment, person.student
        with quiet_nbgrader(f"{person.student}: no feedback page"):
            GenerateFeedback(coursedir=directory, config=config).start()
        folder = Path(directory.format_path(directory.feedback_directory, person.student, result.assignment))
        yield from ((name_of_page(person, page), page.read_bytes()) for page in sorted(folder.glob("*.html")))


def name_of_page(person: Person, page: Path) -> str:
    """Return the name by which the platform finds the learner: that of a file of the download, with the page's own."""
    handed_in = person.files[-1]
    if person.platform == "Canvas":
        return handed_in.with_suffix(".html").name
    place = next(path for path in (*reversed(handed_in.parents), handed_in) if MOODLE.fullmatch(path.name))
    if place != handed_in:
        return f"{place.name}/{page.name}"
    beginning = "_assignsubmission_file_"
    return f"{place.name.partition(beginning)[0]}{beginning}{page.name}"
