"""What a gradebook wants to know of a submission besides its notebook: whose, when, and whether it has changed."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from nbgrader.utils import parse_utc

from lmcourse.grading.intake.opening import UnreadableError, read_file, shown
from lmcourse.grading.intake.submissions import Submission

TIMESTAMP = "timestamp.txt"
"""The file beside a notebook in which nbgrader's exchange says when it came."""

LONGEST = 128
"""Characters of a student's id in nbgrader's gradebook."""


def as_handed_in(submission: Submission) -> Submission:
    """The submission with its digest and its time."""
    if submission.notebook is None:
        return submission
    try:
        digest = hashlib.sha256(read_file(submission.notebook)).hexdigest()
    except UnreadableError:
        digest = ""
    return replace(submission, digest=digest, timestamp=_timestamp(submission))


def unusable_name(student: str) -> str:
    """Why the name of a folder cannot be a student's id, or nothing."""
    try:
        student.encode()
    except UnicodeEncodeError:
        return f"The folder {shown(student)} has a name that is not UTF-8: rename it."
    if len(student) > LONGEST:
        return f"The folder {shown(student)} has a name of more than {LONGEST} characters: rename it."
    if not student.isprintable() or student != student.strip() or set(student) & set("*?["):
        return (
            f"nbgrader cannot find the folder {shown(student)}, for a *, ?, [, a line break or a space at an end of "
            "its name: rename it."
        )
    return ""


def _timestamp(submission: Submission) -> str:
    """When it came; nothing if nobody said, or if it is no time, which would stop nbgrader."""
    assert submission.notebook is not None
    try:
        text = read_file(submission.notebook.parent / TIMESTAMP)[:100].decode().strip()
        return text if text and parse_utc(text) else ""
    except (UnreadableError, ValueError, OverflowError):
        return ""
