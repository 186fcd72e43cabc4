"""The error for mistakes of users: one line that says what is wrong and what to do."""

from __future__ import annotations


class CourseError(Exception):
    """A user's mistake, reported in one line.

    A notebook shows only that line, without a traceback; a command prints it and exits with status 2.

    Example:
        >>> find_model("lama-3-8b")
        Traceback (most recent call last):
        lmcourse.base.errors.CourseError: ...
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [str(self)]
