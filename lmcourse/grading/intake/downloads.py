"""What a learning platform gives a teacher who downloads all submissions: whose files they are, by their names.

Moodle (`mod/assign/classes/downloader.php`) makes a folder for each participant, older ones prefix each file:

    Ada Lovelace_1234567_assignsubmission_file_/attention.ipynb
    Ada Lovelace_1234567_assignsubmission_file_attention.ipynb

Canvas (`lib/content_zipper.rb`) prefixes each file: the name as it sorts, in lower case and without a space; LATE; the
user; the file:

    lovelaceada_LATE_12345_67890_attention-1.ipynb

Canvas's number is a user's for good. Moodle counts participants of each assignment anew, so there it tells people of
one name apart, and finds their row in the worksheet, and the gradebook knows them by their name.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lmcourse.errors import CourseError
from lmcourse.grading.intake.files import (
    ARCHIVE_SUFFIXES,
    UnreadableError,
    escaped_name,
    folders_in,
    notebooks_in,
    refuse_links,
    visible_in,
)
from lmcourse.grading.intake.student_ids import NO_CHARACTERS

Platform = Literal["Moodle", "Canvas"]

# Neither platform leaves a learner a way to write what stands before their number; the file's name is theirs.
_MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<number>[0-9]+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL
)
_CANVAS = re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<number>[0-9]+)_(?P<order>[0-9]+)_(?P<file>.+)", re.DOTALL)


@dataclass(frozen=True)
class Person:
    """Somebody who handed in, as a download names them.

    Attributes:
        platform: whose download.
        name: what the platform calls them.
        number: Moodle's participant, Canvas's user.
        student: their id in the gradebook.
        late: whether Canvas says so.
        files: what they handed in, the oldest first, as far as the platform tells.
        problem: why their files cannot be looked at.
    """

    platform: Platform
    name: str
    number: str
    student: str
    late: bool = False
    files: tuple[Path, ...] = ()
    problem: str = ""

    @property
    def notebooks(self) -> list[Path]:
        """Those of their files that call themselves notebooks."""
        return [path for path in self.files if path.suffix.lower() == ".ipynb"]

    def why_no_notebook(self, wanted: str) -> str:
        """Why there is no notebook among their files, and what to do.

        Args:
            wanted: the name of the assignment's notebook.
        """
        for path in self.files:
            if path.suffix.lower() in ARCHIVE_SUFFIXES:
                return f"{escaped_name(path.name)} is an archive: unpack it and hand in {wanted} itself."
        return f"No notebook was handed in: {wanted} is missing."


@dataclass(frozen=True)
class Download:
    """A download: who is in it, and names in it that say nobody's."""

    people: tuple[Person, ...]
    unknown: tuple[str, ...]


def download_in(folder: Path) -> Download | None:
    """The download in this folder, or in the only one in it; None if it is none.

    Raises:
        CourseError: the folder cannot be opened.
    """
    try:
        return _read_download(folder)
    except UnreadableError as error:
        raise CourseError(str(error)) from error


def _read_download(folder: Path) -> Download | None:
    entries = visible_in(folder)
    if len(entries) == 1 and not _matched(entries[0]) and folders_in(folder) == entries:
        entries = visible_in(entries[0])
    found: dict[tuple[Platform, str], Person] = {}
    unknown = []
    for path in entries:
        person = _person(path)
        if person is None:
            if not path.name.startswith("__"):
                unknown.append(escaped_name(path.name))
            continue
        key = (person.platform, person.number)
        known = found.get(key, replace(person, files=(), late=False, problem=""))
        files, problem = (*known.files, *person.files), known.problem or person.problem
        found[key] = replace(known, files=files, late=known.late or person.late, problem=problem)
    if not found:
        return None
    return Download(_with_unique_ids([_oldest_first(person) for person in found.values()]), tuple(unknown))


def _matched(path: Path) -> re.Match[str] | None:
    return _MOODLE.fullmatch(path.name) or (None if path.is_dir() else _CANVAS.fullmatch(path.name))


def _person(path: Path) -> Person | None:
    """Whose a file or folder of a download is."""
    match = _matched(path)
    if match is None:
        return None
    name, number = match["name"].strip(), match["number"]
    student = "".join(char for char in name if char not in NO_CHARACTERS).strip()
    if match.re is _CANVAS:
        return Person("Canvas", name, number, f"{student}_{number}", match["late"] is not None, (path,))
    files: tuple[Path, ...] = ()
    problem = ""
    if match["kind"] == "file":
        try:
            files = _files_of(path)
        except UnreadableError as error:
            problem = str(error)
    return Person("Moodle", name, number, student, files=files, problem=problem)


def _files_of(path: Path) -> tuple[Path, ...]:
    """The files of a participant: this one, or those in this folder. Moodle keeps the folders that they made."""
    if not path.is_dir():
        return (path,)
    refuse_links(path)
    below = [folder for folder in folders_in(path) if not folder.is_symlink()]
    found = [each for each in visible_in(path) if each not in below]
    found += [notebook for folder in below for notebook in notebooks_in(folder)]
    return tuple(found)


def _oldest_first(person: Person) -> Person:
    """Canvas numbers files as they come; of Moodle's there is nothing but their time."""

    def age(path: Path) -> tuple[float, str]:
        match = _CANVAS.fullmatch(path.name) if person.platform == "Canvas" else None
        return (int(match["order"]) if match else path.lstat().st_mtime), path.name

    return replace(person, files=tuple(sorted(person.files, key=age)))


def _with_unique_ids(people: list[Person]) -> tuple[Person, ...]:
    """People of one name go by their number too."""
    count = Counter(person.student.casefold() for person in people)
    return tuple(
        replace(person, student=f"{person.student} {person.number}") if count[person.student.casefold()] > 1 else person
        for person in people
    )
