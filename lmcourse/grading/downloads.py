"""Read downloads of submissions from Moodle and Canvas.

Moodle (`mod/assign/classes/downloader.php`) makes a folder for each participant, before version 4.1 with an underscore
at its end; older versions prefix each file.
Canvas (`lib/content_zipper.rb`) prefixes each file with the name for sorting, LATE if it is late, the user's number and
another number:

    Ada Lovelace_1234567_assignsubmission_file/attention.ipynb
    Ada Lovelace_1234567_assignsubmission_file_attention.ipynb
    lovelaceada_LATE_12345_67890_attention-1.ipynb

In Canvas a user's number never changes. Moodle numbers participants separately in each assignment, so the number
identifies their row in Moodle's worksheet, but the gradebook uses their name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lmcourse.base.text import escaped_name
from lmcourse.grading import files

Platform = Literal["Moodle", "Canvas"]

# characters that student ids may not contain: HTML, quotes, and wildcards of nbgrader's file patterns
NO_CHARACTERS = "<>\"'&*?["

# On both platforms learners choose the name of the file, but not the part up to their number.
MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<number>[0-9]+)_assignsubmission_(?P<kind>[a-z]+)(_.*)?", re.DOTALL)
_CANVAS = re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<number>[0-9]+)_(?P<order>[0-9]+)_.+", re.DOTALL)


@dataclass(frozen=True)
class Person:
    """A person in a download."""

    platform: Platform
    name: str  # the name on the platform
    number: str  # Moodle's participant number, or Canvas's user number
    student: str  # the id in the gradebook
    late: bool = False  # True if Canvas marks a file as late
    files: tuple[Path, ...] = ()  # oldest first
    problem: str = ""  # why the files cannot be read

    @property
    def notebooks(self) -> list[Path]:
        """The files with names that end in .ipynb."""
        return [path for path in self.files if files.is_notebook(path)]


@dataclass(frozen=True)
class Download:
    """The people in a download, and the names of files that do not belong to any of them."""

    people: tuple[Person, ...]
    unknown: tuple[str, ...]


def download_in(folder: Path) -> Download | None:
    """Return the download in this folder, or in its only subfolder; None if there is no download."""
    entries = files.visible_in(folder)
    if len(entries) == 1 and not _match(entries[0]) and files.folders_in(folder) == entries:
        entries = files.visible_in(entries[0])
    groups: dict[tuple[bool, str], list[re.Match[str]]] = {}
    unknown = []
    for path in entries:
        if match := _match(path):
            groups.setdefault((match.re is MOODLE, match["number"]), []).append(match)
        elif not path.name.startswith("__"):
            unknown.append(escaped_name(path.name))
    if not groups:
        return None
    people = [_person(entries[0].parent, moodle, group) for (moodle, _), group in groups.items()]
    count = Counter(person.student.casefold() for person in people)
    twice = {person for person in people if count[person.student.casefold()] > 1}
    named = (replace(each, student=f"{each.student} {each.number}") if each in twice else each for each in people)
    return Download(tuple(named), tuple(unknown))


def _match(path: Path) -> re.Match[str] | None:
    return MOODLE.fullmatch(path.name) or (None if path.is_dir() else _CANVAS.fullmatch(path.name))


def _person(folder: Path, moodle: bool, matches: Sequence[re.Match[str]]) -> Person:
    # macOS may decompose letters, but the same person must have the same id on every system.
    name, number = unicodedata.normalize("NFC", matches[0]["name"].strip()), matches[0]["number"]
    student = "".join(char for char in name if char not in NO_CHARACTERS).strip()
    if not moodle:
        ordered = sorted(matches, key=lambda match: int(match["order"]))
        late = any(match["late"] for match in matches)
        return Person("Canvas", name, number, f"{student}_{number}", late, tuple(folder / m.string for m in ordered))
    found: list[Path] = []
    problem = ""
    # other kinds are texts that were typed online and saved as web pages
    for match in (each for each in matches if each["kind"] == "file"):
        try:
            path = folder / match.string
            found += files.handed_in(path) if path.is_dir() else [path]
        except files.UnreadableError as error:
            problem = str(error)
    found.sort(key=lambda path: (path.lstat().st_mtime, path.name))
    return Person("Moodle", name, number, student, files=tuple(found), problem=problem)
