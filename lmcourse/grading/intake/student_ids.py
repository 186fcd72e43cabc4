"""What a student may be called: the name of a folder, in the gradebook, in pages and on command lines."""

from __future__ import annotations

from collections.abc import Collection

from lmcourse.grading.intake.files import escaped_name

ME = "me"
"""The student of a notebook that somebody grades for themselves."""

NO_CHARACTERS = "<>\"'&*?["
"""What no student's id may have in it: it would be HTML, or a pattern of names to nbgrader."""

NO_BEGINNINGS = ("=", "+", "-", "@", ".", "__")
"""What none may begin with: it would be a formula, an option, a hidden folder or one that macOS adds to an archive."""

MAX_STUDENT_ID_CHARS = 128
"""Characters of a student's id in nbgrader's gradebook."""


def student_id_problem(student: str, known: Collection[str] = ()) -> str:
    """Why the name of a folder cannot be a student's id, or nothing.

    An id is shown in formgrader's pages, in tables that a spreadsheet opens and on command lines, which take some
    characters for something else.

    Args:
        student: the name of the folder.
        known: the ids of the assignments.
    """
    shown = escaped_name(student)
    if len(student) > MAX_STUDENT_ID_CHARS:
        return f"The folder {shown} has a name of more than {MAX_STUDENT_ID_CHARS} characters: rename it."
    if not student.isprintable():
        return f"The name of the folder {shown} cannot be printed: give it the student's id as its name."
    if student == ME or student in known:
        return f"The folder {shown} has a name that means something else here: give it the student's id as its name."
    if student != student.strip() or student.startswith(NO_BEGINNINGS) or set(student) & set(NO_CHARACTERS):
        return (
            f"The name of the folder {shown} is no plain name: rename it, without {' '.join(NO_CHARACTERS)}, spaces at "
            f"an end, and {' '.join(NO_BEGINNINGS)} at the beginning."
        )
    return ""
