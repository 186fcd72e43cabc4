"""The error for mistakes of a user: one line that says what is wrong and what to do."""

from __future__ import annotations


class CourseError(Exception):
    """A mistake in what somebody typed or wrote, told in one line.

    A notebook shows only that line, without a traceback; a command prints it and exits with status 2.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [str(self)]
